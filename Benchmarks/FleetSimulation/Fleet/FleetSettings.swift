// SPDX-License-Identifier: Apache-2.0

/// The machines of a fleet and their limits.
///
/// Times are in seconds.
struct FleetSettings: Sendable {
    /// The things that the nodes share.
    enum Sharing: String, CaseIterable, Sendable {
        /// Each node has caches of its own only.
        case nothing = "no-shared-tier"
        /// The nodes share a tier, and each node that misses it loads.
        case cache = "shared-tier"
        /// The nodes share a tier, and a lock lets one node load each item.
        case cacheAndLocks = "single-flight"
    }

    /// How the shared tier makes room.
    enum Eviction: String, CaseIterable, Sendable {
        case leastRecentlyUsed = "lru"
        case leastFrequentlyUsed = "lfu"
    }

    /// Nodes that are lost together, and start again with empty caches.
    struct Loss: Sendable {
        var nodes: Range<Int>
        var time: Double
        var duration: Double
    }

    var nodeCount = 3
    var sharing = Sharing.cacheAndLocks
    var balancing = Balancer.Rule.roundRobin
    /// The bytes of results that each node caches.
    var localResultBytes = 256 << 20
    /// The bytes of sources that each node caches.
    var localSourceBytes = 2 << 30
    /// The longest time for which a node sends a result from its memory without the shared tier.
    var localLifetime = Double.infinity
    var sharedBytes = 32 << 30
    var sharedEviction = Eviction.leastFrequentlyUsed
    /// The time from a command to the shared tier to its answer.
    var sharedRoundTrip = 0.001
    /// The time that the origin takes for a source.
    var origin = LogNormal(median: 0.1, spread: 0.5)
    /// The time that a node takes to make a result of a source.
    var renderTime = 0.02
    /// The time for which a source, and the results of it, are fresh.
    var lifetime = 600.0
    /// The time after which the lock of a lost node is free.
    var lease = 15.0
    /// The longest time for which a node waits for another.
    ///
    /// After that it loads without the lock.
    var longestWait = 10.0
    var losses: [Loss] = []
    var seed: UInt64 = 1
}
