public import FoundationEssentials
public import TintypeHTTP

/// Why a download failed.
///
/// A cancelled download throws `CancellationError` instead.
public struct DownloadError: Error, Sendable, CustomStringConvertible {
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String, Sendable {
            case invalidURL, invalidHeader, unsupportedScheme
            case hostNotFound, cannotConnect, tlsFailed, timedOut, connectionLost
            case badStatus, tooManyRedirects, unsafeRedirect, invalidResponse
            case bodyTooLarge, bodyCutShort, emptyBody, tooSlow, unacceptableContentType
            case refused, decryptionFailed
            case fileNotFound, fileUnreadable
            case schemeNotAllowed, userInformationInURL, malformedHost, portNotAllowed, hostNotAllowed,
                addressNotAllowed
            case tooManyOpenFiles, tooManyThreads, outOfMemory
            case shutDown
            case unexpected
        }

        private let value: Value

        /// The stable name of the code.
        public var description: String { self.value.rawValue }

        /// The URL can't be requested.
        public static let invalidURL = Code(value: .invalidURL)
        /// A header field of the request, or what becomes one, has a character that would break the request.
        public static let invalidHeader = Code(value: .invalidHeader)
        /// The URL's scheme is not `http`, `https`, `file` or `data`.
        public static let unsupportedScheme = Code(value: .unsupportedScheme)
        /// The name of the host has no address.
        public static let hostNotFound = Code(value: .hostNotFound)
        /// The host does not accept connections.
        public static let cannotConnect = Code(value: .cannotConnect)
        /// The TLS handshake failed or the certificate can't be verified.
        public static let tlsFailed = Code(value: .tlsFailed)
        /// Connecting took too long, or nothing was received for too long.
        public static let timedOut = Code(value: .timedOut)
        /// The connection broke before the response was complete.
        public static let connectionLost = Code(value: .connectionLost)
        /// The status is none that the request accepts; those from 200 to 299 are, by default.
        public static let badStatus = Code(value: .badStatus)
        /// The server redirects more often than the configuration allows.
        public static let tooManyRedirects = Code(value: .tooManyRedirects)
        /// The server redirects to something that is not `http` or `https`.
        public static let unsafeRedirect = Code(value: .unsafeRedirect)
        /// What was received is not an HTTP response.
        public static let invalidResponse = Code(value: .invalidResponse)
        /// The body has more bytes than the limit.
        public static let bodyTooLarge = Code(value: .bodyTooLarge)
        /// The body ended before its declared length.
        public static let bodyCutShort = Code(value: .bodyCutShort)
        /// The body has no bytes.
        public static let emptyBody = Code(value: .emptyBody)
        /// The body arrives more slowly than the configuration allows.
        public static let tooSlow = Code(value: .tooSlow)
        /// The `Content-Type` is none that the request accepts.
        public static let unacceptableContentType = Code(value: .unacceptableContentType)
        /// A hook of the downloader refused the request or the response; the underlying error says why.
        public static let refused = Code(value: .refused)
        /// A hook of the downloader could not decrypt the body; the underlying error says why.
        public static let decryptionFailed = Code(value: .decryptionFailed)
        /// There is no such file.
        public static let fileNotFound = Code(value: .fileNotFound)
        /// The file can't be read, or is no ordinary file.
        public static let fileUnreadable = Code(value: .fileUnreadable)
        /// The policy does not allow the URL's scheme.
        public static let schemeNotAllowed = Code(value: .schemeNotAllowed)
        /// The URL holds a user or a password, which the policy does not allow.
        public static let userInformationInURL = Code(value: .userInformationInURL)
        /// The URL's host is not written in a way that every reader reads alike.
        public static let malformedHost = Code(value: .malformedHost)
        /// The policy does not allow the port.
        public static let portNotAllowed = Code(value: .portNotAllowed)
        /// The policy does not allow the host.
        public static let hostNotAllowed = Code(value: .hostNotAllowed)
        /// The policy denies every address of the host.
        public static let addressNotAllowed = Code(value: .addressNotAllowed)
        /// The process or the system has no file descriptor left.
        public static let tooManyOpenFiles = Code(value: .tooManyOpenFiles)
        /// The system refused a thread.
        public static let tooManyThreads = Code(value: .tooManyThreads)
        /// The system refused memory.
        public static let outOfMemory = Code(value: .outOfMemory)
        /// The downloader was shut down before.
        public static let shutDown = Code(value: .shutDown)
        /// Something that should not happen; the underlying error says more.
        public static let unexpected = Code(value: .unexpected)
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do, in a full sentence.
    public let message: String
    /// The URL that failed, after redirects and without credentials.
    public let url: URL?
    /// The status of the response, where there was one.
    public let status: Int?
    /// The header fields of the response, where there was one.
    public let headers: HeaderFields
    /// What was reported from below; a ``CurlError`` where it came from libcurl.
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

    public var description: String { "\(self.code): \(self.message)" }
}
