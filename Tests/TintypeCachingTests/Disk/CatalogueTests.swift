// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct CatalogueTests {
    private func record(_ number: Int, byteCount: Int = 10, usedAt: Double = 1) -> CatalogueRecord {
        CatalogueRecord(
            name: EntryName(CacheKey("\(number)")),
            byteCount: byteCount,
            usedAt: usedAt,
            storedAt: 1,
            expiresAt: .infinity
        )
    }

    private func isFound(_ record: CatalogueRecord, in region: CatalogueRegion) -> Bool {
        if case .found(let found, _, _) = region.find(record.name) { found == record } else { false }
    }

    private func isAbsent(_ record: CatalogueRecord, in region: CatalogueRegion) -> Bool {
        if case .absent = region.find(record.name) { true } else { false }
    }

    @Test(arguments: [0.0, 1, 1_700_000_000.5, 4_000_000_000])
    func `record comes back from its words`(usedAt: Double) throws {
        let record = CatalogueRecord(
            name: EntryName(high: 0xFEDC_BA98_7654_3210, low: 0x89AB_CDEF),
            byteCount: 1 << 39 + 7,
            usedAt: usedAt,
            storedAt: 1_700_000_000,
            expiresAt: 1_800_000_000.25
        )
        #expect(CatalogueRecord(record.words) == record)
        #expect(record.usedAtSeconds == usedAt)
        #expect(record.deadline == 1_800_000_001)
    }

    @Test func `flipped bits of a slot are found out unless they are of the last use`() throws {
        var accepted = 0
        for bit in 0..<256 where !(64..<112).contains(bit) {
            var words = self.record(1, byteCount: 51_200, usedAt: 1_700_000_000).words
            let mask = UInt64(1) << UInt64(bit % 64)
            switch bit / 64 {
            case 0: words.0 ^= mask
            case 1: words.1 ^= mask
            case 2: words.2 ^= mask
            default: words.3 ^= mask
            }
            if CatalogueRecord(words) != nil { accepted += 1 }
        }
        // A check of eight bits accepts one of 256 wrong slots on average, and at most two for this slot.
        #expect(accepted <= 2)
    }

    @Test func `catalogue that is only read outlives the shortening of its file`() throws {
        let folder = try ScratchFolder()
        let descriptor = open(folder.path + "/catalogue", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        try CatalogueRegion.make(in: descriptor, slotCount: 1_000).put(self.record(1))
        let region = try #require(try CatalogueRegion.open(descriptor, isShared: false))
        #expect(ftruncate(descriptor, 0) == 0)
        #expect(self.isFound(self.record(1), in: region))
        #expect(try CatalogueRegion.open(descriptor, isShared: false) == nil)
    }

    @Test func `reservations that are any number do not overflow`() throws {
        let region = try CatalogueRegion.makePrivate(slotCount: 8)
        region[owner: 0] = .max
        region[.reservedByteCount] = .max
        region.reserve(10, for: 0)
        #expect(region[owner: 0] == UInt64(Int.max))
        region.reserve(-Int.max, for: 0)
        #expect(region[.reservedByteCount] == 0)
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `table holds what a set would hold`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let region = try CatalogueRegion.makePrivate(slotCount: 200)
        var model: [Int: CatalogueRecord] = [:]
        for _ in 0..<20_000 {
            let number = Int(generator.next() % 300)
            if generator.next() % 2 == 0 {
                let record = self.record(number, byteCount: Int(generator.next() % 1_000))
                guard model[number] != nil || region.hasRoom else { continue }
                #expect(region.put(record) == model.updateValue(record, forKey: number))
            } else {
                #expect(region.remove(EntryName(CacheKey("\(number)"))) == model.removeValue(forKey: number))
            }
        }
        for number in 0..<300 {
            if let record = model[number] {
                #expect(self.isFound(record, in: region))
            } else {
                #expect(self.isAbsent(self.record(number), in: region))
            }
        }
        #expect(region[.entryCount] == UInt64(model.count))
        #expect(region[.byteCount] == UInt64(model.values.reduce(0) { $0 + $1.byteCount }))
    }

    @Test func `while slots are moved a miss is not certain`() throws {
        let region = try CatalogueRegion.makePrivate(slotCount: 100)
        region[.sequence] += 1
        guard case .unknown = region.find(self.record(1).name) else {
            Issue.record("a miss was certain")
            return
        }
        region[.sequence] += 1
        #expect(self.isAbsent(self.record(1), in: region))
    }

    @Test func `one who was ended while moving slots leaves nothing twice`() throws {
        let region = try CatalogueRegion.makePrivate(slotCount: 100)
        region.put(self.record(1))
        region.put(self.record(2))
        // Closing a gap leaves this state in between.
        region.insert(self.record(1))
        region[.sequence] += 1
        let copy = try CatalogueRegion.makePrivate(slotCount: 100)
        region.copyEntries(to: copy)
        #expect(copy[.entryCount] == 2)
        #expect(copy[.byteCount] == 20)
        #expect(self.isFound(self.record(1), in: copy))
        copy.remove(self.record(1).name)
        #expect(self.isAbsent(self.record(1), in: copy))
    }

    @Test func `totals that nobody sealed are known to be wrong`() throws {
        let region = try CatalogueRegion.makePrivate(slotCount: 100)
        #expect(region.hasValidTotals)
        region.put(self.record(1))
        #expect(!region.hasValidTotals)
        region[.byteCount] = 99
        region.recountTotals()
        #expect(region[.byteCount] == 10)
        region.sealTotals()
        #expect(region.hasValidTotals)
    }

    @Test(arguments: [100, 20_000])
    func `victims are the least recently used`(count: Int) throws {
        let region = try CatalogueRegion.makePrivate(slotCount: count * 2)
        for number in 0..<count { region.put(self.record(number, usedAt: Double(count - number))) }
        var victims = VictimQueue()
        victims.fill(with: VictimQueue.oldest(of: region, 0..<region.slotCount, part: 8, now: 1e6))
        // Meanwhile the oldest entry was used, and the next one is spared.
        region.put(self.record(count - 1, usedAt: 1e5))
        let spared = self.record(count - 2).name
        for number in stride(from: count - 3, to: count - 9, by: -1) {
            let victim = victims.takeVictim(in: region, sparing: spared, now: 1e6)
            #expect(victim?.name == self.record(number).name)
        }
    }

    @Test func `an entry from the future does not hide the expired ones behind it`() throws {
        let region = try CatalogueRegion.makePrivate(slotCount: 100)
        for (number, usedAt) in [(1, 1e9), (2, 10), (3, 20), (4, 900)] {
            region.put(self.record(number, usedAt: usedAt))
        }
        var victims = VictimQueue()
        let limit = CatalogueRecord.ticks(100)
        for number in [2, 3] {
            let oldest = victims.takeOldest(in: region, usedUpTo: limit, now: 1_000)
            #expect(oldest?.name == self.record(number).name)
            region.remove(self.record(number).name)
        }
        #expect(victims.takeOldest(in: region, usedUpTo: limit, now: 1_000) == nil)
    }

    @Test func `large table without a queue gives up an old entry in bounded time`() throws {
        let count = 60_000
        let region = try CatalogueRegion.makePrivate(slotCount: 100_000)
        for number in 0..<count { region.put(self.record(number, usedAt: Double(number))) }
        var victims = VictimQueue()
        let victim = victims.takeVictim(in: region, sparing: nil, now: 1e6)
        #expect(try #require(victim).usedAtSeconds < Double(count) / 16)
    }

    @Test func `spare is the only victim when it is alone`() throws {
        let region = try CatalogueRegion.makePrivate(slotCount: 100)
        region.put(self.record(1))
        var victims = VictimQueue()
        let only = victims.takeVictim(in: region, sparing: self.record(1).name, now: 10)
        #expect(only?.name == self.record(1).name)
        region.remove(self.record(1).name)
        let none = victims.takeVictim(in: region, sparing: nil, now: 10)
        #expect(none == nil)
    }
}
