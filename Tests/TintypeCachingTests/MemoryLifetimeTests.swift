import FoundationEssentials
import Testing
import TintypeImage

@testable import TintypeCaching

@Suite struct MemoryLifetimeTests {
    private let clock = TestClock()
    private let key = CacheKey("key")

    @Test func withoutALifetimeEntriesNeverEnd() throws {
        let cache = self.makeCache(nil)
        cache.insert(try makeImage(), for: self.key)
        self.clock.advance(by: 1e9)
        #expect(cache.image(for: self.key) != nil)
    }

    @Test func theDefaultLifetimeEndsAnEntry() throws {
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
    func anEntrysOwnLifetimeOverridesTheDefault(seconds: Double) throws {
        let cache = self.makeCache(.seconds(10))
        cache.insert(try makeImage(), lifetime: .seconds(seconds), for: self.key)
        self.clock.advance(by: seconds - 1)
        #expect(cache.image(for: self.key) != nil)
        self.clock.advance(by: 1)
        #expect(cache.image(for: self.key) == nil)
    }

    @Test func anExpiryInTheMetadataOverridesTheDefault() throws {
        let cache = self.makeCache(.seconds(10))
        let metadata = EntryMetadata(expiry: self.clock.now.addingTimeInterval(30))
        cache.insert(try makeImage(), metadata: metadata, for: self.key)
        self.clock.advance(by: 29)
        #expect(cache.image(for: self.key) != nil)
        self.clock.advance(by: 1)
        #expect(cache.image(for: self.key) == nil)
    }

    @Test func readingExtendsTheLifetimeAndAskingForItDoesNot() throws {
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

    @Test func readingDoesNotExtendUnlessAskedTo() throws {
        let cache = self.makeCache(.seconds(10))
        cache.insert(try makeImage(), for: self.key)
        self.clock.advance(by: 8)
        #expect(cache.image(for: self.key) != nil)
        self.clock.advance(by: 8)
        #expect(cache.image(for: self.key) == nil)
    }

    @Test func readingNeverPutsOffTheExpiryOfTheMetadata() throws {
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

    @Test func anExpiredPictureIsNotBroughtBack() throws {
        let cache = self.makeCache(.seconds(10))
        let image = try makeImage()
        cache.insert(image, for: self.key)
        cache.trim(toCost: 0)
        self.clock.advance(by: 9)
        #expect(cache.contains(self.key))
        self.clock.advance(by: 1)
        #expect(!cache.contains(self.key))
        #expect(cache.image(for: self.key) == nil)
        // Nor one that was expired while it was in the cache.
        cache.insert(image, for: self.key)
        self.clock.advance(by: 10)
        #expect(cache.image(for: self.key) == nil)
        #expect(cache.image(for: self.key) == nil)
        #expect(cache.statistics.misses == 3)
        #expect(cache.statistics.hits == 0)
    }

    private func makeCache(_ lifetime: Duration?, extends: Bool = false) -> MemoryCache {
        let clock = self.clock
        return MemoryCache(.init(lifetime: lifetime, extendsLifetimeOnRead: extends, now: { clock.now }))
    }
}
