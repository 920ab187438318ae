// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// A cache that holds decoded images in memory and encoded bytes in a list of byte tiers.
///
/// The first byte tier is usually a ``DiskCache``. Farther tiers, such as a store that several machines share, conform to
/// ``ByteTier``:
///
/// ```swift
/// let cache = CacheActor(tiers: [DiskCache(), redis])
/// ```
///
/// A look-up asks the nearest tier first, and stores an entry of a farther tier in the nearer ones. Stores and removals
/// reach all tiers. ``TierPolicies`` change that for each kind of operation.
///
/// Look-ups, stores and removals run concurrently on any number of threads, and none of them waits for the actor.
///
/// A load never fails because of its cache. A read that fails is a miss, and the error of a store in the background is in
/// the statistics.
public actor CacheActor {
    /// The memory tier, which any thread may use.
    public nonisolated let memory: MemoryCache
    private nonisolated let tiers: ByteTierList

    /// Creates a cache of a memory tier and a disk; `nil` for memory only.
    ///
    /// ```swift
    /// let cache = CacheActor(disk: DiskCache())
    /// let memoryOnly = CacheActor(disk: nil)
    /// ```
    public init(memory: MemoryCache = MemoryCache(), disk: DiskCache?) {
        self.memory = memory
        self.tiers = ByteTierList([disk].compactMap(\.self))
    }

    /// Creates a cache of a memory tier and byte tiers.
    ///
    /// ```swift
    /// let cache = CacheActor(tiers: [DiskCache(), redis], timeBudget: .milliseconds(200)) { error in
    ///     print(error.message)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - memory: The memory tier.
    ///   - tiers: The byte tiers, the nearest first.
    ///   - policies: The tiers that take part in each kind of operation.
    ///   - timeBudget: The longest time of a call to a tier that is not a ``DiskCache`` and has no
    ///     ``ByteTier/timeBudget`` of its own. A longer call is cancelled, and is a miss.
    ///   - storeErrorHandler: Receives the errors of stores and removals in these tiers; by default they are only counted.
    public init(
        memory: MemoryCache = MemoryCache(),
        tiers: [any ByteTier],
        policies: TierPolicies = TierPolicies(),
        timeBudget: Duration = .seconds(1),
        storeErrorHandler: @escaping @Sendable (CacheError) -> Void = { _ in }
    ) {
        self.memory = memory
        let ordered = tiers.map { tier in
            tier as? any OrderedByteTier
                ?? OrderedTier(tier, timeBudget: timeBudget, reportError: storeErrorHandler)
        }
        self.tiers = ByteTierList(ordered, policies: policies)
    }

    /// The nearest disk; `nil` if no tier is a ``DiskCache``.
    public nonisolated var disk: DiskCache? { self.tiers.disk }

    /// Whether the cache has a byte tier.
    package nonisolated var hasByteTiers: Bool { !self.tiers.isEmpty }

    /// Whether the nearest byte tier is a disk of this machine.
    ///
    /// A loader lets such reads wait for their turn if too many bytes are in memory. It never does so if each of them asks
    /// another machine first.
    package nonisolated var isLocal: Bool { self.tiers.isLocal }

    /// Whether a byte tier is on another machine, and may therefore fail to answer.
    package nonisolated var hasRemoteTiers: Bool { self.tiers.hasRemoteTiers }

    /// Runs a load, whose turns to make entries for other machines end with it.
    package nonisolated func takingTurns<Value>(_ load: () async throws -> Value) async rethrows -> Value {
        guard self.hasRemoteTiers else { return try await load() }
        let turns = TierTurns()
        defer { turns.release() }
        return try await TierTurns.$current.withValue(turns, operation: load)
    }

    /// Returns `work` with the turns of the load under way, which do not end before it.
    package nonisolated func holdingTurns<Argument, Value>(
        _ work: @escaping @Sendable (Argument) async -> Value
    ) -> @Sendable (Argument) async -> Value {
        guard let turns = TierTurns.current else { return work }
        turns.hold()
        return { argument in
            defer { turns.release() }
            return await work(argument)
        }
    }

    // MARK: Bytes

    /// Returns the entry of `key` from the nearest byte tier that has it.
    ///
    /// ```swift
    /// if let entry = try await cache.entry(for: key) { print(entry.data.count, entry.tier ?? "") }
    /// ```
    ///
    /// - Throws: `CancellationError` only. A tier that fails to read is a miss.
    public nonisolated func entry(for key: CacheKey) async throws -> ByteEntry? {
        try await self.tiers.entry(for: key)
    }

    /// Returns the metadata of the entry of `key` from the nearest byte tier that has it; does not count as a use.
    ///
    /// ```swift
    /// let mediaType = try await cache.metadata(for: key)?.mediaType  // "image/jpeg"
    /// ```
    ///
    /// - Throws: `CancellationError` only. A tier that fails to read is a miss.
    public nonisolated func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        try await self.tiers.metadata(for: key)
    }

    /// Returns the entry of `key` from the byte tiers, checked, if it is small and ready without waiting.
    ///
    /// An entry counts as a use. `nil` does not mean that there is no entry, and does not count as a miss.
    package nonisolated func readyEntry(for key: CacheKey) -> ByteEntry? {
        self.tiers.readyEntry(for: key)
    }

    /// Returns the metadata of the entry of `key` in the byte tiers, checked, if it is ready without waiting.
    ///
    /// It does not count as a use. `nil` does not mean that there is no entry.
    package nonisolated func readyMetadata(for key: CacheKey) -> EntryMetadata? {
        self.tiers.readyMetadata(for: key)
    }

    /// Opens and checks the file of the entry of `key` on disk, and counts as a use.
    ///
    /// An entry that only a farther tier has is stored on disk first.
    ///
    /// ```swift
    /// if let file = try await cache.file(for: key) {
    ///     print(file.path, file.offset, file.byteCount)  // for sendfile
    /// }
    /// ```
    ///
    /// - Throws: `CancellationError` only. If the disk fails to read, there is no file.
    public nonisolated func file(for key: CacheKey) async throws -> CachedFile? {
        try await self.tiers.file(for: key)
    }

    // MARK: Both

    /// Returns the chosen tiers that have `key`.
    ///
    /// Does not count as a use of the entry.
    ///
    /// ```swift
    /// let tiers = await cache.tiers(holding: key)  // such as [.disk]
    /// ```
    public nonisolated func tiers(holding key: CacheKey, in tiers: CacheTiers = .all) async -> CacheTiers {
        var found = CacheTiers.none
        if tiers.contains(.memory), self.memory.contains(key) { found.insert(.memory) }
        if tiers.contains(.disk), await self.tiers.contains(key) { found.insert(.disk) }
        return found
    }

    /// Returns whether one of the chosen tiers has `key`.
    ///
    /// Does not count as a use of the entry.
    ///
    /// ```swift
    /// let isOnDisk = await cache.contains(key, in: .disk)
    /// ```
    public nonisolated func contains(_ key: CacheKey, in tiers: CacheTiers = .all) async -> Bool {
        await !self.tiers(holding: key, in: tiers).isEmpty
    }

    /// Stores an image in memory, and its bytes in the byte tiers in the background.
    ///
    /// If an argument is `nil`, the call does not change its tiers. If the metadata names another body
    /// (``EntryMetadata/bodyDigest``) than the older entry, no look-up finds the older entry any more, even if the store
    /// fails.
    ///
    /// ```swift
    /// let outcome = await cache.store(image, data: data, metadata: EntryMetadata(mediaType: "image/png"), for: key)
    /// if case .refused(let reason)? = outcome { print(reason) }
    /// ```
    ///
    /// - Returns: The outcome for the image, or `nil` without an image.
    @discardableResult
    public nonisolated func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers = .all
    ) async -> InsertOutcome? {
        if tiers.contains(.disk), let data { await self.tiers.enqueueStore(data, metadata: metadata, for: key) }
        return tiers.contains(.memory) ? self.store(image, metadata, for: key) : nil
    }

    /// Stores an image in memory and its bytes in the byte tiers, like the store in the background, and waits for these.
    ///
    /// ```swift
    /// try await cache.storeAndWait(nil, data: data, metadata: metadata, for: key, in: .disk)
    /// ```
    ///
    /// - Returns: The outcome for the image, or `nil` without an image.
    /// - Throws: ``CacheError`` of a byte tier; the image is in memory all the same, and the other tiers have the bytes.
    @discardableResult
    public nonisolated func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers = .all
    ) async throws -> InsertOutcome? {
        let outcome = tiers.contains(.memory) ? self.store(image, metadata, for: key) : nil
        if tiers.contains(.disk), let data { try await self.tiers.store(data, metadata: metadata, for: key) }
        return outcome
    }

    private nonisolated func store(_ image: Image?, _ metadata: EntryMetadata, for key: CacheKey) -> InsertOutcome? {
        guard let image else { return nil }
        let outcome = self.memory.insert(image, metadata: metadata, for: key)
        // Remove encoded images last: one that is encoded meanwhile already uses the new image.
        self.memory.removeEncoded(of: key)
        return outcome
    }

    /// Returns when all background stores that began before the call have ended.
    ///
    /// ```swift
    /// await cache.store(image, data: data, metadata: metadata, for: key)
    /// await cache.waitForPendingStores()
    /// let isStored = await cache.contains(key, in: .disk)  // true
    /// ```
    public nonisolated func waitForPendingStores() async {
        await self.tiers.waitForPendingStores()
    }

    // MARK: Removing

    /// Removes the entry of `key` from the chosen tiers, and returns whether there was one.
    ///
    /// ```swift
    /// let wasThere = try await cache.remove(key)
    /// ```
    ///
    /// - Throws: ``CacheError`` if a byte tier cannot remove it.
    @discardableResult
    public nonisolated func remove(_ key: CacheKey, from tiers: CacheTiers = .all) async throws -> Bool {
        try await self.remove(key, from: tiers, unless: nil)
    }

    /// Removes the entry of `key` from the chosen tiers.
    ///
    /// With `isCurrent`, a tier that other machines share removes its entry only if that is not current.
    @discardableResult
    package nonisolated func remove(
        _ key: CacheKey,
        from tiers: CacheTiers,
        unless isCurrent: (@Sendable (EntryMetadata) -> Bool)?
    ) async throws -> Bool {
        let isRemoved = tiers.contains(.memory) && self.memory.remove(key)
        guard tiers.contains(.disk) else { return isRemoved }
        return try await self.tiers.remove(key, unless: isCurrent) || isRemoved
    }

    /// Removes the entries of the family of `key` (``CacheKey/derived(_:)``) from the chosen tiers, and returns whether
    /// there were any.
    ///
    /// ```swift
    /// await cache.store(image, data: data, metadata: metadata, for: key.derived("thumbnail"))
    /// try await cache.removeFamily(of: key)  // also removes the thumbnail
    /// ```
    ///
    /// - Throws: ``CacheError`` if a byte tier cannot remove an entry.
    @discardableResult
    public nonisolated func removeFamily(of key: CacheKey, from tiers: CacheTiers = .all) async throws -> Bool {
        let isRemoved = tiers.contains(.memory) && self.memory.removeFamily(of: key)
        guard tiers.contains(.disk) else { return isRemoved }
        return try await self.tiers.removeFamily(of: key) || isRemoved
    }

    /// Removes the entries of the family of `key`, or all entries, from the disks of this machine.
    package nonisolated func removeLocal(familyOf key: CacheKey?) async throws {
        try await self.tiers.removeLocal(familyOf: key)
    }

    /// Removes all entries of the chosen tiers.
    ///
    /// ```swift
    /// try await cache.removeAll(from: .memory)
    /// ```
    ///
    /// - Throws: ``CacheError`` if a byte tier cannot remove its entries.
    public nonisolated func removeAll(from tiers: CacheTiers = .all) async throws {
        if tiers.contains(.memory) { self.memory.removeAll() }
        if tiers.contains(.disk) { try await self.tiers.removeAll() }
    }

    // MARK: Statistics

    /// Returns the statistics of the cache.
    ///
    /// ```swift
    /// let statistics = await cache.statistics()
    /// print(statistics.memory.hits, statistics.tiers.map(\.hits))
    /// ```
    public func statistics() async -> CacheStatistics {
        var statistics = CacheStatistics()
        statistics.memory = self.memory.statistics
        statistics.tiers = await self.tiers.statistics()
        return statistics
    }
}
