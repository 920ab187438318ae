// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype
import TintypeCluster
import TintypeRedis
import TintypeTestSupport

/// Three servers of `tintype serve --shared` with one Redis, under load and random faults.
struct FaultRounds {
    /// The lifetime of a lock, and some time to look.
    private static let lockLimit = Duration.seconds(7)
    /// The longest pause of a circuit, and the time until all servers have reported their counts.
    private static let statusLimit = Duration.seconds(15)
    /// The images after the faults.
    private static let lastCount = 20

    let seed: UInt64
    let hasNamespaces: Bool
    let report: Report

    func run(seconds: Double) async throws {
        let folder = try TemporaryDirectory(prefix: "fleet-torture")
        let network = try await Network(folder: folder, hasNamespaces: hasNamespaces)
        defer { network.stop() }
        if !network.hasLinks { self.report.line("  no network namespaces here: nothing is cut off") }
        if !network.hasSlowLinks { self.report.line("  no tc with tbf here: no link is slow") }
        let origin = try NumberedOrigin(address: network.origin)
        defer { origin.stop() }
        let port = try LoopbackSocket.freePort()
        let client = RedisClient(try self.configuration(network.redis(from: nil), port))
        let redis = self.redis(network, port, folder, client)
        defer { redis.kill() }
        try await redis.start()
        let downloads = Self.downloads()
        let servers = try (0..<Network.serverCount).map { index in
            let shared = "redis://\(network.redis(from: index)):\(port)"
            return try self.server("server-\(index)", network, index, ["--shared", shared], folder, downloads)
        }
        let reference = try self.server("reference", network, nil, [], folder, downloads)
        defer { for server in servers + [reference] { server.member.kill() } }
        for server in servers + [reference] { try await server.member.start() }

        let load = Load(servers: servers, reference: reference, origin: origin, downloads: downloads)
        let faults = Faults(network: network, redis: redis, client: client, servers: servers, load: load)
        let clients = Task { await load.run(seed: self.seed) }
        let cluster = Cluster(Cluster.Configuration(redis: try self.configuration(network.redis(from: nil), port)))
        let outages = Outages(load: load, redis: redis, servers: servers, redisPort: port, report: self.report) {
            let counts = try await self.statistics(cluster, servers)
            return counts.count == servers.count && counts.allSatisfy { !$0.isCircuitOpen }
        }
        try await outages.run()
        try await faults.run(until: .now + .seconds(seconds), seed: self.seed)
        clients.cancel()
        await clients.value

        self.report.line("  faults: \(faults.summary)")
        self.tell(load, origin)
        if !load.ledger.failed.isEmpty {
            for line in servers.flatMap({ $0.member.log.filter { $0.contains("status=5") } }).prefix(20) {
                self.report.line("  \(line)")
            }
        }
        try await self.checkLocks(client)
        let circuits = try await self.checkCircuits(cluster, servers)
        try await self.checkHits(cluster, servers, load, origin, before: circuits)
        await cluster.shutdown()
        await client.shutdown()
        await downloads.shutdown()
    }

    // MARK: Processes

    private func configuration(_ host: String, _ port: Int) throws -> RedisConfiguration {
        var configuration = try RedisConfiguration(url: "redis://\(host):\(port)")
        configuration.commandTimeBudget = .seconds(10)
        configuration.longestReconnectDelay = .milliseconds(200)
        return configuration
    }

