// SPDX-License-Identifier: Apache-2.0

/// A reason to refuse a request whose head breaks the rules of HTTP or a limit.
///
/// The end of such a request is in doubt, so the server must close the connection after the response.
package enum RequestRefusal: Error, Sendable, Hashable, CaseIterable {
    case invalidLineEnding
    case invalidMethod
    case invalidTarget
    case targetWithFragment
    case requestLineTooLong
    case invalidVersion
    case unsupportedVersion
    case invalidFieldName
    case invalidFieldValue
    case foldedField
    case tooManyFields
    case headTooLarge
    case missingHost
    case repeatedHost
    case invalidHost
    case invalidContentLength
    case repeatedContentLength
    case transferEncoding
    case transferEncodingWithContentLength
    case transferEncodingBeforeVersion1_1
    case unknownExpectation

    /// The status of the response.
    package var status: Int {
        switch self {
        case .requestLineTooLong: 414
        case .unknownExpectation: 417
        case .tooManyFields, .headTooLarge: 431
        case .transferEncoding: 501
        case .unsupportedVersion: 505
        default: 400
        }
    }

    /// A sentence for the client and the log, without any part of the request.
    package var message: String {
        switch self {
        case .invalidLineEnding: "Each line of the head must end with CR LF."
        case .invalidMethod: "The method must be a token of at most 32 characters."
        case .invalidTarget: "The request target must be a path or an http URL, without spaces and control characters."
        case .targetWithFragment: "The request target must not have a fragment; write # as %23."
        case .requestLineTooLong: "The request line is too long; shorten the URL."
        case .invalidVersion: "The request line must end with HTTP/1.1 or HTTP/1.0."
        case .unsupportedVersion: "Send the request with HTTP/1.1; this server has no other major version."
        case .invalidFieldName: "The name of a header field must be a token, with a colon directly after it."
        case .invalidFieldValue: "The value of a header field must not have control characters."
        case .foldedField: "Write each header field on one line; folded fields are obsolete."
        case .tooManyFields: "The request has too many header fields."
        case .headTooLarge: "The header fields are too large."
        case .missingHost: "A request with HTTP/1.1 must have a Host field."
        case .repeatedHost: "The request must have only one Host field."
        case .invalidHost: "The host must be a name or an address, with or without a port."
        case .invalidContentLength: "Content-Length must be a number of bytes in decimal digits."
        case .repeatedContentLength: "The request must have only one Content-Length field."
        case .transferEncoding: "Send bodies with a Content-Length; this server has no transfer codings."
        case .transferEncodingWithContentLength: "A request must not have both Content-Length and Transfer-Encoding."
        case .transferEncodingBeforeVersion1_1: "A request before HTTP/1.1 must not have a Transfer-Encoding field."
        case .unknownExpectation: "The only expectation that this server meets is 100-continue."
        }
    }
}
