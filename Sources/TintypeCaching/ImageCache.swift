public import FoundationEssentials
public import TintypeImage

/// What a loader asks of a cache: images in memory, encoded bytes on disk, by key and by tier.
///
/// ``CacheActor`` is one cache, ``CacheGroup`` joins several. One of another kind, such as a cache
/// that several machines share, takes part by conforming.
public protocol ImageCache: Sendable {
    /// Whether all entries are read from the memory and the disks of this machine; default `false`.
    ///
    /// A loader lets local reads wait for their turn where too many bytes are in memory already. It never does so
    /// where a read may take long, as it does from another machine.
    var isLocal: Bool { get }

    /// The image in memory, which counts as its use; a miss does not count: a load looks at the whole entry next.
    ///
    /// Called on every load, on the caller's thread: it must not wait.
    func memoryImage(for key: CacheKey) -> Image?

    /// The image in memory with its metadata, which counts as its use.
    ///
    /// Called on the caller's thread: it must not wait.
    func memoryEntry(for key: CacheKey) -> MemoryEntry?

    /// The image in memory with its metadata, which counts neither as its use nor as a look-up: statistics and
    /// eviction don't notice.
    ///
    /// A load that looks again after a miss peeks, so that it counts as one miss. By default a peek is a
    /// ``memoryEntry(for:)``, which counts. Called on the caller's thread: it must not wait.
    func peekMemoryEntry(for key: CacheKey) -> MemoryEntry?

    /// Looks for `key` in the chosen tiers, memory first.
    ///
    /// - Throws: `CancellationError` only. A tier that fails to read is a miss.
    func lookUp(_ key: CacheKey, in tiers: CacheTiers) async throws -> CacheHit?

    /// What is kept on disk with the bytes of `key`, without those; `nil` where there is no entry.
    ///
    /// A load asks it before it reads bytes that it may not serve, and where it wants to know which bytes there are. It
    /// does not count as a use. By default the whole entry is looked up, which counts.
    ///
    /// - Throws: `CancellationError` only. A disk that fails to read is a miss.
    func diskMetadata(for key: CacheKey) async throws -> EntryMetadata?

    /// The entry of `key` on disk, checked, if it is small and can be had without waiting; default none.
    ///
    /// It counts as a use. That there is none says nothing, and does not count as a miss. Called on the caller's
    /// thread: it must not wait.
    func readyEntry(for key: CacheKey) -> DiskEntry?

    /// The metadata of the entry of `key` on disk, checked, if it can be had without waiting; default none.
    ///
    /// It does not count as a use. `nil` does not mean that there is no entry. Called on the caller's thread: it must not
    /// wait.
    func readyMetadata(for key: CacheKey) -> EntryMetadata?

    /// Those of the chosen tiers that have `key`.
    ///
    /// Does not count as a use of the entry.
    func tiers(holding key: CacheKey, in tiers: CacheTiers) async -> CacheTiers

    /// Keeps an image in memory, unless it is obsolete in that very moment.
    ///
    /// Where `isObsolete` becomes true and the image is removed then, no look-up finds it after that. It takes no
    /// waiting, may be called while the cache is locked, and calls nothing of it. By default the image is kept, looked
    /// at again and removed, which leaves a moment between the two.
    func keepInMemory(
        _ image: Image,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) async

    /// What a server sends of the image under `key` in an encoding, from memory, which counts as its use; default none.
    ///
    /// Called on every load, on the caller's thread: it must not wait. A load that looks again after a miss does not
    /// count it (`countsMiss`).
    func encodedEntry(for key: CacheKey, encoding: UInt64, countsMiss: Bool) -> EncodedEntry?

    /// Keeps what a server sends of the image under `key` in memory, unless it is obsolete in that very moment; by
    /// default it is not kept.
    ///
    /// The entry is removed by its own key. As for ``keepInMemory(_:metadata:for:unless:)``, no look-up finds it after it
    /// has become obsolete and was removed.
    func keepEncoded(
        _ entry: EncodedEntry,
        for key: CacheKey,
        encoding: UInt64,
        unless isObsolete: @Sendable () -> Bool
    )

    /// Keeps an image in memory and its bytes on disk, the latter in the background.
    ///
    /// What is `nil` is not stored in its tier. Where the metadata names another body (``EntryMetadata/bodyDigest``) than
    /// the entry that is there, that one must not be found any more, even if the store fails.
    ///
    /// - Returns: What became of the image, or `nil` when there was none to keep.
    @discardableResult
    func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async -> InsertOutcome?

    /// Keeps an image in memory and its bytes on disk, as the store in the background does, and waits for the disk.
    ///
    /// - Returns: What became of the image, or `nil` when there was none to keep.
    /// - Throws: ``CacheError`` of the disk tier; the image is in memory then all the same.
    @discardableResult
    func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async throws -> InsertOutcome?

    /// Removes the entry of `key` from the chosen tiers, and says whether there was one.
    ///
    /// - Throws: ``CacheError`` when the file of the entry can't be removed.
    @discardableResult
    func remove(_ key: CacheKey, from tiers: CacheTiers) async throws -> Bool

