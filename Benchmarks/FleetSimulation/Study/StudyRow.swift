// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The figures of one fleet: a line of the table.
struct StudyRow: Sendable {
    static let header = [
        "nodes", "sharing", "balancing", "requests", "origin_requests", "origin_per_1000", "duplicates_per_1000",
        "shared_per_1000", "look_ups_per_1000", "lock_requests_per_1000", "stores_per_1000", "renders_per_1000",
        "local_hit_ratio", "hit_ratio", "most_at_once", "busiest_node", "lost", "long_waits", "origin_mebibytes",
        "shared_mebibytes_read", "shared_mebibytes_stored", "shared_evictions", "first_origin_requests",
        "first_duplicates", "first_most_at_once",
    ]

    let settings: FleetSettings
    /// The counts of the seconds after the start, when all caches are empty.
    let first: FleetCounts
    let counts: FleetCounts
    let outcome: Simulation.Outcome

    /// The values in the order of the header.
    var fields: [String] {
        let counts = self.counts
        return [
            "\(self.settings.nodeCount)", self.settings.sharing.rawValue, self.settings.balancing.rawValue,
            "\(counts.requests)", "\(counts.originRequests)",
            Self.text(counts.perThousand(counts.originRequests)), Self.text(counts.perThousand(counts.duplicates)),
            Self.text(counts.perThousand(counts.sharedRequests)), Self.text(counts.perThousand(counts.lookUps)),
            Self.text(counts.perThousand(counts.lockRequests)), Self.text(counts.perThousand(counts.stores)),
            Self.text(counts.perThousand(counts.renders)), Self.text(counts.localHitRatio, digits: 4),
            Self.text(counts.hitRatio, digits: 4), "\(counts.mostAtOnce)", Self.text(counts.busiestNode),
            "\(counts.lost)", "\(counts.longWaits)", Self.mebibytes(counts.originBytes),
            Self.mebibytes(counts.sharedBytes), Self.mebibytes(self.outcome.mostSharedBytes),
            "\(self.outcome.sharedEvictions)", "\(self.first.originRequests)", "\(self.first.duplicates)",
            "\(self.first.mostAtOnce)",
        ]
    }

    private static func text(_ value: Double, digits: Int = 2) -> String {
        String(format: "%.\(digits)f", value)
    }

    private static func mebibytes(_ bytes: Int) -> String { "\(bytes >> 20)" }
}
