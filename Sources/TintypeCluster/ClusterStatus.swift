// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Tintype
import TintypeConcurrency
public import TintypeRedis

/// The counts of a process of a cluster since its start.
public struct ClusterStatistics: Sendable, Hashable, Codable {
    /// The calls to Redis.
    public var calls = 0
    /// The calls without a reply, or with an error.
    public var failedCalls = 0
    /// The calls that did not begin because the circuit was open.
    public var refusedCalls = 0
    /// The look-ups that found an entry in Redis.
    public var hits = 0
    /// The look-ups that found none.
    public var misses = 0
    /// The entries in Redis that were damaged, or of another program.
    public var damagedEntries = 0
    /// The loads that waited for another machine.
    public var waits = 0
    /// The loads that waited in vain, and went on by themselves.
    public var waitsOver = 0
    /// The failures of other machines that spared a request to an origin.
    public var sharedFailures = 0
    /// How often Redis failed so that the circuit opened.
    public var circuitOpenings = 0
    /// Whether the circuit is open now.
    public var isCircuitOpen = false
    /// The locks that the process holds now.
    public var leases = 0
    /// The last error of Redis.
    public var lastError: String?

    /// Creates counts of zero.
    init() {}
}

/// The state of a cluster.
public struct ClusterStatus: Sendable {
    /// A process of the cluster.
    public struct Process: Sendable, Codable {
        /// The name.
        public let name: String
        /// The time of its last report.
        public let reportedAt: Date
        /// Its counts.
        public let statistics: ClusterStatistics
    }

    /// The processes that have reported within the last half minute.
    public let processes: [Process]
    /// The nodes of Redis, as this process sees them.
    public let redis: [RedisNodeStatus]
}

/// Reports the counts of this process to the others.
final class Heartbeat: Sendable {
    private static let period = Duration.seconds(5)
    /// Processes without a report for so long are gone.
    private static let patience = 30.0

    private let store: SharedStore
    private let leases: Leases
    private let owner = TaskOwner()

    init(_ store: SharedStore, _ leases: Leases) {
        (self.store, self.leases) = (store, leases)
    }

    /// Checks the settings of Redis, and reports until the process leaves.
    func begin() {
        let (store, leases, name) = (self.store, self.leases, self.store.name("processes"))
        self.owner.run("heartbeat of the cluster") {
            await Self.checkSettings(store)
            while !Task.isCancelled {
                await Self.report(store, leases, name)
                try? await Task.sleep(for: Self.period)
            }
        }
    }

    /// Reports settings of Redis that do not suit a cache.
    private static func checkSettings(_ store: SharedStore) async {
        // Managed services may refuse the command.
        guard case .array(let words)? = try? await store.run("CONFIG", "GET", "maxmemory*", key: "", isReadOnly: true)
        else { return }
        let texts = words.map { $0.text ?? "" }
        func value(_ name: String) -> String? {
            texts.firstIndex(of: name).flatMap { texts.indices.contains($0 + 1) ? texts[$0 + 1] : nil }
        }
        if value("maxmemory") == "0" {
            store.configuration.report(
                .unsuitableSetting("Redis has no maxmemory, so it grows until the machine is full.")
            )
        }
        if let policy = value("maxmemory-policy"), !policy.hasPrefix("allkeys-") {
            store.configuration.report(
                .unsuitableSetting(
                    "Redis has maxmemory-policy \(policy); set it to allkeys-lfu, so that it evicts entries."
                )
            )
        }
    }

    private static func report(_ store: SharedStore, _ leases: Leases, _ name: String) async {
        var statistics = store.statistics
        statistics.leases = leases.count
        let process = ClusterStatus.Process(
            name: store.configuration.nodeName,
            reportedAt: Date(),
            statistics: statistics
        )
        guard let value = try? JSONEncoder().encode(process) else { return }
        // The next report makes up for one that fails.
        _ = try? await store.run("HSET", name, process.name, value: value, key: name)
    }

    /// Returns the processes, and removes the ones that are gone.
    func processes() async throws -> [ClusterStatus.Process] {
        let name = self.store.name("processes")
        let value = try await self.store.run("HVALS", name, key: name, isReadOnly: true)
        guard case .array(let values) = value else { return [] }
        var processes: [ClusterStatus.Process] = []
        for case .bytes(let data) in values {
            guard let process = try? JSONDecoder().decode(ClusterStatus.Process.self, from: data) else { continue }
            if -process.reportedAt.timeIntervalSinceNow < Self.patience {
                processes.append(process)
            } else {
                _ = try await self.store.run("HDEL", name, process.name, key: name)
            }
        }
        return processes.sorted { $0.name < $1.name }
    }

    func shutdown() async {
        self.owner.cancelAll()
        await self.owner.waitForAll()
        let name = self.store.name("processes")
        // A process that cannot say that it leaves is gone after a while.
        _ = try? await self.store.run("HDEL", name, self.store.configuration.nodeName, key: name)
    }
}
