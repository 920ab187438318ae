import TintypeConcurrency
public import TintypeHTTP

extension DownloadActor {
    /// The limits and habits of a downloader.
    public struct Configuration: Sendable, Hashable {
        /// The connections that are open to one host at once.
        ///
        /// HTTP/2 sends many transfers over each of them.
        public var maximumConnectionsPerHost = 6
        /// The transfers in progress at once; more of them wait for their turn.
        ///
        /// No peer can hold all of eight or more: a transfer that brings less than 16 KiB in two seconds goes on beside them, up
        /// to as many again, and of each eight places one is kept for origins, or sites, that have none.
        public var maximumTransfers = 64
        /// Which of several equally urgent transfers starts first.
        public var order = DownloadOrder.firstInFirstOut
        /// How many requests one host is sent, or `nil` for no limit.
        public var rateLimit: RateLimit?
        /// The longest time without a byte received; default 15 s, which zero means as well, as in the limits below.
        public var timeout: Duration = .seconds(15)
        /// The longest time for finding a host and connecting to it, TLS included.
        public var connectTimeout: Duration = .seconds(10)
        /// The longest time from the start of a request to the end of its response's head, connecting and informational
        /// responses included, or `nil` for ``timeout`` alone.
        public var firstByteTimeout: Duration? = .seconds(30)
        /// The longest time for a download, redirects and retries included, or `nil` for no limit.
        ///
        /// The time in which it waits for its first turn does not count, that for further ones does.
        public var totalTimeout: Duration?
        /// A body that arrives more slowly is given up, or `nil` for no limit; default 500 bytes a second in each 20.
        public var minimumSpeed: MinimumSpeed? = MinimumSpeed(bytesPerSecond: 500, period: .seconds(20))
        /// The bytes that a body may have, counted while they arrive and after decompression.
        public var maximumBodySize = 64 << 20
        /// The bytes of memory that all bodies may take together while they arrive, and until a loader has decoded
        /// them; default an eighth of the memory that the process may use.
        ///
        /// When they are used up, transfers pause, and their servers wait; they go on by urgency and age as bytes come
        /// back. One always goes on, so that up to one body more may be there. What a caller was given is its own
        /// and does not count.
        public var bodyMemory = Self.defaultBodyMemory
        /// How long bytes may not come back, or a transfer that may exceed the memory for bodies not receive any, until
        /// another one may exceed it.
        package var memoryPatience: Duration = .seconds(1)
        /// The bytes that the heads of a response may have, informational ones and trailers included.
        ///
        /// Each line counts for 32 bytes more than it has, as in HTTP/2 (RFC 9113, section 6.5.2).
        ///
        /// The framing of a chunked body has a limit of its own: as much, and what it frames.
        public var maximumHeaderSize = 256 << 10
        /// The redirects that are followed for one request.
        public var maximumRedirects = 5
        /// The status codes that give a response; any other is an error.
        public var acceptableStatusCodes = StatusCodes.success
        /// The media types that give a response, such as `image/*`, or `nil` for all.
        public var acceptableContentTypes: [String]?
        /// What is tried again after a failure; default nothing.
        public var retryPolicy = RetryPolicy.never
        /// Where the first bytes of bodies are kept whose transfers broke off, or `nil` for nowhere.
        public var partialBodies: PartialBodies?
        /// Which servers to trust over TLS.
        public var tls = TLSPolicy()
        /// The proxy that requests go through; default none, whatever the environment says.
        public var proxy = ProxyPolicy.none
        /// Where cookies come from and go to, or `nil` for none.
        public var cookieJar: CookieJar?
        /// Sent as `User-Agent`.
        public var userAgent = "tintype"
        /// Sent as `Accept`.
        public var acceptHeader = Self.defaultAcceptHeader

