// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// Gives a byte tier an order, background stores, limits, and a time budget for each call.
///
/// The changes to one family of keys run one after the other, and reads of the family begin after the changes that came
/// before them, or fail after a second. The tier may therefore finish its calls in any order. A change that takes too long
/// is cancelled, and the next one still waits for its end.
///
/// After a change that failed or was refused, the tier may have an entry that should be gone: the family is suspect. The
/// next read removes the family before it looks, and finds no entry until that succeeds.
final class OrderedTier: OrderedByteTier {
    private struct Change {
        let id: UInt64
        /// Ends with the change, and with the task that counts its end.
        let end: Task<Void, Never>
    }

    private struct State {
        /// The last change to each family that has not ended.
        var changes: [CacheKey: Change] = [:]
        /// The last removal of all entries, for which later changes wait.
        var clearing: Change?
        var lastID: UInt64 = 0
        var pendingCount = 0
        var pendingByteCount = 0
        var readCount = 0
        var suspects: Set<CacheKey> = []
        var writeFailures = 0
        var lastWriteError: CacheError?

        mutating func suspect(_ root: CacheKey) {
            guard self.suspects.insert(root).inserted, self.suspects.count > OrderedTier.suspectLimit else { return }
            if let other = self.suspects.first(where: { $0 != root }) { self.suspects.remove(other) }
        }
    }

    /// The changes, and the bytes to store, that may wait.
    private static let pendingLimit = 10_000
    private static let pendingByteLimit = 64 << 20
    /// The reads that the tier may run at once, including reads whose callers have left.
    private static let readLimit = 256
    /// The longest wait of a read for earlier changes, and for the repair of a family: a load waits for the read.
    private static let changeWait = Duration.seconds(1)
    /// The families that the tier remembers after failed changes; beyond that it forgets any of them.
    private static let suspectLimit = 65_536

    let name: String
    private let base: any ByteTier
    private let isWrapper: Bool
    private let timeBudget: Duration
    private let sleep: @Sendable (Duration) async throws -> Void
    private let now: @Sendable () -> Date
    private let reportError: @Sendable (CacheError) -> Void
    private let state = Locked(State())

    init(
        _ base: any ByteTier,
        timeBudget: Duration,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        now: @escaping @Sendable () -> Date = { Date() },
        reportError: @escaping @Sendable (CacheError) -> Void = { _ in }
    ) {
        self.name = base.name
        self.base = base
        self.isWrapper = base is any ByteTierWrapper
        self.timeBudget = base.timeBudget ?? timeBudget
        self.sleep = sleep
        self.now = now
        self.reportError = reportError
    }

    var isLocal: Bool { false }

    func accepts(_ key: CacheKey, byteCount: Int) -> Bool { self.base.accepts(key, byteCount: byteCount) }

    // MARK: Reading

    func entry(for key: CacheKey) async throws -> ByteEntry? {
        let base = self.base
        guard let turns = TierTurns.current else {
            return self.valid(try await self.read(key) { try await base.entry(for: key) })
        }
        let turn = TierTurn()
        do {
            let found = try await self.read(key) {
                try await TierTurn.run(in: turn) { try await base.entry(for: key) }
            }
            let entry = self.valid(found)
            // A wrapper may have an entry of its own after its base has given the turn.
            if entry == nil || self.isWrapper { self.end(turn, for: key, with: turns) }
            return entry
        } catch {
            // The tier may have given the turn when the time budget ended.
            self.end(turn, for: key, with: turns)
            throw error
        }
    }

