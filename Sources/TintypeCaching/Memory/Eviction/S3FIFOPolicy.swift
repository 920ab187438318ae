/// Three queues, first in, first out: new entries, proven entries, and the keys of those dropped young.
///
/// A hit costs one counter. What is asked for again while new, or soon after it was dropped, is proven.
///
/// Source: Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, with its constants: a tenth for
/// new entries, counters up to 3, as many dropped keys as the main queue holds. Where the paper says nothing, it is as
/// its authors' libCacheSim: until the cache is full for the first time, what no longer fits the tenth goes to
/// the main queue, and room is made in the tenth unless the main queue has more than its part.
package struct S3FIFOPolicy: ReplacementPolicy {
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
    /// Whether what no longer fits the tenth goes to the main queue for now.
    private var fillsMainQueue: Bool
    private var entries = SlotTable(Entry())
    private var queues = SlotRings(count: 3)
    /// The weight of each queue.
    private var weights = [0, 0, 0]

    package init(capacity: Int) {
        self.init(capacity: capacity, fillsMainQueue: true)
    }

    /// Makes a policy that may leave the main queue to what is proven from the start.
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
        // Taken out first: making room may forget what was dropped young.
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
