// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// The byte tiers of a cache, nearest first, which answer as one.
///
/// A hit in a farther tier fills the nearer ones. A store replaces the entries of all tiers: the tiers that take part in
/// removals, but not in stores, lose theirs. A tier that fails to read is a miss.
final class ByteTierList: Sendable {
    /// A tier, with the results of its look-ups.
    private final class Member: Sendable {
        private struct Counts {
            var hits = 0
            var misses = 0
            var readFailures = 0
            var fills = 0
            var lastReadError: CacheError?
        }

        let tier: any OrderedByteTier
        private let counts = Locked(Counts())

        init(_ tier: any OrderedByteTier) {
            self.tier = tier
        }

        /// Returns the result of a look-up, and counts it if it is one of a whole entry; `nil` if it failed.
        ///
        /// - Throws: `CancellationError` only.
        func read<Found>(
            isCounted: Bool = false,
            _ look: (any OrderedByteTier) async throws -> Found?
        ) async throws -> Found? {
            do {
                let found = try await look(self.tier)
                if isCounted { self.count(isHit: found != nil) }
                return found
            } catch is CancellationError where Task.isCancelled {
                throw CancellationError()
            } catch {
                self.count(.tier(self.tier.name, error), isMiss: isCounted)
                return nil
            }
        }

        @inline(never)
        func count(isHit: Bool) {
            self.counts.withLock { isHit ? ($0.hits += 1) : ($0.misses += 1) }
        }

        @inline(never)
        private func count(_ error: CacheError, isMiss: Bool) {
            self.counts.withLock { counts in
                counts.misses += isMiss ? 1 : 0
                counts.readFailures += 1
                counts.lastReadError = error
            }
        }

        @inline(never)
        func countFill() {
            self.counts.withLock { $0.fills += 1 }
        }

        @inline(never)
        private func snapshot() -> Counts { self.counts.withLock { $0 } }

        func statistics() async -> TierStatistics {
            var statistics = await self.tier.tierStatistics()
            let counts = self.snapshot()
            statistics.hits = counts.hits
            statistics.misses = counts.misses
            statistics.readFailures = counts.readFailures
            statistics.lastReadError = counts.lastReadError
            statistics.fills = counts.fills
            return statistics
        }
    }

    private let members: [Member]
    private let policies: TierPolicies
    private let changes = KeyChanges()

    init(_ tiers: [any OrderedByteTier], policies: TierPolicies = TierPolicies()) {
        self.members = tiers.map(Member.init)
        self.policies = policies
    }

    var isEmpty: Bool { self.members.isEmpty }

    /// Whether the nearest tier is one of this machine.
    var isLocal: Bool { self.members.first?.tier.isLocal ?? true }

    var hasRemoteTiers: Bool { !self.members.allSatisfy(\.tier.isLocal) }

    /// The nearest disk.
    var disk: DiskCache? { self.members.lazy.compactMap { $0.tier as? DiskCache }.first }

    private func members(_ policy: TierPolicies.Policy) -> ArraySlice<Member> {
        self.members[policy.indices(of: self.members.indices)]
    }

    // MARK: Reading

    /// Returns the entry of `key` from the first tier that has it, and stores it in the nearer ones.
    ///
    /// - Throws: `CancellationError` only.
    func entry(for key: CacheKey) async throws -> ByteEntry? {
        let mark = self.members.count > 1 ? self.changes.mark(of: key.root) : nil
        let found = try await self.first(self.policies.query, key) { member in
            try await member.read(isCounted: true) { try await $0.entry(for: key) }
        }
        guard let found else { return nil }
        var entry = found.found
        entry.tier = self.members[found.index].tier.name
        if let mark { self.fill(found.missed, with: entry, for: key, since: mark) }
        return entry
    }

