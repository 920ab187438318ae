// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Requests per second over loopback, from one nginx that all clients meet.
enum Downloads {
    /// The parameters of one row.
    struct Load: Sendable {
        let bodyName: String
        let bodySize: Int
        let concurrency: Int
        /// Whether the transfers use HTTP/2 over TLS.
        var isSecure = false
        /// Whether each transfer needs a new connection over TLS, whose certificate the system trusts.
        var needsConnections = false

        /// The fewest transfers of a sample.
        ///
        /// A peer may take 50 ms for each connection.
        var leastCount: Int { self.needsConnections ? 20 : 300 }

        var name: String {
            if self.needsConnections { return "download-tls-connections" }
            return "download-\(self.isSecure ? "h2-" : "")\(self.bodyName)-\(self.concurrency)"
        }
    }

    /// The addresses that the clients of one row ask for, one for each request in flight.
    struct Target: Sendable {
        let load: Load
        let addresses: [String]
        let origin: NginxOrigin
    }

    static let loads = [("2kB", 2_000), ("50kB", 50_000)].flatMap { body in
        [1, 6, 64].map { Load(bodyName: body.0, bodySize: body.1, concurrency: $0) }
    }

    static let secureLoads = loads.map {
        Load(bodyName: $0.bodyName, bodySize: $0.bodySize, concurrency: $0.concurrency, isSecure: true)
    }

    static let connectionLoad = Load(
        bodyName: "2kB",
        bodySize: 2_000,
        concurrency: 6,
        isSecure: true,
        needsConnections: true
    )

    static let benchmarks = (loads + secureLoads + [connectionLoad]).map { load in
        let way = load.needsConnections ? ", each over a new TLS connection" : load.isSecure ? ", HTTP/2" : ""
        return Benchmark(
            name: load.name,
            summary:
                "\(load.bodyName) bodies, \(load.concurrency) at once\(way), against URLSession and curl --parallel"
        ) { session in
            try await run(load, session)
        }
    }

    private static func run(_ load: Load, _ session: Session) async throws -> [Row] {
        let origin = try await session.nginx()
        let plain = try origin.serve("body-\(load.bodyName)", size: load.bodySize)
        let secureBase = load.needsConnections ? origin.closingBase : origin.tlsBase
        let address = load.isSecure ? secureBase + "body-\(load.bodyName)" : plain
        if load.needsConnections, OriginTrust.folder == nil {
            throw Unavailable("only root can let the system trust the origin")
        }
        // A query of its own for each: equal requests in flight would share one transfer.
        let addresses = (0..<load.concurrency).map { "\(address)?\($0)" }
        let target = Target(load: load, addresses: addresses, origin: origin)
        var contest = Contest()
        await contest.enterOurs { try self.counted(TintypeDownloads.contestant(target), target) }
        await contest.enter(SessionDownloads.name) {
            guard load.needsConnections else { return try await self.fastestSession(target, session.plan) }
            return try self.counted(SessionDownloads.contestant(target, connections: 6), target)
        }
        await contest.enter("curl --parallel") {
            try self.counted(CurlDownloads(target, session.folders).contestant, target)
        }
        try await contest.measure(session.plan.limited(to: 11))
        return contest.rows(named: load.name, .rate(1, "requests/s")) { peer in
            if load.needsConnections { return [.times(5)] }
            if load.isSecure { return peer == SessionDownloads.name ? [.times(4)] : [] }
            return [.times(peer == SessionDownloads.name ? 5 : 0.9)]
        } + contest.rows(named: load.name, .cpu(.microseconds))
    }

    /// The session whose number of connections serves it best for this load.
    private static func fastestSession(_ target: Target, _ plan: Plan) async throws -> Contestant {
        var best: (contestant: Contestant, rate: Double)?
        for connections in [6, 64] {
            let contestant = try self.counted(SessionDownloads.contestant(target, connections: connections), target)
            let count = max(contestant.smallestCount, plan.sampleSeconds > 0.1 ? 1500 : 300)
            _ = try await contestant.run(count)
            let rates = try await [contestant.run(count), contestant.run(count)].map {
                Double($0.operations) / $0.wallSeconds
            }
            let rate = rates.max() ?? 0
            if rate > best?.rate ?? 0 { best = (contestant, rate) }
        }
        guard let best else { throw Unavailable("no session could be measured") }
        return best.contestant
    }

    /// The same side, with the origin's own count of requests compared after each sample.
    private static func counted(_ contestant: Contestant, _ target: Target) throws -> Contestant {
        Contestant(counts: contestant.smallestCount...contestant.largestCount, note: contestant.note) { count in
            let before = try await target.origin.requestCount()
            let measurement = try await contestant.run(count)
            let after = try await target.origin.requestCount()
            // The origin counts the question after its count as well.
            try Check.equal("the origin's number of requests", after - before - 1, measurement.operations)
            return measurement
        }
    }
}
