import CAllocationCounter
import Foundation

/// Foundation's `NSCache`, hit again and again with a key that was built once.
enum CacheLookups {
    /// Something of the size of a picture's reference.
    private final class Picture: Sendable {
        let width: Int

        init(width: Int) {
            self.width = width
        }
    }

    /// A filled cache and the key that is looked up.
    ///
    /// Sendable although unchecked: `NSCache` is documented to be safe from several threads, and
    /// the key is never changed.
    private final class Filled<Key: NSObject>: @unchecked Sendable {
        let cache = NSCache<Key, Picture>()
        let key: Key

        init(_ keys: [Key]) {
            for key in keys { self.cache.setObject(Picture(width: 32), forKey: key) }
            self.key = keys[keys.count / 2]
        }

        /// Looks up `count` times and returns the widths of all pictures together.
        func hit(_ count: Int) -> Int {
            var widths = 0
            for _ in 0..<count { widths &+= self.cache.object(forKey: self.key)?.width ?? 0 }
            return widths
        }
    }

    /// Keys are `NSURL`s: the nearest to what an image loader's key is.
    static func byURL(entryCount: Int) -> Contestant {
        self.contestant(Filled(self.urls(entryCount)))
    }

    /// Keys are `NSString`s.
    static func byString(entryCount: Int) -> Contestant {
        self.contestant(Filled(self.addresses(entryCount).map { NSString(string: $0) }))
    }

    /// The heap allocations of `hits` look-ups.
    static func allocations(hits: Int, entryCount: Int) -> UInt64 {
        let filled = Filled(self.urls(entryCount))
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

    private static func addresses(_ count: Int) -> [String] {
        (0..<count).map { "http://127.0.0.1:8080/photographs/picture-\($0).jpg" }
    }
}
