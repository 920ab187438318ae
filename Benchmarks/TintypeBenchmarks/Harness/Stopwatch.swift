// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Seconds since its creation, by one of the system's clocks.
struct Stopwatch: Sendable {
    /// The clocks for the figures.
    enum Clock: Sendable {
        /// `CLOCK_MONOTONIC`: time as it passes.
        case monotonic
        /// `CLOCK_PROCESS_CPUTIME_ID`: processor time of all threads of this process.
        case process

        fileprivate var nanoseconds: Int64 {
            var time = timespec()
            switch self {
            case .monotonic: clock_gettime(CLOCK_MONOTONIC, &time)
            case .process: clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
            }
            return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        }
    }

    private let clock: Clock
    private let start: Int64

    /// Starts now.
    init(_ clock: Clock) {
        self.clock = clock
        self.start = clock.nanoseconds
    }

    /// The seconds since the start.
    var seconds: Double { Double(self.clock.nanoseconds - self.start) / 1e9 }
}
