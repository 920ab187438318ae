// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// Detects decode lanes that make no progress although there is work.
final class Liveness: Sendable {
    private struct State {
        var ended = -1
        var fed = 0
        var since: ContinuousClock.Instant?
    }

    /// The longest time without a finished image while there is work.
    private static let patience: Duration = .seconds(60)

    private let state = Locked(State())

    /// Compares the work with earlier calls; returns false if no image has ended for too long although sources arrived.
    ///
    /// - Parameters:
    ///   - ended: The images that were finished or that failed. Cancelled ones do not count, because clients of stuck
    ///     lanes leave.
    ///   - fed: The sources that were loaded. Without new ones, the images wait for their origins.
    ///   - active: The images that are being made or wait.
    ///   - time: The time of the call.
    /// - Returns: Whether the lanes work.
    func isAlive(ended: Int, fed: Int, active: Int, at time: ContinuousClock.Instant) -> Bool {
        self.state.withLock { state in
            guard active > 0, state.ended == ended, let since = state.since else {
                state = State(ended: ended, fed: fed, since: time)
                return true
            }
            return state.fed == fed || since.duration(to: time) < Self.patience
        }
    }
}
