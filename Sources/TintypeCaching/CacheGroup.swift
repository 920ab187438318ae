public import FoundationEssentials
import TintypeConcurrency
public import TintypeImage

/// Several caches that answer as one.
///
/// The caches have an order: the one that was added last is the highest, and look-ups begin with it. A policy for each
/// kind of operation decides which caches take part, and whether one after the other or at once.
///
/// A store under a key replaces the entries of all caches: the caches that take part in removals but not in stores lose
/// theirs. A cache that takes part in neither is only read. Its entry answers again after the other caches have lost
/// theirs.
///
/// A group without caches behaves like an empty cache that stores nothing.
public final class CacheGroup: ImageCache {
    private struct State {
        var caches: [any ImageCache]
        var policies: Policies
    }

    private let state: Locked<State>

    /// Creates a group of `caches`, the lowest first.
    public init(_ caches: [any ImageCache] = [], policies: Policies = Policies()) {
        self.state = Locked(State(caches: caches, policies: policies))
    }

    /// The caches, the lowest first.
    public var caches: [any ImageCache] {
        get { self.state.withLock { $0.caches } }
        set { self.state.withLock { $0.caches = newValue } }
    }

    /// The caches that take part in each kind of operation.
    ///
    /// A change does not affect operations under way.
    public var policies: Policies {
        get { self.state.withLock { $0.policies } }
        set { self.state.withLock { $0.policies = newValue } }
    }

    /// Adds `cache` as the highest.
    public func add(_ cache: some ImageCache) {
        self.state.withLock { $0.caches.append(cache) }
    }

    /// Whether all caches are local.
    public var isLocal: Bool { self.caches.allSatisfy(\.isLocal) }

    // MARK: Looking up

    public func memoryImage(for key: CacheKey) -> Image? {
        Self.first(of: self.members(\.query).caches) { $0.memoryImage(for: key) }
    }

    /// Returns the image in memory with its metadata, from the highest cache that has it.
    ///
    /// Follows the policy for queries, but always asks one cache after the other.
    public func memoryEntry(for key: CacheKey) -> MemoryEntry? {
        Self.first(of: self.members(\.query).caches) { $0.memoryEntry(for: key) }
    }

    public func peekMemoryEntry(for key: CacheKey) -> MemoryEntry? {
        Self.first(of: self.members(\.query).caches) { $0.peekMemoryEntry(for: key) }
    }

    /// Returns the entry of `key` that is ready without waiting: of the highest cache, or of any cache if the policy
    /// asks all at once.
    ///
    /// If the highest cache has no entry ready, it may still have one, so the caches below must not answer instead.
    public func readyEntry(for key: CacheKey) -> DiskEntry? {
        self.firstReady { $0.readyEntry(for: key) }
    }

    /// Returns the metadata that is ready without waiting, from the same caches as ``readyEntry(for:)``.
    public func readyMetadata(for key: CacheKey) -> EntryMetadata? {
        self.firstReady { $0.readyMetadata(for: key) }
    }

    private func firstReady<Found>(_ find: (any ImageCache) -> Found?) -> Found? {
        let members = self.members(\.query)
        return Self.first(of: members.isConcurrent ? members.caches[...] : members.caches.prefix(1), find)
    }

    /// Returns the result of the first cache that has one, and asks each cache once.
    ///
    /// The `first` of a lazy sequence would ask that cache again, and end the process if it had lost its entry
    /// meanwhile.
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
    /// One after the other, the first hit ends the search. At once, the first hit in time wins, and the other searches
    /// are cancelled.
    public func lookUp(_ key: CacheKey, in tiers: CacheTiers) async throws -> CacheHit? {
        try await self.members(\.query).firstResult { try await $0.lookUp(key, in: tiers) }
    }

    /// Returns the metadata of the bytes of `key`, searched like ``lookUp(_:in:)``.
    public func diskMetadata(for key: CacheKey) async throws -> EntryMetadata? {
        try await self.members(\.query).firstResult { try await $0.diskMetadata(for: key) }
    }

    /// Returns the file of the entry of `key`, searched like ``lookUp(_:in:)``.
    public func file(for key: CacheKey) async throws -> CachedFile? {
        try await self.members(\.query).firstResult { try await $0.file(for: key) }
    }

