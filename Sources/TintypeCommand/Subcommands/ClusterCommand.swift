// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCluster
import TintypeRedis

/// `tintype cluster`: shows the servers that share a Redis.
struct ClusterCommand: Subcommand {
    static let name = "cluster"
    static let summary = "show the servers that share a cache in Redis"
    static let flags: Set = ["--json"]
    static let values: Set = ["--shared"]
    static let help = """
        Shows the servers that were started with the same --shared, and the nodes of Redis.

        Usage: tintype cluster status [options]

          status                each server with its hits, its waits for other servers, its circuit and its
                                locks; and each node of Redis
          --shared URL          the Redis: redis://a, redis+cluster://a,b or redis+sentinel://a,b/name;
                                by default the variable TINTYPE_SHARED, which hides a password
                                from other users
          --json                one JSON object on standard output
        """

    private let redis: RedisConfiguration
    private let writesJSON: Bool

    init(_ arguments: ParsedArguments) throws(UsageError) {
        guard try arguments.requireOperand("status").text == "status" else {
            throw UsageError("the cluster knows status only")
        }
        let variable = ProcessInfo.processInfo.environment["TINTYPE_SHARED"].flatMap { $0.isEmpty ? nil : $0 }
        let option = arguments.value("--shared")
        guard let url = option ?? variable else {
            throw UsageError("--shared or the variable TINTYPE_SHARED is missing; see --help")
        }
        do throws(RedisError) {
            var redis = try RedisConfiguration(url: url)
            // A person waits for the result.
            redis.commandTimeBudget = .seconds(2)
            self.redis = redis
        } catch {
            throw UsageError("\(option == nil ? "TINTYPE_SHARED" : "--shared") cannot be used. \(error.message)")
        }
        self.writesJSON = arguments.has("--json")
    }

    func run() async throws -> Bool {
        let cluster = Cluster(Cluster.Configuration(redis: self.redis))
        let status: ClusterStatus
        do {
            status = try await cluster.status()
        } catch {
            await cluster.shutdown()
            throw error
        }
        await cluster.shutdown()
        let report = Report(status)
        if self.writesJSON {
            try JSONLine.print(report)
        } else {
            for line in report.lines { try Output.standard.line(line) }
        }
        return true
    }

    private struct Report: Encodable {
        struct Server: Encodable {
            let name: String
            let ageInSeconds: Double
            let statistics: ClusterStatistics
        }

        struct Node: Encodable {
            let address: String
            let role: String
            let state: String
        }

        let servers: [Server]
        let nodes: [Node]

        init(_ status: ClusterStatus) {
            self.servers = status.processes.map { process in
                let age = max(0, -process.reportedAt.timeIntervalSinceNow)
                return Server(name: process.name, ageInSeconds: age, statistics: process.statistics)
            }
            self.nodes = status.redis.map { node in
                Node(address: node.address.description, role: node.role.rawValue, state: node.state.rawValue)
            }
        }

        var lines: [String] {
            ["servers: \(self.servers.count)"] + self.servers.map(self.line)
                + (self.servers.isEmpty ? ["  no report for 30 s: no server runs, or Redis refuses writes"] : [])
                + ["nodes of Redis: \(self.nodes.count)"]
                + self.nodes.map { "  \($0.address.printable)  \($0.role)  \($0.state)" }
        }

        private func line(_ server: Server) -> String {
            let counts = server.statistics
            // Redis may contain any numbers.
            let looks = Double(counts.hits) + Double(counts.misses)
            func whole(_ value: Double) -> Int { Int(max(-1e15, min(value, 1e15))) }
            let share =
                looks == 0
                ? "no look-ups"
                : "\(whole(100 * Double(counts.hits) / looks)) % of \(whole(looks)) look-ups are hits"
            let age = Int(server.ageInSeconds)
            // A server reports every five seconds, if it can write to Redis.
            return "  \(server.name.printable)  \(share)  \(counts.waits) waits, \(counts.waitsOver) in vain  "
                + "circuit \(counts.isCircuitOpen ? "open" : "closed"), opened \(counts.circuitOpenings) times  "
                + "\(counts.leases) locks  " + (age > 10 ? "no report for \(age) s" : "\(age) s ago")
                + (counts.lastError.map { "  last error: \($0.printable)" } ?? "")
        }
    }
}
