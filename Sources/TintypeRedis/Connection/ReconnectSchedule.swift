// SPDX-License-Identifier: Apache-2.0

/// The pauses between attempts: each failure doubles the pause, and chance shortens it by up to a half.
///
/// Chance keeps many clients from reconnecting to a restarted server at the same moment.
struct ReconnectSchedule: Sendable {
    /// The pause after the first failure, in nanoseconds.
    let first: Int64
    /// The longest pause, in nanoseconds.
    let longest: Int64
    private(set) var failureCount = 0

    init(_ configuration: RedisConfiguration) {
        // Without a pause, a turn of the loop could try again and again.
        self.first = max(1_000_000, configuration.firstReconnectDelay.nanoseconds)
        self.longest = max(self.first, configuration.longestReconnectDelay.nanoseconds)
    }

    /// Returns the pause after a further failure; `chance` is at least 0 and less than 1.
    mutating func pauseAfterFailure(chance: Double = .random(in: 0..<1)) -> Int64 {
        let doublings = min(self.failureCount, 30)
        self.failureCount += 1
        let (doubled, isTooLong) = self.first.multipliedReportingOverflow(by: 1 << doublings)
        let pause = isTooLong ? self.longest : min(doubled, self.longest)
        return pause - Int64(Double(pause) / 2 * chance)
    }

    /// Starts again with the first pause.
    mutating func reset() {
        self.failureCount = 0
    }
}
