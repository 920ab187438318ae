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
    ///   - operation: The work. It runs in a task of its own, which is cancelled when no caller waits for it any more.
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

/// The states of every flight.
///
/// Pure: each method changes state and returns what the caller must do once it has let go
/// of the lock.
struct CoalescerState<Key: Hashable & Sendable, Value: Sendable, Update: Sendable> {
    typealias Continuation = CheckedContinuation<Value, any Error>
    typealias Observer = @Sendable (Update) -> Void

    struct Waiter {
        let continuation: Continuation
        let observer: Observer?
    }

    enum JoinAction {
        /// This key is not run: start the operation as this flight.
        case start(UInt64)
        /// Wait; the newest update so far is shown to the waiter's observer.
        case wait(latest: Update?)
        case refuse
    }

    struct LeaveAction {
        var waiter: Continuation?
        var abandoned: Task<Void, Never>?

        func perform() {
            self.abandoned?.cancel()
            self.waiter?.resume(throwing: CancellationError())
        }
    }

    private struct Flight {
        let id: UInt64
        var task: Task<Void, Never>?
        var latest: Update?
        var waiters: [UInt64: Waiter]
    }

    private var flights: [Key: Flight] = [:]
    private var lastID: UInt64 = 0

    var count: Int { self.flights.count }

    var waiterCount: Int { self.flights.values.reduce(0) { $0 + $1.waiters.count } }

    mutating func makeWaiterID() -> UInt64 {
        self.lastID += 1
        return self.lastID
    }

    mutating func join(_ key: Key, id: UInt64, waiter: Waiter) -> JoinAction {
        guard let flight = self.flights[key] else {
            self.flights[key] = Flight(id: id, waiters: [id: waiter])
            return .start(id)
        }
        self.flights[key]?.waiters[id] = waiter
        return .wait(latest: flight.latest)
    }

    /// Stores the flight's task and returns true when no caller waits for it any more.
    mutating func attach(_ task: Task<Void, Never>, to key: Key, flight: UInt64) -> Bool {
        // The flight may be gone because it finished: cancelling it then does nothing.
        guard self.flights[key]?.id == flight else { return true }
        self.flights[key]?.task = task
        return false
    }

    mutating func update(_ key: Key, flight: UInt64, with update: Update) -> [Observer] {
        guard self.flights[key]?.id == flight else { return [] }
        self.flights[key]?.latest = update
        return self.flights[key]?.waiters.values.compactMap(\.observer) ?? []
    }

    mutating func leave(_ key: Key, id: UInt64) -> LeaveAction {
        guard let waiter = self.flights[key]?.waiters.removeValue(forKey: id) else { return LeaveAction() }
        guard let flight = self.flights[key], flight.waiters.isEmpty else {
            return LeaveAction(waiter: waiter.continuation)
        }
        self.flights[key] = nil
        return LeaveAction(waiter: waiter.continuation, abandoned: flight.task)
    }

    mutating func finish(_ key: Key, flight: UInt64) -> [Continuation] {
        guard self.flights[key]?.id == flight else { return [] }
        return self.flights.removeValue(forKey: key).map { $0.waiters.values.map(\.continuation) } ?? []
    }

    /// Takes every waiter out, as if each had been cancelled.
    mutating func leaveAll() -> [LeaveAction] {
        let actions = self.flights.values.flatMap { flight in
            flight.waiters.values.map { LeaveAction(waiter: $0.continuation, abandoned: flight.task) }
        }
        self.flights = [:]
        return actions
    }
}
