// SPDX-License-Identifier: Apache-2.0

/// Decides whether to call the shared store, from the results of earlier calls.
///
/// A circuit breaker after M. Nygard, *Release It!*: it opens after a few failures in a row, and lets one call through
/// after a pause, which doubles with each failure.
struct Circuit: Sendable {
    private enum State {
        case closed(failureCount: Int)
        case open(until: ContinuousClock.Instant, pause: Duration)
        /// One call tries the store; the others are refused.
        case probing(pause: Duration)
    }

    static let failureLimit = 3
    static let shortestPause = Duration.milliseconds(250)
    static let longestPause = Duration.seconds(4)

    private var state = State.closed(failureCount: 0)

    /// Whether calls are refused.
    var isOpen: Bool {
        if case .closed = self.state { false } else { true }
    }

    /// Whether a call would be refused now, because the pause is not over or because another call tries the store.
    func isRefusing(at now: ContinuousClock.Instant) -> Bool {
        switch self.state {
        case .closed: false
        case .open(let until, _): now < until
        case .probing: true
        }
    }

    /// Returns whether a call may begin.
    ///
    /// The caller must report the result of a call that may.
    mutating func admits(at now: ContinuousClock.Instant) -> Bool {
        switch self.state {
        case .closed: return true
        case .open(let until, let pause):
            guard now >= until else { return false }
            self.state = .probing(pause: pause)
            return true
        case .probing: return false
        }
    }

    /// Reports a reply of the store; returns true if this closed the circuit.
    mutating func succeed() -> Bool {
        let wasOpen = self.isOpen
        self.state = .closed(failureCount: 0)
        return wasOpen
    }

    /// Reports a call without a reply; returns true if this opened the circuit.
    mutating func fail(at now: ContinuousClock.Instant) -> Bool {
        switch self.state {
        case .closed(let count) where count + 1 < Self.failureLimit:
            self.state = .closed(failureCount: count + 1)
            return false
        case .closed:
            self.state = .open(until: now + Self.shortestPause, pause: Self.shortestPause)
            return true
        case .probing(let pause):
            let longer = min(pause * 2, Self.longestPause)
            self.state = .open(until: now + longer, pause: longer)
            return false
        // A call that began before the circuit opened.
        case .open: return false
        }
    }

    /// Reports a call that was cancelled, which says nothing about the store.
    mutating func abandon(at now: ContinuousClock.Instant) {
        if case .probing(let pause) = self.state { self.state = .open(until: now, pause: pause) }
    }
}
