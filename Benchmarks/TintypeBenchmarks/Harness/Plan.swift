/// How long and how often to measure.
struct Plan: Sendable {
    /// Samples of each side.
    let rounds: Int
    /// How long one sample should last.
    let sampleSeconds: Double

    static let thorough = Plan(rounds: 21, sampleSeconds: 0.25)
    static let quick = Plan(rounds: 5, sampleSeconds: 0.05)

    /// Ten times as many samples of 2 ms, for work of nanoseconds on one thread.
    ///
    /// Such a sample mostly fits between two moments at which the scheduler gives the processor
    /// to another process, so the median is that of an undisturbed thread even on a busy machine.
    var fine: Plan { Plan(rounds: self.rounds * 10, sampleSeconds: 0.002) }

    /// The same with fewer rounds, for work that takes long.
    func limited(to rounds: Int) -> Plan {
        Plan(rounds: min(self.rounds, rounds), sampleSeconds: self.sampleSeconds)
    }
}
