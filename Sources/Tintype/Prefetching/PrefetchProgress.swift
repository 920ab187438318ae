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
