// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeTestSupport

/// The keys to store, and bodies with a checkable value for each byte.
enum Bodies {
    static let keys = (0..<200).map { CacheKey("https://example.org/image-\($0).jpg") }
    /// Less than the bodies of all keys, so that some must go.
    static let sizeLimit = 3 << 20

    /// A body of `key` number `number`: the numbers, then bytes that follow from them.
    static func make(_ number: Int, version: UInt64) -> Data {
        var generator = SeededGenerator(seed: version &* 1_000 &+ UInt64(number))
        let count = 16 + Int(generator.next() % 50_000)
        var data = Data(capacity: count + 8)
        for word in [UInt64(number), version] { withUnsafeBytes(of: word) { data.append(contentsOf: $0) } }
        while data.count < count { withUnsafeBytes(of: generator.next()) { data.append(contentsOf: $0) } }
        return data
    }

    /// Whether `data` is a body of the key number `number`, whole.
    static func isWhole(_ data: Data, _ number: Int) -> Bool {
        guard data.count >= 16 else { return false }
        let version = data.dropFirst(8).prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return self.make(number, version: version) == data
    }

    static func cache(in folder: String) -> DiskCache {
        DiskCache(DiskCache.Configuration(directory: URL(filePath: folder), sizeLimit: self.sizeLimit))
    }

    /// Reads every key, and returns the number of bodies found.
    ///
    /// Throws at the first wrong byte.
    static func checkAll(_ cache: DiskCache, keys numbers: Range<Int> = 0..<200) async throws -> Int {
        var found = 0
        for number in numbers {
            guard let entry = try await cache.entry(for: self.keys[number]) else { continue }
            guard self.isWhole(entry.data, number) else { throw Failure("a wrong body came back for key \(number)") }
            found += 1
        }
        return found
    }
}
