// SPDX-License-Identifier: Apache-2.0

/// Owns tasks whose results are not awaited, and ends them when it goes away.
public final class TaskOwner: Sendable {
    private struct State {
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var nextID: UInt64 = 0
    }

    private let state = Locked(State())

    /// Creates an owner of no tasks.
    public init() {}

    deinit {
        self.cancelAll()
    }

    /// The number of tasks that have not ended.
    public var count: Int { self.state.withLock { $0.tasks.count } }

    /// Runs `operation` in a task of its own, which is cancelled when the owner goes away.
    @discardableResult
    public func run(_ name: String, _ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        self.state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            // The task cannot take itself out before it is put in: both need the lock. It must not
            // hold the owner, or the two would keep each other.
            let task = Task(name: name) { [weak self] in
                await operation()
                self?.state.withLock { $0.tasks[id] = nil }
            }
            state.tasks[id] = task
            return task
        }
    }

    /// Returns when the tasks that were begun before the call have ended.
    public func waitForAll() async {
        let tasks = self.state.withLock { Array($0.tasks.values) }
        for task in tasks { await task.value }
    }

    /// Cancels all tasks that have not ended.
    public func cancelAll() {
        let tasks = self.state.withLock { Array($0.tasks.values) }
        for task in tasks { task.cancel() }
    }
}
