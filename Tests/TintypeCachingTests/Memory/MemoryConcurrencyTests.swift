// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(30))) struct MemoryConcurrencyTests {
    /// The number of tasks, which perform 1,000,000 operations in all.
    private static let taskCount = 16
    private static let steps = 62_500

    @Test
    func `many tasks lose no update and leave exact sums`() async throws {
        let unit = try unitCost()
        let cache = MemoryCache(.init(costLimit: unit * 300, keepsWeakly: false))
        // The images have different costs, and a key may have any of them.
        let images = try (1...4).map { try makeImage(width: 16 * $0) }
        let shared = (0..<400).map { CacheKey("shared \($0)") }
        let lookUps = await withTaskGroup(of: Int.self) { group in
            for task in 0..<Self.taskCount {
                group.addTask { Self.mix(task, cache, images, shared) }
            }
            return await group.reduce(0, +)
        }
        let statistics = cache.statistics
        #expect(statistics.hits + statistics.misses == lookUps)
        #expect(statistics.cost <= unit * 300)
        // The statistics agree with the contents, so removing every entry brings both sums to zero.
        let own = (0..<Self.taskCount).map { CacheKey("own \($0)") }
        var (count, cost) = (0, 0)
        for key in shared + own {
            guard let entry = cache.entry(for: key) else { continue }
            count += 1
            cost += entry.cost
            #expect(cache.remove(key))
        }
        #expect(count == statistics.count)
        #expect(cost == statistics.cost)
        #expect(cache.statistics.count == 0)
        #expect(cache.statistics.cost == 0)
    }

    /// Performs a mix of all operations, and returns the number of look-ups.
    private static func mix(_ task: Int, _ cache: MemoryCache, _ images: [Image], _ shared: [CacheKey]) -> Int {
        var random = SeededGenerator(seed: UInt64(task))
        let own = CacheKey("own \(task)")
        var kept: PixelBuffer?
        var lookUps = 0
        for step in 0..<Self.steps {
            let value = Int(truncatingIfNeeded: random.next() >> 1)
            let key = shared[value % shared.count]
            let image = images[value >> 10 & 3]
            switch value >> 20 & 31 {
            case 0...3: cache.insert(image, for: key)
            case 4: cache.remove(key)
            case 5: _ = cache.contains(key)
            case 6 where step % 500 == 0: cache.trim(toFraction: 0.5)
            case 7 where step % 5_000 == 0: cache.removeAll()
            case 8...10:
                cache.insert(image, for: own)
                kept = image.pixels
            case 11:
                cache.remove(own)
                kept = nil
            case 12...14:
                lookUps += 1
                // No other task stores under this key, so the image is the last stored one or was dropped.
                if let found = cache.image(for: own), found.pixels !== kept {
                    Issue.record("task \(task) found an older image at step \(step)")
                }
            default:
                lookUps += 1
                _ = cache.image(for: key)
            }
        }
        return lookUps
    }

    @Test
    func `images come back while many tasks drop them`() async throws {
        let cache = MemoryCache(.init(countLimit: 8))
        let images = try (0..<64).map { _ in try makeImage() }
        let keys = images.indices.map { CacheKey("key \($0)") }
        for (key, image) in zip(keys, images) { cache.insert(image, for: key) }
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for step in 0..<2_000 {
                        let index = (step * 7 + task * 13) % keys.count
                        // All images are alive, so the cache finds each with its own pixels.
                        #expect(cache.image(for: keys[index])?.pixels === images[index].pixels)
                    }
                }
            }
        }
        let statistics = cache.statistics
        #expect(statistics.misses == 0)
        #expect(statistics.hits == 16_000)
        #expect(statistics.count == 8)
        #expect(statistics.cost == 8 * (try unitCost()))
        #expect(statistics.weakCount == 56)
    }

    @Test
    func `limits may change while others store`() async throws {
        let unit = try unitCost()
        let cache = MemoryCache(.init(costLimit: unit * 100))
        let image = try makeImage()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    for step in 0..<3_000 { cache.insert(image, for: CacheKey("key \(task) \(step % 90)")) }
                }
            }
            group.addTask {
                for step in 0..<300 { cache.costLimit = unit * (10 + step % 50) }
            }
        }
        let statistics = cache.statistics
        #expect(statistics.cost <= cache.costLimit)
        #expect(statistics.cost == statistics.count * unit)
    }
}
