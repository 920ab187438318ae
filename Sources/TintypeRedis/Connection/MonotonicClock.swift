// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The clock of deadlines, in nanoseconds since the start of the system.
enum MonotonicClock {
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

extension Duration {
    /// The duration in nanoseconds, between 0 and 30 years, so that sums with moments cannot overflow.
    var nanoseconds: Int64 {
        let limited = min(max(self, .zero), .seconds(1_000_000_000)).components
        return limited.seconds * 1_000_000_000 + limited.attoseconds / 1_000_000_000
    }
}
