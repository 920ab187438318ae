// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskCacheTests {
    private let folder: ScratchFolder
    private let key = CacheKey("https://example.org/a.jpg")

    init() throws {
        self.folder = try ScratchFolder()
    }

    private func makeCache() -> DiskCache {
        DiskCache(.init(directory: self.folder.url, sizeLimit: 1 << 30))
    }

    @Test(arguments: [0, 1, 14, 15, 1_000, 300_000])
    func `stored bytes come back`(count: Int) async throws {
        let clock = TestClock()
        let cache = DiskCache(.init(directory: self.folder.url, now: { clock.now }))
        #expect(try await cache.entry(for: self.key) == nil)
        let data = makeData(count)
        try await cache.store(data, metadata: .sample, for: self.key)
        let entry = try #require(try await cache.entry(for: self.key))
        #expect(entry.data == data)
        #expect(entry.data.startIndex == 0)
        #expect(entry.metadata == .sample)
        #expect(entry.storedAt == clock.now)
        #expect(await cache.contains(self.key))
        #expect(await !cache.contains(CacheKey("other")))
    }

    /// Covers metadata of more than a page, and more bytes than the cache reads on the caller's thread.
    @Test(arguments: [0, 300, 100_000], [10, 2_000_000])
    func `metadata comes without its bytes and counts as no use`(extraCount: Int, bodyCount: Int) async throws {
        let clock = TestClock()
        let cache = DiskCache(.init(directory: self.folder.url, maximumAge: .seconds(60), now: { clock.now }))
        var metadata = EntryMetadata.sample
        metadata.extra["long"] = String(repeating: "a", count: extraCount)
        #expect(try await cache.metadata(for: self.key) == nil)
        // Look the metadata up before and after the entry is written.
        cache.enqueueStore(makeData(bodyCount), metadata: metadata, for: self.key)
        #expect(try await cache.metadata(for: self.key) == metadata)
        await cache.waitForPendingStores()
        #expect(try await cache.metadata(for: self.key) == metadata)
        clock.advance(by: 59)
        let reader = DiskCache(
            .init(directory: self.folder.url.appending(path: "other"), readOnlyDirectories: [self.folder.url])
        )
        #expect(try await reader.metadata(for: self.key) == metadata)
        #expect(try await cache.metadata(for: self.key) == metadata)
        var statistics = await cache.statistics()
        #expect((statistics.hits, statistics.misses) == (0, 0))
        // A use would have extended the life by another minute.
        clock.advance(by: 2)
        #expect(try await cache.metadata(for: self.key) == nil)
        statistics = await cache.statistics()
        #expect((statistics.hits, statistics.misses, statistics.expiredEntries) == (0, 0, 1))
    }

    @Test func `entry outlives the cache and its file`() async throws {
        let data = makeData(100_000)
        let entry = try await {
            let cache = self.makeCache()
            try await cache.store(data, metadata: .init(), for: self.key)
            let entry = try await cache.entry(for: self.key)
            try await cache.remove(self.key)
            return entry
        }()
        #expect(entry?.data == data)
    }

    @Test func `another cache over the folder finds the entry`() async throws {
        try await self.makeCache().store(makeData(10), metadata: .sample, for: self.key)
        let entry = try await self.makeCache().entry(for: self.key)
        #expect(entry?.data == makeData(10))
    }

    @Test func `file is called by the digest and for this user only`() async throws {
        let cache = self.makeCache()
        try await cache.store(makeData(10), metadata: .sample, for: self.key)
        let path = self.folder.path(of: self.key)
        #expect(self.folder.files() == [path])
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        for folder in ["entries", "entries/\(self.key.digest.prefix(2))", "temporary"] {
            #expect(stat("\(self.folder.path)/\(folder)", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o700)
        }
        for file in ["catalogue", "lock"] {
            #expect(stat("\(self.folder.path)/\(file)", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
    }

    @Test func `large replaced by small leaves the small size`() async throws {
        let cache = self.makeCache()
        try await cache.store(makeData(100_000), metadata: .init(), for: self.key)
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == 1)
        #expect(statistics.byteCount == self.folder.byteCount())
        #expect(statistics.byteCount < 1_000)
    }

    @Test func `removal forgets`() async throws {
        let cache = self.makeCache()
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        #expect(try await cache.remove(self.key))
        #expect(try await !cache.remove(self.key))
        #expect(try await cache.entry(for: self.key) == nil)
        let statistics = await cache.statistics()
        #expect(statistics.entryCount == 0)
        #expect(statistics.byteCount == 0)
        #expect(statistics.misses == 1)
    }

    @Test func `clearing removes entries and nothing else`() async throws {
        let cache = self.makeCache()
        for number in 0..<20 {
            try await cache.store(makeData(10), metadata: .init(), for: CacheKey("\(number)"))
        }
        let foreign = self.folder.path + "/notes.txt"
        #expect(FileManager.default.createFile(atPath: foreign, contents: Data("mine".utf8)))
        try await cache.removeAll(waitingForDeletion: true)
        #expect(self.folder.files() == [foreign])
        #expect(await cache.statistics().entryCount == 0)
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        #expect(try await cache.entry(for: self.key) != nil)
    }

    @Test func `statistics of an old folder count what is there`() async throws {
        let first = self.makeCache()
        for number in 0..<50 {
            try await first.store(makeData(100), metadata: .init(), for: CacheKey("\(number)"))
        }
        let statistics = await self.makeCache().statistics()
        #expect(statistics.entryCount == 50)
        #expect(statistics.byteCount == self.folder.byteCount())
        #expect(statistics.directory == self.folder.path)
    }

    @Test func `cancelled caller reads nothing`() async throws {
        let cache = self.makeCache()
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        let gate = AsyncStream<Void>.makeStream()
        let task = Task { () -> ByteEntry? in
            for await _ in gate.stream { break }
            return try await cache.entry(for: self.key)
        }
        task.cancel()
        gate.continuation.finish()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test(arguments: ["a b", "100%", "größe", "a%20b", "trailing/"])
    func `folder may have any name`(name: String) async throws {
        let cache = DiskCache(.init(directory: URL(filePath: self.folder.path + "/" + name)))
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        let path = self.folder.path + "/" + (name == "trailing/" ? "trailing" : name)
        #expect(await cache.statistics().directory == path)
        #expect(self.folder.files() == [path + self.folder.path(of: self.key).dropFirst(self.folder.path.count)])
    }

    @Test func `relative folder is taken from the working directory`() async throws {
        let cache = DiskCache(.init(directory: URL(filePath: "some/folder")))
        #expect(await cache.statistics().directory == FileManager.default.currentDirectoryPath + "/some/folder")
    }

    @Test func `default folder follows the environment`() {
        let accountHome = URL(filePath: "/home/account", directoryHint: .isDirectory)
        let path = { (cacheHome: String?, home: String?) in
            DiskCache.Configuration.defaultDirectory(cacheHome: cacheHome, home: home, accountHome: accountHome)
                .path(percentEncoded: false)
        }
        #expect(path("/var/cache/x", "/home/user") == "/var/cache/x/tintype")
        #expect(path(nil, "/home/user") == "/home/user/.cache/tintype")
        #expect(path("", "/home/user") == "/home/user/.cache/tintype")
        #expect(path("relative", "/home/user") == "/home/user/.cache/tintype")
        for home in [nil, "", "relative"] { #expect(path(nil, home) == "/home/account/.cache/tintype") }
    }
}
