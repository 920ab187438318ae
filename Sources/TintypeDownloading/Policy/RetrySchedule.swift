// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The time of day and chance, which tests choose.
struct EngineEnvironment: Sendable {
    var date: @Sendable () -> Date = { Date() }
    /// A number from 0 to 1.
    var random: @Sendable () -> Double = { Double.random(in: 0...1) }
}

/// Decides whether a transfer is tried again, and when.
struct RetrySchedule {
    private let environment: EngineEnvironment
    private var budget: RetryBudget

    init(_ limits: RetryPolicy.Budget, environment: EngineEnvironment, now: LoopInstant) {
        self.environment = environment
        self.budget = RetryBudget(limits, now: now)
    }

    /// Records the first request of a transfer, which adds to the tries that may be made.
    mutating func didStartTransfer() {
        self.budget.didStartRequest()
    }

    /// Returns the time until the next try, or `nil` for no further try.
    ///
    /// - Parameters:
    ///   - error: The error that ended the last try.
    ///   - attempts: The number of tries so far.
    ///   - policy: The policy of the request.
    ///   - end: The time at which all tries must be over.
    ///   - now: The time.
    /// - Returns: The delay, which takes a try from the budget.
    mutating func delay(
        after error: DownloadError,
        attempts: Int,
        policy: RetryPolicy,
        end: LoopInstant?,
        now: LoopInstant
    ) -> Duration? {
        guard policy.maximumAttempts > 1,
            let delay = policy.delay(
                after: error,
                attempts: attempts,
                date: self.environment.date(),
                random: self.environment.random()
            )
        else { return nil }
        if let end, now + delay >= end { return nil }
        return self.budget.takeTry(now: now) ? delay : nil
    }
}

/// The retries that are left: each first request adds a part of one, and each retry takes one.
struct RetryBudget {
    /// The most retries to save up, in seconds of the minimum and in requests.
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

    /// Takes a retry, and returns whether there was one.
    mutating func takeTry(now: LoopInstant) -> Bool {
        let perSecond = max(0, self.limits.minimumPerSecond)
        let elapsed = max(0, (now - self.lastRefill) / .seconds(1))
        self.minimum = min(self.minimum + elapsed * perSecond, perSecond * Self.savedSeconds)
        self.lastRefill = now
        // Rounding must not cost a retry.
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
