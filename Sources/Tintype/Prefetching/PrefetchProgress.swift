/// How far the prefetch of a list is.
public struct PrefetchProgress: Sendable {
    /// The picture that ended last.
    public let latest: PrefetchResult
    /// The pictures of the list that have ended, failed ones among them.
    public let completedCount: Int
    /// The pictures of the list that failed.
    public let failedCount: Int
    /// The pictures of the list.
    public let totalCount: Int
    /// The encoded bytes of the pictures that came over the network.
    public let receivedBytes: Int64

    /// Whether this is the last one.
    public var isFinished: Bool { self.completedCount == self.totalCount }
}

/// How the prefetch of one picture ended.
public struct PrefetchResult: Sendable {
    /// What was loaded.
    public struct Loaded: Sendable, Hashable {
        /// Where it came from: not the network when it was cached already.
        public let source: LoadSource
        /// The encoded bytes.
        public let byteCount: Int
    }

    /// What was asked for.
    public let request: ImageRequest
    /// What came of it; the error is a `LoadError` or a `CancellationError`.
    public let outcome: Result<Loaded, any Error>
}
