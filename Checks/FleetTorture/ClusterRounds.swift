// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Tintype
import TintypeCluster
import TintypeRedis
import TintypeTestSupport

/// Three loaders that share a Redis Cluster, while its slots move and while one of its masters is killed.
struct ClusterRounds {
    /// The images that are stored before anything happens; the cluster must not lose them.
    private static let stored: [Int] = (0..<400).filter { !NumberedOrigin.isMissing($0) && $0 % 5 != 2 }
    private static let firstNew = 1_000
    /// The slots that move at once, and for how long requests meet them in both places.
    private static let slotsAtOnce = 16
    private static let moveTime = Duration.milliseconds(50)
    /// How often slots move from one master to the next one.
    private static let moveRounds = 12
    /// The number of the master that is killed.
    private static let victim = 1
    /// The entries of the victim that all loaders must find again, and that nobody else loads.
    private static let probeCount = 10
    /// The longest time that the loaders may need beyond the failover: the longest pause of a circuit.
    private static let recoveryLimit = Duration.seconds(4)

    let seed: UInt64
    let report: Report

    func run() async throws {
        let redis = try await RedisCluster()
        let origin = try NumberedOrigin(address: "127.0.0.1")
        defer { origin.stop() }
        try await self.moveSlots(of: redis, origin)
        try await self.killMaster(of: redis, origin)
    }

    // MARK: Moving slots

    private func moveSlots(of redis: RedisCluster, _ origin: NumberedOrigin) async throws {
        // No command runs out of time: each request to the origin is an entry that was not found.
        let fleet = try SmallFleet(redis, origin, timeBudget: .seconds(5))
        for number in Self.stored { _ = try await fleet.load(number, on: number) }
        await fleet.waitForStores()
        let before = (stored: origin.requestCount(0..<Self.firstNew), errors: try Self.redirections(redis))
        let traffic = Traffic(fleet, stored: Self.stored, firstNew: Self.firstNew)
        let clients = Task { await traffic.run(seed: self.seed) }
        var slotCount = 0
        for round in 0..<Self.moveRounds {
            slotCount += try await self.move(redis, from: round % 3, to: (round + 1) % 3)
        }
        clients.cancel()
        await clients.value
        let errors = try Self.redirections(redis)
        let (moved, asked) = (errors.moved - before.errors.moved, errors.asked - before.errors.asked)
        let lost = origin.requestCount(0..<Self.firstNew) - before.stored
        await fleet.shutdown()
        self.report.line("  slots: \(slotCount) with keys moved, \(traffic.summary)")
        self.report.bar("requests met moved and moving slots", moved > 0 && asked > 0, "MOVED \(moved), ASK \(asked)")
        self.report.bar("no failed request while slots move", traffic.failed.isEmpty, traffic.failed.figures)
        self.report.bar("no wrong byte while slots move", traffic.wrong.isEmpty, traffic.wrong.figures)
        self.report.bar("moved slots lose nothing", lost == 0, "\(lost) of \(Self.stored.count) entries lost")
    }

    /// Moves half of the slots that have keys from one master to another; returns their number.
    private func move(_ redis: RedisCluster, from source: Int, to target: Int) async throws -> Int {
        let client = try Self.client(redis.masters[source])
        let keys = try await client.run(RedisCommand("KEYS", "*")).elements?.compactMap(\.text) ?? []
        let all = try Set(keys.map { Int(try redis.masters[source].run("CLUSTER", "KEYSLOT", $0)) ?? 0 })
        // Each master keeps some of its slots.
        let slots = Array(all.sorted().prefix(all.count / 2))
        for start in stride(from: 0, to: slots.count, by: Self.slotsAtOnce) {
            let some = slots[start..<min(slots.count, start + Self.slotsAtOnce)]
            for slot in some { try redis.beginMoving(slot: slot, from: source, to: target) }
            try await Task.sleep(for: Self.moveTime / 2)
            for slot in some {
                let command = RedisCommand("CLUSTER", "GETKEYSINSLOT", .text("\(slot)"), 100)
                while case let keys = try await client.run(command).elements?.compactMap(\.text) ?? [], !keys.isEmpty {
                    // A lock may end meanwhile.
                    for key in keys { try redis.move(key: key, from: source, to: target) }
                }
            }
            try await Task.sleep(for: Self.moveTime)
            for slot in some { try redis.assign(slot: slot, to: target) }
        }
        await client.shutdown()
        return slots.count
    }

