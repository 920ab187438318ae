public import FoundationEssentials
public import TintypeImage

/// A cache of a loader: images in memory and encoded bytes on disk, by key and by tier.
///
/// ``CacheActor`` is one cache, and ``CacheGroup`` joins several. Conform to this protocol to add a cache of another
/// kind, such as one that several machines share.
public protocol ImageCache: Sendable {
    /// Whether all entries come from the memory and the disks of this machine; by default `false`.
    ///
    /// A loader lets local reads wait for their turn if too many bytes are in memory. It never does so for reads that
    /// may take long, such as from another machine.
    var isLocal: Bool { get }

    /// Returns the image in memory. A hit counts as a use. A miss does not count, because the load looks the whole
    /// entry up next.
    ///
    /// The loader calls it for every load, on the caller's thread: it must not wait.
    func memoryImage(for key: CacheKey) -> Image?

    /// Returns the image in memory with its metadata, and counts as a use.
    ///
    /// The loader calls it on the caller's thread: it must not wait.
    func memoryEntry(for key: CacheKey) -> MemoryEntry?

    /// Returns the image in memory with its metadata. Counts neither as a use nor as a look-up.
    ///
    /// A load that looks again after a miss peeks, so that it counts as one miss. By default this is
    /// ``memoryEntry(for:)``, which counts. The loader calls it on the caller's thread: it must not wait.
    func peekMemoryEntry(for key: CacheKey) -> MemoryEntry?

    /// Looks for `key` in the chosen tiers, memory first.
    ///
    /// - Throws: `CancellationError` only. A tier that fails to read is a miss.
    func lookUp(_ key: CacheKey, in tiers: CacheTiers) async throws -> CacheHit?

    /// Returns the metadata of the entry of `key` on disk; `nil` if there is no entry.
    ///
    /// A load calls it before it reads bytes that it may not serve, and to find out which bytes the disk has. It does
    /// not count as a use. By default it looks the whole entry up, which counts.
    ///
    /// - Throws: `CancellationError` only. A disk that fails to read is a miss.
    func diskMetadata(for key: CacheKey) async throws -> EntryMetadata?

    /// Returns the entry of `key` on disk, checked, if it is small and ready without waiting; by default `nil`.
    ///
    /// An entry counts as a use. `nil` does not mean that there is no entry, and does not count as a miss. The loader
    /// calls it on the caller's thread: it must not wait.
    func readyEntry(for key: CacheKey) -> DiskEntry?

    /// Returns the metadata of the entry of `key` on disk, checked, if it is ready without waiting; by default `nil`.
    ///
    /// It does not count as a use. `nil` does not mean that there is no entry. The loader calls it on the caller's
    /// thread: it must not wait.
    func readyMetadata(for key: CacheKey) -> EntryMetadata?

    /// Returns the chosen tiers that have `key`.
    ///
    /// Does not count as a use of the entry.
    func tiers(holding key: CacheKey, in tiers: CacheTiers) async -> CacheTiers

    /// Stores an image in memory, unless it is obsolete at that very moment.
    ///
    /// If `isObsolete` becomes true and the image is removed afterwards, no later look-up may find it. `isObsolete`
    /// does not wait, may be called while the cache is locked, and does not call the cache. The default implementation
    /// stores the image, checks again and removes it, which leaves a moment between the two.
    func keepInMemory(
        _ image: Image,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) async

    /// Returns the encoded image for `key` and an encoding if it is in memory, and counts as a use; by default `nil`.
    ///
    /// The loader calls it for every load, on the caller's thread: it must not wait. A load that looks again after a
    /// miss does not count it (`countsMiss`).
    func encodedEntry(for key: CacheKey, encoding: UInt64, countsMiss: Bool) -> EncodedEntry?

    /// Stores an encoded image for `key` in memory, unless it is obsolete at that very moment; by default does nothing.
    ///
    /// The loader removes the entry by its own key. As for ``keepInMemory(_:metadata:for:unless:)``, no look-up may
    /// find it after it became obsolete and was removed.
    func keepEncoded(
        _ entry: EncodedEntry,
        for key: CacheKey,
        encoding: UInt64,
        unless isObsolete: @Sendable () -> Bool
    )

