// SPDX-License-Identifier: Apache-2.0

/// A phase of a rendering whose time is measured.
package enum RenderingPhase: Sendable {
    /// Waiting until the memory is free.
    case gate
    /// Waiting for a lane.
    case lane
    case decode, transform, encode
}

/// Receives the time that each phase of a rendering took.
package protocol RenderingObserver: Sendable {
    /// Reports a phase that lasted from `start` until now.
    func didEnd(_ phase: RenderingPhase, since start: ContinuousClock.Instant)
}

extension RenderingObserver {
    /// Runs `work` and reports its time, even if it fails.
    func measuring<Result, Failure: Error>(
        _ phase: RenderingPhase,
        _ work: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let start = ContinuousClock.now
        defer { self.didEnd(phase, since: start) }
        return try work()
    }
}
