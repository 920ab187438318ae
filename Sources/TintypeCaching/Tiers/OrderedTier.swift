// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// Gives a byte tier an order, background stores and a time budget for each call.
///
/// The changes to one family of keys run one after the other, and reads of the family begin after the changes that came
/// before them. The tier may therefore finish its calls in any order. A change that takes too long is cancelled, and the
/// next one still waits for its end.
///
/// After a change that failed, the tier may have an entry that should be gone. Reads then remove the family before they
/// look, and find no entry until that succeeds.
final class OrderedTier: OrderedByteTier {
    private struct State {
        /// The last change to each family that has not ended.
        var changes: [CacheKey: (id: UInt64, end: Task<Void, Never>)] = [:]
        /// The last removal of all entries, for which later changes wait.
        var clearing: (id: UInt64, end: Task<Void, Never>)?
        var lastID: UInt64 = 0
        var pendingByteCount = 0
        /// The families that may have entries which should be gone.
        var suspects: Set<CacheKey> = []
        var writeFailures = 0
        var lastWriteError: CacheError?
    }

    /// The end of a timed call.
    private enum Outcome<Value: Sendable>: Sendable {
        case value(Value)
        case timedOut
    }

    /// The bytes that may wait to be stored.
    private static let pendingByteLimit = 64 << 20
    /// The families that the tier remembers after failed changes; beyond that it forgets any of them.
    private static let suspectLimit = 65_536

