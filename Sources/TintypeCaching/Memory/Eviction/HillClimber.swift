/// Looks for the best size of a window: goes on while the hit ratio rises, turns round when it falls.
///
/// Source: Einziger, Eytan, Friedman and Manes, "Adaptive software cache management", Middleware 2018,
/// with Caffeine's constants: steps of a sixteenth of the capacity that shrink by 2 %, and start anew when
/// the hit ratio changes by 5 points.
struct HillClimber: Sendable {
    private let largestStep: Double
    private var step: Double
    private var hits = 0
    private var requests = 0
    private var lastRatio = 0.0

    init(capacity: Int) {
        self.largestStep = 0.0625 * Double(capacity)
        self.step = -self.largestStep
    }

    /// Counts a request; at the end of a period of so many, says by how much the window should change.
    mutating func didRequest(wasHit: Bool, period: Int) -> Int? {
        self.requests += 1
        if wasHit { self.hits += 1 }
        guard self.requests >= period else { return nil }
        let ratio = Double(self.hits) / Double(self.requests)
        let change = ratio - self.lastRatio
        let amount = change >= 0 ? self.step : -self.step
        self.step = abs(change) >= 0.05 ? (amount >= 0 ? self.largestStep : -self.largestStep) : 0.98 * amount
        self.lastRatio = ratio
        self.hits = 0
        self.requests = 0
        return Int(amount)
    }
}
