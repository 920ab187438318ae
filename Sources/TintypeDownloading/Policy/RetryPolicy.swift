// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import TintypeHTTP

/// The rules for retries: after which failures, how often, and how much later.
///
/// A download is retried only after failures that may be temporary: network errors, timeouts and the statuses 408, 429,
/// 500, 502, 503 and 504. Retries are safe, because downloads change nothing on the server. Refusals by the caller, the
/// configuration or TLS are permanent.
///
/// The wait before try n is random between nothing and `initialDelay` x 2^(n-1), at most `maximumDelay`
/// (exponential back-off with full jitter), but never shorter than `Retry-After`.
public struct RetryPolicy: Sendable, Hashable {
    /// The number of tries in all; 1 is for no retry.
    public var maximumAttempts: Int
    /// The upper limit of the first wait.
    public var initialDelay: Duration
    /// The upper limit of every wait.
    public var maximumDelay: Duration
    /// The longest `Retry-After` to obey.
    ///
    /// A longer one ends the download. Zero ignores the field.
    public var maximumRetryAfter: Duration
    /// The statuses after which a download is retried.
    public var statusCodes: StatusCodes
    /// The budget of retries, which protects a failing server from more load.
    public var budget: Budget

    /// A limit for the retries of all downloads together: a share of the requests, and some more each second.
    public struct Budget: Sendable, Hashable {
        /// The retries for each first request; 0.1 allows one retry for ten requests.
        public var ratio: Double
        /// The retries each second that are allowed however few requests there are.
        public var minimumPerSecond: Double

        /// Creates a budget.
        ///
        /// ```swift
        /// let policy = RetryPolicy(budget: .init(ratio: 0.2, minimumPerSecond: 1))
        /// ```
        public init(ratio: Double = 0.1, minimumPerSecond: Double = 10) {
            self.ratio = ratio
            self.minimumPerSecond = minimumPerSecond
        }
    }

    /// Retries nothing.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// Creates a policy.
    ///
    /// ```swift
    /// var configuration = LoaderActor.Configuration()
    /// configuration.downloads.retryPolicy = RetryPolicy(maximumAttempts: 5, statusCodes: [429, 503])
    /// ```
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

    /// Returns the wait before the next try, or `nil` for no other try.
    ///
    /// `attempts` is the number of tries so far, `date` is the current date, for dates in `Retry-After`, and `random`
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
