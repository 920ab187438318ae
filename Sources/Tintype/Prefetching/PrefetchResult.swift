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
