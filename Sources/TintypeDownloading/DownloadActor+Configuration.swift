// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
public import TintypeHTTP

extension DownloadActor {
    /// The settings of a downloader.
    public struct Configuration: Sendable, Hashable {
        /// The most connections to one host at once.
        ///
        /// HTTP/2 carries many transfers over each of them.
        public var maximumConnectionsPerHost = 6
        /// The most active transfers at once; others wait for their turn.
        ///
        /// No peer can occupy all of eight or more places. A transfer that brings less than 16 KiB in two seconds
        /// continues outside of its place, up to as many again. One of each eight places is reserved for origins, or
        /// sites, without a transfer.
        public var maximumTransfers = 64
        /// The order in which transfers of equal priority start.
        public var order = DownloadActor.Order.firstInFirstOut
        /// The rate of requests to one host, or `nil` for no limit.
        public var rateLimit: RateLimit?
        /// The longest time without a received byte; default 15 s.
        ///
        /// Zero means the default, here and for the limits
        /// below.
        public var timeout: Duration = .seconds(15)
        /// The longest time to look a host up and to connect to it, including TLS.
        public var connectTimeout: Duration = .seconds(10)
        /// The longest time from the start of a request to the end of its response's head, including the connection and
        /// informational responses, or `nil` for ``timeout`` alone.
        public var firstByteTimeout: Duration? = .seconds(30)
        /// The longest time for a download, including redirects and retries, or `nil` for no limit.
        ///
        /// The wait for the first turn does not count; the waits for later turns do.
        public var totalTimeout: Duration?
        /// The lowest speed of a body, or `nil` for no limit; default 500 bytes a second in each 20 seconds.
        ///
        /// A slower
        /// download fails.
        public var minimumSpeed: MinimumSpeed? = MinimumSpeed(bytesPerSecond: 500, period: .seconds(20))
        /// The most bytes that a body may have, counted while they arrive and after decompression.
        public var maximumBodySize = 64 << 20
        /// The most bytes of memory for all bodies together, while they arrive and until a loader has decoded them;
        /// default an eighth of the memory that the process may use.
        ///
        /// When the memory is used up, transfers pause, and their servers wait. They continue by priority and age as
        /// bytes are released. One transfer always continues, so that the memory may exceed the limit by one body.
        /// Bodies that callers hold do not count.
        public var bodyMemory = Self.defaultBodyMemory
        /// The time without released bytes, or without progress of the transfer that may exceed the memory, after which
        /// another one may exceed it.
        package var memoryPatience: Duration = .seconds(1)
        /// The most bytes that the heads of a response may have, including informational ones and trailers.
        ///
        /// Each line counts 32 bytes more than it has, as in HTTP/2 (RFC 9113, section 6.5.2). The framing of a chunked
        /// body has a limit of its own: as many bytes, and as many as the body has. A large head occupies the loop that
        /// all downloads share: for some milliseconds at the default of 64 KiB.
        public var maximumHeaderSize = 64 << 10
        /// The most redirects to follow for one request.
        public var maximumRedirects = 5
        /// The acceptable status codes.
        ///
        /// A response with another one is an error.
        public var acceptableStatusCodes = StatusCodes.success
        /// The acceptable media types, such as `image/*`, or `nil` for all.
        public var acceptableContentTypes: [String]?
        /// The rules for retries after a failure; by default none.
        public var retryPolicy = RetryPolicy.never
        /// The store for the first bytes of unfinished bodies, or `nil` for none.
        public var partialBodies: PartialBodies?
        /// The rules for trust in servers over TLS.
        public var tls = TLSPolicy()
        /// The proxy for requests; default none, whatever the environment says.
        public var proxy = ProxyPolicy.none
        /// The cookie jar, or `nil` for none.
        public var cookieJar: CookieJar?
        /// The value of `User-Agent`.
        public var userAgent = "tintype"
        /// The value of `Accept`.
        public var acceptHeader = Self.defaultAcceptHeader

