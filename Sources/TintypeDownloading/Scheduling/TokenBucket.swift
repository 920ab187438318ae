/// The tokens of one host.
struct TokenBucket {
    private let limit: RateLimit
    private var tokens: Double
    private var lastRefill: ContinuousClock.Instant

    init(_ limit: RateLimit, now: ContinuousClock.Instant) {
        self.limit = limit
        self.tokens = Double(limit.burst)
        self.lastRefill = now
    }

    /// Takes a token, or returns when the next one is there.
    mutating func take(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        self.refill(now)
        // What rounding takes away must not cost another wait.
        guard self.tokens < 1 - 1e-9 else {
            self.tokens -= 1
            return nil
        }
        return now + .seconds((1 - self.tokens) / self.limit.requestsPerSecond)
    }

    /// Whether a new bucket would have no more tokens.
    mutating func isFull(now: ContinuousClock.Instant) -> Bool {
        self.refill(now)
        return self.tokens >= Double(self.limit.burst)
    }

    private mutating func refill(_ now: ContinuousClock.Instant) {
        let elapsed = (now - self.lastRefill) / .seconds(1)
        guard elapsed > 0 else { return }
        self.tokens = min(Double(self.limit.burst), self.tokens + elapsed * self.limit.requestsPerSecond)
        self.lastRefill = now
    }
}
