// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Namespaces, read-only folders, merging and clearing.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskRoomsTests {
    private let folder: ScratchFolder
    private let key = CacheKey("a")

    init() throws {
        self.folder = try ScratchFolder()
    }

    private func makeCache(
        _ name: String = "own",
        change: (inout DiskCache.Configuration) -> Void = { _ in }
    ) -> DiskCache {
        var configuration = DiskCache.Configuration(directory: self.folder.url.appending(path: name))
        change(&configuration)
        return DiskCache(configuration)
    }

    @Test func `namespaces are apart and have their own limits`() async throws {
        let plain = self.makeCache()
        let faces = self.makeCache { $0.namespace = "faces" }
        let small = self.makeCache {
            $0.namespace = "../small/größe"
            $0.sizeLimit = 8_000
        }
        try await plain.store(makeData(10, seed: 1), metadata: .init(), for: self.key)
        try await faces.store(makeData(10, seed: 2), metadata: .init(), for: self.key)
        for number in 0..<20 { try await small.store(makeData(1_000), metadata: .init(), for: CacheKey("\(number)")) }
        #expect(try await plain.entry(for: self.key)?.data == makeData(10, seed: 1))
        #expect(try await faces.entry(for: self.key)?.data == makeData(10, seed: 2))
        #expect(await small.statistics().entryCount == 7)
        #expect(await faces.statistics().directory == self.folder.path + "/own/namespaces/faces")
        #expect(await small.statistics().directory.hasPrefix(self.folder.path + "/own/namespaces/%2e.%2fsmall"))
        try await plain.removeAll(waitingForDeletion: true)
        #expect(try await faces.entry(for: self.key) != nil)
    }

    @Test(arguments: ["", ".", "..", "a/b", String(repeating: "n", count: 300), "%", "\u{0}"])
    func `any namespace is one folder name`(namespace: String) {
        let name = DiskCache.Configuration.folderName(of: namespace)
        #expect(!name.isEmpty && !name.hasPrefix(".") && !name.contains("/") && name.utf8.count <= 255)
        #expect(name.utf8.allSatisfy { $0 > 32 && $0 < 127 })
        #expect(DiskCache.Configuration.folderName(of: namespace + "x") != name)
    }

    @Test func `entry of a read only folder is found and left alone`() async throws {
        let other = self.makeCache("other")
        try await other.store(makeData(100), metadata: .sample, for: self.key)
        await other.shutdown()
        let before = ScratchFolder.files(under: self.folder.path + "/other")
        let url = self.folder.url.appending(path: "other")
        let cache = self.makeCache { $0.readOnlyDirectories = [self.folder.url.appending(path: "none"), url] }
        #expect(await cache.contains(self.key))
        #expect(try await cache.entry(for: self.key)?.data == makeData(100))
        #expect(try await !cache.remove(self.key))
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        #expect(try await cache.entry(for: self.key)?.data == makeData(10))
        try await cache.removeAll()
        #expect(try await cache.entry(for: self.key)?.data == makeData(100))
        #expect(ScratchFolder.files(under: self.folder.path + "/other") == before)
    }

    @Test func `merging moves the entries and removes the folder`() async throws {
        let keys = (0..<100).map { CacheKey("\($0)") }
        let old = self.makeCache("old")
        for key in keys { try await old.store(makeData(100), metadata: .sample, for: key) }
        await old.shutdown()
        let cache = self.makeCache()
        try await cache.store(makeData(5), metadata: .init(), for: keys[0])
        #expect(try await cache.merge(from: self.folder.url.appending(path: "old")) == 100)
        #expect(access(self.folder.path + "/old", F_OK) != 0)
        #expect(try await cache.entry(for: keys[0])?.data == makeData(5))
        for key in keys.dropFirst() { #expect(try await cache.entry(for: key)?.metadata == .sample) }
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == 100)
        #expect(
            statistics.byteCount
                == ScratchFolder.files(under: self.folder.path + "/own/entries").reduce(0) {
                    $0 + ScratchFolder.byteCount(of: $1)
                }
        )
    }

    @Test func `merging leaves files alone that are no entries`() async throws {
        let other = self.folder.url.appending(path: "other")
        let paths = ["de/brief.txt", "my/letter", "entries/ab/notes"].map { other.appending(path: $0) }
        for path in paths {
            let place = path.deletingLastPathComponent()
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            try makeData(100).write(to: path)
        }
        let cache = DiskCache(.init(directory: self.folder.url.appending(path: "new")))
        #expect(try await cache.merge(from: other) == 0)
        for path in paths { #expect(try Data(contentsOf: path) == makeData(100)) }
    }

    @Test func `merging a folder with itself by another path changes nothing`() async throws {
        let (own, link) = (self.folder.url.appending(path: "own"), self.folder.url.appending(path: "link"))
        let cache = DiskCache(.init(directory: own))
        try await cache.store(makeData(100), metadata: .sample, for: CacheKey("a"))
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: own)
        #expect(try await cache.merge(from: link) == 0)
        #expect(try await cache.entry(for: CacheKey("a"))?.data == makeData(100))
        #expect(FileManager.default.fileExists(atPath: own.appending(path: "catalogue").path))
    }

    @Test func `verifying a folder that cannot be opened is not complete`() async throws {
        #expect(symlink("loop", self.folder.path + "/loop") == 0)
        #expect(await self.makeCache("loop").verify().isComplete == false)
        #expect(await self.makeCache("none").verify().isComplete)
    }

    @Test func `long namespace never shares the folder of a short one`() throws {
        let long = (0..<10_000).map { String(repeating: "x", count: 81) + "\($0)" }
        let digest = try #require(long.lazy.map { CacheKey($0).digest }.first { $0.hasPrefix("21") })
        let name = try #require(long.first { CacheKey($0).digest == digest })
        let short = "!" + digest.dropFirst(2)
        #expect(DiskCache.Configuration.folderName(of: name) != DiskCache.Configuration.folderName(of: short))
    }

    @Test func `deletion that was cut short is finished by the next`() async throws {
        let first = self.makeCache()
        for number in 0..<30 { try await first.store(makeData(100), metadata: .init(), for: CacheKey("\(number)")) }
        await first.waitForHousekeeping()
        first.store.folders.closing.set()
        try await first.removeAll()
        await first.shutdown()
        let discarded = self.folder.path + "/own/discarded"
        #expect(ScratchFolder.files(under: discarded).count == 30)
        let second = self.makeCache()
        await second.waitForHousekeeping()
        #expect(ScratchFolder.files(under: discarded).isEmpty)
        let statistics = await second.statistics()
        #expect(statistics.entryCount == 0)
        #expect(statistics.overheadByteCount < 5_000)
    }

    @Test func `metadata changes without the bytes or their age`() async throws {
        let clock = TestClock()
        let cache = self.makeCache { $0.now = { clock.now } }
        try await cache.store(makeData(1_000), metadata: .sample, for: self.key)
        let storedAt = clock.now
        clock.advance(by: 100)
        #expect(try await cache.updateMetadata(for: self.key) { $0.extra["note"] = "kept" })
        let entry = try #require(try await cache.entry(for: self.key))
        #expect(entry.metadata.extra["note"] == "kept" && entry.metadata.etag == EntryMetadata.sample.etag)
        #expect(entry.data == makeData(1_000) && entry.storedAt == storedAt)
        #expect(try await cache.updateMetadata(for: self.key) { $0.extra["note"] = nil })
        #expect(try await cache.entry(for: self.key)?.metadata == .sample)
        #expect(try await !cache.updateMetadata(for: CacheKey("none")) { $0.extra = [:] })
    }

    @Test func `trimming keeps the newest`() async throws {
        let clock = TestClock()
        let cache = self.makeCache { $0.now = { clock.now } }
        for number in 0..<20 {
            try await cache.store(makeData(1_000), metadata: .init(), for: CacheKey("\(number)"))
            clock.advance(by: 1)
        }
        let result = await cache.trim(to: 4_200 + 5 * 1_100)
        #expect(result.evictedEntries == 15)
        #expect(await cache.contains(CacheKey("19")))
        #expect(await cache.contains(CacheKey("15")))
        #expect(await !cache.contains(CacheKey("14")))
        #expect(await cache.trim(to: 0).evictedEntries == 5)
    }

    @Test func `verifying names each damage and removes when asked`() async throws {
        let cache = self.makeCache()
        let keys = (0..<5).map { CacheKey("\($0)") }
        for key in keys { try await cache.store(makeData(500), metadata: .init(), for: key) }
        let paths = keys.map { "\(self.folder.path)/own/\(EntryName($0).path)" }
        let whole = try Data(contentsOf: URL(filePath: paths[0]))
        var flipped = whole
        flipped[whole.count - 1] ^= 1
        try flipped.write(to: URL(filePath: paths[0]))
        try whole.dropLast().write(to: URL(filePath: paths[1]))
        try whole.write(to: URL(filePath: paths[2]))
        unlink(paths[3])
        #expect(symlink("/dev/null", paths[3]) == 0)
        let damages: [String: VerifyResult.Damage] = [
            paths[0]: .checksum, paths[1]: .header, paths[2]: .name, paths[3]: .notAFile,
        ]
        for isRemoving in [false, true] {
            let result = await cache.verify(removingDamaged: isRemoving)
            #expect(result.entryCount == 5 && result.isComplete)
            #expect(Dictionary(uniqueKeysWithValues: result.findings.map { ($0.path, $0.damage) }) == damages)
            // A link does not belong to the cache, and stays.
            #expect(result.findings.allSatisfy { $0.isRemoved == (isRemoving && $0.damage != .notAFile) })
        }
        #expect(await cache.verify().findings.map(\.path) == [paths[3]])
        #expect(await cache.statistics().entryCount == 1)
    }
}
