/// Which entries a cache of a given capacity would hold: a policy without the entries themselves.
///
/// Entries are slots, small integers that the owner hands out, with a weight each. A policy learns of
/// each request and says what it would have dropped. That is all a simulation needs, and all that
/// ``EvictionPolicy`` needs to follow the best of several.
package protocol ReplacementPolicy: Sendable {
    /// Makes an empty cache whose entries may weigh `capacity` together.
    init(capacity: Int)

    /// Asks for `slot`, and takes it in when it is not held.
    ///
    /// - Parameters:
    ///   - slot: The entry.
    ///   - hash: A good hash of the key, always the same for the slot.
    ///   - weight: The weight, always the same while the slot is remembered.
    ///   - lost: Gets the slots that are no longer held or no longer remembered.
    /// - Returns: Whether it was held.
    mutating func request(_ slot: Int, hash: UInt64, weight: Int, lost: inout [Int32]) -> Bool

    /// Whether `slot` is in the cache.
    func holds(_ slot: Int) -> Bool

    /// Whether `slot` is in the cache, or was there and still matters to later choices.
    func remembers(_ slot: Int) -> Bool

    /// Takes `slot` out, as if it had never been asked for.
    mutating func forget(_ slot: Int)
}

/// Drops what was used longest ago.
package struct LRUPolicy: ReplacementPolicy {
    private let capacity: Int
    private var weight = 0
    private var weights = SlotTable(0)
    private var order = SlotRings(count: 1)

    package init(capacity: Int) {
        self.capacity = capacity
    }

    /// The slot that was used longest ago.
    var oldest: Int? { self.order.oldest() }

    /// The slot that was used next after `slot`.
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
