// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Small files that declare huge images or expand when they are decompressed.
///
/// A new process opens each file and runs until the error.
enum Bombs {
    private static let files = [
        "16383x16383.png", "decompression_bomb.gif", "issue-101-infinite-empty-loop.gif", "max_size.jpg",
        "png_decompression_dos.png",
    ]

    static let benchmarks = files.map { file in
        let name = "bomb-\(file)"
        return Benchmark(name: name, summary: "bombs/\(file): time and peak memory until it is refused") { session in
            let path = try session.photographs.exactly("bombs/\(file)")
            var contest = Contest()
            await contest.enterOurs { try TintypeBombs.contestant(path) }
            try await contest.measure(session.plan.limited(to: 5))
            return contest.rows(named: name, .wall(.milliseconds)) { _ in [.under(50)] }
                + contest.rows(named: name, .peak) { _ in [.under(10)] }
        }
    }
}