    private let base: any ByteTier
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
        self.base = base
        self.timeBudget = timeBudget
        self.sleep = sleep
        self.now = now
        self.reportError = reportError
    }

    var name: String { self.base.name }
    var isLocal: Bool { false }

    func accepts(_ key: CacheKey, byteCount: Int) -> Bool { self.base.accepts(key, byteCount: byteCount) }

    // MARK: Reading

    func entry(for key: CacheKey) async throws -> ByteEntry? {
        let base = self.base
        let entry = try await self.read(key) { try await base.entry(for: key) }
        return entry.flatMap { self.isOver($0.metadata) ? nil : $0 }
    }

    func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        let base = self.base
        let metadata = try await self.read(key) { try await base.metadata(for: key) }
        return metadata.flatMap { self.isOver($0) ? nil : $0 }
    }

    func readyEntry(for key: CacheKey) -> ByteEntry? { nil }

    func readyMetadata(for key: CacheKey) -> EntryMetadata? { nil }

    func file(for key: CacheKey) async throws -> CachedFile? { nil }

    func contains(_ key: CacheKey) async -> Bool { ((try? await self.metadata(for: key)) ?? nil) != nil }

    private func isOver(_ metadata: EntryMetadata) -> Bool { metadata.expiry.map { $0 <= self.now() } ?? false }

    /// Returns the result of `call`, after the pending changes to the family of `key`.
    private func read<Value: Sendable>(
        _ key: CacheKey,
        _ call: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await self.waiting {
            let root = key.root
            for change in self.changes(to: root) { await change.value }
            // Every change removes a suspect family first.
            if self.isSuspect(root) { try await self.change(root) {}.value }
            return try await call()
        }
    }

    // MARK: Writing

    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        let store = try self.beginStore(data, metadata, key)
        try await self.waiting { try await store.value }
    }

    func enqueueStore(
        _ data: Data,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) {
        guard !isObsolete() else { return }
        _ = try? self.beginStore(data, metadata, key)
    }

    func remove(_ key: CacheKey) async throws -> Bool {
        let base = self.base
        let removal = self.change(key.root) { try await base.remove(key) }
        return try await self.waiting { try await removal.value }
    }

    func removeFamily(of key: CacheKey) async throws -> Bool {
        let (base, root) = (self.base, key.root)
        let removal = self.change(root) { try await base.removeFamily(of: root) }
        return try await self.waiting { try await removal.value }
    }

    func removeAll() async throws {
        let base = self.base
        let removal = self.change(nil) { try await base.removeAll() }
        try await self.waiting { try await removal.value }
    }

    func waitForPendingStores() async {
        for change in self.allChanges() { await change.value }
    }

    func tierStatistics() async -> TierStatistics {
        self.state.withLock { state in
            var statistics = TierStatistics(name: self.name)
            statistics.writeFailures = state.writeFailures
            statistics.lastWriteError = state.lastWriteError
            return statistics
        }
    }

    /// Begins a store, unless too many bytes wait; then it removes the older entry, which is out of date.
    private func beginStore(
        _ data: Data,
        _ metadata: EntryMetadata,
        _ key: CacheKey
    ) throws(CacheError) -> Task<Void, any Error> {
        let (base, byteCount) = (self.base, data.count)
        guard let waiting = self.reserve(byteCount) else {
            return self.change(key.root, releasing: byteCount) {
                try await base.store(data, metadata: metadata, for: key)
            }
        }
        let error = CacheError.tooManyPending(waiting, inTier: self.name)
        self.fail(nil, error)
        _ = self.change(key.root) { _ = try await base.remove(key) }
        throw error
    }

    // MARK: Order

    /// Runs `call` after all earlier changes to the family of `root`, or to all families.
    ///
    /// Each task ends with its call, which the time budget cancels. Later changes wait for it.
    private func change<Value: Sendable>(
        _ root: CacheKey?,
        releasing byteCount: Int = 0,
        _ call: @escaping @Sendable () async throws -> Value
    ) -> Task<Value, any Error> {
        self.state.withLock { state in
            state.lastID += 1
            let id = state.lastID
            let earlier =
                (root.map { [state.changes[$0]?.end] } ?? state.changes.values.map(\.end)) + [state.clearing?.end]
            let task = Task(name: "tier change") {
                for change in earlier { await change?.value }
                do {
                    return try await self.limited {
                        if let root, self.isSuspect(root) {
                            _ = try await self.base.removeFamily(of: root)
                            self.trust(root)
                        }
                        return try await call()
                    }
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
            if let root { state.changes[root] = (id, end) } else { state.clearing = (id, end) }
            return task
        }
    }

    /// Returns the result of `call`, which it cancels when the time budget is over; waits for its end even then.
    private func limited<Value: Sendable>(_ call: @escaping @Sendable () async throws -> Value) async throws -> Value {
        try await self.first(of: call)
    }

    /// Returns the result of `call`, or throws when the time budget is over or the caller is cancelled.
    ///
    /// Does not wait for the end of the call then.
    private func waiting<Value: Sendable>(_ call: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let shared = SharedTask<Value>()
        return try await self.first { try await shared.value(call) }
    }

    private func first<Value: Sendable>(of call: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let (budget, sleep) = (self.timeBudget, self.sleep)
        let outcome = try await withThrowingTaskGroup(of: Outcome<Value>.self) { group in
            defer { group.cancelAll() }
            group.addTask { .value(try await call()) }
            group.addTask {
                try await sleep(budget)
                return .timedOut
            }
            return try await group.next()
        }
        guard case .value(let value)? = outcome else { throw CacheError.tierTimedOut(self.name, budget) }
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
            guard let root else { return }
            if state.suspects.count >= Self.suspectLimit, let any = state.suspects.first { state.suspects.remove(any) }
            state.suspects.insert(root)
        }
        self.reportError(error)
    }

    /// Counts bytes that wait to be stored, or returns their number if there are too many.
    @inline(never)
    private func reserve(_ byteCount: Int) -> Int? {
        self.state.withLock { state in
            let sum = state.pendingByteCount + byteCount
            guard sum <= Self.pendingByteLimit || state.pendingByteCount == 0 else { return state.pendingByteCount }
            state.pendingByteCount = sum
            return nil
        }
    }

    @inline(never)
    private func end(_ id: UInt64, _ root: CacheKey?, _ byteCount: Int) {
        self.state.withLock { state in
            state.pendingByteCount -= byteCount
            if let root, state.changes[root]?.id == id { state.changes[root] = nil }
            if root == nil, state.clearing?.id == id { state.clearing = nil }
        }
    }
}
