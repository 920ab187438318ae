public import TintypeCaching

/// Which tiers of the cache a load reads, and which it fills.
public struct CacheUse: Sendable, Hashable {
    /// The tiers that may answer.
    public var query: CacheTiers
    /// The tiers that keep what was loaded or made.
    public var store: CacheTiers

    /// Creates a choice; both tiers are read and filled where nothing else is said.
    public init(query: CacheTiers = .all, store: CacheTiers = .all) {
        self.query = query
        self.store = store
    }

    /// The choice without `tiers`.
    func subtracting(_ tiers: CacheTiers) -> CacheUse {
        CacheUse(query: self.query.subtracting(tiers), store: self.store.subtracting(tiers))
    }
}
