// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCaching

/// Tintype's side of the large folder.
enum TintypeMillionEntries {
    static func key(_ number: Int) -> CacheKey {
        CacheKey("https://images.example.org/photo-\(number).jpg")
    }

    /// Returns a folder of `count` entries of 900 bytes.
    ///
    /// Later runs reuse it, because it takes minutes and 4 GB.
    static func folder(_ count: Int, _ session: Session) async throws -> String {
        let folder = session.folders.results.appendingPathComponent("entries-\(count)")
        let cache = DiskCache(DiskCache.Configuration(directory: folder, maximumAge: nil, sizeLimit: .max))
        if await cache.statistics().entryCount != count {
            Console.note("making a folder of \(count) entries (once)")
            let body = Data(repeating: 7, count: 900)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for part in 0..<4 {
                    group.addTask {
                        for number in stride(from: part, to: count, by: 4) {
                            try await cache.store(body, metadata: EntryMetadata(), for: self.key(number))
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        await cache.shutdown()
        return folder.path
    }

    /// The child: opens the folder and uses it at once.
    static func open(_ path: String) async throws {
        try await ChildJob.measure(isTimed: true) {
            let cache = DiskCache(
                DiskCache.Configuration(directory: URL(fileURLWithPath: path), maximumAge: nil, sizeLimit: .max)
            )
            let count = await cache.statistics().entryCount
            let hit = try await cache.entry(for: self.key(4711)) == nil ? 0 : 1
            let miss = try await cache.entry(for: CacheKey("there is none")) == nil ? 1 : 0
            return (count, hit + miss)
        }
    }
}
