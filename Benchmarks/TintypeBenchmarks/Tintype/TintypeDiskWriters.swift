// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCaching

/// Ten writers, half of them in another process, store twenty times the limit while the folder is measured.
enum TintypeDiskWriters {
    private static let limit = 64 << 20
    private static let writersPerProcess = 5

    static func rows(_ session: Session) async throws -> [Row] {
        let folder = session.folders.temporary.appendingPathComponent("disk-limit").path
        let seconds = session.plan.rounds >= Plan.thorough.rounds ? 60 : 6
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let children = try (0..<2).map { number in
            try ChildProcess(
                [program, "--job", "disk-write", folder, "\(self.limit)", "\(seconds)", "\(number)"],
                output: .inherited
            )
        }
        let largest = try await BlockingLane.shared.run { () -> (Int, Int, Int) in
            let watch = Stopwatch(.monotonic)
            var (size, blocks, samples) = (0, 0, 0)
            while watch.seconds < Double(seconds) {
                let taken = self.measure(folder)
                size = max(size, taken.size)
                blocks = max(blocks, taken.blocks)
                samples += 1
            }
            return (size, blocks, samples)
        }
        let exits = children.map { $0.wait() }
        try Check.equal("the writers' exit status", exits.map(\.status), [0, 0])
        let percent = { (bytes: Int) in Summary([Double(bytes) / Double(self.limit) * 100]) }
        let note = "2 processes of 5 tasks, \(seconds) s, limit \(self.limit) bytes, \(largest.2) samples"
        return [
            Row(
                name: "disk-limit",
                metric: .plain("largest size", "% of the limit", lowerIsBetter: true),
                ours: percent(largest.0),
                bars: [.atMost(101)],
                notes: [note]
            ),
            Row(
                name: "disk-limit",
                metric: .plain("largest allocation", "% of the limit", lowerIsBetter: true),
                ours: percent(largest.1),
                notes: ["blocks of the files, by st_blocks; the limit is about bytes"]
            ),
        ]
    }

    /// The child: five tasks that store as fast as they can.
    static func write(_ arguments: [String]) async throws {
        guard let limit = Int(arguments[2]), let seconds = Double(arguments[3]) else { return }
        let cache = DiskCache(
            DiskCache.Configuration(directory: URL(fileURLWithPath: arguments[1]), sizeLimit: limit)
        )
        let watch = Stopwatch(.monotonic)
        // Twenty times as many keys as fit.
        let keyCount = 20 * limit / DiskTier.byteCount
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<self.writersPerProcess {
                group.addTask {
                    while watch.seconds < seconds {
                        let key = CacheKey("key \(Int.random(in: 0..<keyCount))")
                        let count = Int.random(in: 1_000...2 * DiskTier.byteCount - 1_000)
                        let body = Data(repeating: 7, count: count)
                        try await cache.store(body, metadata: EntryMetadata(), for: key)
                    }
                }
            }
            try await group.waitForAll()
        }
        await cache.shutdown()
    }

    /// Returns the total size of all files in the folder, including unfinished files and the catalogue.
    private static func measure(_ folder: String) -> (size: Int, blocks: Int) {
        var (size, blocks) = (0, 0)
        for name in (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? [] {
            var status = stat()
            guard lstat("\(folder)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            size += Int(status.st_size)
            blocks += Int(status.st_blocks) * 512
        }
        return (size, blocks)
    }
}
