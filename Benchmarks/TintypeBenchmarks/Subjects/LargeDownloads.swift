// SPDX-License-Identifier: Apache-2.0

import Foundation

/// One body of 200 MiB over loopback: how fast, and how many copies of it are held.
enum LargeDownloads {
    static let mebibytes = 200
    private static let name = "download-200MB"

    static let benchmarks = [
        Benchmark(name: name, summary: "one body of 200 MiB in memory, against curl to /dev/null") { session in
            let origin = try await session.nginx()
            let address = try origin.serveLarge("body-200MB", mebibytes: mebibytes)
            var contest = Contest()
            await contest.enterOurs { try TintypeDownloads.large(address) }
            await contest.enter("curl -o /dev/null") { curl(address) }
            try await contest.measure(session.plan.limited(to: 11))
            var memory = Contest()
            await memory.enterOurs {
                try ChildJob.ours(["large-download", address], note: "a fresh process") {
                    try Check.equal("the size of the body", $0.width, mebibytes << 20)
                }
            }
            try await memory.measure(session.plan.limited(to: 3))
            // Two copies of it.
            return contest.rows(named: name, .rate(Double(mebibytes), "MiB/s")) { _ in [.times(0.9)] }
                + contest.rows(named: name, .cpu(.milliseconds))
                + memory.rows(named: name, .peak) { _ in [.under(Double(mebibytes * 2))] }
        }
    ]

    private static func curl(_ address: String) -> Contestant {
        Contestant(counts: 1...20, note: "one process for each body, its start included") { count in
            let wall = Stopwatch(.monotonic)
            var cpuSeconds = 0.0
            for _ in 0..<count {
                let (exit, _) = try await ChildProcess.run([
                    "/usr/bin/curl", "--no-progress-meter", "--fail", "-o", "/dev/null", address,
                ])
                try Check.equal("curl's exit status", exit.status, 0)
                cpuSeconds += exit.cpuSeconds
            }
            return Measurement(wallSeconds: wall.seconds, cpuSeconds: cpuSeconds, operations: count)
        }
    }
}
