// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskAgeTests {
    private let folder: ScratchFolder
    private let clock = TestClock()
    private let key = CacheKey("a")

    init() throws {
        self.folder = try ScratchFolder()
    }

    private func makeCache(_ expiry: DiskCache.Expiry, maximumAge: Duration? = .seconds(1_000)) -> DiskCache {
        let clock = self.clock
        return DiskCache(
            .init(directory: self.folder.url, maximumAge: maximumAge, expiry: expiry, now: { clock.now })
        )
    }

    private func store(_ cache: DiskCache, expiry: Date? = nil) async throws {
        try await cache.store(makeData(10), metadata: .init(expiry: expiry), for: self.key)
    }

    @Test(arguments: [DiskCache.Expiry.access, .modification, .creation])
    func `expired entry is a miss and removed before any cleaning`(expiry: DiskCache.Expiry) async throws {
        let cache = self.makeCache(expiry)
        try await self.store(cache)
        self.clock.advance(by: 999)
        #expect(await cache.contains(self.key))
        self.clock.advance(by: 1)
        #expect(await !cache.contains(self.key))
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(self.folder.files() == [])
        #expect(await cache.statistics().expiredEntries == 1)
    }

    @Test(arguments: [(DiskCache.Expiry.access, true), (.modification, false), (.creation, false)])
    func `use extends the life only where the age counts from it`(expiry: DiskCache.Expiry, isAlive: Bool) async throws
    {
        let cache = self.makeCache(expiry)
        try await self.store(cache)
        for _ in 0..<3 {
            self.clock.advance(by: 300)
            #expect(try await cache.entry(for: self.key) != nil)
        }
        self.clock.advance(by: 300)
        #expect((try await cache.entry(for: self.key) != nil) == isAlive)
    }

    @Test(arguments: [(DiskCache.Expiry.access, true), (.modification, true), (.creation, false)])
    func `overwrite extends the life unless the age counts from creation`(
        expiry: DiskCache.Expiry,
        isAlive: Bool
    ) async throws {
        let cache = self.makeCache(expiry)
        try await self.store(cache)
        self.clock.advance(by: 600)
        try await self.store(cache)
        self.clock.advance(by: 600)
        #expect((try await cache.entry(for: self.key) != nil) == isAlive)
        // An expired entry does not affect the age of the next one.
        try await self.store(cache)
        self.clock.advance(by: 600)
        #expect(try await cache.entry(for: self.key) != nil)
    }

    @Test func `use is recorded for the next process`() async throws {
        try await self.store(self.makeCache(.access))
        self.clock.advance(by: 900)
        #expect(try await self.makeCache(.access).entry(for: self.key) != nil)
        self.clock.advance(by: 900)
        #expect(try await self.makeCache(.access).entry(for: self.key) != nil)
    }

    @Test func `without a maximum age nothing expires`() async throws {
        let cache = self.makeCache(.access, maximumAge: nil)
        try await self.store(cache)
        self.clock.advance(by: 1e9)
        #expect(try await cache.entry(for: self.key) != nil)
    }

    @Test func `entry of its own expiry ends then`() async throws {
        let cache = self.makeCache(.access)
        try await self.store(cache, expiry: self.clock.now.addingTimeInterval(5))
        self.clock.advance(by: 4)
        #expect(try await cache.entry(for: self.key) != nil)
        self.clock.advance(by: 1)
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(self.folder.files() == [])
    }

    @Test func `clock that was set back does not make entries immortal`() async throws {
        let cache = self.makeCache(.access)
        try await self.store(cache)
        self.clock.advance(by: -1e6)
        #expect(try await cache.entry(for: self.key) != nil)
        self.clock.advance(by: 1_000)
        #expect(try await cache.entry(for: self.key) == nil)
    }

    @Test(arguments: [DiskCache.Expiry.access, .modification, .creation])
    func `prune removes exactly the expired`(expiry: DiskCache.Expiry) async throws {
        let cache = self.makeCache(expiry)
        try await cache.store(makeData(10), metadata: .init(), for: CacheKey("old"))
        // The cleaning after the opening would remove the expired entries first.
        await cache.waitForHousekeeping()
        self.clock.advance(by: 500)
        try await cache.store(makeData(10), metadata: .init(), for: CacheKey("young"))
        let soon = self.clock.now.addingTimeInterval(1)
        try await cache.store(makeData(10), metadata: .init(expiry: soon), for: CacheKey("short"))
        self.clock.advance(by: 500)
        let result = await cache.prune()
        #expect(result.expiredEntries == 2)
        #expect(result.evictedEntries == 0)
        #expect(self.folder.files().count == 1)
        #expect(await cache.contains(CacheKey("young")))
        #expect(await cache.statistics().byteCount == self.folder.byteCount())
    }

    @Test func `opening removes the expired`() async throws {
        try await self.store(self.makeCache(.access))
        self.clock.advance(by: 2_000)
        let cache = self.makeCache(.access)
        await cache.waitForHousekeeping()
        #expect(await cache.statistics().entryCount == 0)
        #expect(self.folder.files() == [])
    }

    @Test func `storing removes the expired in step`() async throws {
        let cache = self.makeCache(.access)
        for number in 0..<3 {
            try await cache.store(makeData(10), metadata: .init(), for: CacheKey("old \(number)"))
        }
        await cache.waitForHousekeeping()
        self.clock.advance(by: 2_000)
        try await self.store(cache)
        #expect(self.folder.files().count == 2)
        try await self.store(cache)
        #expect(self.folder.files().count == 1)
    }
}
