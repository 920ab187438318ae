// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct MemoryWeakTests {
    private let keys = (0..<200).map { CacheKey("key \($0)") }

    @Test func `an image that is alive is found after eviction`() throws {
        let cache = MemoryCache(.init(countLimit: 1))
        let image = try makeImage().replacingScale(2)
        cache.insert(image, metadata: .sample, for: self.keys[0])
        cache.insert(try makeImage(), for: self.keys[1])
        #expect(cache.statistics.evictions == 1)
        #expect(cache.contains(self.keys[0]))
        let entry = try #require(cache.entry(for: self.keys[0]))
        #expect(entry.image.pixels === image.pixels)
        #expect(entry.image.scale == 2)
        #expect(entry.metadata == .sample)
        #expect(cache.statistics.hits == 1)
        #expect(cache.statistics.weakHits == 1)
    }

    @Test func `an image that was found is in the cache again`() throws {
        let cache = MemoryCache()
        weak var pixels: PixelBuffer?
        do {
            let image = try makeImage()
            pixels = image.pixels
            cache.insert(image, for: self.keys[0])
            cache.trim(toFraction: 0)
            #expect(cache.statistics.count == 0)
            #expect(cache.statistics.weakCount == 1)
            #expect(cache.image(for: self.keys[0]) != nil)
        }
        // Now only the cache holds the image.
        #expect(pixels != nil)
        #expect(cache.image(for: self.keys[0])?.pixels === pixels)
        #expect(cache.statistics.count == 1)
        #expect(cache.statistics.weakCount == 0)
        #expect(cache.statistics.weakHits == 1)
    }

    @Test func `a peek finds an image that is alive, and leaves it where it is`() throws {
        let cache = MemoryCache()
        let image = try makeImage()
        cache.insert(image, metadata: .sample, for: self.keys[0])
        cache.insert(try makeImage(), for: self.keys[1])
        cache.trim(toCost: 0)
        let entry = try #require(cache.peek(self.keys[0]))
        #expect(entry.image.pixels === image.pixels)
        #expect(entry.metadata == .sample)
        #expect(cache.peek(self.keys[1]) == nil)
        #expect(cache.statistics.count == 0)
        #expect(cache.statistics.weakCount == 2)
        #expect(cache.statistics.weakHits == 0)
        #expect(cache.statistics.misses == 0)
    }

    @Test func `an image that nobody holds is a miss`() throws {
        let cache = MemoryCache()
        cache.insert(try makeImage(), for: self.keys[0])
        cache.trim(toCost: 0)
        #expect(!cache.contains(self.keys[0]))
        #expect(cache.image(for: self.keys[0]) == nil)
        #expect(cache.statistics.misses == 1)
        #expect(cache.statistics.weakCount == 0)
    }

    @Test func `turned off an image is a miss after eviction`() throws {
        let cache = MemoryCache(.init(keepsWeakly: false))
        let image = try makeImage()
        cache.insert(image, for: self.keys[0])
        cache.trim(toCost: 0)
        #expect(cache.image(for: self.keys[0]) == nil)
        withExtendedLifetime(image) {}
    }

    @Test func `removal forgets what is alive`() throws {
        let cache = MemoryCache()
        let images = try (0..<3).map { _ in try makeImage() }
        for (key, image) in zip(self.keys, images) { cache.insert(image, for: key) }
        cache.trim(toCost: 0)
        #expect(cache.remove(self.keys[0]))
        #expect(cache.image(for: self.keys[0]) == nil)
        cache.removeAll()
        #expect(cache.image(for: self.keys[1]) == nil)
        cache.insert(images[2], for: self.keys[2])
        cache.removeAll()
        #expect(cache.image(for: self.keys[2]) == nil)
        withExtendedLifetime(images) {}
    }

    @Test func `a new image replaces the one that is alive`() throws {
        let cache = MemoryCache()
        let (old, new) = (try makeImage(), try makeImage())
        cache.insert(old, for: self.keys[0])
        cache.trim(toCost: 0)
        cache.insert(new, for: self.keys[0])
        #expect(cache.image(for: self.keys[0])?.pixels === new.pixels)
        cache.trim(toCost: 0)
        #expect(cache.image(for: self.keys[0])?.pixels === new.pixels)
        withExtendedLifetime(old) {}
    }

    @Test func `an animation is found only with all its frames`() throws {
        let cache = MemoryCache()
        let image = try makeImage()
        var frames = try (0..<3).map { _ in try makeImage() }
        cache.insert(MemoryEntry(image: image, frames: frames), for: self.keys[0])
        cache.trim(toCost: 0)
        #expect(cache.entry(for: self.keys[0])?.frames.count == 3)
        cache.trim(toCost: 0)
        frames.removeLast()
        #expect(!cache.contains(self.keys[0]))
        #expect(cache.entry(for: self.keys[0]) == nil)
        withExtendedLifetime(image) {}
    }

    @Test func `dead slots are reclaimed while others leave`() throws {
        let cache = MemoryCache(.init(countLimit: 1))
        for round in 0..<50 {
            for key in self.keys { cache.insert(try makeImage(), for: key) }
            #expect(cache.statistics.weakCount <= 3, "round \(round)")
        }
        // Living images stay, and dead ones between them are reclaimed.
        let alive = try (0..<50).map { _ in try makeImage() }
        for (key, image) in zip(self.keys, alive) { cache.insert(image, for: key) }
        for step in 0..<2_000 { cache.insert(try makeImage(), for: self.keys[50 + step % 150]) }
        #expect(cache.statistics.weakCount <= 2 * 50 + 3)
        for (key, image) in zip(self.keys, alive) { #expect(cache.image(for: key)?.pixels === image.pixels) }
    }

    @Test func `what is over the limit now is still found`() throws {
        let cache = MemoryCache()
        let image = try makeImage(width: 1_000)
        cache.insert(image, for: self.keys[0])
        cache.costLimit = 100
        for _ in 0..<2 { #expect(cache.image(for: self.keys[0])?.pixels === image.pixels) }
        #expect(cache.statistics.count == 0)
        #expect(cache.statistics.cost == 0)
    }
}
