// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskSharingTests {
    private let folder: ScratchFolder
    private let key = CacheKey("a")

    init() throws {
        self.folder = try ScratchFolder()
    }

    private func makeCache() -> DiskCache {
        DiskCache(.init(directory: self.folder.url))
    }

    @Test func `two caches see each others entries`() async throws {
        let (first, second) = (self.makeCache(), self.makeCache())
        #expect(try await second.entry(for: self.key) == nil)
        try await first.store(makeData(10), metadata: .init(), for: self.key)
        #expect(try await second.entry(for: self.key)?.data == makeData(10))
        try await second.store(makeData(10, seed: 2), metadata: .init(), for: self.key)
        #expect(try await first.entry(for: self.key)?.data == makeData(10, seed: 2))
        try await second.remove(self.key)
        #expect(try await first.entry(for: self.key) == nil)
        #expect(await first.statistics().entryCount == 0)
    }

    @Test func `two caches under load give whole entries or none`() async throws {
        let caches = [self.makeCache(), self.makeCache()]
        let keys = (0..<10).map { CacheKey("\($0)") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    let cache = caches[task % 2]
                    for step in 0..<200 {
                        let key = keys[(step + task) % keys.count]
                        let seed = UInt64(step % 5) + 1
                        switch step % 4 {
                        case 0: try await cache.store(makeData(3_000, seed: seed), metadata: .init(), for: key)
                        case 1 where step % 8 == 1: try await cache.remove(key)
                        default:
                            guard let data = try await cache.entry(for: key)?.data else { continue }
                            #expect((1...5).contains { makeData(3_000, seed: $0) == data })
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(await caches[0].statistics().damagedEntries == 0)
        #expect(await caches[1].statistics().damagedEntries == 0)
        #expect(self.folder.files() == self.folder.entryFiles())
    }

    @Test func `clearing beside another that deletes what was cleared forgets no file`() async throws {
        let (clearing, deleting) = (self.makeCache(), self.makeCache())
        for _ in 0..<60 {
            for number in 0..<12 {
                try await clearing.store(makeData(10), metadata: .init(), for: CacheKey("\(number)"))
            }
            async let deletion: Void = {
                for _ in 0..<4 { await deleting.waitForHousekeeping() }
            }()
            try await clearing.removeAll()
            await deletion
            #expect(await clearing.statistics().entryCount == self.folder.entryFiles().count)
        }
    }

    @Test func `use by one who only reads counts after the catalogue has grown`() async throws {
        let clock = TestClock()
        func makeCache() -> DiskCache {
            DiskCache(.init(directory: self.folder.url, maximumAge: .seconds(3_600), now: { clock.now }))
        }
        let (writer, reader) = (makeCache(), makeCache())
        let key = CacheKey("used")
        try await writer.store(makeData(100), metadata: .sample, for: key)
        #expect(try await reader.entry(for: key) != nil)
        for number in 0..<200 {
            try await writer.store(makeData(100), metadata: .sample, for: CacheKey("\(number)"))
        }
        clock.advance(by: 1_800)
        #expect(try await reader.entry(for: key) != nil)
        clock.advance(by: 2_000)
        #expect(await writer.removeExpired().expiredEntries == 200)
        #expect(try await writer.entry(for: key) != nil)
    }

    @Test func `file of a killed writer with the same number is cleaned away without a catalogue`() async throws {
        let temporary = self.folder.url.appending(path: "temporary")
        try FileManager.default.createDirectory(at: temporary, withIntermediateDirectories: true)
        try makeData(100).write(to: temporary.appending(path: "1-000000000000dead-1"))
        let cache = self.makeCache()
        await cache.waitForHousekeeping()
        #expect(self.folder.files() == [])
    }

    @Test func `folder deleted behind is empty and made again`() async throws {
        let cache = self.makeCache()
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        _ = await cache.statistics()
        try FileManager.default.removeItem(atPath: self.folder.path)
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(try await !cache.remove(self.key))
        #expect(await cache.prune() == PruneResult())
        try await cache.store(makeData(20), metadata: .init(), for: self.key)
        #expect(try await cache.entry(for: self.key)?.data == makeData(20))
        #expect(await cache.statistics().entryCount == 1)
    }

    @Test func `file deleted behind is a miss and no longer counted`() async throws {
        let cache = self.makeCache()
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        for file in self.folder.files() { unlink(file) }
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(await cache.statistics().byteCount == 0)
        #expect(await cache.statistics().damagedEntries == 0)
    }

    @Test(arguments: [true, false])
    func `files of killed writers are cleaned away`(isOpening: Bool) async throws {
        let cache = self.makeCache()
        let other = self.makeCache()
        if !isOpening { try await cache.store(makeData(10), metadata: .init(), for: self.key) }
        try await other.store(makeData(10), metadata: .init(), for: self.key)
        await other.waitForHousekeeping()
        if !isOpening { await cache.waitForHousekeeping() }
        let temporary = self.folder.path + "/temporary"
        // The first file belongs to the second cache, which is alive. The writers of the others are gone.
        let living = "\(temporary)/\(isOpening ? 1 : 2)-00000000a11ce000-1"
        let dead = ["90-000000000000dead-1", "91-000000000000dead-1", "91-000000000000dead-2"]
        for path in [living] + dead.map({ temporary + "/" + $0 }) {
            #expect(FileManager.default.createFile(atPath: path, contents: makeData(100)))
        }
        #expect(await cache.prune().temporaryFiles == 3)
        #expect(ScratchFolder.files(under: temporary) == [living])
        await other.shutdown()
    }

    @Test(arguments: ["prune", "removeExpired", "trim"])
    func `cleaning that opens counts what the opening removes`(cleaning: String) async throws {
        let first = self.makeCache()
        try await first.store(makeData(10), metadata: .init(), for: self.key)
        await first.shutdown()
        let left = self.folder.path + "/temporary/90-000000000000dead-1"
        #expect(FileManager.default.createFile(atPath: left, contents: makeData(100)))
        let cache = self.makeCache()
        let result =
            switch cleaning {
            case "prune": await cache.prune()
            case "removeExpired": await cache.removeExpired()
            default: await cache.trim(to: .max)
            }
        #expect(result.temporaryFiles == 1)
        #expect(await cache.statistics().entryCount == 1)
    }

    @Test func `opening caches take no file from a writer that lives`() async throws {
        let (folder, url) = (self.folder, self.folder.url)
        await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<6 {
                group.addTask {
                    for number in 0..<100 {
                        // Each cache cleans the folder when it opens.
                        let cache = DiskCache(.init(directory: url))
                        let key = CacheKey("\(task) \(number)")
                        // The lock is not fair: on a busy machine, the others may keep it for longer than a store waits.
                        var isStored = false
                        while !isStored {
                            do {
                                try await cache.store(makeData(100), metadata: .init(), for: key)
                                isStored = true
                            } catch let error as CacheError where error.code == .lockTimedOut {}
                        }
                        await cache.shutdown()
                    }
                }
            }
            await #expect(throws: Never.self) { try await group.waitForAll() }
        }
        #expect(folder.entryFiles().count == 600)
        #expect(folder.files().count == 600)
    }
}
