public import FoundationEssentials
import TintypeConcurrency
public import TintypeImage

/// Several caches that answer as one.
///
/// They stand in an order: the one that was added last is the highest and is asked first. Which of
/// them take part in an operation, and whether at once, says a policy for each kind of operation.
///
/// What is stored under a key takes the place of what any of them has: those that take part in removals, and not in
/// stores, lose theirs. One that takes part in neither is only read, and what it has answers again when the others have
/// lost theirs.
///
/// A group without caches answers like an empty cache that keeps nothing.
public final class CacheGroup: ImageCache {
    private struct State {
        var caches: [any ImageCache]
        var policies: Policies
    }

    private let state: Locked<State>

    /// Joins `caches`, the lowest first.
    public init(_ caches: [any ImageCache] = [], policies: Policies = Policies()) {
        self.state = Locked(State(caches: caches, policies: policies))
    }

    /// The caches, the lowest first.
    public var caches: [any ImageCache] {
        get { self.state.withLock { $0.caches } }
        set { self.state.withLock { $0.caches = newValue } }
    }

    /// Which caches take part in which operation.
    ///
    /// Operations that are under way go on as they began.
    public var policies: Policies {
        get { self.state.withLock { $0.policies } }
        set { self.state.withLock { $0.policies = newValue } }
    }

    /// Adds `cache` as the highest.
    public func add(_ cache: some ImageCache) {
        self.state.withLock { $0.caches.append(cache) }
    }

    /// Whether all caches of the group are local.
    public var isLocal: Bool { self.caches.allSatisfy(\.isLocal) }

    // MARK: Looking up

    public func memoryImage(for key: CacheKey) -> Image? {
        Self.first(of: self.members(\.query).caches) { $0.memoryImage(for: key) }
    }

    /// The image in memory with its metadata, from the highest cache that has it.
    ///
    /// Follows the policy for queries; those that ask all caches ask one after the other here.
    public func memoryEntry(for key: CacheKey) -> MemoryEntry? {
        Self.first(of: self.members(\.query).caches) { $0.memoryEntry(for: key) }
    }

    public func peekMemoryEntry(for key: CacheKey) -> MemoryEntry? {
        Self.first(of: self.members(\.query).caches) { $0.peekMemoryEntry(for: key) }
    }

    /// The entry of `key` that can be had without waiting, from the highest cache, or from any where all are asked at once.
    ///
    /// That the highest one has none ready does not say that it has none: those below must not answer in its place.
    public func readyEntry(for key: CacheKey) -> DiskEntry? {
        self.firstReady { $0.readyEntry(for: key) }
    }

    /// The metadata that can be had without waiting, from the same caches as ``readyEntry(for:)``.
    public func readyMetadata(for key: CacheKey) -> EntryMetadata? {
        self.firstReady { $0.readyMetadata(for: key) }
    }

    private func firstReady<Found>(_ find: (any ImageCache) -> Found?) -> Found? {
        let members = self.members(\.query)
        return Self.first(of: members.isConcurrent ? members.caches[...] : members.caches.prefix(1), find)
    }

    /// Returns the result of the first cache that has one, and asks each cache once.
    ///
    /// The `first` of a lazy sequence would ask that cache again, and end the process if it had lost its entry meanwhile.
    private static func first<Found>(
        of caches: some Sequence<any ImageCache>,
        _ find: (any ImageCache) -> Found?
    ) -> Found? {
        for cache in caches {
            if let found = find(cache) { return found }
        }
        return nil
    }

    /// Looks for `key` in the caches that the policy for queries names.
    ///
    /// One after the other, the first hit ends the search. All at once, the first to find it wins
    /// and the others are cancelled.
    public func lookUp(_ key: CacheKey, in tiers: CacheTiers) async throws -> CacheHit? {
        try await self.members(\.query).firstResult { try await $0.lookUp(key, in: tiers) }
    }

    /// What is kept with the bytes of `key`, looked for as ``lookUp(_:in:)`` does.
    public func diskMetadata(for key: CacheKey) async throws -> EntryMetadata? {
        try await self.members(\.query).firstResult { try await $0.diskMetadata(for: key) }
    }

    /// The file that has the entry of `key`, looked for as ``lookUp(_:in:)`` does.
    public func file(for key: CacheKey) async throws -> CachedFile? {
        try await self.members(\.query).firstResult { try await $0.file(for: key) }
    }

