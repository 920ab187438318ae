// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// Detects decode lanes that make no progress although there is work.
final class Liveness: Sendable {
    private struct State {
        var ended = -1
        var since: ContinuousClock.Instant?
    }

    /// The longest time that may pass without the end of a job while there is work.
    private static let patience: Duration = .seconds(60)

    private let state = Locked(State())

    /// Compares the work with earlier calls, and returns false if no job has ended for too long although there is work.
    ///
    /// - Parameters:
    ///   - ended: The jobs that have ended on lanes, including cancelled ones.
    ///   - active: The jobs that run, or wait for memory or a lane. Loads that wait for their origins do not count.
    ///   - time: The time of the call.
    /// - Returns: Whether the lanes work.
    func isAlive(ended: Int, active: Int, at time: ContinuousClock.Instant) -> Bool {
        self.state.withLock { state in
            guard active > 0, state.ended == ended, let since = state.since else {
                state = State(ended: ended, since: time)
                return true
            }
            return since.duration(to: time) < Self.patience
        }
    }
}
