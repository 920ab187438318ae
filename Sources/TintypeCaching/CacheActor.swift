public import FoundationEssentials
public import TintypeImage

/// A cache that holds decoded images in memory and encoded bytes on disk.
///
/// Look-ups, stores and removals run concurrently on any number of threads. The actor itself only guards the error of
/// the last failed read.
///
/// A load never fails because of its cache. A disk read that fails is a miss, and the error of a store in the
/// background is in the statistics.
public actor CacheActor: ImageCache {
    /// The memory tier, which any thread may use.
    public nonisolated let memory: MemoryCache
    /// The disk tier, which any thread may use; `nil` if the cache has only memory.
    public nonisolated let disk: DiskCache?

    private var lastReadError: CacheError?

    /// Creates a cache of two tiers.
    public init(memory: MemoryCache = MemoryCache(), disk: DiskCache?) {
        self.memory = memory
        self.disk = disk
    }

    public nonisolated var isLocal: Bool { true }

    // MARK: Looking up

    public nonisolated func memoryImage(for key: CacheKey) -> Image? {
        self.memory.image(for: key, countsMiss: false)
    }

    public nonisolated func memoryEntry(for key: CacheKey) -> MemoryEntry? {
        self.memory.entry(for: key)
    }

    public nonisolated func peekMemoryEntry(for key: CacheKey) -> MemoryEntry? {
        self.memory.peek(key)
    }

    public nonisolated func lookUp(_ key: CacheKey, in tiers: CacheTiers) async throws -> CacheHit? {
        if tiers.contains(.memory), let entry = self.memory.entry(for: key) { return .memory(entry) }
        guard tiers.contains(.disk) else { return nil }
        return try await self.read { try await $0.entry(for: key) }.map { .disk($0) }
    }

    public nonisolated func diskMetadata(for key: CacheKey) async throws -> EntryMetadata? {
        try await self.read { try await $0.metadata(for: key) }
    }

    public nonisolated func file(for key: CacheKey) async throws -> CachedFile? {
        try await self.read { try await $0.file(for: key) }
    }

    public nonisolated func readyEntry(for key: CacheKey) -> DiskEntry? {
        self.disk?.readyEntry(for: key)
    }

    public nonisolated func readyMetadata(for key: CacheKey) -> EntryMetadata? {
        self.disk?.readyMetadata(for: key)
    }

    private nonisolated func read<Found>(_ read: (DiskCache) async throws -> Found?) async throws -> Found? {
        guard let disk = self.disk else { return nil }
        do {
            return try await read(disk)
        } catch let error as CacheError {
            await self.note(error)
            return nil
        }
    }

    private func note(_ error: CacheError) { self.lastReadError = error }

    public nonisolated func tiers(holding key: CacheKey, in tiers: CacheTiers) async -> CacheTiers {
        var found = CacheTiers.none
        if tiers.contains(.memory), self.memory.contains(key) { found.insert(.memory) }
        if tiers.contains(.disk), let disk = self.disk, await disk.contains(key) { found.insert(.disk) }
        return found
    }

    // MARK: Storing

    @discardableResult
    public nonisolated func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) -> InsertOutcome? {
        if tiers.contains(.disk), let data { self.disk?.enqueueStore(data, metadata: metadata, for: key) }
        guard tiers.contains(.memory), let image else { return nil }
        let outcome = self.memory.insert(image, metadata: metadata, for: key)
        // Remove encoded images last: one that is encoded meanwhile already uses the new image.
        self.memory.removeEncoded(of: key)
        return outcome
    }

    public nonisolated func keepInMemory(
        _ image: Image,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) {
        self.memory.insert(image, metadata: metadata, for: key, unless: isObsolete)
    }

    @discardableResult
    public nonisolated func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async throws -> InsertOutcome? {
        let outcome = self.store(image, data: nil, metadata: metadata, for: key, in: tiers)
        if tiers.contains(.disk), let data { try await self.disk?.store(data, metadata: metadata, for: key) }
        return outcome
    }

    public nonisolated func waitForPendingStores() async {
        await self.disk?.waitForPendingStores()
    }

    public nonisolated func encodedEntry(for key: CacheKey, encoding: UInt64, countsMiss: Bool) -> EncodedEntry? {
        self.memory.encodedEntry(for: key, encoding: encoding, countsMiss: countsMiss)
    }

    public nonisolated func keepEncoded(
        _ entry: EncodedEntry,
        for key: CacheKey,
        encoding: UInt64,
        unless isObsolete: @Sendable () -> Bool
    ) {
        self.memory.keepEncoded(entry, for: key, encoding: encoding, unless: isObsolete)
    }

    // MARK: Removing

    @discardableResult
    public nonisolated func remove(_ key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        var isRemoved = false
        if tiers.contains(.memory) { isRemoved = self.memory.remove(key) }
        if tiers.contains(.disk), let disk = self.disk, try await disk.remove(key) { isRemoved = true }
        return isRemoved
    }

    @discardableResult
    public nonisolated func removeFamily(of key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        var isRemoved = false
        if tiers.contains(.memory) { isRemoved = self.memory.removeFamily(of: key) }
        if tiers.contains(.disk), let disk = self.disk, try await disk.removeFamily(of: key) { isRemoved = true }
        return isRemoved
    }

    public nonisolated func removeAll(from tiers: CacheTiers) async throws {
        if tiers.contains(.memory) { self.memory.removeAll() }
        if tiers.contains(.disk) { try await self.disk?.removeAll() }
    }

    // MARK: Figures

    public func statistics() async -> CacheStatistics {
        var statistics = CacheStatistics()
        statistics.memory = self.memory.statistics
        if let disk = await self.disk?.statistics() { statistics.disks = [disk] }
        statistics.lastReadError = self.lastReadError
        return statistics
    }
}
