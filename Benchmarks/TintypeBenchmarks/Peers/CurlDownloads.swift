// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs the `curl` command: one process with a list of addresses.
///
/// The sample includes its start, some 10 ms. Bodies go to `/dev/null`, while the other sides store them in memory.
struct CurlDownloads: Sendable {
    private let target: Downloads.Target
    private let folder: URL

    init(_ target: Downloads.Target, _ folders: Folders) {
        self.target = target
        self.folder = folders.temporary
    }

    /// Ready to be measured.
    var contestant: Contestant {
        let note = self.isParallel ? "--parallel-immediate --parallel-max \(self.target.load.concurrency)" : "serial"
        return Contestant(counts: self.target.load.leastCount...100_000, note: "\(note), start of the process included")
        { count in
            try await self.run(count)
        }
    }

    private var isParallel: Bool { self.target.load.concurrency > 1 }

    private func run(_ count: Int) async throws -> Measurement {
        let list = self.folder.appendingPathComponent("curl-\(self.target.load.name)-\(count)").path
        if !FileManager.default.fileExists(atPath: list) { try self.write(count, to: list) }
        var command = ["/usr/bin/curl", "--no-progress-meter", "--fail", "--config", list]
        if self.target.load.isSecure, !self.target.load.needsConnections {
            command += ["--cacert", self.target.origin.certificate.path]
        }
        if self.isParallel {
            command += ["--parallel", "--parallel-immediate", "--parallel-max", "\(self.target.load.concurrency)"]
        }
        let wall = Stopwatch(.monotonic)
        let (exit, output) = try await ChildProcess.run(command)
        let seconds = wall.seconds
        try Check.equal("curl's exit status", exit.status, 0)
        // One line for each transfer: the size of the body.
        let sizes = output.split(separator: "\n")
        try Check.equal("the number of bodies", sizes.count, count)
        try Check.equal("the size of a body", sizes.first.map(String.init), "\(self.target.load.bodySize)")
        return Measurement(wallSeconds: seconds, cpuSeconds: exit.cpuSeconds, operations: count)
    }

    private func write(_ count: Int, to path: String) throws {
        let addresses = self.target.addresses
        let entries = (0..<count).map {
            "url = \"\(addresses[$0 % addresses.count])\"\noutput = \"/dev/null\"\n"
        }
        let settings = "write-out = \"%{size_download}\\n\"\n"
        try (settings + entries.joined()).write(toFile: path, atomically: true, encoding: .utf8)
    }
}
