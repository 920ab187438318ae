// SPDX-License-Identifier: Apache-2.0

/// The cost of one sample of one side.
struct Measurement: Sendable {
    /// Time on the clock, in seconds, for all operations of the sample.
    let wallSeconds: Double
    /// Processor time of every thread that worked on it, in seconds.
    let cpuSeconds: Double
    /// How often the operation was done.
    let operations: Int
    /// Peak memory above the idle process, in bytes, or `nil` if it was not measured.
    var peakBytes: Double?
    /// The time that 99 of 100 operations stay below, in milliseconds, or `nil` if it was not measured.
    var tailMilliseconds: Double?
}

extension Measurement {
    /// Runs `body`, which performs `operations` operations, and measures its times.
    ///
    /// The processor time is that of this whole process.
    nonisolated(nonsending) static func of(
        operations: Int,
        _ body: nonisolated(nonsending) () async throws -> Void
    ) async rethrows -> Measurement {
        let cpu = Stopwatch(.process)
        let wall = Stopwatch(.monotonic)
        try await body()
        let wallSeconds = wall.seconds
        return Measurement(wallSeconds: wallSeconds, cpuSeconds: cpu.seconds, operations: operations)
    }
}
