// SPDX-License-Identifier: Apache-2.0

public import TintypeCaching

/// The rule for when a load asks the origin although the cache has a response.
///
/// ``CacheUse`` decides which tiers a load queries and fills.
public enum CachePolicy: Sendable, Hashable {
    /// Never asks if a response is cached, until it is evicted or its age limit is over.
    ///
    /// This is the usual default of image loaders. It ignores the header fields of responses: the cache stores even a
    /// response with `no-store`.
    case neverRevalidate
    /// Asks when HTTP requires it: RFC 9111 for a private cache, with RFC 5861 and RFC 8246, without heuristics.
    ///
    /// A response without a lifetime is stale from the start, and the load revalidates it with its validators. The
    /// validators of a file are its time of modification and its size. No tier stores a response with `no-store`.
    case honorFreshness
    /// Always asks, unless the response is fresh and `immutable`. The load serves the cached image if the origin
    /// confirms it, and loads it again if not.
    ///
    /// ``LoaderActor/events(for:)`` reports the cached image first, as ``LoadEvent/cached(_:)``.
    case revalidate
    /// Always asks, and ignores the cache. The answer replaces the cached image in every tier, also in tiers that do
    /// not store it because of ``CacheUse/store`` or because the origin forbids it. No load that begins after the
    /// answer gets an older image for the same URL and header fields.
    ///
    /// The loader's own policy decides whether the answer is stored by HTTP's rules.
    case reload
    /// Never asks: the load serves a cached image whatever its age, and a miss fails with `LoadError.Code.notInCache`.
    case cacheOnly

    /// Whether the policy reuses stored responses as HTTP permits.
    var revalidates: Bool { self == .honorFreshness || self == .revalidate }

    /// Whether the policy serves cached responses of any age.
    var servesAnyAge: Bool { self == .neverRevalidate || self == .cacheOnly }
}

/// The cache tiers that a load queries, and the tiers that it fills.
///
/// ``CachePolicy`` decides when the load asks the origin all the same.
public struct CacheUse: Sendable, Hashable {
    /// The tiers that may answer.
    public var query: CacheTiers { didSet { self.followsLoader = false } }
    /// The tiers that store the result.
    ///
    /// A ``CachePolicy/reload`` removes older entries from the other tiers.
    public var store: CacheTiers { didSet { self.followsLoader = false } }
    /// Whether the loader's configuration decides about the tiers that store the result.
    private(set) var followsLoader = false

    /// Creates a choice, by default of both tiers to query and to fill.
    ///
    /// ```swift
    /// let onlyDisk = CacheUse(query: .all, store: .disk)
    /// ```
    public init(query: CacheTiers = .all, store: CacheTiers = .all) {
        self.query = query
        self.store = store
    }

    /// Queries all tiers, and fills the loader's ``LoaderActor/Configuration/variantTiers``; the default for variants.
    public static let ofLoader = {
        var use = CacheUse(query: .all, store: .memory)
        use.followsLoader = true
        return use
    }()
    /// Queries and fills both tiers.
    public static let all = CacheUse()
    /// Queries and fills the memory.
    ///
    /// Leaves the disk alone, except that a reload removes older entries there.
    public static let memory = CacheUse(query: .memory, store: .memory)
    /// Queries and fills the disk.
    ///
    /// Leaves the memory alone, except that a reload removes older entries there.
    public static let disk = CacheUse(query: .disk, store: .disk)
    /// Queries and fills no tier.
    ///
    /// A reload removes older entries from both.
    public static let none = CacheUse(query: .none, store: .none)

    /// Returns the choice without `tiers`.
    func subtracting(_ tiers: CacheTiers) -> CacheUse {
        CacheUse(query: self.query.subtracting(tiers), store: self.store.subtracting(tiers))
    }
}
