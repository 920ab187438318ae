public import FoundationEssentials

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
        }

        private let value: Value

        /// The name of the method as it is sent.
        public var description: String { self.value.rawValue }

        /// Transfer the resource.
        public static let get = Method(value: .get)
    }

    /// The resource: an `http`, `https`, `file` or `data` URL.
    public var url: URL
    /// What is asked of the resource.
    public var method: Method
    /// Fields to send beside those that the configuration gives; one with the same name replaces it.
    public var headers: HTTPHeaders
    /// The longest time without a byte received, or `nil` for that of the configuration.
    public var timeout: Duration?
    /// The longest time for finding the host and connecting to it, or `nil` for that of the configuration.
    public var connectTimeout: Duration?
    /// The bytes that the body may have, or `nil` for the limit of the configuration.
    public var maximumBodySize: Int?
    /// The status codes that give a response, or `nil` for those of the configuration; any other is an error.
    ///
    /// With 304 among them, the answer to a conditional request is a response with an empty body.
    public var acceptableStatusCodes: StatusCodes?
    /// Whether a certificate that can't be verified is accepted: anyone on the way can then read and change the body.
    public var allowsInvalidCertificates: Bool

    /// Creates a request; what is left out is as the configuration says.
    public init(
        url: URL,
        method: Method = .get,
        headers: HTTPHeaders = [:],
        timeout: Duration? = nil,
        connectTimeout: Duration? = nil,
        maximumBodySize: Int? = nil,
        acceptableStatusCodes: StatusCodes? = nil,
        allowsInvalidCertificates: Bool = false
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.timeout = timeout
        self.connectTimeout = connectTimeout
        self.maximumBodySize = maximumBodySize
        self.acceptableStatusCodes = acceptableStatusCodes
        self.allowsInvalidCertificates = allowsInvalidCertificates
    }
}
