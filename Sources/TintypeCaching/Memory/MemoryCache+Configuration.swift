public import FoundationEssentials
import TintypeConcurrency

extension MemoryCache {
    /// The limits of a memory tier.
    public struct Configuration: Sendable {
        /// The bytes that the cache may hold, counted as ``MemoryEntry/cost`` and the bytes of very long keys;
        /// 0 or less holds nothing.
        ///
        /// By default 15 % of the memory that this process may use, and at most 768 MB.
        public var costLimit: Int
        /// The entries that the cache may hold, or `nil` for any number.
        public var countLimit: Int?
        /// How long an entry is kept that was stored without a lifetime or an expiry of its own; default `nil`,
        /// for as long as there is room.
        public var lifetime: Duration?
        /// Whether a look-up begins the lifetime of its entry anew; default `false`.
        ///
        /// ``MemoryCache/contains(_:)`` never does, and an expiry in the metadata is not put off.
        public var extendsLifetimeOnRead: Bool
        /// Whether pictures that left the cache are found again while somebody holds them; default `true`.
        public var keepsWeakly: Bool
        /// Whether the cache gives memory back when the machine or the cgroup is short of it; default `false`, and
        /// `true` for the cache of a loader.
        ///
        /// Starts the process' ``MemoryPressureMonitor``.
        public var respondsToMemoryPressure: Bool
        /// The clock that lifetimes are compared with.
        public var now: @Sendable () -> Date

        /// Creates limits.
        public init(
            costLimit: Int = Configuration.defaultCostLimit,
            countLimit: Int? = nil,
            lifetime: Duration? = nil,
            extendsLifetimeOnRead: Bool = false,
            keepsWeakly: Bool = true,
            respondsToMemoryPressure: Bool = false,
            now: @escaping @Sendable () -> Date = { Date() }
        ) {
            self.costLimit = costLimit
            self.countLimit = countLimit
            self.lifetime = lifetime
            self.extendsLifetimeOnRead = extendsLifetimeOnRead
            self.keepsWeakly = keepsWeakly
            self.respondsToMemoryPressure = respondsToMemoryPressure
            self.now = now
        }

        /// 15 % of the memory that this process may use (the limit of its cgroup where that is
        /// lower than the RAM), and at most 768 MB; worked out once.
        public static let defaultCostLimit = min(MemoryBudget().byteCount / 100 * 15, 768_000_000)
    }
}
