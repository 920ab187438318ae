// SPDX-License-Identifier: Apache-2.0

/// One task at a time, whose result all callers share.
///
/// Cancelling a caller ends only its own wait. When the last caller leaves, the task is cancelled, and the next caller starts
/// another one.
public final class SharedTask<Value: Sendable>: Sendable {
    private typealias Waiter = CheckedContinuation<Value, any Error>

    private struct Run {
        let id: UInt64
        var task: Task<Void, Never>?
        var waiters: [UInt64: Waiter] = [:]
    }

    private struct State {
        var run: Run?
        var lastID: UInt64 = 0
    }

    private let state = Locked(State())

    /// Creates a task that nobody waits for.
    public init() {}

    /// The number of callers that wait.
    public var waiterCount: Int { self.state.withLock { $0.run?.waiters.count ?? 0 } }

    /// Returns the result of the task under way, or of a new one that runs `operation`.
    ///
    /// - Throws: The error of the operation; `CancellationError` as soon as the caller's own task is cancelled.
    public func value(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let id = self.makeID()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // Either the task is seen to be cancelled here, or the handler below finds the waiter.
                let isCancelled = self.state.withLock { state in
                    guard !Task.isCancelled else { return true }
                    var run = state.run ?? Run(id: id)
                    run.waiters[id] = continuation
                    // The task takes the lock, but not before this is over.
                    run.task = run.task ?? Task(name: "shared") { await self.run(id, operation) }
                    state.run = run
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            self.leave(id)
        }
    }

    private func run(_ id: UInt64, _ operation: @Sendable () async throws -> Value) async {
        let result: Result<Value, any Error>
        do { result = .success(try await operation()) } catch { result = .failure(error) }
        for waiter in self.end(id) { waiter.resume(with: result) }
    }

    // No function that takes the lock is inlined into an asynchronous one. Otherwise optimised code of Swift 6.3 reads the
    // thread's identity before a suspension, and gives the lock back with it afterwards, on another thread.

    @inline(never)
    private func makeID() -> UInt64 {
        self.state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    /// Ends a run, unless all of its callers have left, and returns the waiting callers.
    @inline(never)
    private func end(_ id: UInt64) -> [Waiter] {
        self.state.withLock { state in
            guard let run = state.run, run.id == id else { return [] }
            state.run = nil
            return Array(run.waiters.values)
        }
    }

    private func leave(_ id: UInt64) {
        let (waiter, task) = self.state.withLock { state -> (Waiter?, Task<Void, Never>?) in
            guard let waiter = state.run?.waiters.removeValue(forKey: id) else { return (nil, nil) }
            guard let run = state.run, run.waiters.isEmpty else { return (waiter, nil) }
            state.run = nil
            return (waiter, run.task)
        }
        task?.cancel()
        waiter?.resume(throwing: CancellationError())
    }
}
