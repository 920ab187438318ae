// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The possible databases for the index of the disk tier, and the tier's own catalogue.
///
/// Each one runs in a small C program, so that no side pays for a binding.
enum IndexDatabases {
    private struct Answer: Decodable {
        let open_ms: Double
        let find_ns: Double
        let miss_ns: Double
        let touch_ns: Double
        let store_ns: Double
        let evict_ns: Double
        let file_mib: Double
        let resident_mib: Double
    }

    static func rows(_ count: Int, _ session: Session) async throws -> [Row] {
        let program = session.folders.temporary.appendingPathComponent("index-databases").path
        let source = session.folders.benchmarks.appendingPathComponent("peers/index_databases.c").path
        let compile = ["/usr/bin/env", "cc", "-O2", "-o", program, source, "-lsqlite3", "-llmdb"]
        guard try await ChildProcess.run(compile).exit.status == 0 else {
            throw Unavailable("index_databases.c does not build (apt install gcc libsqlite3-dev liblmdb-dev)")
        }
        var rows: [Row] = []
        for index in ["sqlite-normal", "sqlite-off", "lmdb-nosync", "table"] {
            let folder = session.folders.temporary.appendingPathComponent("index-\(index)").path
            let (exit, output) = try await ChildProcess.run([program, index, folder, "\(count)"])
            try Check.equal("the program's exit status", exit.status, 0)
            let answer = try JSONDecoder().decode(Answer.self, from: Data(output.utf8))
            let figures: [(String, String, Double)] = [
                ("open", "ms", answer.open_ms), ("find", "ns", answer.find_ns), ("miss", "ns", answer.miss_ns),
                ("touch", "ns", answer.touch_ns), ("store", "ns", answer.store_ns), ("evict", "ns", answer.evict_ns),
                ("file", "MiB", answer.file_mib), ("resident", "MiB", answer.resident_mib),
            ]
            rows += figures.map { what, unit, figure in
                Row(
                    name: "disk-index-million \(index)",
                    metric: .plain(what, unit, lowerIsBetter: true),
                    ours: Summary([figure]),
                    notes: ["\(count) records; SQLite and LMDB commit each change, as a store has to"]
                )
            }
        }
        return rows
    }
}