    func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        let base = self.base
        let metadata = try await self.read(key) { try await base.metadata(for: key) }
        return metadata.flatMap { self.isOver($0) ? nil : $0 }
    }

    func readyEntry(for key: CacheKey) -> ByteEntry? { nil }

    func readyMetadata(for key: CacheKey) -> EntryMetadata? { nil }

    func file(for key: CacheKey) async throws -> CachedFile? { nil }

    func contains(_ key: CacheKey) async -> Bool {
        let metadata = try? await self.metadata(for: key)
        return metadata != nil
    }

    /// Ends a turn with its load, after the changes to the family that came before.
    private func end(_ turn: TierTurn, for key: CacheKey, with turns: TierTurns) {
        turns.add { [self] isCancelled in
            let base = self.base
            _ = self.change(key.root, isOptional: false, repairs: false) {
                await base.endTurn(turn, for: key, isCancelled: isCancelled)
            }
        }
    }

    private func valid(_ entry: ByteEntry?) -> ByteEntry? {
        entry.flatMap { self.isOver($0.metadata) ? nil : $0 }
    }

    private func isOver(_ metadata: EntryMetadata) -> Bool { metadata.expiry.map { $0 <= self.now() } ?? false }

    /// Returns the result of `call`, after the pending changes to the family of `key`.
    private func read<Value: Sendable>(
        _ key: CacheKey,
        _ call: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let root = key.root
        let changes = self.changes(to: root)
        if !changes.isEmpty {
            try await self.waiting(atMost: Self.changeWait) {
                try self.beginRead()
                defer { self.endRead() }
                for change in changes { await change.value }
            }
        }
        return try await self.waiting {
            // Counted here, because a read whose caller has left already never runs.
            try self.beginRead()
            defer { self.endRead() }
            // The caller may have left, or its time may be over.
            try Task.checkCancellation()
            if self.isSuspect(root) {
                // Every change removes a suspect family first. If another read has begun one, this read is a miss.
                guard let repair = self.change(root, onlyIfIdle: true, {}) else { throw CacheError.tierBusy(self.name) }
                try await self.waiting(atMost: Self.changeWait) { try await repair.value }
            }
            return try await call()
        }
    }

    // MARK: Writing

    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        guard let store = try self.beginStore(data, metadata, key, unless: { false }) else { return }
        try await self.waiting { try await store.value }
    }

    func enqueueStore(
        _ data: Data,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) -> Bool {
        let store = try? self.beginStore(data, metadata, key, unless: isObsolete)
        return store != nil
    }

    func remove(_ key: CacheKey) async throws -> Bool {
        let base = self.base
        return try await self.changing(key.root) { try await base.remove(key) }
    }

    func removeFamily(of key: CacheKey) async throws -> Bool {
        let (base, root) = (self.base, key.root)
        return try await self.changing(root) { try await base.removeFamily(of: root) }
    }

    /// Removes all entries, however long that takes.
    func removeAll() async throws {
        let base = self.base
        guard let removal = self.change(nil, { try await base.removeAll() }) else { return }
        // A caller that is cancelled leaves; the removal goes on.
        try await SharedTask<Void>().value { try await removal.value }
    }

    func waitForPendingStores() async {
        for change in self.allChanges() { await change.value }
    }

    @inline(never)
    func tierStatistics() async -> TierStatistics {
        let (failures, error) = self.failures()
        var statistics = TierStatistics(name: self.name)
        statistics.writeFailures = failures
        statistics.lastWriteError = error
        return statistics
    }

    private func changing<Value: Sendable>(
        _ root: CacheKey,
        _ call: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let change = self.change(root, call) else { throw self.refusal(of: root) }
        return try await self.waiting { try await change.value }
    }

    /// Begins a store; returns `nil` if it is obsolete.
    private func beginStore(
        _ data: Data,
        _ metadata: EntryMetadata,
        _ key: CacheKey,
        unless isObsolete: () -> Bool
    ) throws(CacheError) -> Task<Void, any Error>? {
        let (base, root) = (self.base, key.root)
        let byteCount = data.count + metadata.memoryByteCount + key.excessByteCount
        let store = self.change(root, byteCount: byteCount, unless: isObsolete) {
            try await base.store(data, metadata: metadata, for: key)
        }
        if store == nil, !isObsolete() { throw self.refusal(of: root) }
        return store
    }

    // MARK: Order

    /// Runs `call` after all earlier changes to the family of `root`, or to all families.
    ///
    /// Each task ends with its call, which the time budget cancels. Later changes wait for it.
    ///
    /// - Returns: The change, or `nil` if it is obsolete, if too many changes wait, or if `onlyIfIdle` and one does.
    @inline(never)
    private func change<Value: Sendable>(
        _ root: CacheKey?,
        byteCount: Int = 0,
        onlyIfIdle: Bool = false,
        isOptional: Bool = true,
        repairs: Bool = true,
        unless isObsolete: () -> Bool = { false },
        _ call: @escaping @Sendable () async throws -> Value
    ) -> Task<Value, any Error>? {
        self.state.withLock { state in
            let hasRoom =
                state.pendingCount < Self.pendingLimit
                && (byteCount == 0 || state.pendingByteCount == 0
                    || state.pendingByteCount + byteCount <= Self.pendingByteLimit)
            guard hasRoom || root == nil || !isOptional else { return nil }
            if onlyIfIdle, let root, state.changes[root] != nil { return nil }
            guard !isObsolete() else { return nil }
            state.lastID += 1
            state.pendingCount += 1
            state.pendingByteCount += byteCount
            let id = state.lastID
            let earlier =
                (root.map { [state.changes[$0]?.end] } ?? state.changes.values.map(\.end)) + [state.clearing?.end]
            let task = Task(name: "tier change") {
                for change in earlier { await change?.value }
                do {
                    guard let root else { return try await call() }
                    return try await self.first(of: {
                        if repairs, self.isSuspect(root) {
                            _ = try await self.base.removeFamily(of: root)
                            self.trust(root)
                        }
                        return try await call()
                    })
                } catch {
                    let error = CacheError.tier(self.name, error)
                    self.fail(root, error)
                    throw error
                }
            }
            let end = Task(name: "tier change end") {
                _ = await task.result
                self.end(id, root, byteCount)
            }
            let change = Change(id: id, end: end)
            if let root { state.changes[root] = change } else { state.clearing = change }
            return task
        }
    }

    /// Returns the result of `call`, or throws when the time budget is over or the caller is cancelled.
    ///
    /// Does not wait for the end of the call then.
    private func waiting<Value: Sendable>(
        atMost limit: Duration? = nil,
        _ call: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let shared = SharedTask<Value>()
        return try await self.first(within: limit) { try await shared.value(call) }
    }

    /// Returns the result of `call`, which it cancels when the time budget is over; waits for its end even then.
    private func first<Value: Sendable>(
        within limit: Duration? = nil,
        of call: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let (budget, sleep) = (limit ?? self.timeBudget, self.sleep)
        // `nil` is the end of the budget.
        let result = try await withThrowingTaskGroup(of: Result<Value, Never>?.self) { group in
            defer { group.cancelAll() }
            group.addTask { .success(try await call()) }
            group.addTask {
                try await sleep(budget)
                return nil
            }
            return try await group.next() ?? nil
        }
        guard case .success(let value)? = result else { throw CacheError.tierTimedOut(self.name, budget) }
        return value
    }

    // MARK: State

    // No function that takes the lock is inlined into an asynchronous one; see `SharedTask`.

    @inline(never)
    private func changes(to root: CacheKey) -> [Task<Void, Never>] {
        self.state.withLock { [$0.changes[root]?.end, $0.clearing?.end].compactMap(\.self) }
    }

    @inline(never)
    private func allChanges() -> [Task<Void, Never>] {
        self.state.withLock { ($0.changes.values.map(\.end) + [$0.clearing?.end]).compactMap(\.self) }
    }

    @inline(never)
    private func failures() -> (count: Int, last: CacheError?) {
        self.state.withLock { ($0.writeFailures, $0.lastWriteError) }
    }

    @inline(never)
    private func isSuspect(_ root: CacheKey) -> Bool { self.state.withLock { $0.suspects.contains(root) } }

    @inline(never)
    private func trust(_ root: CacheKey) {
        self.state.withLock { _ = $0.suspects.remove(root) }
    }

    @inline(never)
    private func fail(_ root: CacheKey?, _ error: CacheError) {
        self.state.withLock { state in
            state.writeFailures += 1
            state.lastWriteError = error
            if let root { state.suspect(root) }
        }
        self.reportError(error)
    }

    /// Counts a change that was refused because too many wait, and returns its error.
    private func refusal(of root: CacheKey) -> CacheError {
        let error = CacheError.tooManyPending(self.pendingByteCount(), inTier: self.name)
        self.fail(root, error)
        return error
    }

    @inline(never)
    private func pendingByteCount() -> Int { self.state.withLock { $0.pendingByteCount } }

    @inline(never)
    private func beginRead() throws(CacheError) {
        let isAdmitted = self.state.withLock { state in
            guard state.readCount < Self.readLimit else { return false }
            state.readCount += 1
            return true
        }
        guard isAdmitted else { throw .tierBusy(self.name) }
    }

    @inline(never)
    private func endRead() {
        self.state.withLock { $0.readCount -= 1 }
    }

    @inline(never)
    private func end(_ id: UInt64, _ root: CacheKey?, _ byteCount: Int) {
        self.state.withLock { state in
            state.pendingCount -= 1
            state.pendingByteCount -= byteCount
            if let root, state.changes[root]?.id == id { state.changes[root] = nil }
            if root == nil, state.clearing?.id == id { state.clearing = nil }
        }
    }
}
