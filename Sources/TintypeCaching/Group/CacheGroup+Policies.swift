extension CacheGroup {
    /// Which caches of a group take part in an operation.
    public enum Policy: Sendable, Hashable, CaseIterable {
        /// All of them, one after the other, the highest first; a search ends with the first hit.
        case serial
        /// All of them at once.
        case concurrent
        /// Only the one that was added last.
        case highestOnly
        /// Only the one that was added first.
        case lowestOnly
    }

    /// The policy for each kind of operation.
    public struct Policies: Sendable, Hashable {
        /// Looking up entries; default one after the other.
        public var query: Policy
        /// Asking whether there is an entry; default one after the other.
        public var contains: Policy
        /// Storing; default in the highest cache only.
        public var store: Policy
        /// Removing one entry; default everywhere at once.
        public var remove: Policy
        /// Removing all entries; default everywhere at once.
        public var clear: Policy

        /// Creates policies; those that are left out have their defaults.
        public init(
            query: Policy = .serial,
            contains: Policy = .serial,
            store: Policy = .highestOnly,
            remove: Policy = .concurrent,
            clear: Policy = .concurrent
        ) {
            self.query = query
            self.contains = contains
            self.store = store
            self.remove = remove
            self.clear = clear
        }
    }
}
