// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct MemoryCacheTests {
    private let keys = (0..<8).map { CacheKey("key \($0)") }

    @Test func `stored image is the same instance`() throws {
        let cache = MemoryCache()
        let image = try makeImage()
        #expect(cache.insert(image, metadata: .sample, for: self.keys[0]) == .stored)
        #expect(cache.image(for: CacheKey("key 0"))?.pixels === image.pixels)
        let entry = try #require(cache.entry(for: self.keys[0]))
        #expect(entry.image.pixels === image.pixels)
        #expect(entry.metadata == .sample)
        #expect(cache.image(for: self.keys[1]) == nil)
        #expect(cache.entry(for: self.keys[1]) == nil)
    }

    @Test func `cost limit drops the least recently used at once`() throws {
        let cache = MemoryCache(.init(costLimit: try unitCost() * 5 / 2))
        for key in self.keys[0..<3] { cache.insert(try makeImage(), for: key) }
        #expect(self.present(in: cache) == [1, 2])
        #expect(cache.statistics.evictions == 1)
    }

    @Test func `reading makes an entry the newest`() throws {
        let cache = MemoryCache(.init(costLimit: try unitCost() * 5 / 2))
        for key in self.keys[0..<2] { cache.insert(try makeImage(), for: key) }
        _ = cache.image(for: self.keys[0])
        cache.insert(try makeImage(), for: self.keys[2])
        #expect(self.present(in: cache) == [0, 2])
        _ = cache.entry(for: self.keys[0])
        cache.insert(try makeImage(), for: self.keys[3])
        #expect(self.present(in: cache) == [0, 3])
    }

    @Test func `asking whether it contains is no use`() throws {
        let cache = MemoryCache(.init(countLimit: 2))
        for key in self.keys[0..<2] { cache.insert(try makeImage(), for: key) }
        #expect(cache.contains(self.keys[0]))
        cache.insert(try makeImage(), for: self.keys[2])
        #expect(self.present(in: cache) == [1, 2])
        #expect(cache.statistics.hits == 0)
    }

    @Test func `count limit of one keeps the last`() throws {
        let cache = MemoryCache(.init(countLimit: 1))
        for key in self.keys[0..<2] { #expect(cache.insert(try makeImage(), for: key) == .stored) }
        #expect(self.present(in: cache) == [1])
    }

    @Test func `count limit of zero refuses`() throws {
        let cache = MemoryCache(.init(countLimit: 0))
        #expect(cache.insert(try makeImage(), for: self.keys[0]) == .refused(.countLimitIsZero))
        #expect(cache.statistics.count == 0)
    }

    @Test func `oversize image is refused with the reason and drops the stale one`() throws {
        let limit = try unitCost() * 2
        let cache = MemoryCache(.init(costLimit: limit))
        for key in self.keys[0..<2] { cache.insert(try makeImage(), for: key) }
        let large = try makeImage(width: 10_000)
        let outcome = cache.insert(large, for: self.keys[0])
        #expect(outcome == .refused(.costOverLimit(cost: MemoryEntry(image: large).cost, limit: limit)))
        #expect(self.present(in: cache) == [1])
        guard case .refused(let refusal) = outcome else { return }
        #expect(refusal.description.contains("\(limit)"))
    }

    @Test func `overwrite counts the new cost only`() throws {
        let cache = MemoryCache()
        cache.insert(try makeImage(width: 1_600), for: self.keys[0])
        cache.insert(try makeImage(), for: self.keys[0])
        #expect(cache.statistics.cost == (try unitCost()))
        #expect(cache.statistics.count == 1)
    }

    @Test func `lowering a limit trims at once`() throws {
        let cache = MemoryCache()
        for key in self.keys { cache.insert(try makeImage(), for: key) }
        cache.costLimit = try unitCost() * 5
        #expect(self.present(in: cache) == [3, 4, 5, 6, 7])
        cache.countLimit = 3
        #expect(self.present(in: cache) == [5, 6, 7])
        cache.trim(toCost: try unitCost())
        #expect(self.present(in: cache) == [7])
        #expect(cache.costLimit == (try unitCost()) * 5)
        #expect(cache.countLimit == 3)
    }

    @Test func `removal forgets`() throws {
        let cache = MemoryCache()
        for key in self.keys[0..<3] { cache.insert(try makeImage(), for: key) }
        #expect(cache.remove(self.keys[1]))
        #expect(!cache.remove(self.keys[1]))
        #expect(self.present(in: cache) == [0, 2])
        cache.removeAll()
        #expect(self.present(in: cache) == [])
        #expect(cache.statistics.cost == 0)
        cache.insert(try makeImage(), for: self.keys[4])
        #expect(self.present(in: cache) == [4])
    }

    @Test func `look ups are counted`() throws {
        let cache = MemoryCache()
        cache.insert(try makeImage(), for: self.keys[0])
        _ = cache.image(for: self.keys[0])
        _ = cache.entry(for: self.keys[0])
        _ = cache.image(for: self.keys[1])
        #expect(cache.statistics.hits == 2)
        #expect(cache.statistics.misses == 1)
    }

    @Test func `a peek counts neither as a look-up nor as a use`() throws {
        let cache = MemoryCache(.init(countLimit: 2))
        cache.insert(try makeImage(), metadata: .sample, for: self.keys[0])
        cache.insert(try makeImage(), for: self.keys[1])
        for _ in 0..<5 { #expect(cache.peek(self.keys[0])?.metadata == .sample) }
        #expect(cache.peek(self.keys[2]) == nil)
        #expect(cache.statistics.hits == 0)
        #expect(cache.statistics.misses == 0)
        cache.insert(try makeImage(), for: self.keys[2])
        #expect(self.present(in: cache) == [1, 2])
    }

    @Test func `a peek sees an end and does not put it off`() throws {
        let clock = TestClock()
        let cache = MemoryCache(
            .init(lifetime: .seconds(10), extendsLifetimeOnRead: true, now: { clock.now })
        )
        cache.insert(try makeImage(), for: self.keys[0])
        clock.advance(by: 9)
        #expect(cache.peek(self.keys[0]) != nil)
        clock.advance(by: 1)
        #expect(cache.peek(self.keys[0]) == nil)
        #expect(cache.statistics.misses == 0)
        #expect(cache.statistics.count == 1)
    }

    @Test func `entry with its own expiry is a miss from then on`() throws {
        let clock = TestClock()
        let cache = MemoryCache(.init(now: { clock.now }))
        cache.insert(try makeImage(), metadata: .init(expiry: clock.now.addingTimeInterval(10)), for: self.keys[0])
        cache.insert(try makeImage(), metadata: .init(expiry: clock.now.addingTimeInterval(10)), for: self.keys[1])
        clock.advance(by: 9)
        #expect(cache.image(for: self.keys[0]) != nil)
        #expect(cache.contains(self.keys[0]))
        clock.advance(by: 1)
        #expect(!cache.contains(self.keys[0]))
        #expect(cache.image(for: self.keys[0]) == nil)
        #expect(cache.entry(for: self.keys[1]) == nil)
        #expect(cache.statistics.count == 0)
        #expect(cache.statistics.hits == 1)
        #expect(cache.statistics.misses == 2)
    }

    @Test func `default limit is a share of the memory`() {
        let limit = MemoryCache.Configuration().costLimit
        #expect(limit > 0)
        #expect(limit <= 768_000_000)
    }

    @Test func `dropped images are freed`() throws {
        let cache = MemoryCache(.init(countLimit: 1))
        weak var pixels: PixelBuffer?
        do {
            let image = try makeImage()
            pixels = image.pixels
            cache.insert(image, for: self.keys[0])
        }
        #expect(pixels != nil)
        cache.insert(try makeImage(), for: self.keys[1])
        #expect(pixels == nil)
    }

    private func present(in cache: MemoryCache) -> [Int] {
        self.keys.indices.filter { cache.contains(self.keys[$0]) }
    }
}
