/// What a memory tier holds and how it was used, at one moment.
public struct MemoryStatistics: Sendable, Hashable {
    /// The entries in the cache.
    public internal(set) var count = 0
    /// The bytes that they are counted with.
    public internal(set) var cost = 0
    /// The entries that left the cache and are found again while somebody holds their pictures; some may
    /// be dead already.
    public internal(set) var weakCount = 0
    /// The look-ups that found a picture.
    public internal(set) var hits = 0
    /// The look-ups that found none.
    public internal(set) var misses = 0
    /// Of the hits, those that found a picture that had left the cache and was alive elsewhere.
    public internal(set) var weakHits = 0
    /// The entries that were dropped to keep the limits, or because memory was short.
    public internal(set) var evictions = 0
    /// The entries that were dropped because their time was over.
    public internal(set) var expirations = 0
    /// The pictures that were refused because they alone are over a limit.
    public internal(set) var refusals = 0

    /// Creates statistics of an empty cache.
    public init() {}
}
