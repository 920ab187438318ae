// SPDX-License-Identifier: Apache-2.0

/// A policy that evicts the least recently used entry.
package struct LRUPolicy: SimulatedPolicy {
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
