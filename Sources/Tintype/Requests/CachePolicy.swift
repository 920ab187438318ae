public import TintypeCaching

/// When a load asks the origin, where something is cached.
///
/// Which tiers are read and filled is the choice of ``CacheUse``.
public enum CachePolicy: Sendable, Hashable {
    /// Never, where anything is cached: it is served until it is evicted or its age limit is over.
    ///
    /// The known default of image loaders; the headers of responses decide nothing: what the origin marked `no-store`
    /// is kept in memory and on disk like anything else.
    case neverRevalidate
    /// When HTTP says so: RFC 9111 for a private cache, with RFC 5861 and RFC 8246, and without heuristics.
    ///
    /// What the origin gave no lifetime is stale from the start, and is asked for with its validators; those of a file
    /// are its time of modification and its size. What it marked `no-store` is kept in no tier.
    case honorFreshness
    /// Always, unless the origin promised that a fresh image is `immutable`: what is cached is served if the
    /// origin says that it is current, and loaded again if not.
    ///
    /// ``LoaderActor/events(for:)`` shows the cached image first, as ``LoadEvent/cached(_:)``.
    case revalidate
    /// Always, and without a look at what is cached, which the answer replaces in every tier: a tier that does not store the
    /// answer, by ``CacheUse/store`` or because the origin forbids it, loses the older image. No load that begins after the
    /// reload was answered gets anything older for the same URL and header fields.
    ///
    /// By which rules the answer is stored is the loader's own policy: by HTTP's, where that revalidates.
    case reload
    /// Never: what is cached is served whatever its age, and a miss is `LoadError.Code.notInCache`.
    case cacheOnly

    /// Whether stored responses are reused as HTTP permits.
    var revalidates: Bool { self == .honorFreshness || self == .revalidate }

    /// Whether what is cached is served without a question.
    var servesAnyAge: Bool { self == .neverRevalidate || self == .cacheOnly }
}

/// Which tiers of the cache a load reads, and which it fills.
///
/// When the origin is asked all the same is the choice of ``CachePolicy``.
public struct CacheUse: Sendable, Hashable {
    /// The tiers that may answer.
    public var query: CacheTiers
    /// The tiers that keep what was loaded or made.
    ///
    /// A ``CachePolicy/reload`` removes what is older from the other tiers.
    public var store: CacheTiers

    /// Creates a choice; both tiers are read and filled where nothing else is said.
    public init(query: CacheTiers = .all, store: CacheTiers = .all) {
        self.query = query
        self.store = store
    }

    /// Both tiers are read and filled.
    public static let all = CacheUse()
    /// The memory is read and filled, and the disk left alone, except that a reload removes what is older there.
    public static let memory = CacheUse(query: .memory, store: .memory)
    /// The disk is read and filled, and the memory left alone, except that a reload removes what is older there.
    public static let disk = CacheUse(query: .disk, store: .disk)
    /// No tier is read or filled; a reload removes what is older from both.
    public static let none = CacheUse(query: .none, store: .none)

    /// The choice without `tiers`.
    func subtracting(_ tiers: CacheTiers) -> CacheUse {
        CacheUse(query: self.query.subtracting(tiers), store: self.store.subtracting(tiers))
    }
}
