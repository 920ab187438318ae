public import TintypeCaching

/// Which tiers of the cache a load reads, and which it fills.
///
/// When the origin is asked all the same is the choice of ``CachePolicy``.
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

    /// Both tiers are read and filled.
    public static let all = CacheUse()
    /// The memory is read and filled, and the disk left alone.
    public static let memory = CacheUse(query: .memory, store: .memory)
    /// The disk is read and filled, and the memory left alone.
    public static let disk = CacheUse(query: .disk, store: .disk)
    /// No tier is read, and none filled.
    public static let none = CacheUse(query: .none, store: .none)

    /// The choice without `tiers`.
    func subtracting(_ tiers: CacheTiers) -> CacheUse {
        CacheUse(query: self.query.subtracting(tiers), store: self.store.subtracting(tiers))
    }
}
