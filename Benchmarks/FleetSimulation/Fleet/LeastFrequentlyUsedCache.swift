// SPDX-License-Identifier: Apache-2.0

/// A cache that evicts rarely used items, as Redis does with the policy `allkeys-lfu` and its default settings.
///
/// Each entry has a counter of eight bits, which grows with the logarithm of its uses and shrinks by one each minute without
/// a use. To evict, the cache draws five entries and removes the one with the smallest counter.
///
/// Source: redis.io, "Key eviction".
struct LeastFrequentlyUsedCache: ItemCache {
    private struct Entry {
        var item: Int
        var bytes: Int
        var expiry: Double
        var counter: Int
        var lastUse: Double
    }

    private static let samples = 5
    private static let firstCounter = 5
    private static let growth = 10.0
    private static let decay = 60.0

    let capacity: Int
    private(set) var bytes = 0
    private(set) var evictions = 0
    private var slots: [Int: Int] = [:]
    private var entries: [Entry] = []
    private var generator: SeededGenerator

    init(capacity: Int, seed: UInt64) {
        self.capacity = capacity
        self.generator = SeededGenerator(seed: seed)
    }

    var count: Int { self.entries.count }

    mutating func expiry(of item: Int, at time: Double) -> Double? {
        guard let slot = self.slots[item] else { return nil }
        guard self.entries[slot].expiry > time else {
            self.remove(slot)
            return nil
        }
        self.use(slot, at: time)
        return self.entries[slot].expiry
    }

    mutating func store(_ item: Int, bytes: Int, expiry: Double, at time: Double) {
        if let slot = self.slots[item] { self.remove(slot) }
        guard bytes <= self.capacity else { return }
        while self.bytes + bytes > self.capacity {
            self.remove(self.victim(at: time))
            self.evictions += 1
        }
        self.slots[item] = self.entries.count
        self.entries.append(
            Entry(item: item, bytes: bytes, expiry: expiry, counter: Self.firstCounter, lastUse: time)
        )
        self.bytes += bytes
    }

    private mutating func use(_ slot: Int, at time: Double) {
        let counter = self.counter(of: slot, at: time)
        let excess = Double(max(0, counter - Self.firstCounter))
        let grows = counter < 255 && self.generator.unit() < 1 / (excess * Self.growth + 1)
        self.entries[slot].counter = counter + (grows ? 1 : 0)
        self.entries[slot].lastUse = time
    }

    private func counter(of slot: Int, at time: Double) -> Int {
        let entry = self.entries[slot]
        return max(0, entry.counter - Int((time - entry.lastUse) / Self.decay))
    }

    /// The slot to remove, which is that of an expired entry if the sample has one.
    private mutating func victim(at time: Double) -> Int {
        var best = 0
        var smallest = Int.max
        for _ in 0..<Self.samples {
            let slot = Int.random(in: self.entries.indices, using: &self.generator)
            let counter = self.entries[slot].expiry <= time ? -1 : self.counter(of: slot, at: time)
            if counter < smallest { (best, smallest) = (slot, counter) }
        }
        return best
    }

    private mutating func remove(_ slot: Int) {
        let entry = self.entries[slot]
        self.slots[entry.item] = nil
        self.bytes -= entry.bytes
        let last = self.entries.removeLast()
        guard slot < self.entries.count else { return }
        self.entries[slot] = last
        self.slots[last.item] = slot
    }
}
