// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Encoded images in memory, which have their own limit and are evicted in the order of their last use.
@Suite(.computing) struct EncodedMemoryTests {
    private func makeEntry(_ name: String, byteCount: Int = 1_000, expiry: Date? = nil) -> EncodedEntry {
        EncodedEntry(
            key: CacheKey("a").derived(name),
            data: Data(count: byteCount),
            metadata: EntryMetadata(expiry: expiry)
        )
    }

    private func makeMemory(_ limit: Int, now: @escaping @Sendable () -> Date = { Date() }) -> EncodedMemory {
        EncodedMemory(limit: limit, now: now)
    }

    private func found(_ memory: EncodedMemory, _ range: Range<UInt64>) -> [UInt64] {
        range.filter { memory.entry(for: CacheKey("p"), encoding: $0, countsMiss: false) != nil }
    }

    @Test func `what was used longest ago leaves first, at once`() {
        let cost = self.makeEntry("0").cost
        let memory = self.makeMemory(3 * cost)
        for number in 0..<3 as Range<UInt64> {
            memory.insert(self.makeEntry("\(number)"), life: .endless, for: CacheKey("p"), encoding: number) { false }
        }
        _ = memory.entry(for: CacheKey("p"), encoding: 0, countsMiss: true)
        memory.insert(self.makeEntry("3"), life: .endless, for: CacheKey("p"), encoding: 3) { false }
        #expect(self.found(memory, 0..<4) == [0, 2, 3])
        #expect(memory.figures.cost == 3 * cost)
    }

    @Test func `an entry takes the place of an older one, and one over the limit leaves none`() {
        let cost = self.makeEntry("0").cost
        let memory = self.makeMemory(2 * cost)
        memory.insert(self.makeEntry("0"), life: .endless, for: CacheKey("p"), encoding: 0) { false }
        memory.insert(self.makeEntry("0", byteCount: 10), life: .endless, for: CacheKey("p"), encoding: 0) { false }
        #expect(memory.entry(for: CacheKey("p"), encoding: 0, countsMiss: false)?.data.count == 10)
        memory.insert(self.makeEntry("0", byteCount: 10_000), life: .endless, for: CacheKey("p"), encoding: 0) { false }
        #expect(self.found(memory, 0..<1).isEmpty)
        #expect(memory.figures.cost == 0)
    }

    @Test func `what is obsolete is not kept, and what is expired is not found`() {
        let now = Locked(Date(timeIntervalSince1970: 1_000))
        let memory = self.makeMemory(100_000) { now.withLock { $0 } }
        memory.insert(self.makeEntry("0"), life: .endless, for: CacheKey("p"), encoding: 0) { true }
        let expiry = Date(timeIntervalSince1970: 2_000)
        let life = EntryLife(
            start: 0,
            lifetime: nil,
            expiry: expiry.timeIntervalSinceReferenceDate,
            isExtendedOnRead: false
        )
        memory.insert(self.makeEntry("1", expiry: expiry), life: life, for: CacheKey("p"), encoding: 1) { false }
        #expect(self.found(memory, 0..<2) == [1])
        now.withLock { $0 = expiry }
        #expect(self.found(memory, 0..<2).isEmpty)
        #expect(memory.figures.count == 0)
    }

    @Test func `the lifetime of the configuration holds for encoded images, and what is over is a miss`() {
        let now = Locked(Date(timeIntervalSince1970: 1_000))
        func advance(_ seconds: Double) { now.withLock { $0 += seconds } }
        for isExtended in [false, true] {
            var configuration = MemoryCache.Configuration(lifetime: .seconds(10), extendsLifetimeOnRead: isExtended)
            configuration.now = { now.withLock { $0 } }
            let cache = MemoryCache(configuration)
            cache.keepEncoded(self.makeEntry("0"), for: CacheKey("p"), encoding: 0) { false }
            advance(9)
            #expect(cache.encodedEntry(for: CacheKey("p"), encoding: 0) != nil)
            advance(9)
            #expect((cache.encodedEntry(for: CacheKey("p"), encoding: 0) != nil) == isExtended)
            advance(11)
            #expect(cache.encodedEntry(for: CacheKey("p"), encoding: 0) == nil)
            #expect(cache.statistics.encodedHits == (isExtended ? 2 : 1))
            #expect(cache.statistics.encodedMisses == (isExtended ? 1 : 2))
            #expect(cache.statistics.encodedCount == 0)
        }
    }

    @Test func `entries leave by their own keys, by their family, and when memory is short`() {
        let cache = MemoryCache(MemoryCache.Configuration())
        func insert() {
            for number in 0..<4 as Range<UInt64> {
                cache.keepEncoded(self.makeEntry("\(number)"), for: CacheKey("p"), encoding: number) { false }
            }
        }
        insert()
        #expect(cache.remove(CacheKey("a").derived("2")))
        #expect(cache.statistics.encodedCount == 3)
        #expect(cache.removeFamily(of: CacheKey("a")))
        #expect(cache.statistics.encodedCount == 0)
        insert()
        cache.trim(toFraction: 0.5)
        #expect(cache.statistics.encodedCount == 2)
        cache.removeAll()
        #expect(cache.statistics.encodedCount == 0)
        #expect(cache.statistics.encodedCost == 0)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `random use keeps count, cost and order as a list does`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let memory = self.makeMemory(20_000)
        var model: [(number: UInt64, cost: Int)] = []
        for _ in 0..<2_000 {
            let number = UInt64.random(in: 0..<40, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0:
                let isFound = memory.entry(for: CacheKey("p"), encoding: number, countsMiss: true) != nil
                #expect(isFound == model.contains { $0.number == number })
                if let index = model.firstIndex(where: { $0.number == number }) {
                    model.append(model.remove(at: index))
                }
            case 1:
                memory.remove(CacheKey("a").derived("\(number)"))
                model.removeAll { $0.number == number }
            default:
                let entry = self.makeEntry("\(number)", byteCount: Int.random(in: 0..<4_000, using: &generator))
                memory.insert(entry, life: .endless, for: CacheKey("p"), encoding: number) { false }
                model.removeAll { $0.number == number }
                model.append((number, entry.cost))
                while model.reduce(0, { $0 + $1.cost }) > 20_000 { model.removeFirst() }
            }
            #expect(memory.figures.count == model.count)
            #expect(memory.figures.cost == model.reduce(0) { $0 + $1.cost })
        }
        #expect(self.found(memory, 0..<40) == model.map(\.number).sorted())
    }
}
