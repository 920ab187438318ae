// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A moment of the loop's clock, which also counts while the system sleeps, as `ContinuousClock` does.
///
/// The size of `ContinuousClock.Instant` is known to the standard library alone: each value that holds one is copied by
/// the runtime, field by field, and phases of transfers hold several.
struct LoopInstant: Hashable, Comparable, Sendable {
    private var nanoseconds: Int64

    static var now: LoopInstant {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return LoopInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The moment after a duration; what is not within three hundred years is never.
    static func + (start: LoopInstant, duration: Duration) -> LoopInstant {
        let (seconds, attoseconds) = duration.components
        let (scaled, isTooLarge) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (total, isOver) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        let (sum, isNever) = start.nanoseconds.addingReportingOverflow(total)
        guard !isTooLarge, !isOver, !isNever else { return LoopInstant(nanoseconds: seconds < 0 ? .min : .max) }
        return LoopInstant(nanoseconds: sum)
    }

    static func += (instant: inout LoopInstant, duration: Duration) {
        instant = instant + duration
    }

    static func - (end: LoopInstant, duration: Duration) -> LoopInstant {
        end + (.zero - duration)
    }

    static func - (end: LoopInstant, start: LoopInstant) -> Duration {
        let (difference, isOver) = end.nanoseconds.subtractingReportingOverflow(start.nanoseconds)
        return .nanoseconds(isOver ? (end > start ? .max : .min) : difference)
    }

    static func < (left: LoopInstant, right: LoopInstant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The earlier of two moments, of which each may be missing.
    static func earlier(_ left: LoopInstant?, _ right: LoopInstant?) -> LoopInstant? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }
}

extension Duration {
    /// The duration in milliseconds, rounded up, within what a C `int` holds.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = self.components
        let limit = Int64(Int32.max)
        guard seconds < limit / 1_000 else { return Int(limit) }
        return Int(max(0, seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}
