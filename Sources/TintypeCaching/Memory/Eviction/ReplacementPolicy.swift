// SPDX-License-Identifier: Apache-2.0

/// The simulation of a cache: which entries a policy would hold, without the entries themselves.
///
/// An entry is a slot, a small integer that the owner assigns, with a weight. A policy receives each request and
/// reports the entries that it would have evicted. ``EvictionPolicy`` needs nothing else to follow the best of several
/// policies.
package protocol ReplacementPolicy: Sendable {
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

/// A policy that evicts the least recently used entry.
package struct LRUPolicy: ReplacementPolicy {
    private let capacity: Int
    private var weight = 0
    private var weights = SlotTable(0)
    private var order = SlotRings(count: 1)

    package init(capacity: Int) {
        self.capacity = capacity
    }

    /// The least recently used slot.
    var oldest: Int? { self.order.oldest() }

    /// Returns the slot that was used next after `slot`.
    func newer(than slot: Int) -> Int? {
        self.order.newer(than: slot)
    }

    package func holds(_ slot: Int) -> Bool {
        self.order.contains(slot)
    }

    package func remembers(_ slot: Int) -> Bool {
        self.holds(slot)
    }

    package mutating func request(_ slot: Int, hash: UInt64, weight: Int, lost: inout [Int32]) -> Bool {
        if self.order.contains(slot) {
            self.order.moveToNewest(slot)
            return true
        }
        guard weight <= self.capacity else { return false }
        self.order.append(slot)
        self.weights[slot] = weight
        self.weight += weight
        while self.weight > self.capacity, let victim = self.order.oldest() {
            self.forget(victim)
            lost.append(Int32(victim))
        }
        return false
    }

    package mutating func forget(_ slot: Int) {
        guard self.order.contains(slot) else { return }
        self.order.remove(slot)
        self.weight -= self.weights[slot]
    }
}
