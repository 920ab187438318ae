/// What a memory tier holds and how it was used, at one moment.
public struct MemoryStatistics: Sendable, Hashable {
    /// The entries in the cache.
    public internal(set) var count = 0
    /// The bytes that they are counted with.
    public internal(set) var cost = 0
    /// The look-ups that found a picture.
    public internal(set) var hits = 0
    /// The look-ups that found none.
    public internal(set) var misses = 0
    /// The entries that were dropped to keep the limits, or because their time was over.
    public internal(set) var evictions = 0

    /// Creates statistics of an empty cache.
    public init() {}
}
