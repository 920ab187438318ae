/// Runs one operation per key, however many callers ask for it.
///
/// A caller that joins a flight waits for that flight's result and, if it likes, is shown
/// the updates on the way. Cancelling a caller ends only its own wait; when the last caller
/// leaves, the flight's task is cancelled and its key is free again at once.
public final class Coalescer<Key: Hashable & Sendable, Value: Sendable, Update: Sendable>: Sendable {
    /// Shows an update to every caller that waits on the flight and gave an observer.
    public typealias Report = @Sendable (Update) -> Void

    private let state = Locked(CoalescerState<Key, Value, Update>())

    /// Creates a coalescer with no flights.
    public init() {}

    /// The number of operations in flight.
    public var count: Int { self.state.withLock { $0.count } }

    /// The number of callers that wait, over all flights.
    public var waiterCount: Int { self.state.withLock { $0.waiterCount } }

    /// The result of `operation`, shared with every caller that waits on `key`.
    ///
    /// - Parameters:
    ///   - key: What the operation produces; one operation runs per key.
    ///   - observer: Is shown the flight's updates: first the newest one so far, then those
    ///     that follow. It may be called from any thread, and a replayed update may come
    ///     after a newer one, so it must cope with that.
    ///   - operation: The work. It runs in a task of its own, which is cancelled when nobody waits for it any more.
    /// - Returns: What the operation returned.
    /// - Throws: What the operation threw, or `CancellationError` as soon as the caller's
    ///   own task is cancelled.
    public func value(
        for key: Key,
        observer: (@Sendable (Update) -> Void)? = nil,
        operation: @escaping @Sendable (_ report: @escaping Report) async throws -> Value
    ) async throws -> Value {
        let id = self.state.withLock { $0.makeWaiterID() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // `Task.isCancelled` is read under the lock: either it is already true here,
                // or the handler below finds the waiter registered.
                let action = self.state.withLock { state in
                    Task.isCancelled
                        ? .refuse
                        : state.join(key, id: id, waiter: .init(continuation: continuation, observer: observer))
                }
                switch action {
                case .refuse: continuation.resume(throwing: CancellationError())
                case .wait(let latest): if let latest { observer?(latest) }
                case .start(let flight): self.start(flight, key: key, operation: operation)
                }
            }
        } onCancel: {
            self.state.withLock { $0.leave(key, id: id) }.perform()
        }
    }

    /// Cancels every flight; each caller gets a `CancellationError`.
    public func cancelAll() {
        for action in self.state.withLock({ $0.leaveAll() }) { action.perform() }
    }

    private func start(
        _ flight: UInt64,
        key: Key,
        operation: @escaping @Sendable (@escaping Report) async throws -> Value
    ) {
        let task = Task(name: "coalesced flight") {
            let result: Result<Value, any Error>
            do {
                result = .success(
                    try await operation { update in
                        for observer in self.state.withLock({ $0.update(key, flight: flight, with: update) }) {
                            observer(update)
                        }
                    }
                )
            } catch {
                result = .failure(error)
            }
            // Continuations are resumed outside the lock.
            for continuation in self.state.withLock({ $0.finish(key, flight: flight) }) {
                continuation.resume(with: result)
            }
        }
        let isAbandoned = self.state.withLock { $0.attach(task, to: key, flight: flight) }
        if isAbandoned { task.cancel() }
    }
}