        /// Any image, and as a last resort anything.
        ///
        /// A loader replaces it with the formats of its coders.
        public static let defaultAcceptHeader = "image/*,*/*;q=0.8"
        /// The addresses that downloads may reach; by default all, including private networks.
        ///
        /// A server that loads URLs of its clients needs ``NetworkPolicy/publicInternet``.
        public var networkPolicy = NetworkPolicy.unrestricted

        /// Creates a configuration with the defaults.
        ///
        /// ```swift
        /// var configuration = DownloadActor.Configuration()
        /// configuration.maximumConnectionsPerHost = 12
        /// configuration.rateLimit = RateLimit(requestsPerSecond: 50, burst: 100)
        /// let downloads = DownloadActor(configuration: configuration)
        /// ```
        public init() {}

        /// The default fields of each request.
        var requestHeaders: HeaderFields {
            var headers = HeaderFields()
            if !self.userAgent.isEmpty { headers.append(self.userAgent, for: "User-Agent") }
            if !self.acceptHeader.isEmpty { headers.append(self.acceptHeader, for: "Accept") }
            return headers
        }

        private static let defaultBodyMemory = MemoryBudget().byteCount / 8

        /// More than any machine has descriptors for.
        ///
        /// Twice as many still fits into a number of libcurl.
        private static let maximumCount = 1 << 24

        /// The configuration without limits under 1, with which no transfer would start, and without limits that would
        /// overflow.
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
            // Their properties can have values that their initialisers would refuse.
            copy.rateLimit = self.rateLimit.map {
                RateLimit(requestsPerSecond: $0.requestsPerSecond, burst: $0.burst)
            }
            copy.minimumSpeed = self.minimumSpeed.map {
                MinimumSpeed(bytesPerSecond: $0.bytesPerSecond, period: $0.period)
            }
            return copy
        }
    }

    /// A store for the first bytes of unfinished bodies, so that a later transfer requests only the rest.
    ///
    /// They survive the process. The store never uses files that other users own or may write to. It stores bytes only
    /// if the server offers ranges, names the version for certain (a strong `ETag`, or a `Last-Modified` long before),
    /// and does not forbid storing. It stores nothing of a request with a cookie jar, because the cookies may select
    /// the representation.
    public struct PartialBodies: Sendable, Hashable {
        /// The folder.
        ///
        /// The store creates its last component if it is missing, without access for other users.
        public var directory: String
        /// The most bytes of all files together; the oldest files go first.
        public var maximumBytes: Int
        /// The lifetime of a file.
        public var maximumAge: Duration

        /// Creates a description of the store.
        ///
        /// ```swift
        /// var configuration = DownloadActor.Configuration()
        /// configuration.partialBodies = .init(directory: "/var/cache/images-partial", maximumBytes: 1 << 30)
        /// ```
        public init(directory: String, maximumBytes: Int = 256 << 20, maximumAge: Duration = .seconds(86_400)) {
            self.directory = directory
            self.maximumBytes = maximumBytes
            self.maximumAge = maximumAge
        }
    }
}

extension DownloadActor {
    /// The lowest speed of a body, below which the download fails.
    ///
    /// The bytes count as they are on the network. The time in which a slow reader keeps the body waiting does not count.
    public struct MinimumSpeed: Sendable, Hashable {
        /// The bytes that must arrive each second.
        public var bytesPerSecond: Int
        /// The period of the mean.
        ///
        /// Periods follow each other from the first byte of the body on.
        public var period: Duration

        /// Creates a limit.
        ///
        /// ```swift
        /// var configuration = DownloadActor.Configuration()
        /// configuration.minimumSpeed = DownloadActor.MinimumSpeed(bytesPerSecond: 4_000, period: .seconds(5))
        /// ```
        public init(bytesPerSecond: Int, period: Duration = .seconds(10)) {
            self.bytesPerSecond = bytesPerSecond
            self.period = max(period, .milliseconds(1))
        }
    }
}
