// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Entries in a Redis that several machines share.
enum SharedHits {
    static let benchmarks = [
        Benchmark(name: "shared-hit", summary: "an entry of 50 kB from the tier in Redis") { session in
            let redis = try await RedisPeer.start(session)
            var contest = Contest()
            await contest.enterOurs { try await TintypeSharedHits.entry(redis) }
            await contest.enter("hiredis GET") { try redis.synchronous() }
            try await contest.measure(session.plan)
            await redis.end()
            // At most 1.3 times the cost.
            return contest.rows(named: "shared-hit", .wall(.microseconds)) { _ in [.times(0.77)] }
                + contest.rows(named: "shared-hit", .cpu(.microseconds)) { _ in [.times(0.77)] }
        },
        Benchmark(name: "shared-throughput", summary: "64 tasks that read a value of 50 kB from Redis") { session in
            let redis = try await RedisPeer.start(session)
            var contest = Contest()
            await contest.enterOurs { try await TintypeSharedHits.pipelined(redis, taskCount: 64) }
            await contest.enter("redis-benchmark -P 16") { redis.benchmark(["-P", "16"]) }
            await contest.enter("redis-benchmark -c 4 -P 16") { redis.benchmark(["-c", "4", "-P", "16"]) }
            try await contest.measure(session.plan)
            await redis.end()
            return contest.rows(named: "shared-throughput", .wall(.microseconds)) { _ in [.times(0.8)] }
                + contest.rows(named: "shared-throughput", .cpu(.microseconds))
        },
    ]
}
