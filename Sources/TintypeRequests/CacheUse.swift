// SPDX-License-Identifier: Apache-2.0

public import TintypeCaching

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

    /// Queries all tiers, and fills the loader's `LoaderActor.Configuration.variantTiers`; the default for variants.
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
