// SPDX-License-Identifier: Apache-2.0

/// The byte tiers of a cache that take part in each kind of operation.
public struct TierPolicies: Sendable, Hashable {
    /// The choice of the tiers that take part in an operation.
    public enum Policy: Sendable, Hashable, CaseIterable {
        /// All tiers, one after the other, the nearest first; a search ends with the first hit.
        case serial
        /// All tiers at once; a search ends with the first hit in time.
        case concurrent
        /// Only the nearest tier.
        case nearestOnly
        /// Only the farthest tier.
        case farthestOnly

        /// Returns the indices of the tiers that take part.
        func indices(of tiers: Range<Int>) -> Range<Int> {
            switch self {
            case .serial, .concurrent: tiers
            case .nearestOnly: tiers.prefix(1)
            case .farthestOnly: tiers.suffix(1)
            }
        }
    }

    /// Looking up entries; by default one tier after the other.
    public var query: Policy
    /// Checking whether there is an entry; by default one tier after the other.
    public var contains: Policy
    /// Storing; by default in all tiers at once.
    public var store: Policy
    /// Removing one entry or a family; by default from all tiers at once.
    public var remove: Policy
    /// Removing all entries; by default from all tiers at once.
    public var clear: Policy

    /// Creates policies.
    ///
    /// ```swift
    /// let policies = TierPolicies(query: .concurrent, clear: .nearestOnly)
    /// let cache = CacheActor(tiers: [disk, redis], policies: policies)
    /// ```
    public init(
        query: Policy = .serial,
        contains: Policy = .serial,
        store: Policy = .concurrent,
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