    /// Stores an image in memory, and its bytes on disk in the background.
    ///
    /// If an argument is `nil`, the call does not change its tier. If the metadata names another body
    /// (``EntryMetadata/bodyDigest``) than the older entry, no look-up may find the older entry any more, even if the
    /// store fails.
    ///
    /// - Returns: The outcome for the image, or `nil` without an image.
    @discardableResult
    func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async -> InsertOutcome?

    /// Stores an image in memory and its bytes on disk, like the store in the background, and waits for the disk.
    ///
    /// - Returns: The outcome for the image, or `nil` without an image.
    /// - Throws: ``CacheError`` of the disk tier; the image is in memory all the same.
    @discardableResult
    func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async throws -> InsertOutcome?

    /// Removes the entry of `key` from the chosen tiers, and returns whether there was one.
    ///
    /// - Throws: ``CacheError`` if the file of the entry cannot be removed.
    @discardableResult
    func remove(_ key: CacheKey, from tiers: CacheTiers) async throws -> Bool

    /// Removes the entries of the family of `key` (``CacheKey/derived(_:)``) from the chosen tiers, and returns whether
    /// there were any; by default only the entry of `key`.
    ///
    /// - Throws: ``CacheError`` if the file of an entry cannot be removed.
    @discardableResult
    func removeFamily(of key: CacheKey, from tiers: CacheTiers) async throws -> Bool

    /// Opens and checks the file of the entry of `key` on disk, and counts as a use; by default returns `nil`.
    ///
    /// - Throws: `CancellationError` only. If the disk fails to read, there is no file.
    func file(for key: CacheKey) async throws -> CachedFile?

    /// Removes all entries of the chosen tiers.
    ///
    /// - Throws: ``CacheError`` if files cannot be removed.
    func removeAll(from tiers: CacheTiers) async throws

    /// Returns when all background stores that began before the call have ended.
    func waitForPendingStores() async

    /// Returns the statistics of the cache.
    func statistics() async -> CacheStatistics
}

/// The result of a look-up in both tiers.
public enum CacheHit: Sendable {
    /// A decoded image.
    case memory(MemoryEntry)
    /// Encoded bytes.
    case disk(DiskEntry)
}

/// The statistics of a cache.
public struct CacheStatistics: Sendable {
    /// The statistics of all memory tiers together.
    public var memory = MemoryStatistics()
    /// The statistics of each disk tier, in the order of look-ups.
    public var disks: [DiskStatistics] = []
    /// The error of the last failed read from a disk tier, which counted as a miss.
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
        // An entry that cannot be removed is as old as before.
        if isObsolete() { _ = try? await self.remove(key, from: .memory) }
    }

    /// Looks for `key` in memory, then on disk.
    ///
    /// - Throws: `CancellationError` only. A tier that fails to read is a miss.
    public func lookUp(_ key: CacheKey) async throws -> CacheHit? {
        try await self.lookUp(key, in: .all)
    }

    /// Returns whether one of the chosen tiers has `key`.
    ///
    /// Does not count as a use of the entry.
    public func contains(_ key: CacheKey, in tiers: CacheTiers = .all) async -> Bool {
        await !self.tiers(holding: key, in: tiers).isEmpty
    }

    /// Stores an image in memory, and its bytes on disk in the background.
    @discardableResult
    public func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey
    ) async -> InsertOutcome? {
        await self.store(image, data: data, metadata: metadata, for: key, in: .all)
    }

    /// Stores an image in memory and its bytes on disk, and waits for the disk.
    ///
    /// - Throws: ``CacheError`` of the disk tier; the image is in memory all the same.
    @discardableResult
    public func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey
    ) async throws -> InsertOutcome? {
        try await self.storeAndWait(image, data: data, metadata: metadata, for: key, in: .all)
    }

    /// Removes the entry of `key` from all tiers, and returns whether there was one.
    ///
    /// - Throws: ``CacheError`` if the file of the entry cannot be removed.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool {
        try await self.remove(key, from: .all)
    }

    /// Removes all entries.
    ///
    /// - Throws: ``CacheError`` if files cannot be removed.
    public func removeAll() async throws {
        try await self.removeAll(from: .all)
    }
}
