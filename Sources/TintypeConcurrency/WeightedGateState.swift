/// Who is inside a weighted gate and who waits before it, in order of arrival.
///
/// Pure: each method returns the continuations that the caller resumes outside the lock.
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
        // Nobody overtakes: a heavy waiter at the head would otherwise starve.
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
