public import FoundationEssentials

extension MemoryCache {
    /// The limits of a memory tier.
    public struct Configuration: Sendable {
        /// The bytes of pixels that the cache may hold; 0 or less holds nothing.
        ///
        /// By default 15 % of the memory that this process may use, and at most 768 MB.
        public var costLimit: Int
        /// The entries that the cache may hold, or `nil` for any number.
        public var countLimit: Int?
        /// The clock that an entry's own expiry is compared with.
        public var now: @Sendable () -> Date

        /// Creates limits.
        public init(
            costLimit: Int = Configuration.defaultCostLimit,
            countLimit: Int? = nil,
            now: @escaping @Sendable () -> Date = { Date() }
        ) {
            self.costLimit = costLimit
            self.countLimit = countLimit
            self.now = now
        }

        /// 15 % of the memory that this process may use (the limit of its cgroup where that is
        /// lower than the RAM), and at most 768 MB; worked out once.
        public static let defaultCostLimit = min(MemoryBudget().byteCount / 100 * 15, 768_000_000)
    }
}