    /// Returns a client of one server of the cluster.
    private static func client(_ server: RedisServer) throws -> RedisClient {
        var configuration = try RedisConfiguration(url: "redis://127.0.0.1:\(server.port)")
        configuration.commandTimeBudget = .seconds(10)
        return RedisClient(configuration)
    }

    /// The answers of all servers that sent a client to another one.
    private static func redirections(_ redis: RedisCluster) throws -> (moved: Int, asked: Int) {
        let lines = try redis.servers.flatMap { try $0.run("INFO", "errorstats").split(separator: "\r\n") }
        func count(_ name: String) -> Int {
            lines.filter { $0.hasPrefix("errorstat_\(name):") }.reduce(0) { sum, line in
                sum + (line.split(separator: "=").last.flatMap { Int($0) } ?? 0)
            }
        }
        return (count("MOVED"), count("ASK"))
    }

    // MARK: Killing a master

    private func killMaster(of redis: RedisCluster, _ origin: NumberedOrigin) async throws {
        // The time of a command is the default.
        let fleet = try SmallFleet(redis, origin, timeBudget: nil)
        let probes = try await self.probes(of: redis, fleet)
        let traffic = Traffic(
            fleet,
            stored: Self.stored.filter { !probes.contains($0) },
            firstNew: Self.firstNew + 100_000
        )
        let clients = Task { await traffic.run(seed: self.seed &+ 1) }
        // The replica must have the last stores.
        try await Task.sleep(for: .seconds(3))
        // The cluster of the tests lets no replica take over for 30 seconds.
        for server in redis.servers { try server.run("CONFIG", "SET", "cluster-node-timeout", "500") }
        let start = ContinuousClock.now
        redis.masters[Self.victim].kill()
        let replica = redis.servers[Self.victim + 3]
        async let promotion = time(within: .seconds(30)) {
            try replica.run("INFO", "replication").contains("role:master")
        }
        // A loader is back when it finds all entries that the master had.
        var isBack = false
        while !isBack, .now - start < .seconds(30) {
            try await Task.sleep(for: .milliseconds(20))
            isBack = await fleet.finds(probes)
        }
        let total = ContinuousClock.now - start
        let failover = try await promotion
        try await Task.sleep(for: .seconds(2))
        clients.cancel()
        await clients.value
        await fleet.shutdown()
        self.report.line("  master killed: \(traffic.summary)")
        self.report.bar("no failed request when a master dies", traffic.failed.isEmpty, traffic.failed.figures)
        self.report.bar("no wrong byte when a master dies", traffic.wrong.isEmpty, traffic.wrong.figures)
        self.report.bar(
            "all loaders find the entries of the dead master soon after the failover",
            isBack && failover.map { total - $0 <= Self.recoveryLimit } == true,
            "\(probes.count) entries; the replica is master after \(failover?.text ?? "never"), "
                + "and the loaders find them after \(total.text)"
        )
    }

    /// Returns stored images whose sources the victim has.
    private func probes(of redis: RedisCluster, _ fleet: SmallFleet) async throws -> [Int] {
        for number in Self.stored { _ = try await fleet.load(number, on: number) }
        await fleet.waitForStores()
        let client = try Self.client(redis.masters[Self.victim])
        let keys = try await client.run(RedisCommand("KEYS", "*")).elements?.compactMap(\.text) ?? []
        await client.shutdown()
        return Array(Self.stored.filter { keys.contains(fleet.family($0)) }.prefix(Self.probeCount))
    }
}

extension [String] {
    fileprivate var figures: String {
        self.isEmpty ? "none" : "\(self.count): \(self.prefix(3).joined(separator: "; "))"
    }
}

/// Loaders without a memory, which share a Redis Cluster.
private struct SmallFleet: Sendable {
    static let count = 3

    private let nodes: [(cluster: Cluster, loader: LoaderActor)]
    private let reference: LoaderActor
    private let origin: NumberedOrigin

    /// Creates the loaders; `timeBudget` is the time of a command, `nil` for the default.
    init(_ redis: RedisCluster, _ origin: NumberedOrigin, timeBudget: Duration?) throws {
        let hosts = redis.servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        self.nodes = try (0..<Self.count).map { _ in
            var settings = Cluster.Configuration(redis: try RedisConfiguration(url: "redis+cluster://\(hosts)"))
            if let timeBudget { settings.redis.commandTimeBudget = timeBudget }
            let cluster = Cluster(settings)
            var configuration = Self.configuration()
            configuration.tiers = [cluster.tier]
            configuration.fetcherWrapper = { cluster.fetcher(over: $0) }
            let loader = LoaderActor(configuration: configuration)
            cluster.join(with: loader)
            return (cluster, loader)
        }
        self.reference = LoaderActor(configuration: Self.configuration())
        self.origin = origin
    }

