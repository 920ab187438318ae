public import FoundationEssentials
public import TintypeHTTP

/// What to download, and how.
///
/// Requests that are equal while one of them is in flight share one transfer. All
/// properties count: headers select a representation and carry credentials, and a caller
/// with a limit of its own must not get what another one's limit allowed.
public struct DownloadRequest: Sendable, Hashable {
    /// What is asked of the resource.
    public struct Method: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String, Sendable {
            case get = "GET"
            case head = "HEAD"
        }

        private let value: Value

        /// The name of the method as it is sent.
        public var description: String { self.value.rawValue }

        /// Transfer the resource.
        public static let get = Method(value: .get)
        /// Only tell about the resource: the response has no body.
        public static let head = Method(value: .head)
    }

    /// The resource: an `http`, `https`, `file` or `data` URL.
    public var url: URL
    /// What is asked of the resource.
    public var method: Method
    /// Fields to send beside those that the configuration gives; one with the same name replaces it.
    public var headers: HeaderFields
    /// The longest time without a byte received; `nil`, as zero, for that of the
    /// configuration.
    public var timeout: Duration?
    /// The longest time for finding the host and connecting to it; `nil`, as zero, for that of the
    /// configuration.
    public var connectTimeout: Duration?
    /// The bytes that the body may have, or `nil` for the limit of the configuration.
    public var maximumBodySize: Int?
    /// The status codes that give a response, or `nil` for those of the configuration; any other is an error.
    ///
    /// With 304 among them, the answer to a conditional request is a response with an empty body.
    public var acceptableStatusCodes: StatusCodes?
    /// The media types that give a response, such as `image/png` or `image/*`, or `nil` for those of the configuration.
    ///
    /// Any other, and a response that names none, is an error before its body comes.
    public var acceptableContentTypes: [String]?
    /// The longest time from sending the request to the head of the response; `nil`, as zero, for that of the
    /// configuration.
    public var firstByteTimeout: Duration?
    /// The longest time for everything, redirects and retries included; `nil`, as zero, for that of the
    /// configuration.
    public var totalTimeout: Duration?
    /// What proves the user's identity, or `nil` for nothing; the header `Authorization` would replace it.
    public var credentials: Credentials?
    /// Which servers to trust over TLS, or `nil` for the policy of the configuration.
    public var tls: TLSPolicy?
    /// The proxy that the request goes through, or `nil` for the policy of the configuration.
    public var proxy: ProxyPolicy?
    /// Where cookies come from and go to, if anywhere, or `nil` for the jar of the configuration.
    public var cookies: CookiePolicy?
    /// What the request may be led to, redirects included, or `nil` for the policy of the configuration.
    public var networkPolicy: NetworkPolicy?
    /// What is tried again after a failure, or `nil` for the policy of the configuration.
    ///
    /// The budget of tries is that of the configuration's policy, which all requests share.
    public var retryPolicy: RetryPolicy?
    /// A Unix-domain socket to connect to instead of the host that the URL names, or `nil` for none.
    public var unixSocketPath: String?
    /// Whether a certificate that can't be verified is accepted: anyone on the way can then read and change the body.
    public var allowsInvalidCertificates: Bool

    /// Creates a request; what is left out is as the configuration says.
    public init(
        url: URL,
        method: Method = .get,
        headers: HeaderFields = [:],
        timeout: Duration? = nil,
        connectTimeout: Duration? = nil,
        maximumBodySize: Int? = nil,
        acceptableStatusCodes: StatusCodes? = nil,
        credentials: Credentials? = nil,
        tls: TLSPolicy? = nil,
        allowsInvalidCertificates: Bool = false
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.timeout = timeout
        self.connectTimeout = connectTimeout
        self.maximumBodySize = maximumBodySize
        self.acceptableStatusCodes = acceptableStatusCodes
        self.credentials = credentials
        self.tls = tls
        self.allowsInvalidCertificates = allowsInvalidCertificates
    }
}

// MARK: - Hashable

extension DownloadRequest {
    /// Requests that differ in anything else seldom have the same URL.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.url)
        hasher.combine(self.headers)
    }
}

/// How one request reaches its server, where it differs from what the configuration says for all.
struct TransportOptions: Equatable {
    var method = DownloadRequest.Method.get
    var tls: TLSPolicy?
    var proxy: ProxyPolicy?
    var credentials: Credentials?
    var cookies: CookiePolicy?
    var unixSocketPath: String?

    init(_ request: DownloadRequest) {
        self.method = request.method
        self.tls = request.tls
        self.proxy = request.proxy
        self.credentials = request.credentials
        self.cookies = request.cookies
        self.unixSocketPath = request.unixSocketPath
    }

    /// The same, or `nil` where any handle will do.
    var unlessOrdinary: TransportOptions? {
        let isOrdinary =
            self.method == .get && self.tls == nil && self.proxy == nil && self.credentials == nil
            && self.cookies == nil && self.unixSocketPath == nil
        return isOrdinary ? nil : self
    }
}
