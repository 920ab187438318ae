// SPDX-License-Identifier: Apache-2.0

public import TintypeCoding
public import TintypeDownloading

extension ImageRequest {
    /// The rules and limits for getting the bytes and decoding them.
    ///
    /// Loads that differ in it share neither a flight nor a transfer, so that no load gets bytes that were fetched under a
    /// laxer rule. Only the priority joins: a download has the highest priority of its callers. A cached response may
    /// answer all of them.
    public struct Transport: Sendable, Hashable {
        /// The priority of the download for this caller.
        public var priority: DownloadPriority
        /// The time limits of the download, if they differ from the loader's.
        public var timeouts: LoadTimeouts
        /// The rules for retries after a failure, or `nil` for the loader's policy.
        public var retryPolicy: RetryPolicy?
        /// The most bytes that the body may have, or `nil` for the loader's limit.
        public var bodyLimit: Int?
        /// The limits of the decode, or `nil` for the loader's.
        public var decodingLimits: DecodingLimits?
        /// The addresses that the load may connect to, or `nil` for the loader's policy.
        ///
        /// The loader serves cached images without consulting it.
        public var networkPolicy: NetworkPolicy?

        /// Creates a transport; by default of normal priority and under the loader's rules.
        ///
        /// ```swift
        /// request.transport = .init(bodyLimit: 8 << 20, networkPolicy: .publicInternet)
        /// ```
        public init(
            priority: DownloadPriority = .normal,
            timeouts: LoadTimeouts = LoadTimeouts(),
            retryPolicy: RetryPolicy? = nil,
            bodyLimit: Int? = nil,
            decodingLimits: DecodingLimits? = nil,
            networkPolicy: NetworkPolicy? = nil
        ) {
            self.priority = priority
            self.timeouts = timeouts
            self.retryPolicy = retryPolicy
            self.bodyLimit = bodyLimit
            self.decodingLimits = decodingLimits
            self.networkPolicy = networkPolicy
        }
    }
}

/// The time limits of a download; `nil` takes the limit of the loader's configuration.
public struct LoadTimeouts: Sendable, Hashable {
    /// The longest time without a byte received.
    public var idle: Duration?
    /// The longest time for the whole download, including redirects and retries.
    public var total: Duration?

    /// Creates limits.
    ///
    /// ```swift
    /// request.transport.timeouts = LoadTimeouts(idle: .seconds(5), total: .seconds(20))
    /// ```
    public init(idle: Duration? = nil, total: Duration? = nil) {
        self.idle = idle
        self.total = total
    }
}
