// SPDX-License-Identifier: Apache-2.0

/// A policy that holds entries with short intervals between uses, even if the last use was long ago.
///
/// 99 % of the capacity is for entries with a low interval between their last two uses. The remaining 1 % is a FIFO
/// queue of other entries. If an entry is used while it is still on the stack, its interval is lower than that of the
/// entry at the bottom, and it takes the place of that entry. In this way the policy holds part of a loop that is
/// larger than the cache.
///
/// Source: Jiang and Zhang, "LIRS: an efficient low inter-reference recency set replacement policy", SIGMETRICS 2002.
/// The evicted keys that the policy remembers have at most twice the capacity as their total weight.
package struct LIRSPolicy: SimulatedPolicy {
    private enum State: UInt8 {
        /// An entry with a low interval, which is in the cache and on the stack.
        case low
        /// An entry with a high interval, in the cache and the queue; also on the stack if it was used recently.
        case high
        /// An evicted entry that is still on the stack.
        case ghost
        case none
    }

    private struct Entry {
        var weight = 0
        var state = State.none
    }

    private let capacity: Int
    private let lowCapacity: Int
    private var lowWeight = 0
    private var highWeight = 0
    private var ghostWeight = 0
    private var entries = SlotTable(Entry())
    /// The stack in the order of last use; its oldest entry always has a low interval.
    private var stack = SlotRings(count: 1)
    /// The queue of entries with a high interval, and the queue of ghosts, both in the order of arrival.
    private var queues = SlotRings(count: 2)

    package init(capacity: Int) {
        self.capacity = capacity
        self.lowCapacity = capacity - max(1, capacity / 100)
    }

    package func holds(_ slot: Int) -> Bool {
        let state = self.entries[slot].state
        return state == .low || state == .high
    }

    package func remembers(_ slot: Int) -> Bool {
        self.entries[slot].state != .none
    }

    package mutating func request(_ slot: Int, hash: UInt64, weight: Int, lost: inout [Int32]) -> Bool {
        switch self.entries[slot].state {
        case .low:
            self.stack.moveToNewest(slot)
            if let oldest = self.stack.oldest(), self.entries[oldest].state != .low { self.prune(&lost) }
            return true
        case .high:
            self.useHigh(slot, &lost)
            return true
        case .ghost, .none:
            if weight <= self.capacity { self.take(slot, weight, &lost) }
            return false
        }
    }

    package mutating func forget(_ slot: Int) {
        let entry = self.entries[slot]
        switch entry.state {
        case .none: return
        case .low: self.lowWeight -= entry.weight
        case .high: self.highWeight -= entry.weight
        case .ghost: self.ghostWeight -= entry.weight
        }
        if self.stack.contains(slot) { self.stack.remove(slot) }
        if self.queues.contains(slot) { self.queues.remove(slot) }
        self.entries[slot].state = .none
    }

    private mutating func useHigh(_ slot: Int, _ lost: inout [Int32]) {
        guard self.stack.contains(slot) else {
            self.stack.append(slot)
            self.queues.moveToNewest(slot, of: 0)
            return
        }
        let weight = self.entries[slot].weight
        self.queues.remove(slot)
        self.entries[slot].state = .low
        self.highWeight -= weight
        self.lowWeight += weight
        self.stack.moveToNewest(slot)
        self.shrinkLow(&lost)
    }

    private mutating func take(_ slot: Int, _ weight: Int, _ lost: inout [Int32]) {
        let isLow = self.entries[slot].state == .ghost
        self.forget(slot)
        while self.lowWeight + self.highWeight + weight > self.capacity { self.evict(&lost) }
        self.entries[slot].weight = weight
        self.stack.append(slot)
        if isLow || self.highWeight == 0 && self.lowWeight + weight <= self.lowCapacity {
            self.entries[slot].state = .low
            self.lowWeight += weight
            self.shrinkLow(&lost)
        } else {
            self.entries[slot].state = .high
            self.highWeight += weight
            self.queues.append(slot, to: 0)
        }
    }

    private mutating func evict(_ lost: inout [Int32]) {
        guard let slot = self.queues.oldest(of: 0) else {
            self.prune(&lost)
            guard let slot = self.stack.oldest() else { return }
            self.forget(slot)
            lost.append(Int32(slot))
            return
        }
        let weight = self.entries[slot].weight
        lost.append(Int32(slot))
        guard self.stack.contains(slot) else { return self.forget(slot) }
        self.highWeight -= weight
        self.ghostWeight += weight
        self.entries[slot].state = .ghost
        self.queues.moveToNewest(slot, of: 1)
        while self.ghostWeight > 2 * self.capacity, let ghost = self.queues.oldest(of: 1) {
            self.forget(ghost)
            lost.append(Int32(ghost))
        }
    }

    /// Turns the entries at the bottom of the stack into high ones until the low ones fit.
    private mutating func shrinkLow(_ lost: inout [Int32]) {
        while self.lowWeight > self.lowCapacity {
            self.prune(&lost)
            guard let slot = self.stack.oldest() else { return }
            let weight = self.entries[slot].weight
            self.stack.remove(slot)
            self.entries[slot].state = .high
            self.lowWeight -= weight
            self.highWeight += weight
            self.queues.append(slot, to: 0)
        }
        self.prune(&lost)
    }

    /// Removes entries from the bottom of the stack until a low one is there.
    private mutating func prune(_ lost: inout [Int32]) {
        while let slot = self.stack.oldest(), self.entries[slot].state != .low {
            if self.entries[slot].state == .ghost {
                self.forget(slot)
                lost.append(Int32(slot))
            } else {
                self.stack.remove(slot)
            }
        }
    }
}
