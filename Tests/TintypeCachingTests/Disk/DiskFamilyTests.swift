// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Checks that entries that are derived from one another are removed together.
@Suite(.waiting, .timeLimit(.minutes(2))) struct DiskFamilyTests {
    let folder: TemporaryDirectory
    let root = CacheKey("https://example.org/a")

    init() throws {
        self.folder = try TemporaryDirectory()
    }

    private func makeCache(_ change: (inout DiskCache.Configuration) -> Void = { _ in }) -> DiskCache {
        var configuration = DiskCache.Configuration(directory: self.folder.url(of: "cache"))
        change(&configuration)
        return DiskCache(configuration)
    }

    private var family: [CacheKey] { [self.root] + (0..<20).map { self.root.derived("\($0)") } }

    private func fill(_ cache: DiskCache) async throws -> [CacheKey] {
        let others = (0..<20).map { CacheKey("https://example.org/b\($0)") }
        for key in self.family + others {
            try await cache.store(Data(key.text.utf8), metadata: EntryMetadata(), for: key)
        }
        return others
    }

    private func count(of keys: [CacheKey], in cache: DiskCache) async -> Int {
        var count = 0
        for key in keys where await cache.contains(key) { count += 1 }
        return count
    }

    @Test(arguments: [0, 7])
    func `a family leaves as one, whichever of it is named`(member: Int) async throws {
        let cache = self.makeCache()
        let others = try await self.fill(cache)
        #expect(try await cache.removeFamily(of: self.family[member]))
        #expect(await self.count(of: self.family, in: cache) == 0)
        #expect(await self.count(of: others, in: cache) == others.count)
        #expect(await cache.statistics().entryCount == others.count)
        #expect(try await !cache.removeFamily(of: self.root))
    }

    @Test func `stores that wait are dropped with their family`() async throws {
        let cache = self.makeCache()
        let others = try await self.fill(cache)
        for _ in 0..<20 {
            for key in self.family + others {
                cache.enqueueStore(Data(count: 1_000), metadata: EntryMetadata(), for: key)
            }
            try await cache.removeFamily(of: self.root)
            await cache.waitForPendingStores()
            #expect(await self.count(of: self.family, in: cache) == 0)
            #expect(await self.count(of: others, in: cache) == others.count)
        }
    }

    @Test func `a family is found by its files where the catalogue was lost`() async throws {
        let others = try await self.fill(self.makeCache())
        try FileManager.default.removeItem(atPath: self.folder.path(of: "cache/catalogue"))
        let cache = self.makeCache()
        #expect(try await cache.removeFamily(of: self.root))
        #expect(await self.count(of: self.family, in: cache) == 0)
        #expect(await self.count(of: others, in: cache) == others.count)
    }

    @Test func `a cache without a folder has no family`() async throws {
        #expect(try await !self.makeCache().removeFamily(of: self.root))
    }

    @Test func `images in memory leave with their family, also those that are alive elsewhere`() throws {
        let memory = MemoryCache(MemoryCache.Configuration(countLimit: 30))
        let images = try self.family.map { _ in try makeImage() }
        for (key, image) in zip(self.family, images) { memory.insert(image, for: key) }
        // Evicted images stay in the cache as weak references.
        for index in 0..<20 { memory.insert(try makeImage(), for: CacheKey("b\(index)")) }
        #expect(self.family.allSatisfy { memory.contains($0) })
        #expect(memory.removeFamily(of: self.family[3]))
        #expect(!self.family.contains { memory.contains($0) })
        #expect(memory.contains(CacheKey("b19")))
        #expect(!memory.removeFamily(of: self.root))
    }
}