    /// Returns the chosen tiers that have `key`, in the caches of the policy for `contains`.
    ///
    /// One after the other, the first cache with an entry answers alone.
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

    /// Stores in the caches of the policy for stores, and replaces the entries of all caches.
    ///
    /// - Returns: The outcome for the image in the highest of them.
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

    /// Stores an image in the memory of the caches of the policy for stores, and replaces the images of all caches.
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

    /// Stores in the caches of the policy for stores, replaces the entries of all caches, and waits for the disks.
    ///
    /// - Returns: The outcome for the image in the highest of them.
    /// - Throws: The error of the highest cache that failed; the other caches have stored the entry all the same.
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

    /// Returns the statistics of all caches together, whatever the policies.
    ///
    /// A look-up in several caches counts in each of them.
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

    /// Removes the entry of `key` from the caches of the policy for removals.
    ///
    /// - Throws: The error of the highest cache that failed; the others have removed it all the same.
    @discardableResult
    public func remove(_ key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        let results = await self.members(\.remove).attempts { try await $0.remove(key, from: tiers) }
        return try results.map { try $0.get() }.contains(true)
    }

    /// Removes the entries of the family of `key` from the caches of the policy for removals.
    ///
    /// - Throws: The error of the highest cache that failed; the others have removed them all the same.
    @discardableResult
    public func removeFamily(of key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        let results = await self.members(\.remove).attempts { try await $0.removeFamily(of: key, from: tiers) }
        return try results.map { try $0.get() }.contains(true)
    }

    /// Removes all entries of the caches of the policy for clearing.
    ///
    /// - Throws: The error of the highest cache that failed; the others are empty all the same.
    public func removeAll(from tiers: CacheTiers) async throws {
        let results = await self.members(\.clear).attempts { try await $0.removeAll(from: tiers) }
        for result in results { try result.get() }
    }

    /// Removes a key that is about to be stored from the other caches, whose entries would answer again later.
    ///
    /// An entry that cannot be removed is as old as before.
    private func removeOthers(_ key: CacheKey, from tiers: CacheTiers) async {
        let others = self.state.withLock { state in
            CacheGroupMembers(of: state.caches, policy: state.policies.remove, besides: state.policies.store)
        }
        _ = await others.attempts { try await $0.remove(key, from: tiers) }
    }

    /// Returns the tiers that a store changes.
    private static func tiers(_ tiers: CacheTiers, of image: Image?, _ data: Data?) -> CacheTiers {
        tiers.subtracting(image == nil ? .memory : .none).subtracting(data == nil ? .disk : .none)
    }

    private func members(_ policy: (Policies) -> Policy) -> CacheGroupMembers {
        self.state.withLock { CacheGroupMembers(of: $0.caches, policy: policy($0.policies)) }
    }

    /// The choice of the caches of a group for an operation.
    public enum Policy: Sendable, Hashable, CaseIterable {
        /// All caches, one after the other, the highest first; a search ends with the first hit.
        case serial
        /// All caches at once.
        case concurrent
        /// Only the cache that was added last.
        case highestOnly
        /// Only the cache that was added first.
        case lowestOnly
    }

    /// The policy for each kind of operation.
    public struct Policies: Sendable, Hashable {
        /// Looking up entries; by default one cache after the other.
        public var query: Policy
        /// Checking whether there is an entry; by default one cache after the other.
        public var contains: Policy
        /// Storing; by default only in the highest cache.
        public var store: Policy
        /// Removing one entry; by default from all caches at once.
        public var remove: Policy
        /// Removing all entries; by default from all caches at once.
        public var clear: Policy

        /// Creates policies.
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

    /// Chooses the caches of one policy that another one does not choose, from `caches`, the lowest first.
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

    /// Returns the first result of `search`: in the order of the caches, or in time if they are asked at once.
    ///
    /// Then it cancels the searches that are left.
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

    /// Returns the result of `operation` for each cache, in their order.
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

    /// Returns the outcome of `operation` for each cache, in their order.
    ///
    /// A failure does not stop the other caches.
    func attempts<Value: Sendable>(
        _ operation: @escaping @Sendable (any ImageCache) async throws -> Value
    ) async -> [Result<Value, any Error>] {
        await self.results { cache in
            do { return .success(try await operation(cache)) } catch { return .failure(error) }
        }
    }
}
