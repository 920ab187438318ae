/// Tries that may still be made: each first request adds a part of one, each try takes one.
struct RetryBudget {
    /// As much as can be saved up, in seconds of the minimum and in requests.
    private static let savedSeconds = 10.0
    private static let savedRequests = 1_000.0

    private let limits: RetryPolicy.Budget
    private var saved = 0.0
    private var minimum: Double
    private var lastRefill: ContinuousClock.Instant

    init(_ limits: RetryPolicy.Budget, now: ContinuousClock.Instant) {
        self.limits = limits
        self.minimum = max(0, limits.minimumPerSecond) * Self.savedSeconds
        self.lastRefill = now
    }

    mutating func didStartRequest() {
        let ratio = max(0, self.limits.ratio)
        self.saved = min(self.saved + ratio, ratio * Self.savedRequests)
    }

    /// Takes a try; returns whether there was one.
    mutating func takeTry(now: ContinuousClock.Instant) -> Bool {
        let perSecond = max(0, self.limits.minimumPerSecond)
        let elapsed = max(0, (now - self.lastRefill) / .seconds(1))
        self.minimum = min(self.minimum + elapsed * perSecond, perSecond * Self.savedSeconds)
        self.lastRefill = now
        // What rounding takes away must not cost a try.
        if self.saved >= 1 - 1e-9 {
            self.saved -= 1
        } else if self.minimum >= 1 - 1e-9 {
            self.minimum -= 1
        } else {
            return false
        }
        return true
    }
}
