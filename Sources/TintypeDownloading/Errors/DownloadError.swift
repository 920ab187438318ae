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

    /// Creates an error.
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
    /// The URL can't be requested.
    public static let invalidURL = TintypeErrorCode("invalidURL")
    /// A header field of the request, or what becomes one, has a character that would break the request.
    public static let invalidHeader = TintypeErrorCode("invalidHeader")
    /// The URL's scheme is not `http`, `https`, `file` or `data`.
    public static let unsupportedScheme = TintypeErrorCode("unsupportedScheme")
    /// The name of the host has no address.
    public static let hostNotFound = TintypeErrorCode("hostNotFound")
    /// The host does not accept connections.
    public static let cannotConnect = TintypeErrorCode("cannotConnect")
    /// The proxy refused to connect to the host, or wants other credentials; another try would end like this one.
    public static let proxyRefused = TintypeErrorCode("proxyRefused")
    /// The TLS handshake failed or the certificate can't be verified.
    public static let tlsFailed = TintypeErrorCode("tlsFailed")
    /// Connecting, the first byte, a pause or the whole transfer took too long: see the timeouts of
    /// ``DownloadActor/Configuration``.
    public static let timedOut = TintypeErrorCode("timedOut")
    /// The connection broke before the response was complete.
    public static let connectionLost = TintypeErrorCode("connectionLost")
    /// The request does not accept the status.
    ///
    /// By default it accepts 200 to 299.
    public static let badStatus = TintypeErrorCode("badStatus")
    /// The server redirects more often than ``DownloadActor/Configuration/maximumRedirects``.
    public static let tooManyRedirects = TintypeErrorCode("tooManyRedirects")
    /// The server redirects to something that is not `http` or `https`.
    public static let unsafeRedirect = TintypeErrorCode("unsafeRedirect")
    /// The response is not HTTP.
    public static let invalidResponse = TintypeErrorCode("invalidResponse")
    /// The body has more bytes than ``DownloadActor/Configuration/maximumBodySize``, or than the request allows.
    public static let bodyTooLarge = TintypeErrorCode("bodyTooLarge")
    /// The body ended before its declared length.
    public static let bodyCutShort = TintypeErrorCode("bodyCutShort")
    /// The body has no bytes.
    public static let emptyBody = TintypeErrorCode("emptyBody")
    /// The body arrives more slowly than ``DownloadActor/Configuration/minimumSpeed``.
    public static let tooSlow = TintypeErrorCode("tooSlow")
    /// The request does not accept the `Content-Type`.
    public static let unacceptableContentType = TintypeErrorCode("unacceptableContentType")
    /// A hook of the downloader refused the request or the response; the underlying error says why.
    public static let refused = TintypeErrorCode("refused")
    /// A hook of the downloader could not decrypt the body; the underlying error says why.
    public static let decryptionFailed = TintypeErrorCode("decryptionFailed")
    /// There is no such file.
    public static let fileNotFound = TintypeErrorCode("fileNotFound")
    /// The file can't be read, or is no ordinary file.
    public static let fileUnreadable = TintypeErrorCode("fileUnreadable")
    /// The policy does not allow the URL's scheme.
    public static let schemeNotAllowed = TintypeErrorCode("schemeNotAllowed")
    /// The URL holds a user or a password, which the policy does not allow.
    public static let userInformationInURL = TintypeErrorCode("userInformationInURL")
    /// The URL's host is not written in a way that every reader reads alike.
    public static let malformedHost = TintypeErrorCode("malformedHost")
    /// The policy does not allow the port.
    public static let portNotAllowed = TintypeErrorCode("portNotAllowed")
    /// The policy does not allow the host.
    public static let hostNotAllowed = TintypeErrorCode("hostNotAllowed")
    /// The policy denies every address of the host.
    public static let addressNotAllowed = TintypeErrorCode("addressNotAllowed")
}
