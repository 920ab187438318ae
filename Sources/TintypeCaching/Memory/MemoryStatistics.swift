/// What a memory tier holds and how it was used, at one moment.
public struct MemoryStatistics: Sendable, Hashable {
    /// The entries in the cache.
    public var count = 0
    /// The bytes that they are counted with.
    public var cost = 0
    /// The entries that left the cache and are found again while their pictures are held elsewhere; some may
    /// be dead already.
    public var weakCount = 0
    /// The look-ups that found a picture.
    public var hits = 0
    /// The look-ups that found none.
    public var misses = 0
    /// Of the hits, those that found a picture that had left the cache and was alive elsewhere.
    public var weakHits = 0
    /// The entries that were dropped to keep the limits, or because memory was short.
    public var evictions = 0
    /// The entries that were dropped because their time was over.
    public var expirations = 0
    /// The pictures that were refused because they alone are over a limit.
    public var refusals = 0

    /// Creates statistics of an empty cache.
    public init() {}

    /// The sum of what two caches hold and how they were used.
    public static func + (left: MemoryStatistics, right: MemoryStatistics) -> MemoryStatistics {
        var sum = left
        sum.count += right.count
        sum.cost += right.cost
        sum.weakCount += right.weakCount
        sum.hits += right.hits
        sum.misses += right.misses
        sum.weakHits += right.weakHits
        sum.evictions += right.evictions
        sum.expirations += right.expirations
        sum.refusals += right.refusals
        return sum
    }
}
