/// What both tiers hold and how they were used.
public struct CacheStatistics: Sendable {
    /// The memory tier.
    public let memory: MemoryStatistics
    /// The disk tier, if there is one.
    public let disk: DiskStatistics?
    /// Why the last read from the disk tier failed, which was taken as a miss.
    public let lastReadError: CacheError?
}
