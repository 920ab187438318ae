// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeRedis

/// Reports the counts of this process to the others.
final class Heartbeat: Sendable {
    private static let period = Duration.seconds(5)
    /// The seconds without a report after which a process counts as gone.
    private static let patience = 30.0

    private let store: SharedStore
    private let leases: Leases
    private let owner = TaskOwner()

    init(_ store: SharedStore, _ leases: Leases) {
        (self.store, self.leases) = (store, leases)
    }

    /// Reports until ``shutdown()``, and checks the settings of Redis once it answers.
    func begin() {
        let (store, leases) = (self.store, self.leases)
        self.owner.run("heartbeat of the cluster") {
            var hasChecked = false
            var beats = 0
            while !Task.isCancelled {
                let isThere = await Self.report(store, leases)
                beats += 1
                // A full Redis accepts no report.
                if !hasChecked, isThere || beats == 3 {
                    hasChecked = true
                    await Self.checkSettings(store)
                    // Processes that were killed and started again have left their old names behind.
                    _ = try? await Self.processes(store)
                }
                try? await Task.sleep(for: Self.period)
            }
        }
    }

    /// The name of the hash that has the reports.
    private static func name(_ store: SharedStore) -> String { store.name("processes") }

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

    /// Reports once; returns whether Redis has accepted the report.
    private static func report(_ store: SharedStore, _ leases: Leases) async -> Bool {
        let process = ClusterStatus.Process(
            name: store.configuration.nodeName,
            reportedAt: Date(),
            statistics: store.statistics(leases)
        )
        guard let value = try? JSONEncoder().encode(process) else { return false }
        let name = self.name(store)
        // The next report makes up for one that fails.
        return (try? await store.run("HSET", name, process.name, value: value, key: name)) != nil
    }

    /// Returns the processes, and removes the ones that are gone.
    static func processes(_ store: SharedStore) async throws -> [ClusterStatus.Process] {
        let name = self.name(store)
        let value = try await store.run("HVALS", name, key: name, isReadOnly: true)
        guard case .array(let values) = value else { return [] }
        var processes: [ClusterStatus.Process] = []
        for case .bytes(let data) in values {
            guard let process = try? JSONDecoder().decode(ClusterStatus.Process.self, from: data) else { continue }
            if -process.reportedAt.timeIntervalSinceNow < Self.patience {
                processes.append(process)
            } else {
                // A Redis that accepts no writes still lists the processes.
                _ = try? await store.run("HDEL", name, process.name, key: name)
            }
        }
        return processes.sorted { $0.name < $1.name }
    }

    func shutdown() async {
        self.owner.cancelAll()
        await self.owner.waitForAll()
        let name = Self.name(self.store)
        // If this fails, the others take the process for gone after a while.
        _ = try? await self.store.run("HDEL", name, self.store.configuration.nodeName, key: name)
    }
}
