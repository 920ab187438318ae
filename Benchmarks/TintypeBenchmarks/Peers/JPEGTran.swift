// SPDX-License-Identifier: Apache-2.0

import Foundation

/// libjpeg-turbo's own program for changes without loss.
enum JPEGTran {
    static let name = "jpegtran"
    private static let tool = "/usr/bin/jpegtran"

    /// Changes the file at `path`, one process each time.
    static func contestant(_ options: [String], _ path: String) throws -> Contestant {
        let command = try self.command(options + ["-copy", "all"], path, to: "/dev/null")
        return Contestant(note: "its start, and reading the file, included") { count in
            let wall = Stopwatch(.monotonic)
            var cpuSeconds = 0.0
            for _ in 0..<count {
                let (exit, _) = try await ChildProcess.run(command)
                try Check.equal("jpegtran's exit status", exit.status, 0)
                cpuSeconds += exit.cpuSeconds
            }
            return Measurement(wallSeconds: wall.seconds, cpuSeconds: cpuSeconds, operations: count)
        }
    }

    /// Returns the size of the result in bytes, without metadata.
    static func size(_ options: [String], _ path: String) async throws -> Int {
        let target = FileManager.default.temporaryDirectory.appending(path: "jpegtran-\(UUID().uuidString).jpg")
        defer { try? FileManager.default.removeItem(at: target) }
        try await self.write(options + ["-copy", "none"], path, to: target.path)
        return try Data(contentsOf: target).count
    }

    /// Changes the file at `path` once.
    static func write(_ options: [String], _ path: String, to target: String) async throws {
        let (exit, _) = try await ChildProcess.run(self.command(options, path, to: target))
        try Check.equal("jpegtran's exit status", exit.status, 0)
    }

    private static func command(_ options: [String], _ path: String, to target: String) throws -> [String] {
        guard FileManager.default.isExecutableFile(atPath: self.tool) else {
            throw Unavailable("there is no \(self.tool) (apt install libjpeg-turbo-progs)")
        }
        return [self.tool] + options + ["-outfile", target, path]
    }
}