    /// Those of the chosen tiers that have `key` in a cache that the policy for `contains` names.
    ///
    /// One after the other, the first cache that has it answers alone.
    public func tiers(holding key: CacheKey, in tiers: CacheTiers) async -> CacheTiers {
        let members = self.members(\.contains)
        guard members.isConcurrent else {
            for cache in members.caches {
                let found = await cache.tiers(holding: key, in: tiers)
                if !found.isEmpty { return found }
            }
            return .none
        }
        return await withTaskGroup(of: CacheTiers.self) { group in
            for cache in members.caches { group.addTask { await cache.tiers(holding: key, in: tiers) } }
            return await group.reduce(into: .none) { $0.formUnion($1) }
        }
    }

    // MARK: Storing

    /// Stores in the caches that the policy for stores names, in place of what any cache has.
    ///
    /// - Returns: What became of the image in the highest of them.
    @discardableResult
    public func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async -> InsertOutcome? {
        await self.removeOthers(key, from: Self.tiers(tiers, of: image, data))
        let outcomes = await self.members(\.store).results { cache in
            await cache.store(image, data: data, metadata: metadata, for: key, in: tiers)
        }
        return outcomes.first ?? nil
    }

    /// Keeps an image in the memory of the caches that the policy for stores names, in place of what any cache has there.
    public func keepInMemory(
        _ image: Image,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) async {
        await self.removeOthers(key, from: .memory)
        for cache in self.members(\.store).caches {
            await cache.keepInMemory(image, metadata: metadata, for: key, unless: isObsolete)
        }
    }

    /// Stores in the caches that the policy for stores names, in place of what any cache has, and waits for their disks.
    ///
    /// - Returns: What became of the image in the highest of them.
    /// - Throws: The error of the highest one that failed; the others have stored all the same.
    @discardableResult
    public func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async throws -> InsertOutcome? {
        await self.removeOthers(key, from: Self.tiers(tiers, of: image, data))
        let results = await self.members(\.store).attempts { cache in
            try await cache.storeAndWait(image, data: data, metadata: metadata, for: key, in: tiers)
        }
        return try results.map { try $0.get() }.first ?? nil
    }

    public func encodedEntry(for key: CacheKey, encoding: UInt64, countsMiss: Bool) -> EncodedEntry? {
        Self.first(of: self.members(\.query).caches) {
            $0.encodedEntry(for: key, encoding: encoding, countsMiss: countsMiss)
        }
    }

    public func keepEncoded(
        _ entry: EncodedEntry,
        for key: CacheKey,
        encoding: UInt64,
        unless isObsolete: @Sendable () -> Bool
    ) {
        for cache in self.members(\.store).caches {
            cache.keepEncoded(entry, for: key, encoding: encoding, unless: isObsolete)
        }
    }

    public func waitForPendingStores() async {
        for cache in self.caches { await cache.waitForPendingStores() }
    }

    /// What all caches of the group hold together, and how they were used, whatever the policies say.
    ///
    /// A look-up that several caches were asked for counts in each of them.
    public func statistics() async -> CacheStatistics {
        var sum = CacheStatistics()
        for cache in self.caches.reversed() {
            let statistics = await cache.statistics()
            sum.memory = sum.memory + statistics.memory
            sum.disks += statistics.disks
            sum.lastReadError = sum.lastReadError ?? statistics.lastReadError
        }
        return sum
    }

    // MARK: Removing

    /// Removes the entry of `key` from the caches that the policy for removals names.
    ///
    /// - Throws: The error of the highest one that failed; the others have removed it all the same.
    @discardableResult
    public func remove(_ key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        let results = await self.members(\.remove).attempts { try await $0.remove(key, from: tiers) }
        return try results.map { try $0.get() }.contains(true)
    }

    /// Removes the entries of the family of `key` from the caches that the policy for removals names.
    ///
    /// - Throws: The error of the highest one that failed; the others have removed them all the same.
    @discardableResult
    public func removeFamily(of key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        let results = await self.members(\.remove).attempts { try await $0.removeFamily(of: key, from: tiers) }
        return try results.map { try $0.get() }.contains(true)
    }

    /// Removes all entries of the caches that the policy for clearing names.
    ///
    /// - Throws: The error of the highest one that failed; the others are empty all the same.
    public func removeAll(from tiers: CacheTiers) async throws {
        let results = await self.members(\.clear).attempts { try await $0.removeAll(from: tiers) }
        for result in results { try result.get() }
    }

