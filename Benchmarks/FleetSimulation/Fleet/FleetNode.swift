// SPDX-License-Identifier: Apache-2.0

/// A server of the fleet: its caches, and the items that it loads at the moment.
struct FleetNode: Sendable {
    /// A load of an item that all requests of this node for it share.
    struct Flight: Sendable {
        enum Phase: Sendable {
            case active
            /// Another node has the lock.
            case waiting
        }

        let serial: Int
        var phase = Phase.active
        /// The requests that this flight answers.
        var requests = 0
        /// The results that wait for this source.
        var dependents: [Int] = []
        /// The expiry of the source that a result is made of.
        var sourceExpiry = 0.0
    }

    var results: LeastRecentlyUsedCache
    var sources: LeastRecentlyUsedCache
    var flights: [Int: Flight] = [:]
    /// The number of times that the node was lost.
    var generation = 0

    init(_ settings: FleetSettings) {
        self.results = LeastRecentlyUsedCache(capacity: settings.localResultBytes)
        self.sources = LeastRecentlyUsedCache(capacity: settings.localSourceBytes)
    }
}
