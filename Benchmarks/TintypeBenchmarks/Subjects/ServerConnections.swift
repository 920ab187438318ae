// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Connections that cost the server memory or places for nothing, and the memory of the whole server.
enum ServerConnections {
    static let benchmarks = [
        Benchmark(name: "server-slow-heads", summary: "2,000 connections that send a byte of a head every 500 ms") {
            session in try await slowHeads(session)
        },
        Benchmark(name: "server-idle-connections", summary: "10,000 connections that stay open after a hit") {
            session in
            try await idle(session)
        },
        Benchmark(name: "server-mute-clients", summary: "256 clients that request an image and never read") { session in
            try await mute(session)
        },
        Benchmark(name: "server-leavers", summary: "1,000 clients that leave while an origin is slow") { session in
            try await leavers(session)
        },
        Benchmark(name: "server-memory", summary: "idle, with four JPEGs of 36 megapixels, over 100,000 requests") {
            session in try await large(session) + mixed(session)
        },
    ]

    private static func slowHeads(_ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        return try await TintypeServe.with(session) { serve in
            let drips = HTTPLoad.Requests(
                connections: 2_000,
                targets: ["/"],
                mode: .drip,
                seconds: 20,
                pauseMilliseconds: 500
            )
            let answer = try await load.hold(drips, to: serve.server).answer()
            let name = "server-slow-heads"
            return [
                .figure(name, "left", "open", Double(2_000 - answer.closed), [.atMost(0)]),
                .figure(name, "last", "s", answer.lastClose, [.atMost(6)], notes: ["--head-time 5s, the default"]),
            ]
        }
    }

    private static func idle(_ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let target = TintypeServe.target(try await ServerImages.sources("jpg", session)[0].url, "jpeg")
        return try await TintypeServe.with(session) { serve in
            let hit = HTTPLoad.Requests(connections: 4, targets: [target], count: 1_000)
            _ = try await load.run(hit, to: serve.server)
            // After a second without work, the lanes free their blocks.
            try await Task.sleep(for: .seconds(2))
            let before = serve.server.residentBytes
            let idle = HTTPLoad.Requests(connections: 10_000, targets: [target], mode: .idle)
            let holding = try await load.hold(idle, to: serve.server)
            try await Task.sleep(for: .seconds(1))
            let (open, after) = (try await serve.metric("tintype_http_connections_open "), serve.server.residentBytes)
            let answer = try await holding.end()
            try Check.equal("the number of hits", answer.count(200), 10_000)
            guard open >= 10_000 else { throw Unavailable("\(open) connections are open, not 10,000") }
            let name = "server-idle-connections"
            return [
                .figure(name, "each", "kB", (after - before) / 10_000 / 1_000, [.atMost(2)]),
                .figure(name, "RSS", "MB", after / 1e6, [.atMost(40)]),
            ]
        }
    }

    private static func mute(_ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let target = TintypeServe.target(try await ServerImages.sources("jpg", session)[0].url, "png")
        return try await TintypeServe.with(session, options: ["--write-time", "2s"]) { serve in
            let body = try await serve.server.get(String(target.dropFirst())).body
            let expired = try await serve.metric("tintype_http_connections_expired_total")
            let mute = HTTPLoad.Requests(connections: 256, targets: [target], mode: .mute)
            let holding = try await load.hold(mute, to: serve.server)
            var ended = 0.0
            let seconds = try await TintypeServe.seconds(within: 15) {
                ended = try await serve.metric("tintype_http_connections_expired_total") - expired
                return ended >= 256
            }
            _ = try await holding.end()
            let note = "\(body.count) bytes; --write-time 2s instead of 10s"
            return [
                .figure("server-mute-clients", "left", "open", 256 - ended, [.atMost(0)], notes: [note]),
                .figure("server-mute-clients", "last", "s", seconds),
            ]
        }
    }

