// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeConcurrency

/// Notices decode lanes that make no progress although there is work.
final class Liveness: Sendable {
    private struct State {
        var finished = -1
        var since: ContinuousClock.Instant?
    }

    /// The longest time without an end of any work while there is some.
    private static let patience: Duration = .seconds(60)

    private let state = Locked(State())

    /// Takes a look at the work; returns false if nothing has ended for too long although requests wait.
    func isAlive(finished: Int, waiting: Int, at time: ContinuousClock.Instant) -> Bool {
        self.state.withLock { state in
            guard waiting > 0, state.finished == finished, let since = state.since else {
                state.finished = finished
                state.since = time
                return true
            }
            return since.duration(to: time) < Self.patience
        }
    }
}
