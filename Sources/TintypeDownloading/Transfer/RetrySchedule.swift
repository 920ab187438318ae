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
