// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Images that the server has made before, over connections that stay open.
enum ServerHits {
    static let benchmarks = [
        Benchmark(name: "server-hit", summary: "one result of about 35 kB from memory, against nginx's static file") {
            session in try await hits("server-hit", [], session)
        },
        Benchmark(name: "server-disk-hit", summary: "the same from disk, the memory tier off") { session in
            try await hits("server-disk-hit", ["--memory-size", "0"], session)
        },
        Benchmark(name: "server-304", summary: "304 to If-None-Match, against our own hits") { session in
            try await unchanged(session)
        },
    ]

    private static let connections = 32
    private static let systemCalls = Metric.plain("calls", "of system", lowerIsBetter: true)

    /// The result that all rows request.
    private static func target(_ session: Session) async throws -> String {
        TintypeServe.target(try await ServerImages.sources("jpg", session)[0].url, "jpeg")
    }

    private static func hits(_ name: String, _ options: [String], _ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let target = try await self.target(session)
        return try await TintypeServe.with(session, options: options) { serve in
            let body = try await serve.server.get(String(target.dropFirst())).body
            let origin = try await session.nginx()
            _ = try origin.serve("hit.jpg", body)
            let nginx = try await NginxServer.start(workers: 1, origin, session)
            let ours = HTTPLoad.Requests(connections: self.connections, targets: [target])
            let theirs = HTTPLoad.Requests(connections: self.connections, targets: ["/hit.jpg"])
            var contest = Contest()
            await contest.enterOurs {
                load.contestant(ours, to: serve.server, note: "\(body.count) bytes; one thread serves all connections")
            }
            await contest.enter(NginxServer.name) {
                load.contestant(theirs, to: nginx, note: "one worker, sendfile, no log")
            }
            try await contest.measure(session.plan.coarse)
            let isMemory = options.isEmpty
            var rows =
                contest.rows(named: name, .rate(1, "requests/s")) { _ in [.times(isMemory ? 0.8 : 0.5)] }
                + contest.rows(named: name, .cpu(.microseconds)) { _ in isMemory ? [.times(1 / 1.1)] : [] }
                + contest.rows(named: name, .tail) { _ in isMemory ? [.times(1 / 1.25)] : [] }
            do {
                let calls = try await (
                    SystemCalls.perRequest(ours, load, serve.server, session),
                    SystemCalls.perRequest(theirs, load, nginx, session)
                )
                rows.append(
                    Row(
                        name: name,
                        metric: self.systemCalls,
                        peer: NginxServer.name,
                        ours: Summary([calls.0]),
                        theirs: Summary([calls.1]),
                        bars: isMemory ? [.atMost(3)] : []
                    )
                )
            } catch {
                rows.append(Row(name: name, metric: self.systemCalls, notes: ["\(error)"]))
            }
            await nginx.end()
            return rows
        }
    }

    private static func unchanged(_ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let target = try await self.target(session)
        return try await TintypeServe.with(session) { serve in
            let tag = try await serve.server.get(String(target.dropFirst())).tag
            guard let tag else { throw Unavailable("no ETag") }
            var requests = HTTPLoad.Requests(connections: self.connections, targets: [target])
            var contest = Contest()
            await contest.enter("our hit") { load.contestant(requests, to: serve.server) }
            requests.fields = "If-None-Match: \(tag)\r\n"
            await contest.enterOurs { load.contestant(requests, to: serve.server, status: 304) }
            try await contest.measure(session.plan.coarse)
            return contest.rows(named: "server-304", .rate(1, "requests/s")) { _ in [.times(1)] }
                + contest.rows(named: "server-304", .cpu(.microseconds))
        }
    }
}
