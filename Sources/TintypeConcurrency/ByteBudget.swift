// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Counts the bytes that many parts of a program hold at once, against one limit.
///
/// A holder of bytes has a ``ByteClaim``, which returns them when it is released. The budget refuses and delays only
/// bytes that must fit. A caller that can wait asks first, and continues when other holders have returned bytes.
public final class ByteBudget: Sendable {
    /// The figures of a budget at one moment.
    public struct Status: Sendable {
        /// The bytes that are held.
        public internal(set) var usedBytes = 0
        /// The most bytes that were held at once.
        public internal(set) var peakBytes = 0
        /// The claims on bytes that are complete, and that nothing but their reader gives back.
        public internal(set) var heldCount = 0
        /// The number of readers that certainly end without any more bytes.
        public internal(set) var workCount = 0
        /// How often bytes came back.
        public internal(set) var returnCount: UInt64 = 0
    }

    private struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var status = Status()
        var isWatched = false
        var readerCount = 0
        var waiters: [Waiter] = []
        var lastID: UInt64 = 0

        func hasRoom(_ limit: Int) -> Bool {
            self.status.usedBytes < limit && self.readerCount < ByteBudget.maximumReaders
        }

        mutating func admit(_ limit: Int) -> [Waiter] {
            var admitted: [Waiter] = []
            while !self.waiters.isEmpty, self.hasRoom(limit) {
                self.readerCount += 1
                admitted.append(self.waiters.removeFirst())
            }
            return admitted
        }
    }

    /// The reads of unknown length that go on at once: each may exceed the limit with what it reads.
    private static let maximumReaders = 8

    /// The bytes that may be held at once, at least 1.
    public let limit: Int
    private let state = Locked(State())
    private let watcher = Locked<(@Sendable () -> Void)?>(nil)

    /// Creates a budget of which nothing is used.
    public init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// The figures of this moment.
    public var status: Status { self.state.withLock { $0.status } }

    /// Sets what is called, from any thread, when bytes come back after ``watch()``.
    public func setWatcher(_ watcher: @escaping @Sendable () -> Void) {
        self.watcher.withLock { $0 = watcher }
    }

    /// Has the watcher called when bytes next come back; ask for figures afterwards, so that no return is missed.
    public func watch() {
        self.state.withLock { $0.isWatched = true }
    }

    // MARK: Reading

    /// Returns once there is room to read bytes whose number is not known yet, the first caller first.
    ///
    /// A holder of a claim must not wait here: all could wait for each other.
    ///
    /// - Throws: `CancellationError` when the caller is cancelled while it waits; otherwise ``endRead()`` must follow.
    public func beginRead() async throws {
        let (isAdmitted, id) = self.state.withLock { state -> (Bool, UInt64) in
            state.lastID += 1
            guard state.waiters.isEmpty, state.hasRoom(self.limit) else { return (false, state.lastID) }
            state.readerCount += 1
            return (true, state.lastID)
        }
        guard !isAdmitted else { return }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let admitted = self.state.withLock { state -> [Waiter]? in
                    guard !Task.isCancelled else { return nil }
                    state.waiters.append(Waiter(id: id, continuation: continuation))
                    // Bytes may have come back since.
                    return state.admit(self.limit)
                }
                guard let admitted else {
                    continuation.resume(throwing: CancellationError())
                    return
                }
                for waiter in admitted { waiter.continuation.resume() }
            }
        } onCancel: {
            let cancelled = self.state.withLock { state -> Waiter? in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
            }
            cancelled?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Ends what ``beginRead()`` let begin, after the bytes have been claimed.
    public func endRead() {
        let admitted = self.state.withLock { state in
            state.readerCount -= 1
            return state.admit(self.limit)
        }
        for waiter in admitted { waiter.continuation.resume() }
    }

    /// The callers that wait in ``beginRead()``.
    public var waiterCount: Int { self.state.withLock { $0.waiters.count } }

    // MARK: Claims

    /// Takes bytes; takes nothing and returns false if they must fit and do not.
    func take(_ count: Int, mustFit: Bool) -> Bool {
        self.state.withLock { state in
            if mustFit, count > self.limit - state.status.usedBytes { return false }
            state.status.usedBytes += count
            state.status.peakBytes = max(state.status.peakBytes, state.status.usedBytes)
            return true
        }
    }

    func giveBack(_ count: Int, wasHeld: Bool = false) {
        guard count > 0 || wasHeld else { return }
        let (isWatched, admitted) = self.state.withLock { state in
            state.status.usedBytes -= count
            state.status.returnCount += 1
            if wasHeld { state.status.heldCount -= 1 }
            defer { state.isWatched = false }
            return (state.isWatched, state.admit(self.limit))
        }
        for waiter in admitted { waiter.continuation.resume() }
        if isWatched, let watcher = self.watcher.withLock({ $0 }) { watcher() }
    }

    func hold() {
        self.state.withLock { $0.status.heldCount += 1 }
    }

    func addWork(_ count: Int) {
        self.state.withLock { $0.status.workCount += count }
    }
}

/// Bytes of a ``ByteBudget`` that something holds: they come back when the claim goes away, or before.
///
/// Only one party at a time changes a claim.
public final class ByteClaim: Sendable {
    private let budget: ByteBudget
    private let bytes = Atomic(0)
    private let isHeld = Atomic(false)

    /// Creates a claim on nothing yet.
    public init(_ budget: ByteBudget) {
        self.budget = budget
    }

    deinit {
        self.giveBack()
    }

    /// The bytes that are claimed.
    public var byteCount: Int { self.bytes.load(ordering: .relaxed) }

    /// Claims `count` bytes in all, if no more than before or if they fit; returns false, and changes nothing, where
    /// they do not fit.
    public func grow(to count: Int) -> Bool {
        let old = self.byteCount
        guard count > old else { return true }
        guard self.budget.take(count - old, mustFit: true) else { return false }
        self.bytes.store(count, ordering: .relaxed)
        return true
    }

    /// Claims `count` bytes in all, whether or not they fit.
    public func set(_ count: Int) {
        let old = self.bytes.exchange(count, ordering: .relaxed)
        if count > old {
            _ = self.budget.take(count - old, mustFit: false)
        } else {
            self.budget.giveBack(old - count)
        }
    }

    /// Says that the bytes are complete: from now on a reader has them, and gives them back.
    public func hold() {
        guard !self.isHeld.exchange(true, ordering: .relaxed) else { return }
        self.budget.hold()
    }

    /// Says that the reader works on the bytes, and is sure to end without any more bytes of the budget.
    public func beginWork() {
        self.budget.addWork(1)
    }

    /// Ends what ``beginWork()`` has begun.
    public func endWork() {
        self.budget.addWork(-1)
    }

    /// Gives the bytes back before the claim goes away; what is done more than once has no effect.
    public func giveBack() {
        let wasHeld = self.isHeld.exchange(false, ordering: .relaxed)
        self.budget.giveBack(self.bytes.exchange(0, ordering: .relaxed), wasHeld: wasHeld)
    }
}