    /// Removes what those caches have of a key that is about to be stored in others: it would be found where these lose it.
    ///
    /// What can't be removed is as old as it was.
    private func removeOthers(_ key: CacheKey, from tiers: CacheTiers) async {
        let others = self.state.withLock { state in
            CacheGroupMembers(of: state.caches, policy: state.policies.remove, besides: state.policies.store)
        }
        _ = await others.attempts { try await $0.remove(key, from: tiers) }
    }

    /// The tiers in which something is stored.
    private static func tiers(_ tiers: CacheTiers, of image: Image?, _ data: Data?) -> CacheTiers {
        tiers.subtracting(image == nil ? .memory : .none).subtracting(data == nil ? .disk : .none)
    }

    private func members(_ policy: (Policies) -> Policy) -> CacheGroupMembers {
        self.state.withLock { CacheGroupMembers(of: $0.caches, policy: policy($0.policies)) }
    }

    /// Which caches of a group take part in an operation.
    public enum Policy: Sendable, Hashable, CaseIterable {
        /// All of them, one after the other, the highest first; a search ends with the first hit.
        case serial
        /// All of them at once.
        case concurrent
        /// Only the one that was added last.
        case highestOnly
        /// Only the one that was added first.
        case lowestOnly
    }

    /// The policy for each kind of operation.
    public struct Policies: Sendable, Hashable {
        /// Looking up entries; default one after the other.
        public var query: Policy
        /// Asking whether there is an entry; default one after the other.
        public var contains: Policy
        /// Storing; default in the highest cache only.
        public var store: Policy
        /// Removing one entry; default everywhere at once.
        public var remove: Policy
        /// Removing all entries; default everywhere at once.
        public var clear: Policy

        /// Creates policies; those that are left out have their defaults.
        public init(
            query: Policy = .serial,
            contains: Policy = .serial,
            store: Policy = .highestOnly,
            remove: Policy = .concurrent,
            clear: Policy = .concurrent
        ) {
            self.query = query
            self.contains = contains
            self.store = store
            self.remove = remove
            self.clear = clear
        }
    }
}

/// The caches of a group that take part in one operation, the highest first.
struct CacheGroupMembers: Sendable {
    let caches: [any ImageCache]
    let isConcurrent: Bool

    /// Chooses from `caches`, the lowest first, those of one policy that another one does not name.
    init(of caches: [any ImageCache], policy: CacheGroup.Policy, besides other: CacheGroup.Policy? = nil) {
        let others = other.map { Self.indices(caches.indices, $0) }
        self.caches = Self.indices(caches.indices, policy).reversed().filter { !(others?.contains($0) ?? false) }
            .map { caches[$0] }
        self.isConcurrent = policy == .concurrent
    }

    private static func indices(_ all: Range<Int>, _ policy: CacheGroup.Policy) -> Range<Int> {
        switch policy {
        case .serial, .concurrent: all
        case .highestOnly: all.suffix(1)
        case .lowestOnly: all.prefix(1)
        }
    }

    /// What `search` finds first: in the order of the caches, or by time where they are asked at once.
    ///
    /// The searches that go on then are cancelled.
    func firstResult<Value: Sendable>(
        _ search: @escaping @Sendable (any ImageCache) async throws -> Value?
    ) async throws -> Value? {
        guard self.isConcurrent else {
            for cache in self.caches {
                if let found = try await search(cache) { return found }
            }
            return nil
        }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            defer { group.cancelAll() }
            for cache in self.caches { group.addTask { try await search(cache) } }
            while let result = try await group.next() {
                if let found = result { return found }
            }
            return nil
        }
    }

    /// What `operation` gives for each cache, in their order.
    func results<Value: Sendable>(
        _ operation: @escaping @Sendable (any ImageCache) async -> Value
    ) async -> [Value] {
        guard self.isConcurrent else {
            var values: [Value] = []
            for cache in self.caches { values.append(await operation(cache)) }
            return values
        }
        return await withTaskGroup(of: (index: Int, value: Value).self) { group in
            for (index, cache) in self.caches.enumerated() {
                group.addTask { (index, await operation(cache)) }
            }
            let values = await group.reduce(into: []) { $0.append($1) }
            return values.sorted { $0.index < $1.index }.map(\.value)
        }
    }

    /// How `operation` ends for each cache, in their order; a failure of one does not stop the others.
    func attempts<Value: Sendable>(
        _ operation: @escaping @Sendable (any ImageCache) async throws -> Value
    ) async -> [Result<Value, any Error>] {
        await self.results { cache in
            do { return .success(try await operation(cache)) } catch { return .failure(error) }
        }
    }
}
