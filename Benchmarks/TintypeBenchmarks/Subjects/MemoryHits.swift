/// Looking up a picture that is in memory.
enum MemoryHits {
    /// How many pictures lie in each cache; one of them is asked for again and again.
    static let entryCount = 100

    static let benchmarks = [
        Benchmark(name: "memory-hit", summary: "image(for: request), request built once, against NSCache look-ups") {
            session in
            var contest = Contest()
            await contest.enterOurs { try await TintypeMemoryHits.requestHits(session) }
            await contest.enter("NSCache NSURL") { CacheLookups.byURL(entryCount: entryCount) }
            await contest.enter("NSCache NSString") { CacheLookups.byString(entryCount: entryCount) }
            try await contest.measure(session.plan)
            return contest.rows(named: "memory-hit", .wall(.nanoseconds)) { peer in
                peer == "NSCache NSURL" ? [.atMost(150), .times(3)] : [.times(3)]
            }
        },
        Benchmark(name: "memory-hit-url", summary: "image(for: url): the request is made on the way") { session in
            var contest = Contest()
            await contest.enterOurs { try await TintypeMemoryHits.urlHits(session) }
            await contest.enter("NSCache NSURL") { CacheLookups.byURL(entryCount: entryCount) }
            try await contest.measure(session.plan)
            return contest.rows(named: "memory-hit-url", .wall(.nanoseconds))
        },
        Benchmark(name: "memory-hit-allocations", summary: "heap allocations of one memory hit, counted") { session in
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
}
