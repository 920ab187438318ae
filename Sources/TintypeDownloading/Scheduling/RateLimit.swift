// SPDX-License-Identifier: Apache-2.0

/// How many requests one host is sent: a bucket of tokens, of which each request takes one.
///
/// Redirects and retries are requests as well. One that is cancelled while it waits takes no token.
public struct RateLimit: Sendable, Hashable {
    /// The tokens that come back each second.
    public var requestsPerSecond: Double
    /// The tokens that the bucket holds: so many requests may start at once after a pause.
    public var burst: Int

    /// Creates a limit; less than one request in a day, or a burst under 1, is taken as that.
    ///
    /// ```swift
    /// var configuration = LoaderActor.Configuration()
    /// configuration.downloads.rateLimit = RateLimit(requestsPerSecond: 50, burst: 100)
    /// ```
    public init(requestsPerSecond: Double, burst: Int) {
        let isNumber = requestsPerSecond.isFinite
        self.requestsPerSecond = max(isNumber ? requestsPerSecond : 1e9, 1 / 86_400)
        self.burst = max(1, burst)
    }
}

/// The tokens of one host.
struct TokenBucket {
    private let limit: RateLimit
    private var tokens: Double
    private var lastRefill: LoopInstant

    init(_ limit: RateLimit, now: LoopInstant) {
        self.limit = limit
        self.tokens = Double(limit.burst)
        self.lastRefill = now
    }

    /// Takes a token, or returns when the next one is there.
    mutating func take(now: LoopInstant) -> LoopInstant? {
        self.refill(now)
        // A rounding error must not cost another wait.
        guard self.tokens < 1 - 1e-9 else {
            self.tokens -= 1
            return nil
        }
        return now + .seconds((1 - self.tokens) / self.limit.requestsPerSecond)
    }

    /// Whether a new bucket would have no more tokens.
    mutating func isFull(now: LoopInstant) -> Bool {
        self.refill(now)
        return self.tokens >= Double(self.limit.burst)
    }

    private mutating func refill(_ now: LoopInstant) {
        let elapsed = (now - self.lastRefill) / .seconds(1)
        guard elapsed > 0 else { return }
        self.tokens = min(Double(self.limit.burst), self.tokens + elapsed * self.limit.requestsPerSecond)
        self.lastRefill = now
    }
}
