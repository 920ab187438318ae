// SPDX-License-Identifier: Apache-2.0

/// The statistics of a cache.
public struct CacheStatistics: Sendable {
    /// The statistics of the memory tier.
    public var memory = MemoryStatistics()
    /// The statistics of each byte tier, the nearest first.
    public var tiers: [TierStatistics] = []

    /// Creates statistics of an empty cache.
    ///
    /// ```swift
    /// var statistics = CacheStatistics()
    /// statistics.memory = memory.statistics
    /// ```
    public init() {}

    /// The statistics of each disk tier, the nearest first.
    public var disks: [DiskStatistics] { self.tiers.compactMap(\.disk) }
}

/// The statistics of a byte tier in a cache.
public struct TierStatistics: Sendable {
    /// The name of the tier.
    public let name: String
    /// The number of look-ups by the cache that found an entry.
    public var hits = 0
    /// The number of look-ups by the cache that found no entry, including failed ones.
    public var misses = 0
    /// The number of look-ups that failed or took too long.
    public var readFailures = 0
    /// The error of the last look-up that failed.
    public var lastReadError: CacheError?
    /// The number of stores and removals that failed, took too long or were refused.
    public var writeFailures = 0
    /// The error of the last store or removal that failed.
    public var lastWriteError: CacheError?
    /// The number of entries of farther tiers that the cache has stored in this one.
    public var fills = 0
    /// The statistics of the folder, if the tier is a ``DiskCache``.
    public var disk: DiskStatistics?

    /// Creates statistics of a tier without look-ups.
    ///
    /// ```swift
    /// var statistics = TierStatistics(name: "redis")
    /// statistics.hits = 3
    /// ```
    public init(name: String) {
        self.name = name
    }
}
