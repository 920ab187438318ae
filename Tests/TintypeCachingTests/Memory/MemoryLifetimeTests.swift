// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct MemoryLifetimeTests {
    private let clock = TestClock()
    private let key = CacheKey("key")

    @Test func `without a lifetime entries never end`() throws {
        let cache = self.makeCache(nil)
        cache.insert(try makeImage(), for: self.key)
        self.clock.advance(by: 1e9)
        #expect(cache.image(for: self.key) != nil)
    }

    @Test func `the default lifetime ends an entry`() throws {
        let cache = self.makeCache(.seconds(10))
        cache.insert(try makeImage(), for: self.key)
        self.clock.advance(by: 9)
        #expect(cache.image(for: self.key) != nil)
        self.clock.advance(by: 1)
        #expect(!cache.contains(self.key))
        #expect(cache.image(for: self.key) == nil)
        #expect(cache.statistics.expirations == 1)
        #expect(cache.statistics.evictions == 0)
        #expect(cache.statistics.count == 0)
        #expect(cache.statistics.cost == 0)
    }

    @Test(arguments: [2.0, 40])
    func `an entrys own lifetime overrides the default`(seconds: Double) throws {
        let cache = self.makeCache(.seconds(10))
        cache.insert(try makeImage(), lifetime: .seconds(seconds), for: self.key)
        self.clock.advance(by: seconds - 1)
        #expect(cache.image(for: self.key) != nil)
        self.clock.advance(by: 1)
        #expect(cache.image(for: self.key) == nil)
    }

    @Test func `an expiry in the metadata overrides the default`() throws {
        let cache = self.makeCache(.seconds(10))
        let metadata = EntryMetadata(expiry: self.clock.now.addingTimeInterval(30))
        cache.insert(try makeImage(), metadata: metadata, for: self.key)
        self.clock.advance(by: 29)
        #expect(cache.image(for: self.key) != nil)
        self.clock.advance(by: 1)
        #expect(cache.image(for: self.key) == nil)
    }

    @Test func `reading extends the lifetime and asking for it does not`() throws {
        let cache = self.makeCache(.milliseconds(500), extends: true)
        cache.insert(try makeImage(), for: self.key)
        self.clock.advance(by: 0.3)
        #expect(cache.image(for: self.key) != nil)
        self.clock.advance(by: 0.3)
        #expect(cache.contains(self.key))
        self.clock.advance(by: 0.4)
        #expect(!cache.contains(self.key))
        #expect(cache.entry(for: self.key) == nil)
    }

    @Test func `reading does not extend unless asked to`() throws {
        let cache = self.makeCache(.seconds(10))
        cache.insert(try makeImage(), for: self.key)
        self.clock.advance(by: 8)
        #expect(cache.image(for: self.key) != nil)
        self.clock.advance(by: 8)
        #expect(cache.image(for: self.key) == nil)
    }

    @Test func `reading never puts off the expiry of the metadata`() throws {
        let cache = self.makeCache(nil, extends: true)
        let metadata = EntryMetadata(expiry: self.clock.now.addingTimeInterval(15))
        cache.insert(try makeImage(), metadata: metadata, lifetime: .seconds(10), for: self.key)
        self.clock.advance(by: 9)
        #expect(cache.entry(for: self.key) != nil)
        self.clock.advance(by: 5)
        #expect(cache.entry(for: self.key) != nil)
        self.clock.advance(by: 1)
        #expect(cache.entry(for: self.key) == nil)
    }

    @Test func `an expired image is not brought back`() throws {
        let cache = self.makeCache(.seconds(10))
        let image = try makeImage()
        cache.insert(image, for: self.key)
        cache.trim(toCost: 0)
        self.clock.advance(by: 9)
        #expect(cache.contains(self.key))
        self.clock.advance(by: 1)
        #expect(!cache.contains(self.key))
        #expect(cache.image(for: self.key) == nil)
        // The same applies to an image that expires in the cache.
        cache.insert(image, for: self.key)
        self.clock.advance(by: 10)
        #expect(cache.image(for: self.key) == nil)
        #expect(cache.image(for: self.key) == nil)
        #expect(cache.statistics.misses == 3)
        #expect(cache.statistics.hits == 0)
    }

    @Test(arguments: [1, 10_000])
    func `expired images leave memory without being asked for`(count: Int) async throws {
        let (clock, hand) = (self.clock, Gate())
        let cache = MemoryCache(.init(now: { clock.now }), sleep: { _ in await hand.wait() })
        let image = try makeImage()
        cache.insert(image, for: self.key)
        for number in 0..<count { cache.insert(image, lifetime: .seconds(10), for: CacheKey("\(number)")) }
        cache.remove(CacheKey("0"))
        clock.advance(by: 10)
        #expect(cache.statistics.count == count)
        await hand.open()
        await until { cache.statistics.count == 1 }
        #expect(cache.statistics.expirations == count - 1)
        #expect(cache.statistics.misses == 0)
        #expect(cache.image(for: self.key) != nil)
        // The expiry works again after a time without such images.
        cache.insert(image, lifetime: .seconds(10), for: CacheKey("later"))
        clock.advance(by: 10)
        await until { cache.statistics.count == 1 }
    }

    @Test func `a cache that goes away looks for expired images no more`() async throws {
        let (ended, forever) = (Gate(), AsyncStream<Void>.makeStream())
        let sleep: @Sendable (Duration) async throws -> Void = { _ in
            for await _ in forever.stream {}
            await ended.open()
            throw CancellationError()
        }
        var cache: MemoryCache? = MemoryCache(.init(lifetime: .seconds(10)), sleep: sleep)
        cache?.insert(try makeImage(), for: self.key)
        cache = nil
        await ended.wait()
        forever.continuation.finish()
    }

    private func makeCache(_ lifetime: Duration?, extends: Bool = false) -> MemoryCache {
        let clock = self.clock
        return MemoryCache(.init(lifetime: lifetime, extendsLifetimeOnRead: extends, now: { clock.now }))
    }
}
