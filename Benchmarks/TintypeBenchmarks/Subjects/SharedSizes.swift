// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Requests ten sizes of one photograph of 12 megapixels at once, from one address and from ten separate ones.
enum SharedSizes {
    static let sides = Array(stride(from: 100, through: 1_000, by: 100))

    static let benchmarks = [
        Benchmark(name: "shared-sizes-12MP", summary: "ten sizes of one JPEG at once, against ten separate loads") {
            session in
            let target = try await TintypeColdLoads.target(.telephone, session)
            var contest = Contest()
            await contest.enterOurs { TintypeSharedSizes.contestant(target, isShared: true) }
            await contest.enter("tintype, ten loads") { TintypeSharedSizes.contestant(target, isShared: false) }
            try await contest.measure(session.plan.limited(to: 11))
            return contest.rows(named: "shared-sizes-12MP", .cpu(.milliseconds))
                + contest.rows(named: "shared-sizes-12MP", .wall(.milliseconds))
        }
    ]
}
