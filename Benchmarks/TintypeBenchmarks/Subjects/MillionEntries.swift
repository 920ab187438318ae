// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Measures how soon a cache folder of a million entries is open, and the cost of the databases that could have been
/// its index.
enum MillionEntries {
    static let benchmarks = [
        Benchmark(name: "disk-open-million", summary: "a folder of 1,000,000 entries: open, count, hit and miss") {
            session in
            let count = MillionEntries.count(session)
            let folder = try await TintypeMillionEntries.folder(count, session)
            var contest = Contest()
            await contest.enterOurs {
                try ChildJob.ours(["disk-open", folder], note: "\(count) entries; a fresh process") { answer in
                    try Check.equal("the entries", answer.width, count)
                    try Check.equal("the hits and misses", answer.height, 2)
                }
            }
            try await contest.measure(session.plan.limited(to: 5))
            let isWhole = count == 1_000_000
            return contest.rows(named: "disk-open-million", .wall(.milliseconds)) { _ in isWhole ? [.under(50)] : [] }
                + contest.rows(named: "disk-open-million", .peak) { _ in isWhole ? [.under(100)] : [] }
        },
        Benchmark(name: "disk-index-million", summary: "1,000,000 records in the catalogue, SQLite and LMDB") {
            session in try await IndexDatabases.rows(MillionEntries.count(session), session)
        },
    ]

    private static func count(_ session: Session) -> Int {
        session.plan.rounds >= Plan.thorough.rounds ? 1_000_000 : 100_000
    }
}