    private static func leavers(_ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let origin = try await session.nginx()
        let slow = try await NginxServer.start(workers: 1, modules: [NginxServer.echo], origin, session)
        let name = try await ServerImages.sources("jpg", session)[0].url.dropFirst(origin.base.count)
        let rows: [Row] = try await TintypeServe.with(
            session,
            options: ["--queue-size", "10000", "--queue-time", "300s"]
        ) { serve in
            let late = HTTPLoad.Requests(
                connections: 1_000,
                targets: [TintypeServe.target("\(slow.base)late/\(name)?#", "jpeg")],
                mode: .mute
            )
            let inProgress = "tintype_http_requests_in_progress "
            let idle = try await serve.metric(inProgress)
            let holding = try await load.hold(late, to: serve.server)
            let waiting = try await TintypeServe.seconds(within: 3) {
                try await serve.metric(inProgress) - idle >= 1_000
            }
            guard waiting != nil else {
                throw Unavailable("not all requests wait: \(try await serve.metric(inProgress))")
            }
            let time = Stopwatch(.monotonic)
            try await holding.leave()
            let closed = time.seconds
            _ = try await TintypeServe.seconds(within: 5) { try await serve.metric(inProgress) <= idle }
            let noticed = time.seconds
            let left = try await serve.metric("tintype_http_clients_left_total")
            let note = "from the last close; the system took \(Figure.text(closed * 1e3)) ms to close all connections"
            return [
                .figure("server-leavers", "missed", "clients", 1_000 - left, [.atMost(0)]),
                .figure("server-leavers", "noticed", "ms", (noticed - closed) * 1e3, [.atMost(100)], notes: [note]),
                .figure("server-leavers", "in all", "ms", noticed * 1e3),
            ]
        }
        await slow.end()
        return rows
    }

    private static func large(_ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let file = try await session.photographs.vast(session)
        let address = try await session.nginx().serve("vast.jpg", Data(contentsOf: URL(fileURLWithPath: file)))
        return try await TintypeServe.with(session) { serve in
            try await Task.sleep(for: .seconds(1))
            let idle = serve.server.residentBytes
            let anonymous = Figure.text(serve.server.anonymousBytes / 1_048_576)
            serve.server.resetPeak()
            let four = HTTPLoad.Requests(
                connections: 4,
                targets: [TintypeServe.target(address + "?#", "jpeg")],
                count: 4
            )
            let answer = try await load.run(four, to: serve.server)
            try Check.equal("the number of images", answer.count(200), 4)
            let peak = serve.server.peakBytes - idle
            return [
                .figure(
                    "server-memory",
                    "idle",
                    "MiB",
                    idle / 1_048_576,
                    [.under(20)],
                    notes: ["\(anonymous) MiB of the idle server are no pages of the program and its libraries"]
                ),
                .figure(
                    "server-memory",
                    "4 x 36 MP",
                    "MiB",
                    peak / 1_048_576,
                    [.under(64)],
                    notes: ["four images: over idle"]
                ),
            ]
        }
    }

    /// 100 requests in turn: 90 hits in many sizes, 6 new results of small sources, 4 errors.
    private static func mixed(_ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let small = try Data(contentsOf: URL(fileURLWithPath: try await session.photographs.small(session)))
        let address = try await session.nginx().serve("small.jpg", small)
        let formats = ["jpeg", "png", "webp"]
        var targets = (0..<90).map { TintypeServe.target(address, formats[$0 % 3], side: 40 + 2 * $0) }
        targets += (0..<6).map { TintypeServe.target(address + "?#", formats[$0 % 3], side: 200) }
        targets += ["/unsafe/rs:fit:1/plain", "/wrong", TintypeServe.target("http://127.0.0.1:1/?#", "png")]
        targets.append(TintypeServe.target(address + ".missing?#", "jpeg"))
        let count = session.plan.rounds >= Plan.thorough.rounds ? 100_000 : 20_000
        return try await TintypeServe.with(session, options: ["--memory-size", "16MiB"]) { serve in
            var requests = HTTPLoad.Requests(connections: 8, targets: targets.shuffled())
            requests.count = count * 2 / 5
            _ = try await load.run(requests, to: serve.server)
            let early = serve.server.residentBytes
            requests.count = count * 3 / 5
            let answer = try await load.run(requests, to: serve.server)
            let growth = serve.server.residentBytes - early
            let statuses = answer.answers.sorted { $0.key < $1.key }.map { "\($0.value.count) of \($0.key)" }
            let note =
                "\(count) requests, from 40 % of them on, at \(Figure.text(early / 1_048_576)) MiB; --memory-size 16MiB; "
                + statuses.joined(separator: ", ")
            return [
                .figure("server-memory", "growth", "MiB", growth / 1_048_576, [.atMost(4)], notes: [note])
            ]
        }
    }
}
