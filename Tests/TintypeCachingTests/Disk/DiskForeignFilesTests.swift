// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Checks that a cache never touches foreign files in its folder.
@Suite(.waiting, .timeLimit(.minutes(30))) struct DiskForeignFilesTests {
    private let folder: ScratchFolder
    private let keys = (0..<60).map { CacheKey("\($0)") }

    init() throws {
        self.folder = try ScratchFolder()
    }

    private var root: String { self.folder.path + "/cache" }

    private func makeCache(sizeLimit: Int = 1 << 30) -> DiskCache {
        DiskCache(.init(directory: URL(filePath: self.root), sizeLimit: sizeLimit))
    }

    /// Returns the reports of a cache whose folder has the given mode and owner.
    private func reports(mode: mode_t, owner: uid_t = geteuid()) async throws -> [CacheError.Code] {
        try FileManager.default.createDirectory(atPath: self.root, withIntermediateDirectories: true)
        #expect(chmod(self.root, mode) == 0 && chown(self.root, owner, getegid()) == 0)
        let reports = Locked<[CacheError.Code]>([])
        var configuration = DiskCache.Configuration(directory: URL(filePath: self.root))
        configuration.storeErrorHandler = { error in reports.withLock { $0.append(error.code) } }
        let cache = DiskCache(configuration)
        try await self.fill(cache)
        // The cache uses the folder nevertheless.
        for key in self.keys { #expect(try await cache.entry(for: key) != nil) }
        let codes = reports.withLock { $0 }
        #expect(await cache.statistics().exposure?.code == codes.first)
        await cache.shutdown()
        return codes
    }

    @Test(arguments: [mode_t(0o777), 0o1777, 0o702])
    func `a folder that everyone may change is reported once`(mode: mode_t) async throws {
        #expect(try await self.reports(mode: mode) == [.cacheNotPrivate])
    }

    @Test(arguments: [mode_t(0o700), 0o755, 0o2770])
    func `a folder that only this user and a group may change is not reported`(mode: mode_t) async throws {
        #expect(try await self.reports(mode: mode) == [])
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give folders away"))
    func `a folder of another user is reported once`() async throws {
        #expect(try await self.reports(mode: 0o700, owner: 65_534) == [.cacheNotPrivate])
    }

    @Test func `a cache that has stored nothing makes no files in its folder`() async throws {
        try self.put("letter")
        let cache = self.makeCache()
        let key = self.keys[0]
        #expect(try await cache.entry(for: key) == nil)
        #expect(try await cache.metadata(for: key) == nil)
        #expect(try await cache.file(for: key) == nil)
        #expect(await !cache.contains(key))
        #expect(try await !cache.remove(key))
        #expect(try await !cache.removeFamily(of: key))
        #expect(try await !cache.updateMetadata(for: key) { _ in })
        try await cache.removeAll(waitingForDeletion: true)
        _ = await (cache.prune(), cache.removeExpired(), cache.trim(to: 0), cache.verify(), cache.statistics())
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.root) == ["letter"])
        try await cache.store(makeData(100), metadata: .sample, for: key)
        #expect(try await cache.entry(for: key) != nil)
        await cache.shutdown()
    }

    private func fill(_ cache: DiskCache) async throws {
        for key in self.keys { try await cache.store(makeData(100), metadata: .sample, for: key) }
        await cache.waitForHousekeeping()
    }

    private func put(_ path: String, _ data: Data = makeData(40)) throws {
        let url = URL(filePath: self.root + "/" + path)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: url)
    }

    /// Creates foreign files of all kinds in every folder of the cache.
    private func putForeigners() throws {
        let shard = "entries/" + self.keys[0].digest.prefix(2)
        let digits = String(repeating: "4d", count: 32)
        let paths = [
            "entries/notes.txt", "entries/letters/one", "\(shard)/brief.txt", "\(shard)/\(digits.prefix(22))/inside",
            "entries/4e/\(digits.prefix(20))", "entries/4F/\(digits.prefix(22))", "temporary/notes",
            "temporary/1-notes-1",
            "temporary/12-25-2024", "temporary/1-\(digits.prefix(16))-1/inside", "discarded/mine/inside",
            "discarded/\(digits.prefix(16))/notes", "discarded/list", "tmp/2024-01", "tmp/\(digits.prefix(16))-1",
            "tmp/letter", "catalogue.new", "4d/\(digits)", "4e/\(digits)", "4e/readme", "namespaces/notes", "notes",
        ]
        for path in paths { try self.put(path) }
        try self.put("../target")
        #expect(symlink("../../../target", "\(self.root)/\(shard)/\(digits.prefix(20))ab") == 0)
        #expect(symlink("../../target", "\(self.root)/temporary/2-\(digits.prefix(16))-1") == 0)
        #expect(mkfifo("\(self.root)/\(shard)/\(digits.prefix(20))cd", 0o600) == 0)
        #expect(link("\(self.root)/../target", "\(self.root)/\(shard)/linked") == 0)
        #expect(mkdir("\(self.root)/entries/empty", 0o700) == 0)
    }

    /// Returns the kind or the contents of every foreign file by path.
    private func foreigners() throws -> [String: String] {
        var found: [String: String] = [:]
        let own = Set(self.keys.map { self.root + "/" + EntryName($0).path })
        for name in try FileManager.default.subpathsOfDirectory(atPath: self.folder.path) {
            let path = self.folder.path + "/" + name
            var status = stat()
            guard lstat(path, &status) == 0, !own.contains(path) else { continue }
            guard !["cache/catalogue", "cache/lock"].contains(name) else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFREG: found[name] = try Data(contentsOf: URL(filePath: path)).base64EncodedString()
            case S_IFDIR:
                // Ignore the cache's own folders, which come and go.
                if name.hasSuffix("/empty") { found[name] = "folder" }
            default: found[name] = "\(status.st_mode)"
            }
        }
        return found
    }

    /// Returns the foreign files while the cache deletes its own, which can make a listing fail.
    private func foreignersWhileFoldersGo() throws -> [String: String] {
        while true {
            do { return try self.foreigners() } catch let error as CocoaError where error.code == .fileReadNoSuchFile {}
        }
    }

    enum Action: CaseIterable {
        case clearing, clearingWithoutWaiting, pruning, verifying, trimming, evicting, expiring, opening, removing
    }

    @Test(arguments: Action.allCases)
    func `whatever is done only what the cache wrote is removed`(action: Action) async throws {
        let cache = self.makeCache(sizeLimit: action == .evicting ? 40_000 : 1 << 30)
        try await self.fill(cache)
        try self.putForeigners()
        let before = try self.foreigners()
        #expect(before.count == 28)
        switch action {
        case .clearing: try await cache.removeAll(waitingForDeletion: true)
        case .clearingWithoutWaiting:
            try await cache.removeAll()
            // Check at once that no foreign file was moved.
            let shards = before.keys.filter { $0.hasPrefix("cache/entries/") }
            #expect(try Set(self.foreignersWhileFoldersGo().keys).isSuperset(of: shards))
            await cache.waitForHousekeeping()
        case .pruning: _ = await cache.prune()
        case .verifying: _ = await cache.verify()
        case .trimming: _ = await cache.trim(to: 0)
        case .evicting:
            for number in 0..<8 { try await cache.store(makeData(30_000), metadata: .init(), for: self.keys[number]) }
        case .expiring: _ = await cache.removeExpired()
        case .opening:
            await cache.shutdown()
            unlink(self.root + "/catalogue")
            let second = self.makeCache()
            await second.waitForHousekeeping()
            #expect(await second.statistics().entryCount == self.keys.count)
        case .removing: for key in self.keys { try await cache.remove(key) }
        }
        #expect(try self.foreigners() == before)
        if case .clearing = action { #expect(await cache.statistics().entryCount == 0) }
        if [.clearing, .clearingWithoutWaiting, .trimming, .removing].contains(action) {
            #expect(self.keys.allSatisfy { access(self.root + "/" + EntryName($0).path, F_OK) != 0 })
        }
        await cache.shutdown()
    }

    @Test(arguments: ["entries", "temporary", "discarded", "namespaces", "tmp"])
    func `plain file in the place of a folder stays`(name: String) async throws {
        try self.put(name)
        let cache = self.makeCache()
        let error: CacheError?
        do {
            try await cache.store(makeData(10), metadata: .init(), for: self.keys[0])
            error = nil
        } catch let refused as CacheError {
            error = refused
        }
        #expect(error?.code == (["entries", "temporary"].contains(name) ? .cacheNotWritable : nil))
        try? await cache.removeAll(waitingForDeletion: true)
        _ = await cache.prune()
        _ = await cache.verify()
        await cache.shutdown()
        #expect(try Data(contentsOf: URL(filePath: self.root + "/" + name)) == makeData(40))
    }

    @Test(arguments: ["catalogue", "catalogue.new"])
    func `file of the name of the catalogue stays and is said`(name: String) async throws {
        try self.put(name)
        let cache = self.makeCache()
        try await self.fill(cache)
        for key in self.keys { #expect(try await cache.entry(for: key)?.data == makeData(100)) }
        try await cache.remove(self.keys[0])
        #expect(try await cache.entry(for: self.keys[0]) == nil)
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == self.keys.count - 1)
        #expect(statistics.catalogueErrors == (name == "catalogue" ? 1 : 0))
        #expect(statistics.lastCatalogueError?.code == (name == "catalogue" ? .catalogueUnusable : nil))
        #expect(statistics.lastCatalogueError?.underlyingError?.number == (name == "catalogue" ? EEXIST : nil))
        await cache.shutdown()
        #expect(try Data(contentsOf: URL(filePath: self.root + "/" + name)) == makeData(40))
    }

    @Test func `file that is linked under the name of a new catalogue keeps its bytes`() async throws {
        try self.put("../letter")
        mkdir(self.root, 0o700)
        #expect(link(self.folder.path + "/letter", self.root + "/catalogue.new") == 0)
        let cache = self.makeCache()
        try await self.fill(cache)
        await cache.shutdown()
        #expect(try Data(contentsOf: URL(filePath: self.folder.path + "/letter")) == makeData(40))
    }

    @Test func `folder in the place of an entry is not evicted`() async throws {
        let cache = self.makeCache(sizeLimit: 20_000)
        try await cache.store(makeData(100), metadata: .init(), for: self.keys[0])
        let place = EntryName(self.keys[0]).path
        unlink(self.root + "/" + place)
        try self.put(place + "/letter")
        for number in 1..<10 { try await cache.store(makeData(6_000), metadata: .init(), for: self.keys[number]) }
        #expect(try Data(contentsOf: URL(filePath: "\(self.root)/\(place)/letter")) == makeData(40))
        #expect(await cache.statistics().entryCount <= 3)
        await cache.shutdown()
    }

    @Test func `what came into a folder while it was cleared is brought back`() async throws {
        let cache = self.makeCache()
        try await self.fill(cache)
        await cache.shutdown()
        let place = "discarded/0123456789abcdef/entries/4d"
        for name in ["letter", "4d/inside"] { try self.put("\(place)/\(name)") }
        try self.put("entries/4d/other")
        let second = self.makeCache()
        await second.waitForHousekeeping()
        for name in ["letter", "4d/inside", "other"] {
            #expect(try Data(contentsOf: URL(filePath: "\(self.root)/entries/4d/\(name)")) == makeData(40))
        }
        #expect(access(self.root + "/discarded/0123456789abcdef", F_OK) != 0)
        await second.shutdown()
    }

    @Test(arguments: [false, true])
    func `folder of an unknown layout is left alone`(isMerging: Bool) async throws {
        // Backups and stores of containers have such files, some of which begin like an entry.
        let digests = (0..<40).map { CacheKey("blob \($0)").digest }
        let paths = digests.map { "\($0.prefix(2))/\($0)" } + ["tmp/0123456789abcdef-1", "entries/index", "version"]
        let body = Data(EntryHeader.magic) + makeData(40)
        for (number, path) in paths.enumerated() { try self.put(path, number.isMultiple(of: 2) ? body : makeData(40)) }
        let cache = isMerging ? DiskCache(.init(directory: self.folder.url.appending(path: "new"))) : self.makeCache()
        if isMerging {
            #expect(try await cache.merge(from: URL(filePath: self.root)) == 0)
        } else {
            try await self.fill(cache)
            _ = await cache.verify()
            _ = await cache.prune()
            try await cache.removeAll(waitingForDeletion: true)
        }
        await cache.shutdown()
        for (number, path) in paths.enumerated() {
            let kept = try Data(contentsOf: URL(filePath: "\(self.root)/\(path)"))
            #expect(kept == (number.isMultiple(of: 2) ? body : makeData(40)))
        }
    }

    @Test func `merging takes the entries and leaves all else`() async throws {
        let old = self.makeCache()
        try await self.fill(old)
        await old.shutdown()
        try self.putForeigners()
        let before = try self.foreigners()
        let cache = DiskCache(.init(directory: self.folder.url.appending(path: "new")))
        #expect(try await cache.merge(from: URL(filePath: self.root)) == self.keys.count)
        await cache.shutdown()
        #expect(try self.foreigners().filter { !$0.key.hasPrefix("new/") } == before)
        #expect(access(self.root + "/lock", F_OK) != 0)
        #expect(access(self.root + "/catalogue", F_OK) != 0)
    }

    @Test func `a folder that was renamed is given up, though nothing is asked of it but what it lacks`() async throws {
        let cache = self.makeCache()
        try await self.fill(cache)
        try FileManager.default.moveItem(atPath: self.root, toPath: self.root + "-renamed")
        var number = 0
        await until {
            number += 1
            let key = CacheKey("missing \(number)")
            _ = try? await cache.entry(for: key)
            try? await cache.store(makeData(10), metadata: .sample, for: key)
            return FileManager.default.fileExists(atPath: self.root)
        }
        await cache.shutdown()
    }
}
