// SPDX-License-Identifier: Apache-2.0

import CTintypeAllocationCounter
import Foundation

/// Foundation's `NSCache`, hit again and again with a key that was built once.
enum CacheLookups {
    /// An object of the size of an image reference.
    private final class SubjectImage: Sendable {
        let width: Int

        init(width: Int) {
            self.width = width
        }
    }

    /// A filled cache and its keys, of which each sample looks up one.
    ///
    /// It is unchecked `Sendable`, because `NSCache` is documented as thread-safe and the keys never change.
    private final class Filled<Key: NSObject>: @unchecked Sendable {
        let cache = NSCache<Key, SubjectImage>()
        let keys: [Key]

        /// Fills the cache under `keys`.
        ///
        /// Look-ups use `lookUpKeys`, which are equal to `keys`.
        init(_ keys: [Key], lookUpKeys: [Key]) {
            for key in keys { self.cache.setObject(SubjectImage(width: 32), forKey: key) }
            self.keys = lookUpKeys
        }

        /// Looks up one key `count` times, and returns the sum of the widths.
        func hit(_ count: Int) -> Int {
            // The position of a key in the table is random, so each sample chooses another key.
            guard let key = self.keys.randomElement() else { return 0 }
            var widths = 0
            for _ in 0..<count { widths &+= self.cache.object(forKey: key)?.width ?? 0 }
            return widths
        }

        /// Looks up every `stride`th key from `start` on, round and round.
        func hit(_ count: Int, of start: Int, _ stride: Int) -> Int {
            let keys = Swift.stride(from: start, to: self.keys.count, by: stride).map { self.keys[$0] }
            var (widths, next) = (0, 0)
            for _ in 0..<count {
                widths &+= self.cache.object(forKey: keys[next])?.width ?? 0
                next = next + 1 < keys.count ? next + 1 : 0
            }
            return widths
        }
    }

    /// Looks up `NSURL` keys, which are closest to an image loader's keys.
    ///
    /// If `equalKeys` is set, the look-ups use other, equal objects than the ones in the cache.
    static func byURL(entryCount: Int, equalKeys: Bool) -> Contestant {
        let keys = self.urls(entryCount)
        return self.contestant(Filled(keys, lookUpKeys: equalKeys ? self.urls(entryCount) : keys))
    }

    /// Keys are `NSString`s.
    static func byString(entryCount: Int, equalKeys: Bool) -> Contestant {
        let keys = self.strings(entryCount)
        return self.contestant(Filled(keys, lookUpKeys: equalKeys ? self.strings(entryCount) : keys))
    }

    /// So many tasks at once, each over keys of its own, `NSString`s.
    static func inTasks(entryCount: Int, taskCount: Int) -> Contestant {
        let keys = self.strings(entryCount)
        let filled = Filled(keys, lookUpKeys: keys)
        return Contestant(counts: (taskCount * 1000)...100_000_000) { count in
            let share = count / taskCount
            var widths = 0
            let measurement = await Measurement.of(operations: share * taskCount) {
                widths = await withTaskGroup(of: Int.self) { group in
                    for task in 0..<taskCount { group.addTask { filled.hit(share, of: task, taskCount) } }
                    return await group.reduce(0) { $0 + $1 }
                }
            }
            try Check.equal("the number of hits", widths, 32 * share * taskCount)
            return measurement
        }
    }

    /// Returns the number of heap allocations of `hits` look-ups.
    static func allocations(hits: Int, entryCount: Int) -> UInt64 {
        let keys = self.urls(entryCount)
        let filled = Filled(keys, lookUpKeys: keys)
        _ = filled.hit(1000)
        allocation_counter_start()
        _ = filled.hit(hits)
        return allocation_counter_stop()
    }

    private static func contestant(_ filled: Filled<some NSObject>) -> Contestant {
        Contestant { count in
            var widths = 0
            let measurement = await Measurement.of(operations: count) { widths = filled.hit(count) }
            try Check.equal("the number of hits", widths, 32 * count)
            return measurement
        }
    }

    private static func urls(_ count: Int) -> [NSURL] {
        self.addresses(count).compactMap { NSURL(string: $0) }
    }

    private static func strings(_ count: Int) -> [NSString] {
        self.addresses(count).map { NSString(string: $0) }
    }

    private static func addresses(_ count: Int) -> [String] {
        (0..<count).map { "http://127.0.0.1:8080/photographs/image-\($0).jpg" }
    }
}