    /// Removes the entries of the family of `key` (``CacheKey/derived(_:)``) from the chosen tiers, and says whether there
    /// were any; by default only that of `key`.
    ///
    /// - Throws: ``CacheError`` when the file of an entry can't be removed.
    @discardableResult
    func removeFamily(of key: CacheKey, from tiers: CacheTiers) async throws -> Bool

    /// The file that has the entry of `key` on disk, opened and checked, which counts as its use; default none.
    ///
    /// - Throws: `CancellationError` only. A disk that fails to read has none.
    func file(for key: CacheKey) async throws -> CachedFile?

    /// Removes all entries of the chosen tiers.
    ///
    /// - Throws: ``CacheError`` when files can't be removed.
    func removeAll(from tiers: CacheTiers) async throws

    /// Returns when all stores that were begun in the background before the call have ended.
    func waitForPendingStores() async

    /// What the cache holds and how it was used.
    func statistics() async -> CacheStatistics
}

/// What a look-up in both tiers found.
public enum CacheHit: Sendable {
    /// A decoded image.
    case memory(MemoryEntry)
    /// Encoded bytes, which are still to be decoded.
    case disk(DiskEntry)
}

/// What a cache holds and how it was used.
public struct CacheStatistics: Sendable {
    /// The images in memory, of all memory tiers together.
    public var memory = MemoryStatistics()
    /// Each of the disk tiers, in the order in which they are asked.
    public var disks: [DiskStatistics] = []
    /// Why the last read from a disk tier failed, which was taken as a miss.
    public var lastReadError: CacheError?

    /// Creates statistics of an empty cache.
    public init() {}
}

/// A choice of cache tiers.
public struct CacheTiers: OptionSet, Sendable, Hashable {
    /// One bit for each tier.
    public let rawValue: UInt8

    /// Creates a choice from its bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The decoded images in memory.
    public static let memory = CacheTiers(rawValue: 1)
    /// The encoded bytes on disk.
    public static let disk = CacheTiers(rawValue: 2)
    /// No tier.
    public static let none: CacheTiers = []
    /// Both tiers.
    public static let all: CacheTiers = [.memory, .disk]
}

extension CacheTiers: CustomStringConvertible {
    /// The names of the tiers, such as `memory, disk`; `none` for no tier.
    public var description: String {
        let names = [(CacheTiers.memory, "memory"), (.disk, "disk")].filter { self.contains($0.0) }.map(\.1)
        return names.isEmpty ? "none" : names.joined(separator: ", ")
    }
}

extension ImageCache {
    public var isLocal: Bool { false }

    public func encodedEntry(for key: CacheKey, encoding: UInt64, countsMiss: Bool) -> EncodedEntry? { nil }

    public func keepEncoded(
        _ entry: EncodedEntry,
        for key: CacheKey,
        encoding: UInt64,
        unless isObsolete: @Sendable () -> Bool
    ) {}

    public func readyEntry(for key: CacheKey) -> DiskEntry? { nil }

    public func readyMetadata(for key: CacheKey) -> EntryMetadata? { nil }

    public func diskMetadata(for key: CacheKey) async throws -> EntryMetadata? {
        guard case .disk(let entry) = try await self.lookUp(key, in: .disk) else { return nil }
        return entry.metadata
    }

    public func peekMemoryEntry(for key: CacheKey) -> MemoryEntry? {
        self.memoryEntry(for: key)
    }

    @discardableResult
    public func removeFamily(of key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        try await self.remove(key, from: tiers)
    }

    public func file(for key: CacheKey) async throws -> CachedFile? { nil }

    public func keepInMemory(
        _ image: Image,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) async {
        guard !isObsolete() else { return }
        await self.store(image, data: nil, metadata: metadata, for: key, in: .memory)
        // What can't be removed is as old as it was.
        if isObsolete() { _ = try? await self.remove(key, from: .memory) }
    }

    /// Looks for `key` in memory, then on disk.
    ///
    /// - Throws: `CancellationError` only. A tier that fails to read is a miss.
    public func lookUp(_ key: CacheKey) async throws -> CacheHit? {
        try await self.lookUp(key, in: .all)
    }

    /// Whether `key` is in one of the chosen tiers.
    ///
    /// Does not count as a use of the entry.
    public func contains(_ key: CacheKey, in tiers: CacheTiers = .all) async -> Bool {
        await !self.tiers(holding: key, in: tiers).isEmpty
    }

    /// Keeps an image in memory and its bytes on disk, the latter in the background.
    @discardableResult
    public func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey
    ) async -> InsertOutcome? {
        await self.store(image, data: data, metadata: metadata, for: key, in: .all)
    }

    /// Keeps an image in memory and its bytes on disk, and waits for the disk.
    ///
    /// - Throws: ``CacheError`` of the disk tier; the image is in memory then all the same.
    @discardableResult
    public func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey
    ) async throws -> InsertOutcome? {
        try await self.storeAndWait(image, data: data, metadata: metadata, for: key, in: .all)
    }

    /// Removes the entry of `key` from all tiers, and says whether there was one.
    ///
    /// - Throws: ``CacheError`` when the file of the entry can't be removed.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool {
        try await self.remove(key, from: .all)
    }

    /// Removes all entries.
    ///
    /// - Throws: ``CacheError`` when files can't be removed.
    public func removeAll() async throws {
        try await self.removeAll(from: .all)
    }
}