    private static func configuration() -> LoaderActor.Configuration {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        configuration.memory.costLimit = 0
        configuration.memory.encodedCostLimit = 0
        configuration.cachePolicy = .honorFreshness
        configuration.isSharedCache = true
        return configuration
    }

    /// Loads a thumbnail on one of the loaders.
    func load(_ number: Int, on node: Int) async throws -> Data {
        try await self.nodes[node % Self.count].loader.encoded(self.request(number), as: .jpeg()).data
    }

    /// Returns the bytes that a loader without a cluster makes.
    func expected(_ number: Int) async throws -> Data {
        try await self.reference.encoded(self.request(number, counts: false), as: .jpeg()).data
    }

    private func request(_ number: Int, counts: Bool = true) throws -> ImageRequest {
        let text = self.origin.url(number, counts: counts)
        guard let url = URL(string: text) else { throw TestSupportError("\(text) is no URL") }
        return ImageRequest(url: url, thumbnail: .fit(width: 48, height: 48))
    }

    /// The name in Redis of the entries of an image.
    func family(_ number: Int) -> String { "tintype:1:{\(self.key(number).digest)}" }

    /// Returns whether each loader finds the sources of these images.
    func finds(_ numbers: [Int]) async -> Bool {
        for node in self.nodes {
            for number in numbers {
                let entry = try? await node.cluster.tier.entry(for: self.key(number))
                guard entry != nil else { return false }
            }
        }
        return !numbers.isEmpty
    }

    private func key(_ number: Int) -> CacheKey { CacheKey(self.origin.url(number)) }

    func waitForStores() async {
        for node in self.nodes { await node.loader.waitForPendingStores() }
    }

    func shutdown() async {
        for node in self.nodes {
            await node.loader.shutdown()
            await node.cluster.shutdown()
        }
        await self.reference.shutdown()
    }
}

/// Clients of the loaders, which load stored images, and one new image in twenty.
private final class Traffic: Sendable {
    private static let clientCount = 12

    private let fleet: SmallFleet
    private let stored: [Int]
    private let nextNew: Atomic<Int>
    private let right = Atomic(0)
    private let expected = Mutex<[Int: Data]>([:])
    private let faults = Mutex<(failed: [String], wrong: [String])>(([], []))

    init(_ fleet: SmallFleet, stored: [Int], firstNew: Int) {
        self.fleet = fleet
        self.stored = stored
        self.nextNew = Atomic(firstNew)
    }

    var failed: [String] { self.faults.withLock { $0.failed } }
    var wrong: [String] { self.faults.withLock { $0.wrong } }
    var summary: String { "\(self.right.load(ordering: .relaxed)) right results" }

    /// Loads until the task is cancelled, and returns when the last load has ended.
    func run(seed: UInt64) async {
        await withDiscardingTaskGroup { group in
            for client in 0..<Self.clientCount {
                group.addTask {
                    var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(client))
                    while !Task.isCancelled {
                        let number = self.choose(&generator)
                        // An unstructured task, because the last load must not be cancelled.
                        await Task { await self.load(number, on: client) }.value
                        try? await Task.sleep(for: .milliseconds(Int.random(in: 0...10, using: &generator)))
                    }
                }
            }
        }
    }

    private func choose(_ generator: inout SeededGenerator) -> Int {
        guard Int.random(in: 0..<20, using: &generator) == 0 else {
            return self.stored.randomElement(using: &generator) ?? 0
        }
        let number = self.nextNew.add(1, ordering: .relaxed).newValue
        return NumberedOrigin.isMissing(number) ? number - 1 : number
    }

    private func load(_ number: Int, on node: Int) async {
        do {
            let data = try await self.fleet.load(number, on: node)
            guard try await self.expected(number) != data else {
                self.right.add(1, ordering: .relaxed)
                return
            }
            self.faults.withLock { $0.wrong.append("image \(number) on loader \(node): \(data.count) bytes") }
        } catch {
            self.faults.withLock { $0.failed.append("image \(number) on loader \(node): \(error)") }
        }
    }

    private func expected(_ number: Int) async throws -> Data {
        if let data = self.expected.withLock({ $0[number] }) { return data }
        let data = try await self.fleet.expected(number)
        self.expected.withLock { $0[number] = data }
        return data
    }
}
