// SPDX-License-Identifier: Apache-2.0

/// The counts of a stretch of time.
struct FleetCounts: Equatable, Sendable {
    var requests = 0
    /// Requests that a node answered from its memory.
    var localHits = 0
    /// Requests that joined a load of their node.
    var joins = 0
    /// Requests whose node was lost before it answered, or that found no node.
    var lost = 0
    /// Items that nodes looked up in the shared tier.
    var lookUps = 0
    /// Look-ups that found the item.
    var sharedHits = 0
    /// Requests for a lock.
    var lockRequests = 0
    /// Items that nodes sent to the shared tier.
    var stores = 0
    /// Waits for another node that took too long.
    var longWaits = 0
    /// Sources that nodes requested from the origin.
    var originRequests = 0
    /// Requests to the origin for a source that a node had requested less than a lifetime before.
    var duplicates = 0
    /// The most requests to the origin for one source at the same time.
    var mostAtOnce = 0
    /// Results that nodes made.
    var renders = 0
    /// The bytes of sources from the origin.
    var originBytes = 0
    /// The bytes from the shared tier to the nodes.
    var sharedBytes = 0
    /// Requests by node.
    var requestsByNode: [Int]

    init(nodeCount: Int) {
        self.requestsByNode = [Int](repeating: 0, count: nodeCount)
    }

    /// All commands to the shared tier.
    var sharedRequests: Int { self.lookUps + self.lockRequests + self.stores }

    /// A count for each 1,000 requests.
    func perThousand(_ count: Int) -> Double { 1_000 * Double(count) / Double(max(1, self.requests)) }

    /// The share of requests that a node answered from its memory.
    var localHitRatio: Double { Double(self.localHits) / Double(max(1, self.requests)) }

    /// The share of requests for which no result had to be made.
    var hitRatio: Double { 1 - Double(self.renders) / Double(max(1, self.requests)) }

    /// The requests of the busiest node as a multiple of the mean.
    var busiestNode: Double {
        Double(self.requestsByNode.max() ?? 0) * Double(self.requestsByNode.count) / Double(max(1, self.requests))
    }
}