        /// Any image, and as a last resort anything; a loader says more exactly what its coders read.
        public static let defaultAcceptHeader = "image/*,*/*;q=0.8"
        /// What may be fetched; everything by default, private networks too.
        ///
        /// A server that loads what others ask for wants ``NetworkPolicy/publicInternet``.
        public var networkPolicy = NetworkPolicy.unrestricted

        /// Creates a configuration with the defaults.
        public init() {}

        /// The fields that each request has, unless it brings its own.
        var requestHeaders: HeaderFields {
            var headers = HeaderFields()
            if !self.userAgent.isEmpty { headers.append(self.userAgent, for: "User-Agent") }
            if !self.acceptHeader.isEmpty { headers.append(self.acceptHeader, for: "Accept") }
            return headers
        }

        private static let defaultBodyMemory = MemoryBudget().byteCount / 8

        /// More than any machine has descriptors for; twice as many is still a number for libcurl.
        private static let maximumCount = 1 << 24

        /// Limits under 1 would let no transfer ever start, and some others would overflow.
        var sanitized: Configuration {
            var copy = self
            copy.maximumConnectionsPerHost = min(max(1, self.maximumConnectionsPerHost), Self.maximumCount)
            copy.maximumTransfers = min(max(1, self.maximumTransfers), Self.maximumCount)
            copy.maximumBodySize = max(0, self.maximumBodySize)
            copy.bodyMemory = max(1, self.bodyMemory)
            copy.maximumHeaderSize = max(0, self.maximumHeaderSize)
            copy.maximumRedirects = max(0, self.maximumRedirects)
            let defaults = Configuration()
            copy.timeout = TransferLimits.time(self.timeout) ?? defaults.timeout
            copy.connectTimeout = TransferLimits.time(self.connectTimeout) ?? defaults.connectTimeout
            copy.firstByteTimeout = self.firstByteTimeout.flatMap {
                TransferLimits.time($0) ?? defaults.firstByteTimeout
            }
            copy.totalTimeout = self.totalTimeout.flatMap { TransferLimits.time($0) ?? defaults.totalTimeout }
            // Their properties can be set to what their initialisers would not take.
            copy.rateLimit = self.rateLimit.map {
                RateLimit(requestsPerSecond: $0.requestsPerSecond, burst: $0.burst)
            }
            copy.minimumSpeed = self.minimumSpeed.map {
                MinimumSpeed(bytesPerSecond: $0.bytesPerSecond, period: $0.period)
            }
            return copy
        }
    }

    /// Where the first bytes of bodies are kept, so that a later transfer asks for the rest only.
    ///
    /// They survive the process. Files that other users own or may write to are not used. Only those are kept whose server offers ranges and told the version apart for
    /// sure (a strong `ETag`, or a `Last-Modified` long before), and that it does not forbid to store.
    /// None is kept of a request with a cookie jar: what the jar holds may select the representation.
    public struct PartialBodies: Sendable, Hashable {
        /// The folder, which is created with its last component where it is missing; others need not read it.
        public var directory: String
        /// The bytes that all files may have together; the oldest go first.
        public var maximumBytes: Int
        /// How long a file is kept.
        public var maximumAge: Duration

        /// Creates a description of the store.
        public init(directory: String, maximumBytes: Int = 256 << 20, maximumAge: Duration = .seconds(86_400)) {
            self.directory = directory
            self.maximumBytes = maximumBytes
            self.maximumAge = maximumAge
        }
    }
}

/// A body that arrives more slowly than this is given up.
///
/// What counts is the body as it is on the network. Time in which the reader keeps it waiting does not.
public struct MinimumSpeed: Sendable, Hashable {
    /// The bytes that must arrive each second.
    public var bytesPerSecond: Int
    /// The time over which the mean is taken, again and again from the first byte of the body on.
    public var period: Duration

    /// Creates a limit.
    public init(bytesPerSecond: Int, period: Duration = .seconds(10)) {
        self.bytesPerSecond = bytesPerSecond
        self.period = max(period, .milliseconds(1))
    }
}
