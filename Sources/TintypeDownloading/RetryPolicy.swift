import FoundationEssentials
public import TintypeHTTP

/// What is tried again after a failure, how often, and how long after.
///
/// Only failures that another try may mend are: transport trouble, timeouts and the statuses 408, 429, 500,
/// 502, 503 and 504. Downloads change nothing on the server, so trying again is safe; what the caller, the
/// configuration or TLS refused is refused again, and is not tried.
///
/// The wait before try n is random between nothing and `initialDelay` x 2^(n-1), at most `maximumDelay`
/// (exponential back-off with full jitter), but never shorter than what `Retry-After` says.
public struct RetryPolicy: Sendable, Hashable {
    /// The tries in all; 1 is for none after the first.
    public var maximumAttempts: Int
    /// The upper limit of the first wait.
    public var initialDelay: Duration
    /// The upper limit of every wait.
    public var maximumDelay: Duration
    /// The longest `Retry-After` that is waited for.
    ///
    /// A longer one ends the download. Zero ignores the field.
    public var maximumRetryAfter: Duration
    /// The statuses that are tried again.
    public var statusCodes: StatusCodes
    /// How many tries there may be in all, so that a server in trouble is not buried.
    public var budget: Budget

    /// A limit for the tries of all downloads together: a share of the requests, and some more each second.
    public struct Budget: Sendable, Hashable {
        /// Tries for each first request; 0.1 allows one more try for ten requests.
        public var ratio: Double
        /// Tries each second that are allowed however few requests there are.
        public var minimumPerSecond: Double

        /// Creates a budget.
        public init(ratio: Double = 0.1, minimumPerSecond: Double = 10) {
            self.ratio = ratio
            self.minimumPerSecond = minimumPerSecond
        }
    }

    /// Nothing is tried again.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// Creates a policy.
    public init(
        maximumAttempts: Int = 3,
        initialDelay: Duration = .milliseconds(250),
        maximumDelay: Duration = .seconds(10),
        maximumRetryAfter: Duration = .seconds(60),
        statusCodes: StatusCodes = [408, 429, 500, 502, 503, 504],
        budget: Budget = Budget()
    ) {
        self.maximumAttempts = maximumAttempts
        self.initialDelay = initialDelay
        self.maximumDelay = maximumDelay
        self.maximumRetryAfter = maximumRetryAfter
        self.statusCodes = statusCodes
        self.budget = budget
    }

    /// How long to wait before the next try, or `nil` for no other try.
    ///
    /// `attempts` counts the tries so far, `date` is what a date in `Retry-After` is compared with, and `random`
    /// is a number from 0 to 1.
    func delay(after error: DownloadError, attempts: Int, date: Date, random: Double) -> Duration? {
        guard attempts < self.maximumAttempts, self.isTransient(error) else { return nil }
        // Doubling further would overflow and change nothing.
        let factor = Double(1 << min(max(0, attempts - 1), 30))
        let isLonger = self.initialDelay > self.maximumDelay / factor
        let delay = isLonger ? self.maximumDelay : self.initialDelay * factor
        let jittered = delay * min(max(0, random), 1)
        guard self.maximumRetryAfter > .zero,
            let demanded = error.headers["Retry-After"].flatMap({ RetryAfter.delay($0, date: date) })
        else { return jittered }
        return demanded <= self.maximumRetryAfter ? max(demanded, jittered) : nil
    }

    private func isTransient(_ error: DownloadError) -> Bool {
        switch error.code {
        case .hostNotFound, .cannotConnect, .connectionLost, .bodyCutShort, .timedOut: true
        case .badStatus: error.status.map(self.statusCodes.contains) ?? false
        default: false
        }
    }
}

/// Tries that may still be made: each first request adds a part of one, each try takes one.
struct RetryBudget {
    /// As much as can be saved up, in seconds of the minimum and in requests.
    private static let savedSeconds = 10.0
    private static let savedRequests = 1_000.0

    private let limits: RetryPolicy.Budget
    private var saved = 0.0
    private var minimum: Double
    private var lastRefill: LoopInstant

    init(_ limits: RetryPolicy.Budget, now: LoopInstant) {
        self.limits = limits
        self.minimum = max(0, limits.minimumPerSecond) * Self.savedSeconds
        self.lastRefill = now
    }

    mutating func didStartRequest() {
        let ratio = max(0, self.limits.ratio)
        self.saved = min(self.saved + ratio, ratio * Self.savedRequests)
    }

    /// Takes a try; returns whether there was one.
    mutating func takeTry(now: LoopInstant) -> Bool {
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
