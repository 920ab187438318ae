import Synchronization
import TintypeConcurrency

/// Counts the operations that are under way, and lets callers wait until there are none.
///
/// One word, changed without a lock: the operations, and a bit that says that no more may begin.
final class OperationCounter: Sendable {
    private static let closed = 1 << 62

    private let state = Atomic<Int>(0)
    private let waiters = Locked<[CheckedContinuation<Void, Never>]>([])

    /// Begins an operation, unless the counter is closed.
    func begin() -> Bool {
        let count = self.state.add(1, ordering: .acquiring).newValue
        guard count & Self.closed != 0 else { return true }
        self.end()
        return false
    }

    /// Begins a part of an operation that is under way, and that may outlive it.
    func beginPart() {
        self.state.add(1, ordering: .relaxed)
    }

    /// Ends an operation or a part of one.
    func end() {
        if self.state.subtract(1, ordering: .releasing).newValue == Self.closed { self.resumeWaiters() }
    }

    /// Lets no further operation begin, and waits for the end of those under way.
    func close() async {
        self.state.bitwiseOr(Self.closed, ordering: .relaxed)
        await withCheckedContinuation { continuation in
            self.waiters.withLock { $0.append(continuation) }
            // A task that ended the last operation before this was added has not seen it.
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
