// SPDX-License-Identifier: Apache-2.0

/// The rate of requests to one host: a bucket of tokens, from which each request takes one.
///
/// Redirects and retries count as requests. A request that is cancelled while it waits takes no token.
public struct RateLimit: Sendable, Hashable {
    /// The tokens that the bucket gets each second.
    public var requestsPerSecond: Double
    /// The most tokens in the bucket, which is the number of requests that may start at once after a pause.
    public var burst: Int

    /// Creates a limit of at least one request a day, with a burst of at least 1; raises lower values to these.
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

    /// Takes a token, or returns the time of the next one.
    mutating func take(now: LoopInstant) -> LoopInstant? {
        self.refill(now)
        // A rounding error must not cost another wait.
        guard self.tokens < 1 - 1e-9 else {
            self.tokens -= 1
            return nil
        }
        return now + .seconds((1 - self.tokens) / self.limit.requestsPerSecond)
    }

    /// Whether the bucket has as many tokens as a new one.
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
