// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype
import TintypeCluster
import TintypeRedis

/// Tintype's side of reads from Redis.
enum TintypeSharedHits {
    /// Reads an entry of the shared tier: key, checksums and metadata included.
    static func entry(_ redis: RedisPeer) async throws -> Contestant {
        var settings = Cluster.Configuration(redis: try self.configuration(redis))
        settings.redis.commandTimeBudget = .seconds(5)
        let cluster = Cluster(settings)
        let tier = cluster.tier
        let key = CacheKey("https://example.org/photo.jpg")
        let data = Data(repeating: 7, count: RedisPeer.byteCount)
        try await tier.store(data, metadata: EntryMetadata(mediaType: "image/jpeg"), for: key)
        return Contestant { count in
            var bytes = 0
            let measurement = try await Measurement.of(operations: count) {
                for _ in 0..<count { bytes += try await tier.entry(for: key)?.data.count ?? 0 }
            }
            try Check.equal("the number of bytes", bytes, count * RedisPeer.byteCount)
            return measurement
        }
    }

    /// Reads a value with several tasks at once, over one connection.
    static func pipelined(_ redis: RedisPeer, taskCount: Int) async throws -> Contestant {
        let client = RedisClient(try self.configuration(redis))
        let command = RedisCommand("GET", .text(RedisPeer.key), key: RedisPeer.key, isReadOnly: true)
        return Contestant(counts: 6_400...1_000_000) { count in
            let share = count / taskCount
            var bytes = 0
            let measurement = try await Measurement.of(operations: share * taskCount) {
                bytes = try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<taskCount {
                        group.addTask {
                            var bytes = 0
                            for _ in 0..<share {
                                bytes += try await client.run(command, timeBudget: .seconds(5)).data?.count ?? 0
                            }
                            return bytes
                        }
                    }
                    return try await group.reduce(0) { $0 + $1 }
                }
            }
            try Check.equal("the number of bytes", bytes, share * taskCount * RedisPeer.byteCount)
            return measurement
        }
    }

    private static func configuration(_ redis: RedisPeer) throws -> RedisConfiguration {
        try RedisConfiguration(url: "redis://127.0.0.1:\(redis.port)")
    }
}
