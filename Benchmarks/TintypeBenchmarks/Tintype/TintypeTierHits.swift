// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeCaching

/// Tintype's memory tier alone: several tasks look up images at the same time.
enum TintypeTierHits {
    /// The width of the images.
    private static let side = 32

    /// Runs `taskCount` tasks at once.
    ///
    /// Each one looks up its own keys in turn.
    static func contestant(taskCount: Int) throws -> Contestant {
        let cache = MemoryCache()
        let keys = (0..<MemoryHits.entryCount).map { CacheKey("http://127.0.0.1:8080/photographs/image-\($0).jpg") }
        let layout = try PixelLayout(format: .rgb8, width: self.side, height: self.side)
        for key in keys {
            let image = Image(pixels: try PixelBuffer(layout, filling: { _ in }))
            try Check.equal("the outcome", "\(cache.insert(image, for: key))", "stored")
        }
        return Contestant(counts: (taskCount * 1000)...100_000_000) { count in
            let share = count / taskCount
            var widths = 0
            let measurement = await Measurement.of(operations: share * taskCount) {
                widths = await withTaskGroup(of: Int.self) { group in
                    for task in 0..<taskCount {
                        group.addTask {
                            self.hit(cache, share, stride(from: task, to: keys.count, by: 8).map { keys[$0] })
                        }
                    }
                    return await group.reduce(0) { $0 + $1 }
                }
            }
            try Check.equal("the number of hits", widths, self.side * share * taskCount)
            return measurement
        }
    }

    private static func hit(_ cache: MemoryCache, _ count: Int, _ keys: [CacheKey]) -> Int {
        var (widths, next) = (0, 0)
        for _ in 0..<count {
            widths &+= cache.image(for: keys[next])?.width ?? 0
            next = next + 1 < keys.count ? next + 1 : 0
        }
        return widths
    }
}
