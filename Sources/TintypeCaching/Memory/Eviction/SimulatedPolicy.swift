// SPDX-License-Identifier: Apache-2.0

/// The simulation of a cache: which entries a policy would hold, without the entries themselves.
///
/// An entry is a slot, a small integer that the owner assigns, with a weight. A policy receives each request and
/// reports the entries that it would have evicted. ``EvictionPolicy`` needs nothing else to follow the best of several
/// policies.
package protocol SimulatedPolicy: Sendable {
    /// Creates an empty cache whose entries have a total weight of at most `capacity`.
    init(capacity: Int)

    /// Requests `slot`, and admits it if the cache does not hold it.
    ///
    /// - Parameters:
    ///   - slot: The entry.
    ///   - hash: A well distributed hash of the key, always the same for the slot.
    ///   - weight: The weight, which does not change while the policy remembers the slot.
    ///   - lost: Receives the slots that the policy no longer holds, or no longer remembers.
    /// - Returns: Whether the cache held the entry.
    mutating func request(_ slot: Int, hash: UInt64, weight: Int, lost: inout [Int32]) -> Bool

    /// Returns whether `slot` is in the cache.
    func holds(_ slot: Int) -> Bool

    /// Returns whether `slot` is in the cache, or was there and still affects later choices.
    func remembers(_ slot: Int) -> Bool

    /// Removes `slot` and its history.
    mutating func forget(_ slot: Int)
}
