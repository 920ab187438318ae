// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TintypeConcurrency

/// A counter of running operations, which can wait until all have ended.
///
/// It is one atomic word: the number of operations, and a bit that prevents new ones.
final class OperationCounter: Sendable {
    private static let closed = 1 << 62

    private let state = Atomic<Int>(0)
    private let waiters = Locked<[CheckedContinuation<Void, Never>]>([])

    /// Begins an operation, and returns `false` if the counter is closed.
    func begin() -> Bool {
        let count = self.state.add(1, ordering: .acquiring).newValue
        guard count & Self.closed != 0 else { return true }
        self.end()
        return false
    }

    /// Begins a part of a running operation, which may outlive that operation.
    func beginPart() {
        self.state.add(1, ordering: .relaxed)
    }

    /// Ends an operation or a part of one.
    func end() {
        if self.state.subtract(1, ordering: .releasing).newValue == Self.closed { self.resumeWaiters() }
    }

    /// Prevents new operations, and waits for the end of the running ones.
    func close() async {
        self.state.bitwiseOr(Self.closed, ordering: .relaxed)
        await withCheckedContinuation { continuation in
            self.waiters.withLock { $0.append(continuation) }
            // A task that ended the last operation before the append did not see this waiter.
            if self.state.load(ordering: .acquiring) == Self.closed { self.resumeWaiters() }
        }
    }

    private func resumeWaiters() {
        let waiters = self.waiters.withLock { waiters in
            defer { waiters = [] }
            return waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
