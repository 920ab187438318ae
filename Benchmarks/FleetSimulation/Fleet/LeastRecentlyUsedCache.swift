// SPDX-License-Identifier: Apache-2.0

/// A cache that evicts the item whose last use is the oldest.
struct LeastRecentlyUsedCache: ItemCache {
    private struct Entry {
        var item: Int
        var bytes: Int
        var expiry: Double
        var newer: Int32
        var older: Int32
    }

    private static let end: Int32 = -1

    let capacity: Int
    private(set) var bytes = 0
    private(set) var evictions = 0
    private var slots: [Int: Int32] = [:]
    private var entries: [Entry] = []
    private var free: [Int32] = []
    private var newest = Self.end
    private var oldest = Self.end

    init(capacity: Int) {
        self.capacity = capacity
    }

    var count: Int { self.slots.count }

    mutating func expiry(of item: Int, at time: Double) -> Double? {
        guard let slot = self.slots[item] else { return nil }
        let expiry = self.entries[Int(slot)].expiry
        guard expiry > time else {
            self.remove(slot)
            return nil
        }
        self.unlink(slot)
        self.linkAsNewest(slot)
        return expiry
    }

    mutating func store(_ item: Int, bytes: Int, expiry: Double, at time: Double) {
        if let slot = self.slots[item] { self.remove(slot) }
        guard bytes <= self.capacity else { return }
        while self.bytes + bytes > self.capacity {
            self.remove(self.oldest)
            self.evictions += 1
        }
        let entry = Entry(item: item, bytes: bytes, expiry: expiry, newer: Self.end, older: Self.end)
        let slot: Int32
        if let last = self.free.popLast() {
            slot = last
            self.entries[Int(slot)] = entry
        } else {
            slot = Int32(self.entries.count)
            self.entries.append(entry)
        }
        self.slots[item] = slot
        self.bytes += bytes
        self.linkAsNewest(slot)
    }

    private mutating func remove(_ slot: Int32) {
        self.unlink(slot)
        self.slots[self.entries[Int(slot)].item] = nil
        self.bytes -= self.entries[Int(slot)].bytes
        self.free.append(slot)
    }

    private mutating func unlink(_ slot: Int32) {
        let (newer, older) = (self.entries[Int(slot)].newer, self.entries[Int(slot)].older)
        if newer == Self.end { self.newest = older } else { self.entries[Int(newer)].older = older }
        if older == Self.end { self.oldest = newer } else { self.entries[Int(older)].newer = newer }
    }

    private mutating func linkAsNewest(_ slot: Int32) {
        self.entries[Int(slot)].newer = Self.end
        self.entries[Int(slot)].older = self.newest
        if self.newest == Self.end { self.oldest = slot } else { self.entries[Int(self.newest)].newer = slot }
        self.newest = slot
    }
}
