// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FleetSimulation

/// The same cache as a list, the newest entry first.
private struct ListCache {
    struct Entry {
        let item: Int
        let bytes: Int
        let expiry: Double
    }

    let capacity: Int
    var entries: [Entry] = []

    mutating func expiry(of item: Int, at time: Double) -> Double? {
        guard let index = self.entries.firstIndex(where: { $0.item == item }) else { return nil }
        let entry = self.entries.remove(at: index)
        guard entry.expiry > time else { return nil }
        self.entries.insert(entry, at: 0)
        return entry.expiry
    }

    mutating func store(_ item: Int, bytes: Int, expiry: Double) {
        self.entries.removeAll { $0.item == item }
        guard bytes <= self.capacity else { return }
        self.entries.insert(Entry(item: item, bytes: bytes, expiry: expiry), at: 0)
        while self.entries.reduce(0, { $0 + $1.bytes }) > self.capacity { self.entries.removeLast() }
    }
}

@Suite struct LeastRecentlyUsedCacheTests {
    @Test func `the oldest use is evicted first`() {
        var cache = LeastRecentlyUsedCache(capacity: 30)
        for item in 1...3 { cache.store(item, bytes: 10, expiry: .infinity, at: 0) }
        #expect(cache.expiry(of: 1, at: 0) == .infinity)
        cache.store(4, bytes: 10, expiry: .infinity, at: 0)
        #expect(cache.expiry(of: 2, at: 0) == nil)
        #expect(cache.expiry(of: 1, at: 0) != nil)
        #expect(cache.evictions == 1)
        #expect(cache.bytes == 30)
    }

    @Test func `an entry ends at its expiry`() {
        var cache = LeastRecentlyUsedCache(capacity: 30)
        cache.store(1, bytes: 10, expiry: 5, at: 0)
        #expect(cache.expiry(of: 1, at: 4.9) == 5)
        #expect(cache.expiry(of: 1, at: 5) == nil)
        #expect(cache.bytes == 0)
        #expect(cache.evictions == 0)
    }

    @Test func `an item that is larger than the cache is not stored`() {
        var cache = LeastRecentlyUsedCache(capacity: 30)
        cache.store(1, bytes: 10, expiry: .infinity, at: 0)
        cache.store(2, bytes: 31, expiry: .infinity, at: 0)
        #expect(cache.expiry(of: 2, at: 0) == nil)
        #expect(cache.count == 1)
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>) func `any use gives the same answers as a list`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var cache = LeastRecentlyUsedCache(capacity: 1_000)
        var list = ListCache(capacity: 1_000)
        for step in 0..<20_000 {
            let item = Int.random(in: 0..<60, using: &generator)
            if Bool.random(using: &generator) {
                #expect(cache.expiry(of: item, at: Double(step)) == list.expiry(of: item, at: Double(step)))
            } else {
                let bytes = Int.random(in: 1...120, using: &generator)
                let expiry = Double(step + Int.random(in: 1...400, using: &generator))
                cache.store(item, bytes: bytes, expiry: expiry, at: 0)
                list.store(item, bytes: bytes, expiry: expiry)
            }
        }
        #expect(cache.count == list.entries.count)
        #expect(cache.bytes == list.entries.reduce(0) { $0 + $1.bytes })
    }
}
