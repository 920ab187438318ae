/// How many requests one host is sent: a bucket of tokens, of which each request takes one.
///
/// Redirects and retries are requests as well. One that is cancelled while it waits takes no token.
public struct RateLimit: Sendable, Hashable {
    /// The tokens that come back each second.
    public var requestsPerSecond: Double
    /// The tokens that the bucket holds: so many requests may start at once after a pause.
    public var burst: Int

    /// Creates a limit; less than one request in a day, or a burst under 1, is taken as that.
    public init(requestsPerSecond: Double, burst: Int) {
        let isNumber = requestsPerSecond.isFinite
        self.requestsPerSecond = max(isNumber ? requestsPerSecond : 1e9, 1 / 86_400)
        self.burst = max(1, burst)
    }
}
