// SPDX-License-Identifier: Apache-2.0

/// A cache of items with a limit in bytes, which contains their sizes instead of their bodies.
protocol ItemCache: Sendable {
    /// The bytes of all entries.
    var bytes: Int { get }
    /// The number of entries that made room for others.
    var evictions: Int { get }

    /// Returns when the entry of an item expires, and counts the access as a use.
    ///
    /// - Returns: `nil` if there is no entry, or an expired one, which is removed.
    mutating func expiry(of item: Int, at time: Double) -> Double?

    /// Stores an item in place of an older entry, and evicts others until there is room.
    ///
    /// An item that is larger than the capacity is not stored.
    mutating func store(_ item: Int, bytes: Int, expiry: Double, at time: Double)
}
