// SPDX-License-Identifier: Apache-2.0

/// Lets operations run side by side while the sum of their weights stays within a capacity.
///
/// The loader weighs each decode by the bytes of pixels it will allocate, so that the gate
/// bounds the memory of all decodes together. Operations enter in the order in which they
/// came: a heavy one is never overtaken by lighter ones behind it.
public final class WeightedGate: Sendable {
    private let state: Locked<WeightedGateState>

    /// Creates a gate for a total weight of `capacity`, which is at least 1.
    public init(capacity: Int) {
        self.state = Locked(WeightedGateState(capacity: max(1, capacity)))
    }

    /// The total weight that may be inside.
    public var capacity: Int { self.state.withLock { $0.capacity } }

    /// The weight that is inside now.
    public var usedWeight: Int { self.state.withLock { $0.used } }

    /// The number of operations that wait to enter.
    public var waiterCount: Int { self.state.withLock { $0.waiterCount } }

    /// Lets nothing in until ``resume()``; those inside go on.
    public func suspend() {
        self.state.withLock { $0.suspend() }
    }

    /// Lets operations in again.
    public func resume() {
        for continuation in self.state.withLock({ $0.resume() }) { continuation.resume() }
    }

    /// Whether nothing is let in.
    public var isSuspended: Bool { self.state.withLock { $0.isSuspended } }

    /// Runs `operation` when `weight` fits, and returns the weight when the operation ends.
    ///
    /// - Parameters:
    ///   - weight: At least 0. More than the whole capacity counts as the capacity, so that such an operation runs
    ///     alone instead of never.
    ///   - operation: Runs in the caller's task.
    /// - Returns: The result of the operation.
    /// - Throws: `CancellationError` if the caller is cancelled while it waits; the error of the operation.
    public func withWeight<Result>(
        _ weight: Int,
        operation: () async throws -> Result
    ) async throws -> Result {
        let weight = min(max(0, weight), self.state.withLock { $0.capacity })
        try await self.enter(weight)
        defer { self.leave(weight) }
        return try await operation()
    }

    /// A weight that is inside a gate for as long as the object lives.
    public final class Place: Sendable {
        private let gate: WeightedGate
        /// The weight that is inside.
        public let weight: Int

        fileprivate init(_ gate: WeightedGate, weight: Int) {
            self.gate = gate
            self.weight = weight
        }

        deinit {
            self.gate.leave(self.weight)
        }
    }

    /// Takes `weight` when it fits, for as long as the place lives.
    ///
    /// The holder of a place must not wait for another one.
    ///
    /// - Throws: `CancellationError` if the caller is cancelled while it waits.
    public func place(for weight: Int) async throws -> Place {
        let weight = min(max(0, weight), self.state.withLock { $0.capacity })
        try await self.enter(weight)
        return Place(self, weight: weight)
    }

    /// Takes `weight` in if there is room for it now, and no caller waits; never more than the whole capacity.
    ///
    /// For what can be left out: it neither waits nor lets others wait for long.
    public func placeIfFree(for weight: Int) -> Place? {
        let weight = max(0, weight)
        return self.state.withLock { $0.enterIfFree(weight: weight) } ? Place(self, weight: weight) : nil
    }

    private func enter(_ weight: Int) async throws {
        let id = self.state.withLock { $0.makeWaiterID() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let action = self.state.withLock { state in
                    Task.isCancelled ? .refuse : state.enter(id: id, weight: weight, continuation: continuation)
                }
                switch action {
                case .proceed: continuation.resume()
                case .wait: break
                case .refuse: continuation.resume(throwing: CancellationError())
                }
            }
        } onCancel: {
            let (cancelled, admitted) = self.state.withLock { $0.cancel(id: id) }
            cancelled?.resume(throwing: CancellationError())
            for continuation in admitted { continuation.resume() }
        }
    }

    private func leave(_ weight: Int) {
        for continuation in self.state.withLock({ $0.leave(weight: weight) }) { continuation.resume() }
    }
}

/// The weights inside a gate, and the waiters before it in order of arrival.
///
/// A pure value: each method returns the continuations that the caller resumes outside the lock.
struct WeightedGateState {
    typealias Continuation = CheckedContinuation<Void, any Error>

    private struct Waiter {
        let id: UInt64
        let weight: Int
        let continuation: Continuation
    }

    enum EnterAction {
        case proceed
        case wait
        case refuse
    }

    let capacity: Int
    private(set) var used = 0
    private(set) var isSuspended = false
    private var waiters: [Waiter] = []
    private var lastID: UInt64 = 0

    var waiterCount: Int { self.waiters.count }

    init(capacity: Int) {
        self.capacity = capacity
    }

    mutating func makeWaiterID() -> UInt64 {
        self.lastID += 1
        return self.lastID
    }

    mutating func enter(id: UInt64, weight: Int, continuation: Continuation) -> EnterAction {
        // Nothing overtakes: a heavy waiter at the head would otherwise starve.
        guard self.isSuspended || !self.waiters.isEmpty || weight > self.capacity - self.used else {
            self.used += weight
            return .proceed
        }
        self.waiters.append(Waiter(id: id, weight: weight, continuation: continuation))
        return .wait
    }

    mutating func enterIfFree(weight: Int) -> Bool {
        guard !self.isSuspended, self.waiters.isEmpty, weight <= self.capacity - self.used else { return false }
        self.used += weight
        return true
    }

    mutating func suspend() {
        self.isSuspended = true
    }

    mutating func resume() -> [Continuation] {
        self.isSuspended = false
        return self.admit()
    }

    mutating func leave(weight: Int) -> [Continuation] {
        self.used -= weight
        return self.admit()
    }

    /// Takes a cancelled waiter out; those behind it may now fit.
    mutating func cancel(id: UInt64) -> (cancelled: Continuation?, admitted: [Continuation]) {
        guard let index = self.waiters.firstIndex(where: { $0.id == id }) else { return (nil, []) }
        let waiter = self.waiters.remove(at: index)
        return (waiter.continuation, self.admit())
    }

    private mutating func admit() -> [Continuation] {
        guard !self.isSuspended else { return [] }
        var admitted = 0
        for waiter in self.waiters {
            guard waiter.weight <= self.capacity - self.used else { break }
            self.used += waiter.weight
            admitted += 1
        }
        let continuations = self.waiters[..<admitted].map(\.continuation)
        self.waiters.removeFirst(admitted)
        return continuations
    }
}
