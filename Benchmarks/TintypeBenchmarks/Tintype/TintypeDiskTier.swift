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
