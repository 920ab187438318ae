// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
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
    /// The entries in Redis that were damaged, or that another program wrote.
    public var damagedEntries = 0
    /// The loads that waited for another machine.
    public var waits = 0
    /// The loads that continued without the other machine, because they had waited long enough or too many others
    /// waited.
    public var waitsOver = 0
    /// The failures of other machines that spared a request to an origin.
    public var sharedFailures = 0
    /// The number of times that the circuit opened because Redis failed.
    public var circuitOpenings = 0
    /// Whether the circuit is open now.
    public var isCircuitOpen = false
    /// The locks that the process holds now.
    public var leases = 0
    /// The last error of Redis.
    public var lastError: String?
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
