// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCaching

/// Tintype's side of the disk tier's rows.
enum TintypeDiskTier {
    static func hits(_ session: Session) async throws -> Contestant {
        let (cache, keys) = try await self.filled("hits", session)
        return Contestant(note: "reads into a fresh buffer, checks key and checksum, decodes the metadata") { count in
            try await Measurement.of(operations: count) {
                for number in 0..<count {
                    let entry = try await cache.entry(for: keys[number % keys.count])
                    try Check.equal("the number of bytes", entry?.data.count ?? 0, DiskTier.byteCount)
                }
            }
        }
    }

    /// `taskCount` tasks at once, each over keys of its own, round and round.
    static func lookUps(taskCount: Int, _ session: Session) async throws -> Contestant {
        let (disk, keys) = try await self.filled("look-ups-\(taskCount)", session)
        let cache = CacheActor(disk: disk)
        return Contestant(counts: taskCount...100_000_000) { count in
            let share = count / taskCount
            return try await Measurement.of(operations: share * taskCount) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 0..<taskCount {
                        group.addTask {
                            try await self.look(
                                in: cache,
                                count: share,
                                stride(from: task, to: keys.count, by: taskCount).map { keys[$0] }
                            )
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    private static func look(in cache: CacheActor, count: Int, _ keys: [CacheKey]) async throws {
        for number in 0..<count {
            guard let entry = try await cache.entry(for: keys[number % keys.count]) else {
                throw Unavailable("an entry is missing")
            }
            try Check.equal("the number of bytes", entry.data.count, DiskTier.byteCount)
        }
    }

    static func stores(_ session: Session) async throws -> Contestant {
        let (cache, keys) = try await self.filled("stores", session)
        let body = self.body
        return Contestant(note: "returns when the entry can be read") { count in
            try await Measurement.of(operations: count) {
                for number in 0..<count {
                    try await cache.store(body, metadata: self.metadata, for: keys[number % keys.count])
                }
            }
        }
    }

    static func misses(_ session: Session) async throws -> Contestant {
        let (cache, _) = try await self.filled("misses", session)
        let missing = CacheKey("https://images.example.org/there-is-none.jpg")
        return Contestant { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let entry = try await cache.entry(for: missing)
                    try Check.equal("the entry", entry == nil, true)
                }
            }
        }
    }

    static let body = Data((0..<DiskTier.byteCount).map { UInt8(truncatingIfNeeded: $0) })
    static let metadata = EntryMetadata(
        formatName: "jpeg",
        sourceURL: "https://images.example.org/photo.jpg",
        mediaType: "image/jpeg",
        etag: "\"0123456789abcdef\""
    )

    private static func filled(_ name: String, _ session: Session) async throws -> (DiskCache, [CacheKey]) {
        let folder = session.folders.temporary.appendingPathComponent("disk-tier-\(name)")
        let cache = DiskCache(DiskCache.Configuration(directory: folder))
        let keys = (0..<DiskTier.keyCount).map { CacheKey("https://images.example.org/photo-\($0).jpg") }
        for key in keys { try await cache.store(self.body, metadata: self.metadata, for: key) }
        return (cache, keys)
    }
}
