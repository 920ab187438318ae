/// How long and how often to measure.
struct Plan: Sendable {
    /// Samples of each side.
    let rounds: Int
    /// How long one sample should last.
    let sampleSeconds: Double

    static let thorough = Plan(rounds: 21, sampleSeconds: 0.25)
    static let quick = Plan(rounds: 5, sampleSeconds: 0.05)

    /// The same with fewer rounds, for work that takes long.
    func limited(to rounds: Int) -> Plan {
        Plan(rounds: min(self.rounds, rounds), sampleSeconds: self.sampleSeconds)
    }
}
