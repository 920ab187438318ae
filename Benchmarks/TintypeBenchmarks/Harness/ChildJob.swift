// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs one job in a new process, so that its peak memory is measured alone.
///
/// The child prints one line of JSON: `idle` (resident bytes before the job), `peak` (the maximum since then), `width`
/// and `height` of the result, and `seconds` if the child measures its own time.
enum ChildJob {
    /// The child's output.
    struct Answer: Codable, Sendable {
        let idle: Int
        let peak: Int
        let width: Int
        let height: Int
        var seconds: Double?
    }

    /// Checks the size of a thumbnail of the large images, which are 12500x8000 or 12000x8000.
    static func isThumbnail(height: Int) -> @Sendable (Answer) throws -> Void {
        { try Check.size($0.width, $0.height, is: (400, height)) }
    }

    /// A side that runs `command` once for each sample.
    static func contestant(
        _ command: [String],
        note: String?,
        check: @escaping @Sendable (Answer) throws -> Void
    ) -> Contestant {
        Contestant(counts: 1...1, note: note) { _ in
            let wall = Stopwatch(.monotonic)
            let (exit, output) = try await ChildProcess.run(command)
            let seconds = wall.seconds
            try Check.equal("the child's exit status", exit.status, 0)
            let answer = try JSONDecoder().decode(Answer.self, from: Data(output.utf8))
            try check(answer)
            return Measurement(
                wallSeconds: answer.seconds ?? seconds,
                cpuSeconds: exit.cpuSeconds,
                operations: 1,
                peakBytes: Double(answer.peak - answer.idle)
            )
        }
    }

    /// The side that runs this program's own `job`.
    static func ours(
        _ job: [String],
        note: String?,
        check: @escaping @Sendable (Answer) throws -> Void
    ) throws -> Contestant {
        self.contestant(
            [try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"), "--job"] + job,
            note: note,
            check: check
        )
    }

    /// Runs the job in the child, and prints its cost.
    static func run(_ arguments: [String]) async throws {
        switch arguments.first {
        case "large-thumbnail" where arguments.count == 2: try await TintypeLargeImage.load(arguments[1])
        case "large-thousand" where arguments.count == 2: try await TintypeLargeImage.loadThousand(arguments[1])
        case "large-scale-down" where arguments.count == 2: try await TintypeLargeImage.scaleDown(arguments[1])
        case "large-download" where arguments.count == 2: try await TintypeDownloads.meetLarge(arguments[1])
        case "bomb" where arguments.count == 2: try await TintypeBombs.meet(arguments[1])
        case "disk-open" where arguments.count == 2: try await TintypeMillionEntries.open(arguments[1])
        case "png-levels" where arguments.count == 2: try TintypeEncoding.encodeLevels(arguments[1])
        case "disk-write" where arguments.count == 5: try await TintypeDiskWriters.write(arguments)
        default: throw Options.Misuse(description: "unknown job \(arguments.joined(separator: " "))")
        }
    }

    /// Runs `work` from an idle process, and prints its peak memory.
    ///
    /// If `isTimed` is set, it also prints the time without the start of the process.
    static func measure(
        isTimed: Bool = false,
        _ work: () async throws -> (width: Int, height: Int)
    ) async throws {
        // 5 resets the peak to the memory that is resident now.
        try Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
        let idle = try self.memory("VmRSS")
        let wall = Stopwatch(.monotonic)
        let size = try await work()
        let seconds = isTimed ? wall.seconds : nil
        let peak = try self.memory("VmHWM")
        let answer = Answer(idle: idle, peak: peak, width: size.width, height: size.height, seconds: seconds)
        Console.show(String(decoding: try JSONEncoder().encode(answer), as: UTF8.self))
    }

    private static func memory(_ field: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("\(field):") }
        guard
            let kibibytes = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({
                Int($0)
            })
        else { throw Unavailable("/proc/self/status has no \(field)") }
        return kibibytes * 1024
    }
}
