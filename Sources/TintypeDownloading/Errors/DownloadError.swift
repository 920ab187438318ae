// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
@_exported public import TintypeErrors
public import TintypeHTTP

/// The error of a download.
///
/// A cancelled download throws `CancellationError` instead.
public struct DownloadError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// The kind of failure.
    public let code: Code
    /// The event and the advice, in a full sentence, for the people who run the program.
    ///
    /// It may contain inner addresses and rules of the network policy, so do not send it to clients.
    public let message: String
    /// The URL that failed, after redirects and without credentials.
    public let url: URL?
    /// The status of the response, if there was one.
    public let status: Int?
    /// The header fields of the response, if there was one.
    public let headers: HeaderFields
    /// The underlying error; a ``CurlError`` if it came from libcurl.
    public let underlyingError: (any Error)?
    /// Whether another machine has remembered the failure, and says when it is over.
    package var isRemembered = false

    /// Creates an error.
    ///
    /// ```swift
    /// throw DownloadError(code: .badStatus, message: "The archive has no such image.", url: url, status: 404)
    /// ```
    public init(
        code: Code,
        message: String,
        url: URL? = nil,
        status: Int? = nil,
        headers: HeaderFields = [:],
        underlyingError: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.url = url
        self.status = status
        self.headers = headers
        self.underlyingError = underlyingError
    }
}

extension TintypeErrorCode {
    /// The URL cannot be requested.
    public static let invalidURL = TintypeErrorCode("invalidURL", .request)
    /// A header field of the request, or what becomes one, has a character that would break the request.
    public static let invalidHeader = TintypeErrorCode("invalidHeader", .request)
    /// The URL's scheme is not `http`, `https`, `file` or `data`.
    public static let unsupportedScheme = TintypeErrorCode("unsupportedScheme", .request)
    /// The name of the host has no address.
    public static let hostNotFound = TintypeErrorCode("hostNotFound", .origin)
    /// The host does not accept connections.
    public static let cannotConnect = TintypeErrorCode("cannotConnect", .origin)
    /// The proxy refused to connect to the host, or wants other credentials; another try would end like this one.
    public static let proxyRefused = TintypeErrorCode("proxyRefused", .origin)
    /// The TLS handshake failed or the certificate cannot be verified.
    public static let tlsFailed = TintypeErrorCode("tlsFailed", .origin)
    /// Connecting, the first byte, a pause or the whole transfer took too long: see the timeouts of
    /// ``DownloadActor/Configuration``.
    public static let timedOut = TintypeErrorCode("timedOut", .origin, httpStatus: 504)
    /// The connection broke before the response was complete.
    public static let connectionLost = TintypeErrorCode("connectionLost", .origin)
    /// The request does not accept the status.
    ///
    /// By default it accepts 200 to 299.
    public static let badStatus = TintypeErrorCode("badStatus", .origin)
    /// The server redirects more often than ``DownloadActor/Configuration/maximumRedirects``.
    public static let tooManyRedirects = TintypeErrorCode("tooManyRedirects", .origin)
    /// The server redirects to something that is not `http` or `https`.
    public static let unsafeRedirect = TintypeErrorCode("unsafeRedirect", .origin)
    /// The response is not HTTP.
    public static let invalidResponse = TintypeErrorCode("invalidResponse", .origin)
    /// The body has more bytes than ``DownloadActor/Configuration/maximumBodySize``, or than the request allows.
    public static let bodyTooLarge = TintypeErrorCode("bodyTooLarge", .overLimit)
    /// The body ended before its declared length.
    public static let bodyCutShort = TintypeErrorCode("bodyCutShort", .origin)
    /// The body has no bytes.
    public static let emptyBody = TintypeErrorCode("emptyBody", .origin)
    /// The body arrives more slowly than ``DownloadActor/Configuration/minimumSpeed``.
    public static let tooSlow = TintypeErrorCode("tooSlow", .origin, httpStatus: 504)
    /// The request does not accept the `Content-Type`.
    public static let unacceptableContentType = TintypeErrorCode("unacceptableContentType", .notAnImage)
    /// A hook refused the request or the response; the underlying error says why.
    public static let refused = TintypeErrorCode("refused", .refused)
    /// A hook could not decrypt the body; the underlying error says why.
    public static let decryptionFailed = TintypeErrorCode("decryptionFailed", .origin)
    /// There is no such file.
    public static let fileNotFound = TintypeErrorCode("fileNotFound", .origin, httpStatus: 404)
    /// The file cannot be read, or is not an ordinary file.
    public static let fileUnreadable = TintypeErrorCode("fileUnreadable", .origin)
    /// The policy does not allow the URL's scheme.
    public static let schemeNotAllowed = TintypeErrorCode("schemeNotAllowed", .refused)
    /// The URL holds a user or a password, which the policy does not allow.
    public static let userInformationInURL = TintypeErrorCode("userInformationInURL", .refused)
    /// The URL's host is not written in a way that every reader reads alike.
    public static let malformedHost = TintypeErrorCode("malformedHost", .refused)
    /// The policy does not allow the port.
    public static let portNotAllowed = TintypeErrorCode("portNotAllowed", .refused)
    /// The policy does not allow the host.
    public static let hostNotAllowed = TintypeErrorCode("hostNotAllowed", .refused)
    /// The policy denies every address of the host.
    public static let addressNotAllowed = TintypeErrorCode("addressNotAllowed", .refused, httpStatus: 502)
}
