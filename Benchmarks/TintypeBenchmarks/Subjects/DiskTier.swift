// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The disk tier by itself: hits, misses and stores of bodies of 50 kB.
enum DiskTier {
    /// The bytes of a body, and the keys that the work goes round.
    static let byteCount = 51_200
    static let keyCount = 200

    static let benchmarks =
        [
            Benchmark(name: "disk-hit", summary: "a hit in the disk tier, 50 kB, read and verified") { session in
                var contest = Contest()
                await contest.enterOurs { try await TintypeDiskTier.hits(session) }
                await contest.enter("open+read+close") { try BareFiles.reads(session) }
                await contest.enter("diskcache") { try await DiskTier.diskcache("hit", session) }
                try await contest.measure(session.plan)
                return contest.rows(named: "disk-hit", .wall(.microseconds)) { peer in
                    peer == "diskcache" ? [.times(5)] : [.times(0.7)]
                }
            },
            Benchmark(name: "disk-store", summary: "a store in the disk tier, 50 kB, over an older entry") { session in
                var contest = Contest()
                await contest.enterOurs { try await TintypeDiskTier.stores(session) }
                await contest.enter("write+rename") { try BareFiles.writes(session) }
                await contest.enter("diskcache") { try await DiskTier.diskcache("store", session) }
                try await contest.measure(session.plan)
                return contest.rows(named: "disk-store", .wall(.microseconds)) { peer in
                    peer == "diskcache" ? [.times(5)] : [.times(0.5)]
                }
            },
            Benchmark(name: "disk-miss", summary: "a miss in the disk tier") { session in
                var contest = Contest()
                await contest.enterOurs { try await TintypeDiskTier.misses(session) }
                await contest.enter("access") { try BareFiles.missingChecks(session) }
                try await contest.measure(session.plan)
                return contest.rows(named: "disk-miss", .wall(.nanoseconds))
            },
            Benchmark(name: "disk-limit", summary: "ten writers at twenty times the size limit: what the folder takes")
            {
                session in try await TintypeDiskWriters.rows(session)
            },
        ] + [1, 2, 4].map(hitsInTasks)

    /// As many tasks as a server has requests, each over keys of its own.
    private static func hitsInTasks(_ taskCount: Int) -> Benchmark {
        let name = "disk-hit-tasks-\(taskCount)"
        return Benchmark(name: name, summary: "hits on disk through CacheActor, 50 kB, in \(taskCount) tasks at once") {
            session in
            var contest = Contest()
            await contest.enterOurs { try await TintypeDiskTier.lookUps(taskCount: taskCount, session) }
            if taskCount == 1 {
                await contest.enter("DiskCache alone") { try await TintypeDiskTier.hits(session) }
            } else {
                await contest.enter("1 task") { try await TintypeDiskTier.lookUps(taskCount: 1, session) }
            }
            try await contest.measure(session.plan)
            return contest.rows(named: name, .wall(.microseconds)) { $0 == "1 task" ? [.times(1.7)] : [] }
                + contest.rows(named: name, .cpu(.microseconds))
        }
    }

    /// The Python package with the same bodies, over the same keys.
    private static func diskcache(_ job: String, _ session: Session) async throws -> Contestant {
        let worker = try await session.python()
        let path = session.folders.temporary.appendingPathComponent("diskcache-\(job)").path
        return Contestant(note: "the package as it comes: SQLite, and a file for a body of this size") { count in
            let answer = try await worker.ask(
                PythonWorker.Request(do: "disk-cache", job: job, path: path, count: count, bytes: Self.byteCount)
            )
            return try answer.measurement(count) { size, _ in
                try Check.equal("the number of bytes", size, Self.byteCount)
            }
        }
    }
}
