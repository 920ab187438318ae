// SPDX-License-Identifier: Apache-2.0

import TintypeCaching

/// One queue, and a hand that skips entries used since its last round.
///
/// Source: Zhang et al., "SIEVE is simpler than LRU", NSDI 2024.
struct SievePolicy: SimulatedPolicy {
    private let capacity: Int
    private var weight = 0
    private var weights = SlotTable(0)
    private var wasUsed = SlotTable(false)
    private var order = SlotRings(count: 1)
    private var hand: Int?

    init(capacity: Int) {
        self.capacity = capacity
    }

    func holds(_ slot: Int) -> Bool { self.order.contains(slot) }
    func remembers(_ slot: Int) -> Bool { self.holds(slot) }

    mutating func request(_ slot: Int, hash: UInt64, weight: Int, lost: inout [Int32]) -> Bool {
        if self.order.contains(slot) {
            self.wasUsed[slot] = true
            return true
        }
        guard weight <= self.capacity else { return false }
        while self.weight + weight > self.capacity, let victim = self.findVictim() {
            self.forget(victim)
            lost.append(Int32(victim))
        }
        self.order.append(slot)
        self.weights[slot] = weight
        self.weight += weight
        return false
    }

    mutating func forget(_ slot: Int) {
        guard self.order.contains(slot) else { return }
        if self.hand == slot { self.hand = self.order.newer(than: slot) }
        self.order.remove(slot)
        self.wasUsed[slot] = false
        self.weight -= self.weights[slot]
    }

    private mutating func findVictim() -> Int? {
        while let slot = self.hand ?? self.order.oldest() {
            guard self.wasUsed[slot] else {
                self.hand = slot
                return slot
            }
            self.wasUsed[slot] = false
            self.hand = self.order.newer(than: slot)
        }
        return nil
    }
}
