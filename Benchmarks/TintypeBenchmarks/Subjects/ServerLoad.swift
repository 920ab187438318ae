// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The server under more load than it can serve, and loads that its requests share.
enum ServerLoad {
    static let benchmarks = [
        Benchmark(name: "server-identical", summary: "1,000 requests for one new result at once") { session in
            try await shared("server-identical", requests: 1_000, sides: [512], encodes: 1, session)
        },
        Benchmark(name: "server-sizes", summary: "20 sizes of one new source at once") { session in
            try await shared("server-sizes", requests: 20, sides: (1...20).map { $0 * 20 }, encodes: 20, session)
        },
        Benchmark(name: "server-overload", summary: "4,096 clients on new URLs that obey Retry-After") { session in
            try await overload("server-overload", pauseMilliseconds: 1_000, session)
        },
        Benchmark(name: "server-overload-at-once", summary: "4,096 clients that repeat at once after a refusal") {
            session in try await overload("server-overload-at-once", pauseMilliseconds: 0, session)
        },
        Benchmark(name: "server-slow-origin", summary: "new URLs while as many others take 10 s at their origin") {
            session in try await slowOrigin(session)
        },
    ]

    private static func shared(
        _ name: String,
        requests count: Int,
        sides: [Int],
        encodes: Double,
        _ session: Session
    ) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let origin = try await session.nginx()
        let source = try await ServerImages.sources("jpg", session)[0].url
        return try await TintypeServe.with(session) { serve in
            let targets = sides.map { TintypeServe.target("\(source)?\(name)", "jpeg", side: $0) }
            let before = try await origin.requestCount()
            let requests = HTTPLoad.Requests(connections: count, targets: targets, count: count)
            let answer = try await load.run(requests, to: serve.server)
            let after = try await origin.requestCount()
            // The count of the origin includes the second request for it.
            return [
                .figure(name, "requests", "of origin", Double(after - before - 1), [.atMost(1)]),
                .figure(
                    name,
                    "decodes",
                    "images",
                    try await serve.count(ofPhase: "decode"),
                    sides.count == 1 ? [.atMost(1)] : []
                ),
                .figure(name, "encodes", "images", try await serve.count(ofPhase: "encode"), [.atMost(encodes)]),
                .figure(name, "failures", "not 200", Double(count - answer.count(200)), [.atMost(0)]),
                .figure(name, "p99", "ms", answer.answers["200"]?.p99),
            ]
        }
    }

    private static func overload(_ name: String, pauseMilliseconds: Int, _ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let targets = try await ServerImages.sources("jpg", session).map { TintypeServe.target($0.url + "?#", "jpeg") }
        let seconds = session.plan.rounds >= Plan.thorough.rounds ? 10.0 : 4
        return try await TintypeServe.with(session, options: ["--memory-size", "32MiB"]) { serve in
            let few = HTTPLoad.Requests(connections: 8, targets: targets, seconds: seconds / 2)
            let many = HTTPLoad.Requests(
                connections: 4_096,
                targets: targets,
                seconds: seconds,
                pauseMilliseconds: pauseMilliseconds
            )
            _ = try await load.run(few, to: serve.server)
            let first = try await load.run(few, to: serve.server)
            serve.server.resetPeak()
            let resident = serve.server.residentBytes
            let answer = try await load.run(many, to: serve.server)
            let peak = serve.server.peakBytes
            let one = targets[0].replacingOccurrences(of: "#", with: name).dropFirst()
            let recovery = try await TintypeServe.seconds(within: 10) {
                try await serve.server.get(String(one)).status == 200
            }
            let second = try await load.run(few, to: serve.server)
            serve.server.resetPeak()
            _ = try await load.run(many, to: serve.server)
            let peakAgain = serve.server.peakBytes
            let rates = [first, answer, second].map { Double($0.count(200)) / $0.seconds }
            let best = max(rates[0], rates[2])
            let refusals = ["429", "503"].compactMap { answer.answers[$0] }
            let statuses = answer.answers.sorted { $0.key < $1.key }.map {
                "\($0.key): \($0.value.count), p50 \(Figure.text($0.value.p50)) ms, p99 \(Figure.text($0.value.p99)) ms"
            }
            // A closed loop of so many clients keeps each of them waiting for longer than the bar (Little's law), and
            // uses the processors of the server.
            let isPatient = pauseMilliseconds > 0
            return [
                Row(
                    name: name,
                    metric: .plain("goodput", "200s/s", lowerIsBetter: false),
                    peer: "8 clients",
                    ours: Summary([rates[1]]),
                    theirs: Summary([best]),
                    ratio: Summary([rates[1] / best]),
                    bars: isPatient ? [.times(0.85)] : [],
                    notes: ["--memory-size 32MiB; " + statuses.joined(separator: "; ")]
                ),
                .figure(name, "failed", "connections", Double(answer.failed), [.atMost(0)]),
                .figure(name, "p99", "ms refusal", refusals.map(\.p99).max(), isPatient ? [.atMost(50)] : []),
                Row(
                    name: name,
                    metric: .plain("RSS", "MiB", lowerIsBetter: true),
                    peer: "first time",
                    ours: Summary([peakAgain / 1_048_576]),
                    theirs: Summary([peak / 1_048_576]),
                    ratio: Summary([peak / peakAgain]),
                    bars: [.times(0.9)],
                    notes: [
                        "the load comes twice, and must not need more memory; before: \(Figure.text(resident / 1_048_576)) MiB"
                    ]
                ),
                .figure(name, "recovery", "s", recovery, [.atMost(1)]),
            ]
        }
    }

    private static func slowOrigin(_ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let origin = try await session.nginx()
        let slow = try await NginxServer.start(workers: 1, modules: [NginxServer.echo], origin, session)
        let names = try await ServerImages.sources("jpg", session).map { $0.url.dropFirst(origin.base.count) }
        let prompt = names.map { TintypeServe.target("\(slow.base)\($0)?#", "jpeg") }
        let late = names.map { TintypeServe.target("\(slow.base)late/\($0)?#", "jpeg") }
        let rows: [Row] = try await TintypeServe.with(session) { serve in
            let requests = HTTPLoad.Requests(connections: 16, targets: prompt)
            let alone = load.contestant(requests, to: serve.server)
            var contest = Contest()
            await contest.enterOurs {
                Contestant(counts: alone.smallestCount...alone.largestCount, note: "16 clients wait for late images") {
                    count in
                    let others = try await load.start(
                        HTTPLoad.Requests(connections: 16, targets: late),
                        to: serve.server
                    )
                    try await Task.sleep(for: .milliseconds(200))
                    let measurement = try await alone.run(count)
                    try await others.leave()
                    return measurement
                }
            }
            await contest.enter("all prompt") { alone }
            // The server waits 5 s for the first byte of an origin, so a sample is longer.
            let isThorough = session.plan.rounds >= Plan.thorough.rounds
            try await contest.measure(Plan(rounds: isThorough ? 3 : 1, sampleSeconds: isThorough ? 6 : 2))
            return contest.rows(named: "server-slow-origin", .rate(1, "requests/s")) { _ in [.times(0.9)] }
        }
        await slow.end()
        return rows
    }
}
