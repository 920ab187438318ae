// SPDX-License-Identifier: Apache-2.0

/// The refusal of an imgproxy URL.
package struct AddressError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reasons, as a client may see them.
    package enum Reason: Sendable, Hashable {
        /// The path, an option or the text of the source is wrong, or the URL has expired.
        case invalidURL
        /// The signature is missing or wrong.
        case forbidden
        /// The URL sets a limit, and the server does not allow that.
        case forbiddenOption
        /// The source is of a kind or at a place that the server does not allow.
        case invalidSource
    }

    package let reason: Reason
    /// The details, for logs and for the development mode.
    package let message: String

    /// The status of the response.
    package var status: Int {
        switch self.reason {
        case .invalidURL, .invalidSource: 404
        case .forbidden, .forbiddenOption: 403
        }
    }

    /// The body of the response.
    ///
    /// It reveals nothing about the server.
    package var publicText: String {
        switch self.reason {
        case .invalidURL, .forbiddenOption: "Invalid URL"
        case .forbidden: "Forbidden"
        case .invalidSource: "Invalid source URL"
        }
    }

    package var description: String { self.message }

    static func invalidURL(_ message: String) -> AddressError { AddressError(reason: .invalidURL, message: message) }

    static func forbidden(_ message: String) -> AddressError { AddressError(reason: .forbidden, message: message) }

    static func invalidSource(_ message: String) -> AddressError {
        AddressError(reason: .invalidSource, message: message)
    }
}
