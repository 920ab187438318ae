// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeHTTP

/// A request for a download.
///
/// Equal requests that overlap share one transfer. All properties count: headers select a representation and carry
/// credentials, and a caller must not get a body that only another caller's limit allows.
public struct DownloadRequest: Sendable, Hashable {
    /// The method of a request.
    public struct Method: Sendable, Hashable, CustomStringConvertible {
        private enum Value: Sendable, Hashable {
            case get
            case head
            case put(RequestBody)
            case delete(RequestToken)
        }

        private let value: Value

        /// The name of the method in the request line.
        public var description: String {
            switch self.value {
            case .get: "GET"
            case .head: "HEAD"
            case .put: "PUT"
            case .delete: "DELETE"
            }
        }

        /// Transfer the resource.
        public static let get = Method(value: .get)
        /// Transfer only the head: the response has no body.
        public static let head = Method(value: .head)

        /// Returns a method that replaces the resource by `data`; equal only to itself.
        package static func put(_ data: Data) -> Method { Method(value: .put(RequestBody(data))) }

        /// Returns a method that deletes the resource; equal only to itself.
        package static func delete() -> Method { Method(value: .delete(RequestToken())) }

        /// The bytes to send, if the method sends any.
        var body: RequestBody? {
            if case .put(let body) = self.value { body } else { nil }
        }

        /// Whether the request changes nothing on the server, so that it may follow redirects.
        var isSafe: Bool {
            switch self.value {
            case .get, .head: true
            case .put, .delete: false
            }
        }
    }

    /// The resource: an `http`, `https`, `file` or `data` URL.
    public var url: URL
    /// The method.
    public var method: Method
    /// The fields to send in addition to the configuration's; a field with the same name replaces it.
    public var headers: HeaderFields
    /// The longest time without a received byte; `nil` or zero for the configuration's.
    public var timeout: Duration?
    /// The longest time to look the host up and to connect to it; `nil` or zero for the configuration's.
    public var connectTimeout: Duration?
    /// The most bytes of the body, or `nil` for the configuration's limit.
    public var maximumBodySize: Int?
    /// The acceptable status codes, or `nil` for the configuration's.
    ///
    /// A response with another one is an error.
    ///
    /// If 304 is acceptable, a conditional request may get a response with an empty body.
    public var acceptableStatusCodes: StatusCodes?
    /// The acceptable media types, such as `image/png` or `image/*`, or `nil` for the configuration's.
    ///
    /// A response with another type, or without one, is an error before its body arrives.
    public var acceptableContentTypes: [String]?
    /// The longest time from the request to the head of the response; `nil` or zero for the configuration's.
    public var firstByteTimeout: Duration?
    /// The longest time for the whole download, including redirects and retries; `nil` or zero for the configuration's.
    public var totalTimeout: Duration?
    /// The credentials of the user, or `nil` for none; a header field `Authorization` replaces them.
    public var credentials: Credentials?
    /// The rules for trust over TLS, or `nil` for the configuration's.
    public var tls: TLSPolicy?
    /// The proxy, or `nil` for the configuration's.
    public var proxy: ProxyPolicy?
    /// The cookie jar to use, if any, or `nil` for the configuration's.
    public var cookies: CookiePolicy?
    /// The addresses that the request and its redirects may reach, or `nil` for the configuration's policy.
    public var networkPolicy: NetworkPolicy?
    /// The rules for retries, or `nil` for the configuration's policy.
    ///
    /// All requests share the budget of the configuration's policy.
    public var retryPolicy: RetryPolicy?
    /// The Unix-domain socket to connect to instead of the host of the URL, or `nil` for none.
    public var unixSocketPath: String?
    /// Whether to accept a certificate that cannot be verified: anyone on the way can then read and change the body.
    public var allowsInvalidCertificates: Bool
    /// A token for a request that must not share a transfer, because it must see all earlier changes; by default `nil`.
    package var token: RequestToken?
    /// Whether the response replaces one that is in the cache, if only because it is stale; by default false.
    package var isRefresh = false
    /// Whether to ask the origin again although another machine remembers that it failed; by default false.
    package var retriesFailures = false

    /// Creates a request.
    ///
    /// Fields that are `nil` take their values from the configuration.
    ///
    /// ```swift
    /// let request = DownloadRequest(url: url, headers: ["Accept": "image/webp"], timeout: .seconds(5))
    /// let body = try await downloads.response(for: request).body
    /// ```
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
    /// Requests that differ in other properties seldom have the same URL.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.url)
        hasher.combine(self.headers)
    }
}

/// The settings of one request that differ from the configuration's.
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

    /// The options, or `nil` if the request can use any handle.
    var unlessOrdinary: TransportOptions? {
        let isOrdinary =
            self.method == .get && self.tls == nil && self.proxy == nil && self.credentials == nil
            && self.cookies == nil && self.unixSocketPath == nil
        return isOrdinary ? nil : self
    }
}