    private static func downloads() -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        // Longer than all pauses.
        configuration.timeout = .seconds(90)
        configuration.firstByteTimeout = .seconds(90)
        configuration.minimumSpeed = nil
        configuration.maximumConnectionsPerHost = 64
        configuration.maximumTransfers = 256
        return DownloadActor(configuration: configuration)
    }

    private func redis(_ network: Network, _ port: Int, _ folder: TemporaryDirectory, _ client: RedisClient) -> Member {
        let options = [
            "redis-server", "--port", "\(port)", "--bind", network.hasLinks ? "0.0.0.0" : "127.0.0.1",
            "--protected-mode", "no", "--save", "", "--appendonly", "no", "--dir", folder.path,
            "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lfu",
        ]
        return Member("redis", network.entry(nil) + options, folder: folder) { _ in
            (try? await client.run(RedisCommand("PING"), timeBudget: .milliseconds(200))) != nil
        }
    }

    /// Prepares a server on a host, or on this host.
    private func server(
        _ name: String,
        _ network: Network,
        _ index: Int?,
        _ options: [String],
        _ folder: TemporaryDirectory,
        _ downloads: DownloadActor
    ) throws -> Server {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(filePath: own).deletingLastPathComponent().appending(path: "tintype").path
        let address = "\(index.map { network.server($0) } ?? "127.0.0.1"):\(try LoopbackSocket.freePort())"
        let arguments = [
            program, "serve", "--listen", address, "--insecure", "--cache-size", "0", "--memory-size", "2MB",
            "--allow-network", "loopback", "--allow-network", "private", "--log-level", "warning",
            // Requests wait for paused processes.
            "--answer-time", "90s", "--download-time", "90s", "--queue-time", "90s", "--queue-size", "0",
        ]
        guard let health = URL(string: "http://\(address)/health") else { throw TestSupportError("\(address)?") }
        let member = Member(
            name,
            (index.map { network.entry($0) } ?? []) + arguments + options,
            folder: folder
        ) { _ in
            (try? await downloads.response(for: DownloadRequest(url: health, timeout: .seconds(5)))) != nil
        }
        return Server(member: member, address: address)
    }

    // MARK: Bars

    private func tell(_ load: Load, _ origin: NumberedOrigin) {
        let ledger = load.ledger
        self.report.line(
            "  requests: \(ledger.count), of which \(ledger.right) images, \(ledger.missing) missing, "
                + "\(ledger.left) left by their clients, \(ledger.killed) of killed servers; "
                + "half within \(ledger.percentile(0.5)), 99 % within \(ledger.percentile(0.99)), "
                + "all within \(ledger.percentile(1))"
        )
        self.report.line("  origin: \(origin.requestCount()) requests for \(load.imageCount) images")
        for fault in (ledger.wrong + ledger.failed).prefix(20) { self.report.line("  \(fault)") }
        self.report.bar("no wrong byte", ledger.wrong.isEmpty, "\(ledger.wrong.count) wrong")
        self.report.bar(
            "no failed request except those of killed servers",
            ledger.failed.isEmpty && ledger.right > 0,
            "\(ledger.failed.count) failed"
        )
    }

    /// Checks that no lock is left after its lifetime.
    private func checkLocks(_ client: RedisClient) async throws {
        var locks: [String] = []
        let end = try await time(within: Self.lockLimit) {
            locks = try await client.run(RedisCommand("KEYS", "*:lock:*")).elements?.compactMap(\.text) ?? []
            return locks.isEmpty
        }
        self.report.bar(
            "all locks are free",
            end != nil,
            end.map { "after \($0.text)" } ?? "\(locks.count) are left, such as \(locks.first ?? "")"
        )
    }

    /// The reports of the running servers, which have their process numbers in their names.
    private func statistics(_ cluster: Cluster, _ servers: [Server]) async throws -> [ClusterStatistics] {
        let processes = try await cluster.status().processes
        return servers.compactMap { server in
            processes.first { $0.name.contains("-\(server.member.number)-") }?.statistics
        }
    }

    /// Checks that all servers use Redis again; returns their counts.
    private func checkCircuits(_ cluster: Cluster, _ servers: [Server]) async throws -> [ClusterStatistics] {
        var counts: [ClusterStatistics] = []
        let end = try await time(within: Self.statusLimit) {
            counts = try await self.statistics(cluster, servers)
            return counts.count == servers.count && counts.allSatisfy { !$0.isCircuitOpen && $0.leases == 0 }
        }
        let figures = counts.map { "opened \($0.circuitOpenings) times, \($0.waits) waits, \($0.waitsOver) in vain" }
        self.report.bar(
            "all circuits are closed",
            end != nil,
            "\(counts.count) servers\(end.map { " after \($0.text)" } ?? ""): \(figures.joined(separator: "; "))"
        )
        return counts
    }

    /// Checks that the servers share new images again.
    private func checkHits(
        _ cluster: Cluster,
        _ servers: [Server],
        _ load: Load,
        _ origin: NumberedOrigin,
        before: [ClusterStatistics]
    ) async throws {
        let first = 1_000_000
        let numbers = Array((first...).lazy.filter { !NumberedOrigin.isMissing($0) }.prefix(Self.lastCount))
        var wrongCount = 0
        for number in numbers {
            for turn in servers.indices {
                let wish = Load.Wish(number: number, side: 48, format: "jpg")
                let body = try await load.answer(wish, from: servers[(number + turn) % servers.count])
                if await !load.isRight(body, wish) { wrongCount += 1 }
            }
        }
        let requests = origin.requestCount(first..<Int.max)
        // The first server of each image makes it, and the others find it. A busy machine may miss the time of a command.
        let least = Self.lastCount / 3
        var hits: [Int] = []
        let end = try await time(within: Self.statusLimit) {
            let now = try await self.statistics(cluster, servers)
            hits = zip(now, before).map { $0.hits - $1.hits }
            return hits.count == servers.count && hits.allSatisfy { $0 >= least }
        }
        self.report.bar(
            "the servers share images again",
            end != nil && wrongCount == 0 && requests <= Self.lastCount * 3 / 2,
            "\(requests) requests to the origin for \(numbers.count) images on \(servers.count) servers, hits \(hits)"
        )
    }
}
