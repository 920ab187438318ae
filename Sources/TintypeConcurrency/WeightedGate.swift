// SPDX-License-Identifier: Apache-2.0

/// Lets operations run side by side while the sum of their weights stays within a capacity.
///
/// The loader weighs each decode by the bytes of pixels it will allocate, so that the gate
/// bounds the memory of all decodes together. Operations enter in the order of arrival, and
/// light ones do not overtake a heavy one. Only operations of a ``WorkClient`` with fewer
/// operations inside go first.
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

    /// Returns the time for which the oldest operation has waited to enter; zero if none waits.
    package func oldestWait(at time: ContinuousClock.Instant) -> Duration {
        self.state.withLock { $0.oldestStart }?.duration(to: time) ?? .zero
    }

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
        let client = WorkClient.current
        try await self.enter(weight, client)
        defer { self.leave(weight, client) }
        return try await operation()
    }

    /// A weight that is inside a gate for as long as the object lives.
    public final class Place: Sendable {
        private let gate: WeightedGate
        /// The weight that is inside.
        public let weight: Int
        private let client: WorkClient?

        fileprivate init(_ gate: WeightedGate, weight: Int, _ client: WorkClient?) {
            self.gate = gate
            self.weight = weight
            self.client = client
        }

        deinit {
            self.gate.leave(self.weight, self.client)
        }
    }

    /// Takes `weight` when it fits, for as long as the place lives.
    ///
    /// The holder of a place must not wait for another one.
    ///
    /// - Throws: `CancellationError` if the caller is cancelled while it waits.
    public func place(for weight: Int) async throws -> Place {
        let weight = min(max(0, weight), self.state.withLock { $0.capacity })
        let client = WorkClient.current
        try await self.enter(weight, client)
        return Place(self, weight: weight, client)
    }

    /// Takes `weight` in if there is room for it now, and no caller waits before it; never more than the whole capacity.
    ///
    /// For optional work, which must neither wait nor keep others waiting for long.
    public func placeIfFree(for weight: Int) -> Place? {
        let (weight, client) = (max(0, weight), WorkClient.current)
        return self.state.withLock { $0.enterIfFree(weight: weight, client) }
            ? Place(self, weight: weight, client) : nil
    }

    private func enter(_ weight: Int, _ client: WorkClient?) async throws {
        let id = self.state.withLock { $0.makeWaiterID() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let action = self.state.withLock { state in
                    Task.isCancelled ? .refuse : state.enter(id: id, weight: weight, client, continuation: continuation)
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

    private func leave(_ weight: Int, _ client: WorkClient?) {
        for continuation in self.state.withLock({ $0.leave(weight: weight, client) }) { continuation.resume() }
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
        let client: WorkClient?
        let start: ContinuousClock.Instant
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
    /// The number of operations inside, by client.
    private var counts: [WorkClient: Int] = [:]
    private var lastID: UInt64 = 0

    var waiterCount: Int { self.waiters.count }
    /// The time at which the oldest waiter came.
    var oldestStart: ContinuousClock.Instant? { self.waiters.first?.start }

    init(capacity: Int) {
        self.capacity = capacity
    }

    mutating func makeWaiterID() -> UInt64 {
        self.lastID += 1
        return self.lastID
    }

    mutating func enter(
        id: UInt64,
        weight: Int,
        _ client: WorkClient? = nil,
        continuation: Continuation
    ) -> EnterAction {
        if self.enterIfFree(weight: weight, client) { return .proceed }
        let waiter = Waiter(id: id, weight: weight, client: client, start: .now, continuation: continuation)
        self.waiters.append(waiter)
        return .wait
    }

    mutating func enterIfFree(weight: Int, _ client: WorkClient? = nil) -> Bool {
        guard !self.isSuspended, weight <= self.capacity - self.used, self.isBeforeWaiters(client) else { return false }
        self.add(weight, client)
        return true
    }

    mutating func suspend() {
        self.isSuspended = true
    }

    mutating func resume() -> [Continuation] {
        self.isSuspended = false
        return self.admit()
    }

    mutating func leave(weight: Int, _ client: WorkClient? = nil) -> [Continuation] {
        self.used -= weight
        if let client, let count = self.counts[client] { self.counts[client] = count > 1 ? count - 1 : nil }
        return self.admit()
    }

    /// Takes a cancelled waiter out; those behind it may now fit.
    mutating func cancel(id: UInt64) -> (cancelled: Continuation?, admitted: [Continuation]) {
        guard let index = self.waiters.firstIndex(where: { $0.id == id }) else { return (nil, []) }
        let wasNext = index == self.nextIndex
        let waiter = self.waiters.remove(at: index)
        return (waiter.continuation, wasNext ? self.admit() : [])
    }

    private mutating func admit() -> [Continuation] {
        var admitted: [Continuation] = []
        while !self.isSuspended, let index = self.nextIndex, self.waiters[index].weight <= self.capacity - self.used {
            let waiter = self.waiters.remove(at: index)
            self.add(waiter.weight, waiter.client)
            admitted.append(waiter.continuation)
        }
        return admitted
    }

    private mutating func add(_ weight: Int, _ client: WorkClient?) {
        self.used += weight
        if let client { self.counts[client, default: 0] += 1 }
    }

    /// The oldest waiter of the client with the fewest operations inside.
    ///
    /// Lighter waiters do not overtake it. Otherwise a heavy one could starve.
    private var nextIndex: Int? {
        guard !self.counts.isEmpty else { return self.waiters.indices.first }
        var next: (index: Int, count: Int)?
        for (index, waiter) in self.waiters.enumerated() {
            let count = self.count(of: waiter.client)
            if count == 0 { return index }
            if count < next?.count ?? .max { next = (index, count) }
        }
        return next?.index
    }

    /// Whether an operation that arrives now enters before all waiters.
    private func isBeforeWaiters(_ client: WorkClient?) -> Bool {
        let count = self.count(of: client)
        return self.waiters.allSatisfy { count < self.count(of: $0.client) }
    }

    /// The number of operations of a client inside; 0 without a client.
    private func count(of client: WorkClient?) -> Int { client.flatMap { self.counts[$0] } ?? 0 }
}

/// The client for which a task works.
///
/// Gates, lanes and downloads share their places among clients. Work without a client counts as the only work of a
/// client.
package struct WorkClient: Sendable, Hashable {
    /// The client of the current task and of the tasks that it creates.
    @TaskLocal package static var current: WorkClient?

    private let number: UInt128

    package init(number: UInt128) {
        self.number = number
    }
}

/// Whether lanes have begun to work for a task with a client.
package final class LaneUse: Sendable {
    /// The record of the current task and of the tasks that it creates.
    @TaskLocal package static var current: LaneUse?

    private let state = Locked(false)

    package init() {}

    package var hasBegun: Bool { self.state.withLock { $0 } }

    package func begin() {
        self.state.withLock { $0 = true }
    }
}
