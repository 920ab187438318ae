// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Loads of uncached images from nginx through the loader, 64 at once.
enum ColdLoads {
    /// An image that the origin serves, under as many addresses as necessary.
    struct Target: Sendable {
        let address: String
        let byteCount: Int
        let width: Int
        let height: Int
    }

    static let concurrency = 64

    static let benchmarks = [("2kB", 64), ("50kB", nil)].map { (bodyName: String, side: Int?) in
        Benchmark(
            name: "cold-load-\(bodyName)",
            summary:
                "\(bodyName) images that are nowhere yet, \(concurrency) at once, against bare download and decode"
        ) { session in
            let target = try await TintypeColdLoads.target(bodyName, side: side, session)
            var contest = Contest()
            await contest.enterOurs { TintypeColdLoads.loader(target) }
            await contest.enter("download + decode") { TintypeColdLoads.bare(target) }
            try await contest.measure(session.plan.limited(to: 11))
            return contest.rows(named: "cold-load-\(bodyName)", .rate(1, "images/s"))
                + contest.rows(named: "cold-load-\(bodyName)", .cpu(.microseconds))
        }
    }
}
