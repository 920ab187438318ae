import TintypeConcurrency

/// Counts the operations that are under way, and lets one caller wait until there are none.
final class OperationCounter: Sendable {
    private struct State {
        var count = 0
        var isClosed = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())

    /// Begins an operation, unless the counter is closed.
    func begin() -> Bool {
        self.state.withLock { state in
            if !state.isClosed { state.count += 1 }
            return !state.isClosed
        }
    }

    /// Begins a part of an operation that is under way, and that may outlive it.
    func beginPart() {
        self.state.withLock { $0.count += 1 }
    }

    /// Ends an operation or a part of one.
    func end() {
        let waiters = self.state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Lets no further operation begin, and waits for the end of those under way.
    func close() async {
        await withCheckedContinuation { continuation in
            let isIdle = self.state.withLock { state in
                state.isClosed = true
                if state.count > 0 { state.waiters.append(continuation) }
                return state.count == 0
            }
            if isIdle { continuation.resume() }
        }
    }
}
