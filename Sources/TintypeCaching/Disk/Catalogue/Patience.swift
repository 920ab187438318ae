// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The rules for waiting for other processes, which may be stopped: for the lock of a folder, or for room in it.
///
/// The kernel has no such lock with a time limit, so threads retry with growing pauses. A running process holds the
/// lock for microseconds. After a wait has failed, threads try only once, until an attempt succeeds. So only one of a
/// hundred waiting stores pays for the wait.
final class Patience: Sendable {
    /// One wait.
    struct Wait: ~Copyable {
        fileprivate let patience: Patience
        /// The sum of the pauses in microseconds.
        private var waited = 0
        private var step = 20
        /// The number of pauses.
        private(set) var count = 0

        fileprivate init(_ patience: Patience) {
            self.patience = patience
        }

        /// Sleeps for a while, or returns `false` if the wait is over.
        mutating func pause() -> Bool {
            guard self.patience.permits(self.waited) else { return false }
            self.patience.sleep(.microseconds(self.step))
            self.waited += self.step
            self.step = min(2 * self.step, Patience.longestPause)
            self.count += 1
            return true
        }

        /// Ends the wait with success.
        func succeed() {
            self.patience.noteSuccess()
        }
    }

    /// The longest pause in microseconds.
    private static let longestPause = 1_000

    private let limit: Int
    /// The time for which a cancelled wait still goes on, within which a running holder is done.
    private let leaverLimit: Int
    private let sleep: @Sendable (Duration) -> Void
    private let isClosing: @Sendable () -> Bool
    private let isStalled = Atomic<Bool>(false)

    /// The number of waits that failed.
    let timeouts = Atomic<Int>(0)

    /// Creates rules.
    ///
    /// - Parameters:
    ///   - limit: The longest wait.
    ///   - leaverLimit: The longest wait if the task was cancelled or the cache is shut down.
    ///   - isClosing: Returns whether the cache is being shut down.
    ///   - sleep: Pauses the thread.
    init(
        limit: Duration,
        leaverLimit: Duration = .milliseconds(50),
        isClosing: @escaping @Sendable () -> Bool = { false },
        sleep: @escaping @Sendable (Duration) -> Void = Patience.sleep
    ) {
        self.limit = Self.microseconds(limit)
        self.leaverLimit = Self.microseconds(leaverLimit)
        self.isClosing = isClosing
        self.sleep = sleep
    }

    func begin() -> Wait { Wait(self) }

    /// Runs `attempt` until it returns a result.
    ///
    /// - Throws: ``SystemCallError/lockTimedOut``.
    func wait<Result>(for attempt: () throws(SystemCallError) -> Result?) throws(SystemCallError) -> Result {
        // In the usual case there is no wait.
        if let result = try attempt() {
            self.noteSuccess()
            return result
        }
        var wait = self.begin()
        while wait.pause() {
            guard let result = try attempt() else { continue }
            wait.succeed()
            return result
        }
        throw .lockTimedOut
    }

    /// Permits waits again.
    func noteSuccess() {
        if self.isStalled.load(ordering: .relaxed) { self.isStalled.store(false, ordering: .relaxed) }
    }

    /// Returns whether a wait may go on after `waited` microseconds.
    private func permits(_ waited: Int) -> Bool {
        let isOver = waited >= self.limit
        if isOver { self.isStalled.store(true, ordering: .relaxed) }
        let isLeft = waited >= self.leaverLimit && (Task.isCancelled || self.isClosing())
        guard isOver || isLeft || self.isStalled.load(ordering: .relaxed) else { return true }
        self.timeouts.add(1, ordering: .relaxed)
        return false
    }

    /// Sleeps, or less if a signal arrives.
    static func sleep(_ duration: Duration) {
        usleep(UInt32(clamping: Self.microseconds(duration)))
    }

    private static func microseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return max(0, Int(clamping: min(seconds, 1 << 32)) * 1_000_000 + Int(attoseconds / 1_000_000_000_000))
    }
}

extension SystemCallError {
    /// The error of a wait that failed because another process held the folder's lock for too long.
    static let lockTimedOut = SystemCallError(call: "lock", number: ETIMEDOUT)
}
