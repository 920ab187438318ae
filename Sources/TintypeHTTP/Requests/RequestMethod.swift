// SPDX-License-Identifier: Apache-2.0

/// The method of a request.
package enum RequestMethod: Sendable, Hashable {
    case get
    case head
    case options
    case post
    /// Any other token, as received. The server answers such a request with 405.
    case other(String)

    /// Creates the method with this name; the case of letters counts.
    package init(_ name: String) {
        switch name {
        case "GET": self = .get
        case "HEAD": self = .head
        case "OPTIONS": self = .options
        case "POST": self = .post
        default: self = .other(name)
        }
    }

    /// The name, as request lines spell it.
    package var name: String {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .options: "OPTIONS"
        case .post: "POST"
        case .other(let name): name
        }
    }
}