    /// Returns the metadata of the entry of `key` from the first tier that has it; does not count as a use.
    ///
    /// - Throws: `CancellationError` only.
    func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        try await self.first(self.policies.query, key) { member in
            try await member.read { try await $0.metadata(for: key) }
        }?.found
    }

    /// Returns the entry of `key` that is ready without waiting: of the first tier that a query asks, or of any tier if a
    /// query asks all at once.
    ///
    /// If the first tier has no entry ready, it may still have one, so the farther tiers must not answer instead.
    func readyEntry(for key: CacheKey) -> ByteEntry? {
        for member in self.readyMembers {
            guard var entry = member.tier.readyEntry(for: key) else { continue }
            entry.tier = member.tier.name
            member.count(isHit: true)
            return entry
        }
        return nil
    }

    /// Returns the metadata that is ready without waiting, from the same tiers as ``readyEntry(for:)``.
    func readyMetadata(for key: CacheKey) -> EntryMetadata? {
        for member in self.readyMembers {
            if let metadata = member.tier.readyMetadata(for: key) { return metadata }
        }
        return nil
    }

    private var readyMembers: ArraySlice<Member> {
        switch self.policies.query {
        case .serial, .nearestOnly: self.members.prefix(1)
        case .farthestOnly: self.members.suffix(1)
        case .concurrent: self.members[...]
        }
    }

    /// Returns the file of the entry of `key`.
    ///
    /// If only a tier without files has the entry, this stores it in a nearer tier first.
    ///
    /// - Throws: `CancellationError` only.
    func file(for key: CacheKey) async throws -> CachedFile? {
        if let file = try await self.existingFile(for: key) { return file }
        guard self.members.count > 1, try await self.entry(for: key) != nil else { return nil }
        return try await self.existingFile(for: key)
    }

    private func existingFile(for key: CacheKey) async throws -> CachedFile? {
        try await self.first(self.policies.query, key) { member in
            try await member.read { try await $0.file(for: key) }
        }?.found
    }

    /// Returns whether a tier has an entry of `key`; does not count as a use.
    func contains(_ key: CacheKey) async -> Bool {
        let found = try? await self.first(self.policies.contains, key) { member in
            await member.tier.contains(key) ? true : nil
        }
        return found != nil
    }

    /// Returns the first result of `look`, the index of its tier, and the nearer tiers that have answered without one.
    ///
    /// Does not ask tiers that accept no entry of `key`.
    private func first<Found: Sendable>(
        _ policy: TierPolicies.Policy,
        _ key: CacheKey,
        _ look: @escaping @Sendable (Member) async throws -> Found?
    ) async throws -> (found: Found, index: Int, missed: [Int])? {
        let indices = policy.indices(of: self.members.indices)
        var missed: [Int] = []
        guard policy == .concurrent, indices.count > 1 else {
            for index in indices where self.members[index].tier.accepts(key, byteCount: 0) {
                if let found = try await look(self.members[index]) { return (found, index, missed) }
                missed.append(index)
            }
            return nil
        }
        return try await withThrowingTaskGroup(of: (Int, Found?).self) { group in
            defer { group.cancelAll() }
            for index in indices where self.members[index].tier.accepts(key, byteCount: 0) {
                // A search that is over waits for none of the others.
                group.addTask { (index, try await SharedTask().value { try await look(self.members[index]) }) }
            }
            while let (index, found) = try await group.next() {
                if let found { return (found, index, missed.filter { $0 < index }) }
                missed.append(index)
            }
            return nil
        }
    }

    /// Stores an entry of a farther tier in the background, unless the key has changed since `mark`.
    @inline(never)
    private func fill(_ missed: [Int], with entry: ByteEntry, for key: CacheKey, since mark: KeyChanges.Mark) {
        for index in missed where self.members[index].tier.accepts(key, byteCount: entry.data.count) {
            let changes = self.changes
            let isStored = self.members[index].tier.enqueueStore(entry.data, metadata: entry.metadata, for: key) {
                !changes.isUnchanged(since: mark)
            }
            if isStored { self.members[index].countFill() }
        }
    }

    // MARK: Writing

    /// Stores `data` in the tiers that accept it, in the background.
    func enqueueStore(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async {
        await self.changing(key) {
            let (accepting, refusing) = self.members(storing: data, for: key)
            await self.removeOlder(of: key, from: refusing)
            for member in accepting {
                member.tier.enqueueStore(data, metadata: metadata, for: key) { false }
            }
        }
    }

    /// Stores `data` in the tiers that accept it, and waits.
    ///
    /// - Throws: The error of the nearest tier that failed; the others have stored it all the same.
    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        try await self.changing(key) {
            let (accepting, refusing) = self.members(storing: data, for: key)
            await self.removeOlder(of: key, from: refusing)
            guard !accepting.isEmpty || self.isEmpty else { throw CacheError.noTierAccepts(data.count) }
            let results = await self.attempts(accepting, self.policies.store) {
                try await $0.store(data, metadata: metadata, for: key)
            }
            for result in results { try result.get() }
        }
    }

    /// Removes the older entry of `key` from the tiers that do not store the new one.
    private func removeOlder(of key: CacheKey, from members: [Member]) async {
        _ = await self.removals(of: key, from: members) { _ in false }
    }

    /// Returns the tiers that store an entry, and the other ones whose older entry the cache removes.
    private func members(storing data: Data, for key: CacheKey) -> (accepting: [Member], refusing: [Member]) {
        let storing = self.policies.store.indices(of: self.members.indices)
        let removing = self.policies.remove.indices(of: self.members.indices)
        var (accepting, refusing): ([Member], [Member]) = ([], [])
        for (index, member) in self.members.enumerated() {
            if storing.contains(index), member.tier.accepts(key, byteCount: data.count) {
                accepting.append(member)
            } else if storing.contains(index) || removing.contains(index), member.tier.accepts(key, byteCount: 0) {
                refusing.append(member)
            }
        }
        return (accepting, refusing)
    }

    /// Removes the entry of `key`, and returns whether there was one.
    ///
    /// With `isCurrent`, a tier that other machines share is called only if it has an entry that is not current: one of
    /// them may have replaced the entry.
    ///
    /// - Throws: The error of the nearest tier that failed; the others have removed it all the same.
    func remove(
        _ key: CacheKey,
        unless isCurrent: (@Sendable (EntryMetadata) -> Bool)? = nil
    ) async throws -> Bool {
        let members = self.members(self.policies.remove).filter { $0.tier.accepts(key, byteCount: 0) }
        let results = await self.changing(key) {
            await self.removals(of: key, from: members, unless: isCurrent)
        }
        return try results.map { try $0.get() }.contains(true)
    }

    /// Removes the entry of `key`.
    ///
    /// A shared tier reports each removal to the other machines, which then remove their entries, too. So a removal that
    /// follows from a new response needs an older entry there: otherwise each machine that fetches what the tier does not
    /// store would make the other machines fetch it again.
    private func removals(
        of key: CacheKey,
        from members: [Member],
        unless isCurrent: (@Sendable (EntryMetadata) -> Bool)?
    ) async -> [Result<Bool, any Error>] {
        await self.attempts(members, self.policies.remove) { tier in
            if let isCurrent, !tier.isLocal {
                // If the look-up fails, the tier may have an older entry.
                do {
                    guard let metadata = try await tier.metadata(for: key), !isCurrent(metadata) else { return false }
                } catch {}
            }
            return try await tier.remove(key)
        }
    }

    /// Removes the entries of the family of `key`, and returns whether there were any.
    ///
    /// - Throws: The error of the nearest tier that failed; the others have removed them all the same.
    func removeFamily(of key: CacheKey) async throws -> Bool {
        let results = await self.changing(key) {
            await self.attempts(Array(self.members(self.policies.remove)), self.policies.remove) {
                try await $0.removeFamily(of: key)
            }
        }
        return try results.map { try $0.get() }.contains(true)
    }

    /// Removes the entries of the family of `key`, or all entries, from the disks of this machine.
    ///
    /// - Throws: The error of the nearest disk that failed.
    func removeLocal(familyOf key: CacheKey?) async throws {
        try await self.changing(key) {
            for member in self.members where member.tier.isLocal {
                guard let key else {
                    try await member.tier.removeAll()
                    continue
                }
                _ = try await member.tier.removeFamily(of: key)
            }
        }
    }

    /// Removes all entries.
    ///
    /// - Throws: The error of the nearest tier that failed; the others are empty all the same.
    func removeAll() async throws {
        let results = await self.changing(nil) {
            await self.attempts(Array(self.members(self.policies.clear)), self.policies.clear) {
                try await $0.removeAll()
            }
        }
        for result in results { try result.get() }
    }

    /// Runs a change to the family of `key`, or to all, which fills that are under way see from its begin to its end.
    private func changing<Result>(
        _ key: CacheKey?,
        _ change: () async throws -> Result
    ) async rethrows -> Result {
        // A single tier is never filled.
        guard self.members.count > 1 else { return try await change() }
        return try await self.changes.counting(key?.root, change)
    }

    func waitForPendingStores() async {
        for member in self.members { await member.tier.waitForPendingStores() }
    }

    func statistics() async -> [TierStatistics] {
        var statistics: [TierStatistics] = []
        for member in self.members { statistics.append(await member.statistics()) }
        return statistics
    }

    /// Returns the outcome of `operation` for each tier, in their order; a failure does not stop the others.
    private func attempts<Value: Sendable>(
        _ members: [Member],
        _ policy: TierPolicies.Policy,
        _ operation: @escaping @Sendable (any OrderedByteTier) async throws -> Value
    ) async -> [Result<Value, any Error>] {
        @Sendable func attempt(_ member: Member) async -> Result<Value, any Error> {
            do { return .success(try await operation(member.tier)) } catch { return .failure(error) }
        }
        guard policy == .concurrent, members.count > 1 else {
            var results: [Result<Value, any Error>] = []
            for member in members { results.append(await attempt(member)) }
            return results
        }
        return await withTaskGroup(of: (index: Int, result: Result<Value, any Error>).self) { group in
            for (index, member) in members.enumerated() {
                group.addTask { (index, await attempt(member)) }
            }
            let results = await group.reduce(into: []) { $0.append($1) }
            return results.sorted { $0.index < $1.index }.map(\.result)
        }
    }
}
