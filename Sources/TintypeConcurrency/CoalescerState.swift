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
        /// Nobody runs this key: start the operation as this flight.
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

    /// Stores the flight's task and returns true when nobody waits for it any more.
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
