// SPDX-License-Identifier: Apache-2.0

/// A policy of three FIFO queues: new entries, proven entries, and the keys of entries that were evicted young.
///
/// A hit costs only one counter. An entry is proven if it is used again while it is new, or soon after its eviction.
///
/// Source: Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, with its constants: a tenth for
/// new entries, counters up to 3, and as many evicted keys as the main queue holds. If the paper leaves a detail open,
/// the policy follows libCacheSim of the same authors. Until the cache is full for the first time, entries that do not
/// fit into the tenth go to the main queue. Evictions start with the tenth, unless the main queue exceeds its share.
package struct S3FIFOPolicy: SimulatedPolicy {
    private enum Queue: UInt8 {
        case small, main, ghost, none
    }

    private struct Entry {
        var weight = 0
        var queue = Queue.none
        var uses: UInt8 = 0
    }

    private let capacity: Int
    private let smallCapacity: Int
    /// Whether entries that do not fit into the tenth still go to the main queue.
    private var fillsMainQueue: Bool
    private var entries = SlotTable(Entry())
    private var queues = SlotRings(count: 3)
    /// The weight of each queue.
    private var weights = [0, 0, 0]

    package init(capacity: Int) {
        self.init(capacity: capacity, fillsMainQueue: true)
    }

    /// Creates a policy that can reserve the main queue for proven entries from the start.
    package init(capacity: Int, fillsMainQueue: Bool) {
        self.capacity = capacity
        self.fillsMainQueue = fillsMainQueue
        self.smallCapacity = max(1, capacity / 10)
    }

    package func holds(_ slot: Int) -> Bool {
        let queue = self.entries[slot].queue
        return queue == .small || queue == .main
    }

    package func remembers(_ slot: Int) -> Bool {
        self.entries[slot].queue != .none
    }

    package mutating func request(_ slot: Int, hash: UInt64, weight: Int, lost: inout [Int32]) -> Bool {
        var entry = self.entries[slot]
        if entry.queue == .small || entry.queue == .main {
            guard entry.uses < 3 else { return true }
            entry.uses += 1
            self.entries[slot] = entry
            return true
        }
        guard weight <= self.capacity else { return false }
        // Remove the slot first, because the evictions below may forget that it is a ghost.
        let isProven = entry.queue == .ghost
        self.move(slot, to: .none)
        while self.weights[0] + self.weights[1] + weight > self.capacity {
            self.fillsMainQueue = false
            if self.weights[1] > self.capacity - self.smallCapacity || self.weights[0] == 0 {
                self.evictFromMain(&lost)
            } else {
                self.evictFromSmall(&lost)
            }
        }
        let startsInMain = isProven || self.fillsMainQueue && self.weights[0] >= self.smallCapacity
        self.entries[slot].weight = weight
        self.entries[slot].uses = 0
        self.move(slot, to: startsInMain ? .main : .small)
        return false
    }

    package mutating func forget(_ slot: Int) {
        self.move(slot, to: .none)
    }

    private mutating func evictFromSmall(_ lost: inout [Int32]) {
        while let slot = self.queues.oldest(of: 0) {
            guard self.entries[slot].uses <= 1 else {
                self.entries[slot].uses = 0
                self.move(slot, to: .main)
                continue
            }
            lost.append(Int32(slot))
            self.move(slot, to: .ghost)
            while self.weights[2] > self.capacity - self.smallCapacity, let ghost = self.queues.oldest(of: 2) {
                self.move(ghost, to: .none)
                lost.append(Int32(ghost))
            }
            return
        }
    }

    private mutating func evictFromMain(_ lost: inout [Int32]) {
        while let slot = self.queues.oldest(of: 1) {
            guard self.entries[slot].uses > 0 else {
                self.move(slot, to: .none)
                lost.append(Int32(slot))
                return
            }
            self.entries[slot].uses -= 1
            self.queues.moveToNewest(slot, of: 1)
        }
    }

    private mutating func move(_ slot: Int, to queue: Queue) {
        let entry = self.entries[slot]
        if entry.queue != .none {
            self.queues.remove(slot)
            self.weights[Int(entry.queue.rawValue)] -= entry.weight
        }
        if queue != .none {
            self.queues.append(slot, to: Int(queue.rawValue))
            self.weights[Int(queue.rawValue)] += entry.weight
        }
        self.entries[slot].queue = queue
    }
}
