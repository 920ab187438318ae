extension DownloadActor {
    /// The limits and habits of a downloader.
    public struct Configuration: Sendable, Hashable {
        /// The connections that are open to one host at once.
        ///
        /// HTTP/2 sends many transfers over each of them.
        public var maximumConnectionsPerHost = 6
        /// The transfers in progress at once; more of them wait, first come, first served.
        public var maximumTransfers = 64
        /// The longest time without a byte received.
        public var timeout: Duration = .seconds(15)
        /// The longest time for finding a host and connecting to it, TLS included.
        public var connectTimeout: Duration = .seconds(10)
        /// The bytes that a body may have, counted while they arrive and after decompression.
        public var maximumBodySize = 64 << 20
        /// The redirects that are followed for one request.
        public var maximumRedirects = 5
        /// The status codes that give a response; any other is an error.
        public var acceptableStatusCodes = StatusCodes.success
        /// Sent as `User-Agent`.
        public var userAgent = "tintype"
        /// Sent as `Accept`.
        public var acceptHeader = "image/*,*/*;q=0.8"
        /// What may be fetched; everything by default, private networks too.
        ///
        /// A server that loads what others ask for wants ``NetworkPolicy/publicInternet``.
        public var networkPolicy = NetworkPolicy.unrestricted

        /// Creates a configuration with the defaults.
        public init() {}

        /// The fields that each request has, unless it brings its own.
        var requestHeaders: HTTPHeaders {
            var headers = HTTPHeaders()
            if !self.userAgent.isEmpty { headers.append(self.userAgent, for: "User-Agent") }
            if !self.acceptHeader.isEmpty { headers.append(self.acceptHeader, for: "Accept") }
            return headers
        }

        /// Limits under 1 would let no transfer ever start.
        var sanitized: Configuration {
            var copy = self
            copy.maximumConnectionsPerHost = max(1, self.maximumConnectionsPerHost)
            copy.maximumTransfers = max(1, self.maximumTransfers)
            copy.maximumBodySize = max(0, self.maximumBodySize)
            copy.maximumRedirects = max(0, self.maximumRedirects)
            return copy
        }
    }
}
