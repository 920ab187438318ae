// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Loads that are answered from the disk tier, the memory tier being off.
enum DiskHits {
    static let benchmarks = [
        Benchmark(name: "disk-hit-data", summary: "the bytes of a 50 kB JPEG from a warm disk tier") { session in
            let path = try await session.photographs.small(session)
            var contest = Contest()
            await contest.enterOurs { try await TintypeDiskHits.bytes(of: path, session) }
            await contest.enter("Data(contentsOf:)") { Self.plainRead(path) }
            try await contest.measure(session.plan)
            return contest.rows(named: "disk-hit-data", .wall(.microseconds))
                + contest.rows(named: "disk-hit-data", .cpu(.microseconds))
        },
        Benchmark(name: "encoded-disk-hit", summary: "encoded(request, as:) of what the disk tier has, memory tier off")
        {
            session in
            let path = try await session.photographs.small(session)
            var contest = Contest()
            await contest.enterOurs { try await TintypeDiskHits.encoded(of: path, session) }
            await contest.enter("Data(contentsOf:)") { try await TintypeDiskHits.plainReadOfEncoded(path, session) }
            try await contest.measure(session.plan)
            return contest.rows(named: "encoded-disk-hit", .wall(.microseconds)) { _ in [.times(0.7)] }
                + contest.rows(named: "encoded-disk-hit", .cpu(.microseconds))
        },
        Benchmark(name: "disk-hit-image", summary: "the image of a 50 kB JPEG from a warm disk tier, decoded") {
            session in
            let path = try await session.photographs.small(session)
            var contest = Contest()
            await contest.enterOurs { try await TintypeDiskHits.image(of: path, session) }
            await contest.enter("Pillow file") { try await Self.pillowRead(path, session.python()) }
            try await contest.measure(session.plan)
            return contest.rows(named: "disk-hit-image", .wall(.microseconds))
                + contest.rows(named: "disk-hit-image", .cpu(.microseconds))
        },
    ]

    /// Measures reading without any cache: a lower bound, not a rival.
    static func plainRead(_ path: String) -> Contestant {
        Contestant(note: "a plain read of the file: no key, no checksum, no metadata") { count in
            let url = URL(fileURLWithPath: path)
            var bytes = 0
            let measurement = try await Measurement.of(operations: count) {
                for _ in 0..<count { bytes += try Data(contentsOf: url).count }
            }
            try Check.equal("the number of bytes", bytes > 0 && bytes.isMultiple(of: count), true)
            return measurement
        }
    }

    private static func pillowRead(_ path: String, _ worker: PythonWorker) -> Contestant {
        Contestant(note: "reads the file and decodes it: no key, no checksum, no metadata") { count in
            let answer = try await worker.ask(
                PythonWorker.Request(do: "read-and-decode", path: path, count: count)
            )
            return try answer.measurement(count) { width, _ in try Check.equal("the width", width, 800) }
        }
    }
}
