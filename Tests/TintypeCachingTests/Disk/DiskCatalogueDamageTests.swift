// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestTraits

@testable import TintypeCaching

/// Checks that a lost or wrong catalogue never has precedence over the files.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskCatalogueDamageTests {
    private let folder: ScratchFolder
    private let keys = (0..<120).map { CacheKey("\($0)") }

    init() throws {
        self.folder = try ScratchFolder()
    }

    private var catalogue: URL { self.folder.url.appending(path: "catalogue") }

    private func fill() async throws {
        let cache = DiskCache(.init(directory: self.folder.url))
        for key in self.keys { try await cache.store(makeData(100), metadata: .sample, for: key) }
        await cache.shutdown()
    }

    enum Damage: CaseIterable {
        case missing, empty, short, garbage, otherVersion, folder
    }

    @Test(arguments: Damage.allCases)
    func `lost catalogue is made anew from the files`(damage: Damage) async throws {
        try await self.fill()
        var bytes = try Data(contentsOf: self.catalogue)
        try FileManager.default.removeItem(at: self.catalogue)
        switch damage {
        case .missing: break
        case .empty: try Data().write(to: self.catalogue)
        case .short: try bytes.dropLast(32).write(to: self.catalogue)
        case .garbage: try makeData(bytes.count).write(to: self.catalogue)
        case .otherVersion:
            bytes[8] = 2
            try bytes.write(to: self.catalogue)
        case .folder: mkdir(self.catalogue.path, 0o700)
        }
        let cache = DiskCache(.init(directory: self.folder.url))
        // Look the entries up at once, before the cache has read the folder.
        for key in self.keys { #expect(try await cache.entry(for: key)?.data == makeData(100)) }
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == self.keys.count)
        #expect(statistics.byteCount == self.folder.byteCount())
        #expect(try await cache.entry(for: CacheKey("none")) == nil)
    }

    @Test func `catalogue of another start of the system is compared with the folder`() async throws {
        try await self.fill()
        do {
            let folder = try openFolder(self.folder.path)
            // After a power cut, one entry may have a file and no slot, and another a slot and no file.
            try folder.withCatalogue { catalogue, _ in
                catalogue.remove(EntryName(self.keys[0]))
                catalogue.region.setBoot(BootIdentity(high: 1, low: 2))
            }
            unlink(self.folder.path(of: self.keys[1]))
        }
        let cache = DiskCache(.init(directory: self.folder.url))
        await cache.waitForHousekeeping()
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == self.keys.count - 1)
        #expect(statistics.byteCount == self.folder.byteCount())
        #expect(try await cache.entry(for: self.keys[0]) != nil)
        #expect(try await cache.entry(for: self.keys[1]) == nil)
    }

    @Test func `store of one who was ended while moving its file is settled`() async throws {
        try await self.fill()
        let now = Date().timeIntervalSince1970
        do {
            let folder = try openFolder(self.folder.path)
            try folder.withCatalogue { catalogue, _ throws(SystemCallError) in
                for (number, size) in [(0, 5_000), (500, 700)] {
                    let name = EntryName(CacheKey("\(number)"))
                    try catalogue.put(
                        CatalogueRecord(name: name, byteCount: size, usedAt: now, storedAt: now, expiresAt: .infinity)
                    )
                }
                let name = EntryName(self.keys[0])
                (catalogue.region[.intentHigh], catalogue.region[.intentLow]) = (name.high, UInt64(name.low))
            }
            try folder.withCatalogue { catalogue, _ in
                let name = EntryName(CacheKey("500"))
                (catalogue.region[.intentHigh], catalogue.region[.intentLow]) = (name.high, UInt64(name.low))
            }
        }
        let statistics = await DiskCache(.init(directory: self.folder.url)).statistics()
        #expect(statistics.entryCount == self.keys.count)
        #expect(statistics.byteCount == self.folder.byteCount())
    }

    @Test func `entry with a wrong name and by chance the right check is forgotten`() async throws {
        try await self.fill()
        do {
            let folder = try openFolder(self.folder.path)
            let region = folder.region
            let free = try #require((0..<region.slotCount).last { region.loadSlot($0, word: 0) == 0 })
            // The name belongs to the first shard, and the slot to the last one.
            let name = EntryName(high: 1, low: 0)
            region.storeSlot(
                free,
                CatalogueRecord(name: name, byteCount: 50, usedAt: 1e9, storedAt: 1e9, expiresAt: .infinity)
            )
        }
        let cache = DiskCache(.init(directory: self.folder.url))
        _ = await cache.prune()
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == self.keys.count)
        #expect(statistics.byteCount == self.folder.byteCount())
    }

    @Test func `a damaged slot keeps the last use of its entry`() async throws {
        try await self.fill()
        let key = self.keys[0]
        do {
            let folder = try openFolder(self.folder.path)
            let region = folder.region
            let (slot, record) = try #require(region.slot(of: EntryName(key)))
            // A bit of the size, which the check covers.
            region.storeSlot(slot, word: 2, record.words.2 ^ 1)
            let repaired = try #require(region.slot(of: EntryName(key)))
            #expect(repaired.record.byteCount == 0)
            #expect(repaired.record.usedAt == record.usedAt)
        }
        let cache = DiskCache(.init(directory: self.folder.url))
        #expect(try await cache.entry(for: key) != nil)
        await cache.shutdown()
    }

    @Test func `folder is read after a clearing that was cut short`() async throws {
        try await self.fill()
        do {
            // Imitate a process that was killed while it moved the entries aside.
            let folder = try openFolder(self.folder.path)
            folder.region.flags.insert(.needsReading)
            for key in self.keys.prefix(60) { unlink(self.folder.path(of: key)) }
        }
        let cache = DiskCache(.init(directory: self.folder.url))
        _ = await cache.removeExpired()
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == 60)
        #expect(statistics.byteCount == self.folder.byteCount())
    }

    @Test func `totals that do not hold have the folder read`() async throws {
        try await self.fill()
        do {
            let folder = try openFolder(self.folder.path)
            folder.region[.entryCount] = 7
            unlink(self.folder.path(of: self.keys[0]))
        }
        let cache = DiskCache(.init(directory: self.folder.url))
        _ = await cache.removeExpired()
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == self.keys.count - 1)
        #expect(statistics.byteCount == self.folder.byteCount())
    }

    @Test func `room is made although the slots of all entries were lost`() async throws {
        try await self.fill()
        do {
            // Imitate a file that was cut after its header and extended again.
            let region = try openFolder(self.folder.path).region
            for slot in 0..<region.slotCount {
                for word in 0..<CatalogueLayout.wordsPerSlot { region.storeSlot(slot, word: word, 0) }
            }
        }
        let limit = self.folder.byteCount() + 100
        let cache = DiskCache(.init(directory: self.folder.url, sizeLimit: limit))
        for number in 0..<20 {
            try await cache.store(makeData(100), metadata: .sample, for: CacheKey("new \(number)"))
        }
        let statistics = await cache.statistics()
        #expect(statistics.byteCount == self.folder.byteCount())
        #expect(statistics.byteCount <= limit)
    }
}
