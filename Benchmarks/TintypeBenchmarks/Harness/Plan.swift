// SPDX-License-Identifier: Apache-2.0

/// How long and how often to measure.
struct Plan: Sendable {
    /// Samples of each side.
    let rounds: Int
    /// How long one sample should last.
    let sampleSeconds: Double

    static let thorough = Plan(rounds: 21, sampleSeconds: 0.25)
    static let quick = Plan(rounds: 5, sampleSeconds: 0.05)

    /// A plan with ten times as many samples, of 2 ms each, for single-threaded operations that take nanoseconds.
    ///
    /// The scheduler seldom interrupts so short a sample, so the median is undisturbed even on a busy machine.
    var fine: Plan { Plan(rounds: self.rounds * 10, sampleSeconds: 0.002) }

    /// A plan with few samples of a second, for requests to a server.
    var coarse: Plan { Plan(rounds: min(self.rounds, 7), sampleSeconds: self.sampleSeconds * 4) }

    /// Returns the same plan with fewer rounds, for long operations.
    func limited(to rounds: Int) -> Plan {
        Plan(rounds: min(self.rounds, rounds), sampleSeconds: self.sampleSeconds)
    }
}
