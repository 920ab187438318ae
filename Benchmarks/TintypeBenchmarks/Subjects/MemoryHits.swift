// SPDX-License-Identifier: Apache-2.0

import CTintypeAllocationCounter
import Tintype

/// Look-ups of an image that is in memory.
enum MemoryHits {
    /// The number of images in each cache.
    ///
    /// Each sample looks up one of them repeatedly.
    static let entryCount = 100

    static let benchmarks = [
        Benchmark(name: "memory-hit", summary: "image(for: request) with the request that loaded the image") {
            session in
            try await times("memory-hit", .same, session, isBarred: true)
        },
        Benchmark(name: "memory-hit-equal", summary: "image(for: request) with an equal request, built once") {
            session in
            try await times("memory-hit-equal", .equal, session, isBarred: true)
        },
        Benchmark(name: "memory-hit-url", summary: "image(for: url): the request is made on the way") { session in
            try await times("memory-hit-url", .url, session, isBarred: false)
        },
        Benchmark(name: "memory-hit-fresh", summary: "image(for: request) where HTTP's freshness is honoured") {
            session in
            var contest = Contest()
            await contest.enterOurs { try await TintypeFreshHits.contestant(.honorFreshness) }
            await contest.enter("unasked") { try await TintypeFreshHits.contestant(.neverRevalidate) }
            try await contest.measure(session.plan)
            return contest.rows(named: "memory-hit-fresh", .wall(.nanoseconds)) { _ in [] }
        },
        Benchmark(name: "request-setup", summary: "a request with headers and a thumbnail, beside a memory hit") {
            session in
            var contest = Contest()
            await contest.enterOurs { try TintypeMemoryHits.requestContestant() }
            await contest.enter("memory hit") { try await TintypeMemoryHits.contestant(.same, session) }
            try await contest.measure(session.plan.fine)
            // Five hits' time.
            return contest.rows(named: "request-setup", .wall(.nanoseconds)) { _ in [.times(0.2)] }
                + contest.rows(named: "request-setup", .cpu(.nanoseconds))
        },
        Benchmark(name: "encoded-hit", summary: "encoded(request, as:) of what is in memory, beside an image's hit") {
            session in
            var contest = Contest()
            await contest.enterOurs { try await TintypeMemoryHits.encodedContestant(session) }
            await contest.enter("memory hit") { try await TintypeMemoryHits.contestant(.same, session) }
            try await contest.measure(session.plan.fine)
            // Twice a hit's time.
            return contest.rows(named: "encoded-hit", .wall(.nanoseconds)) { _ in [.times(0.5)] }
                + contest.rows(named: "encoded-hit", .cpu(.nanoseconds))
        },
        Benchmark(name: "encoded-hit-allocations", summary: "heap allocations of one encoded hit, counted") { session in
            guard allocation_counter_is_available() else {
                throw Unavailable("sanitizers count allocations themselves")
            }
            let hits = 100_000
            let ours = try await TintypeMemoryHits.encodedAllocations(hits: hits, session)
            return [
                Row(
                    name: "encoded-hit-allocations",
                    metric: .plain("heap", "per hit", lowerIsBetter: true),
                    ours: Summary([Double(ours) / Double(hits)]),
                    bars: [.atMost(0)]
                )
            ]
        },
        Benchmark(name: "memory-hit-8-tasks", summary: "throughput of 8 tasks that look up different images") {
            session in
            try await scaling(session)
        },
        Benchmark(name: "memory-hit-allocations", summary: "heap allocations of one memory hit, counted") { session in
            guard allocation_counter_is_available() else {
                throw Unavailable("sanitizers count allocations themselves")
            }
            let hits = 100_000
            let ours = try await TintypeMemoryHits.allocations(hits: hits, session)
            let theirs = CacheLookups.allocations(hits: hits, entryCount: entryCount)
            let metric = Metric.plain("heap", "per hit", lowerIsBetter: true)
            return [
                Row(
                    name: "memory-hit-allocations",
                    metric: metric,
                    peer: "NSCache NSURL",
                    ours: Summary([Double(ours) / Double(hits)]),
                    theirs: Summary([Double(theirs) / Double(hits)]),
                    bars: [.atMost(0)]
                )
            ]
        },
        Benchmark(name: "memory-hit-suspensions", summary: "times that one memory hit leaves its thread, counted") {
            session in
            let hits = 100_000
            let jobs = try await TintypeMemoryHits.suspensions(hits: hits, session)
            return [
                Row(
                    name: "memory-hit-suspensions",
                    metric: .plain("jobs", "per hit", lowerIsBetter: true),
                    ours: Summary([Double(jobs) / Double(hits)]),
                    bars: [.atMost(0)]
                )
            ]
        },
    ]

    /// Compares 8 tasks with one task.
    ///
    /// Each task uses its own images, because an image's reference count has a single cache line.
    private static func scaling(_ session: Session) async throws -> [Row] {
        let name = "memory-hit-8-tasks"
        var contest = Contest()
        await contest.enterOurs { try TintypeTierHits.contestant(taskCount: 8) }
        await contest.enter("1 task") { try TintypeTierHits.contestant(taskCount: 1) }
        await contest.enter("NSCache 8 tasks") { CacheLookups.inTasks(entryCount: self.entryCount, taskCount: 8) }
        try await contest.measure(session.plan)
        return contest.rows(named: name, .wall(.nanoseconds)) { $0 == "1 task" ? [.times(1.6)] : [.times(4)] }
            + contest.rows(named: name, .cpu(.nanoseconds))
    }

    private static func times(
        _ name: String,
        _ way: TintypeMemoryHits.Way,
        _ session: Session,
        isBarred: Bool
    ) async throws -> [Row] {
        var contest = Contest()
        await contest.enterOurs { try await TintypeMemoryHits.contestant(way, session) }
        await contest.enter("NSCache NSURL") {
            CacheLookups.byURL(entryCount: self.entryCount, equalKeys: way != .same)
        }
        await contest.enter("NSCache NSString") {
            CacheLookups.byString(entryCount: self.entryCount, equalKeys: way != .same)
        }
        try await contest.measure(session.plan.fine)
        return contest.rows(named: name, .wall(.nanoseconds)) { peer in
            guard isBarred else { return [] }
            return peer == "NSCache NSURL" ? [.atMost(100), .times(4)] : [.times(4)]
        } + contest.rows(named: name, .cpu(.nanoseconds))
    }
}
