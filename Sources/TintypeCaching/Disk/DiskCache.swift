// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Synchronization
import TintypeConcurrency

/// The disk tier: encoded bytes in files, with limits on age and size.
///
/// Each entry is one file with its key, its metadata and checksums. The cache writes the whole file and then moves it
/// into place. A file that differs from what was stored is a miss, and the cache removes it. The cache does not
/// synchronise files to the disk. A power cut may cost the newest entries, but never makes the cache return wrong
/// bytes.
///
/// The catalogue contains the size and the last use of each entry. It is a memory-mapped file that all processes with
/// the same folder share. So a folder of a million entries opens at once, a miss reads no file, and the size limit
/// holds over all processes that write. The files take precedence over the catalogue. The cache rebuilds a catalogue
/// that is lost, damaged or of another version. If another process truncates a mapped catalogue, access to it raises
/// `SIGBUS`. So the cache installs a handler with the first catalogue that it maps, and the handler forwards all other
/// signals.
///
/// The cache only removes files that a cache has written.
///
/// A hit on a file in the system's page cache runs in the caller's task, without waiting for the disk and never on the
/// caller's actor. All other operations run on the cache's own threads: one for each lane, and one for maintenance of
/// the whole folder. Operations on one key run in the order of their calls.
public final class DiskCache: OrderedByteTier {
    /// The configuration of the cache.
    public let configuration: Configuration

    let store: EntryStore
    let lanes: [DiskLane]
    let housekeeper: DiskHousekeeper
    let operations = OperationCounter()
    private let isOpened = Atomic<Bool>(false)

    /// Creates a cache for a folder, which need not exist.
    ///
    /// Does not access the disk.
    ///
    /// ```swift
    /// let disk = DiskCache(.init(directory: URL(filePath: "/var/cache/images"), sizeLimit: 20 << 30))
    /// ```
    public convenience init(_ configuration: Configuration = Configuration()) {
        self.init(configuration, startThread: POSIXThread.start)
    }

    init(_ configuration: Configuration, startThread: @escaping POSIXThread.Starter) {
        let store = EntryStore(configuration)
        let errorHandler = configuration.storeErrorHandler
        let laneCount = max(1, configuration.laneCount)
        self.configuration = configuration
        self.store = store
        self.housekeeper = DiskHousekeeper(store: store)
        self.lanes = (0..<laneCount).map { number in
            DiskLane(
                name: "tintype-disk-\(number)",
                store: store,
                pendingByteLimit: configuration.pendingByteLimit / laneCount,
                startThread: startThread,
                reportError: { error in
                    store.counters.storeErrors.note(error)
                    errorHandler?(error)
                }
            )
        }
        store.folders.housekeeping.setHandler { [weak self] in self?.attend() }
    }

    deinit {
        // Every operation retains the cache, so none is running now.
        self.endThreads()
    }

    // MARK: Reading

    /// Returns the entry of `key` after checking it, and counts the access as a use; `nil` if there is no entry.
    ///
    /// Also returns `nil` for an expired or damaged entry, and for an entry of another key with the same name, and
    /// removes it.
    ///
    /// ```swift
    /// if let entry = try await disk.entry(for: key) { print(entry.data.count, entry.storedAt) }
    /// ```
    ///
    /// - Throws: `CancellationError` if the caller was cancelled before the read began. ``CacheError`` if the system
    ///   failed to read an existing file (no permission, no file descriptor, a bad disk), or if the cache was shut
    ///   down. ``CacheActor`` treats such an error as a miss.
    @concurrent
    public func entry(for key: CacheKey) async throws -> ByteEntry? {
        try self.begin()
        defer { self.operations.end() }
        switch try self.readCached(.whole, of: key) {
        case .hit(let entry): return entry
        case .miss: return nil
        // Only here, because another asynchronous call would make a miss a fifth slower.
        case .unknown: return try await self.lane(of: key).started().read(.whole, of: key)
        }
    }

    /// Returns the metadata of the entry of `key` after checking it; `nil` if there is no entry.
    ///
    /// Does not read or check the encoded bytes, and does not count as a use.
    ///
    /// ```swift
    /// let etag = try await disk.metadata(for: key)?.etag
    /// ```
    ///
    /// - Throws: The same errors as ``entry(for:)``.
    @concurrent
    public func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        try self.begin()
        defer { self.operations.end() }
        switch try self.readCached(.head, of: key) {
        case .hit(let entry): return entry.metadata
        case .miss: return nil
        case .unknown: return try await self.lane(of: key).started().read(.head, of: key)?.metadata
        }
    }

    /// Looks `key` up without waiting.
    ///
    /// - Throws: `CancellationError`.
    private func readCached(_ part: EntryPart, of key: CacheKey) throws -> EntryReader.CachedAnswer {
        try Task.checkCancellation()
        if let item = self.lane(of: key).pending.item(key) {
            // A refused store removes only an entry of another body, so the lane must check the entry.
            if item.isRefused, item.metadata.bodyDigest != nil { return .unknown }
            return self.read(part, of: item).map { .hit($0) } ?? .miss
        }
        return self.store.reader.readCached(part, of: key)
    }

    /// Returns the entry of `key` after checking it, if that needs no waiting, and counts the access as a use.
    ///
    /// Finds small entries in the system's page cache, and pending stores. `nil` does not mean that there is no entry,
    /// and does not count as a miss.
    ///
    /// ```swift
    /// let bytes = disk.readyEntry(for: key)?.data
    /// ```
    public func readyEntry(for key: CacheKey) -> ByteEntry? {
        guard (try? self.begin()) != nil else { return nil }
        defer { self.operations.end() }
        if let item = self.lane(of: key).pending.item(key) { return self.read(.whole, of: item) }
        guard case .hit(let entry) = self.store.reader.readCached(.whole, of: key, countsMiss: false) else {
            return nil
        }
        return entry
    }

    /// Returns the metadata of the entry of `key` after checking it, if that needs no waiting.
    ///
    /// Finds entries in the system's page cache, and pending stores. Does not count as a use. `nil` does not mean that
    /// there is no entry.
    ///
    /// ```swift
    /// let expiry = disk.readyMetadata(for: key)?.expiry
    /// ```
    public func readyMetadata(for key: CacheKey) -> EntryMetadata? {
        guard (try? self.begin()) != nil else { return nil }
        defer { self.operations.end() }
        if let item = self.lane(of: key).pending.item(key) { return self.read(.head, of: item)?.metadata }
        return self.store.reader.readyMetadata(of: key)
    }

    /// Opens and checks the file of the entry of `key`, and counts the access as a use; `nil` if there is no entry.
    ///
    /// Writes a pending store of `key` first.
    ///
    /// ```swift
    /// if let file = try await disk.file(for: key) {
    ///     print(file.descriptor, file.offset, file.byteCount)  // for sendfile
    /// }
    /// ```
    ///
    /// - Throws: The same errors as ``entry(for:)``.
    public func file(for key: CacheKey) async throws -> CachedFile? {
        try self.begin()
        defer { self.operations.end() }
        return try await self.lane(of: key).started().file(of: key)
    }

    /// Returns whether there is an entry of `key` that has not expired.
    ///
    /// Does not check its body, and does not count as a use.
    ///
    /// ```swift
    /// let isOnDisk = await disk.contains(key)
    /// ```
    public func contains(_ key: CacheKey) async -> Bool {
        await self.whileOpen { await self.lane(of: key).contains(key) } ?? false
    }

    // MARK: Writing

    /// Stores `data` for `key`, replaces an older entry, and returns when the new entry can be read.
    ///
    /// Evicts the least recently used entries first if the size limit requires it. Cannot be cancelled.
    ///
    /// ```swift
    /// let key = CacheKey("https://example.com/photo.jpg")
    /// try await disk.store(data, metadata: EntryMetadata(mediaType: "image/jpeg"), for: key)
    /// ```
    ///
    /// - Throws: ``CacheError``. Then the cache has no part of the new entry, and the older entry stays. The older
    ///   entry is gone if the metadata names another body (``EntryMetadata/bodyDigest``), or if the size limit had room
    ///   only without it.
    public func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        try self.begin()
        defer { self.operations.end() }
        do {
            try await self.lane(of: key).started().store(data, metadata: metadata, for: key)
        } catch {
            if let error = error as? CacheError { self.store.counters.storeErrors.note(error) }
            throw error
        }
    }

    /// Stores `data` for `key` in the background, and returns at once.
    ///
    /// Every later operation on `key` sees the entry. Errors go to the statistics and to the configuration's handler.
    /// If more bytes wait than the configuration permits, the cache refuses the store with an error. After an error,
    /// the entries are as ``store(_:metadata:for:)`` describes.
    ///
    /// ```swift
    /// disk.enqueueStore(data, metadata: metadata, for: key)
    /// let entry = try await disk.entry(for: key)  // finds the bytes at once
    /// ```
    public func enqueueStore(_ data: Data, metadata: EntryMetadata, for key: CacheKey) {
        self.enqueueStore(data, metadata: metadata, for: key) { false }
    }

    @discardableResult
    package func enqueueStore(
        _ data: Data,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) -> Bool {
        guard self.operations.begin() else {
            self.report(.shutDown(self.store.counters.directory))
            return false
        }
        defer { self.operations.end() }
        self.open()
        let lane = self.lane(of: key)
        switch lane.pending.add(PendingStores.Item(key: key, data: data, metadata: metadata), unless: isObsolete) {
        case .queued:
            return true
        case .obsolete:
            return false
        case .refused(let byteCount):
            self.report(.tooManyPending(byteCount, in: self.store.counters.directory))
            return false
        case .queuedFirst:
            self.operations.beginPart()
            // The task retains the cache until all stores are written; `shutdown()` waits for it.
            Task {
                await lane.writeAllPending()
                self.operations.end()
            }
            return true
        }
    }

    /// Returns when all stores that were enqueued before the call have been written or have failed.
    ///
    /// ```swift
    /// disk.enqueueStore(data, metadata: metadata, for: key)
    /// await disk.waitForPendingStores()
    /// ```
    public func waitForPendingStores() async {
        await self.whileOpen { for lane in self.lanes { await lane.flush() } }
    }

    /// Removes the entry of `key` and its pending store.
    ///
    /// ```swift
    /// let wasThere = try await disk.remove(key)
    /// ```
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``CacheError`` if the file exists and cannot be removed.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool {
        try self.begin()
        defer { self.operations.end() }
        return try await self.lane(of: key).started().remove(key)
    }

    /// Removes the entries of the family of `key` and their pending stores.
    ///
    /// The catalogue lists them. If it must be rebuilt or cannot be shared, the cache searches the folder.
    ///
    /// ```swift
    /// let wereThere = try await disk.removeFamily(of: key)
    /// ```
    ///
    /// - Returns: Whether there were any.
    /// - Throws: ``CacheError`` if a file exists and cannot be removed.
    @discardableResult
    public func removeFamily(of key: CacheKey) async throws -> Bool {
        try self.begin()
        defer { self.operations.end() }
        var isDropped = false
        for lane in self.lanes where await lane.refuseFamily(of: key) { isDropped = true }
        return try await self.lanes[0].started().removeFamily(of: key) || isDropped
    }

    /// Removes all entries and pending stores.
    ///
    /// The cache moves the entries aside in whole folders, and deletes them in the background. If the process ends
    /// before that, the next process that opens the folder deletes the rest. Until then those bytes count towards the
    /// size limit. Other files in the folder are not affected, even among the entries.
    ///
    /// ```swift
    /// try await disk.removeAll(waitingForDeletion: true)
    /// let bytes = await disk.statistics().byteCount  // 0
    /// ```
    ///
    /// - Parameter isWaiting: Whether to return only when all files are deleted.
    /// - Throws: ``CacheError`` if the entries cannot be moved.
    public func removeAll(waitingForDeletion isWaiting: Bool) async throws {
        try self.begin()
        defer { self.operations.end() }
        for lane in self.lanes { lane.pending.refuseAll() }
        // Use a lane, because the housekeeper may be busy for long.
        try await self.lanes[0].started().removeAll()
        if isWaiting { await self.housekeeper.attend() } else { self.attend() }
    }

    // MARK: As a tier

    public var name: String { "disk" }

    package var isLocal: Bool { true }

    /// Accepts all entries, and refuses to store one that is larger than its limit.
    ///
    /// ```swift
    /// let accepts = disk.accepts(key, byteCount: data.count)  // true
    /// ```
    public func accepts(_ key: CacheKey, byteCount: Int) -> Bool { true }

    /// Removes all entries and pending stores, and deletes their files in the background.
    ///
    /// ```swift
    /// try await disk.removeAll()
    /// ```
    ///
    /// - Throws: ``CacheError`` if the entries cannot be moved.
    public func removeAll() async throws {
        try await self.removeAll(waitingForDeletion: false)
    }

    package func tierStatistics() async -> TierStatistics {
        let disk = await self.statistics()
        var statistics = TierStatistics(name: self.name)
        statistics.writeFailures = disk.storeErrors
        statistics.lastWriteError = disk.lastStoreError
        statistics.disk = disk
        return statistics
    }

    // MARK: Extended data

    /// Changes the metadata of the entry of `key`, but neither its bytes nor its age.
    ///
    /// ```swift
    /// let exists = try await disk.updateMetadata(for: key) { $0.extra["owner"] = "anna" }
    /// ```
    ///
    /// - Returns: Whether there is an entry.
    /// - Throws: ``CacheError``; then the entry is unchanged.
    @discardableResult
    public func updateMetadata(
        for key: CacheKey,
        _ change: @Sendable (inout EntryMetadata) -> Void
    ) async throws -> Bool {
        try self.begin()
        defer { self.operations.end() }
        return try await self.lane(of: key).started().updateMetadata(of: key, change)
    }

    // MARK: Lifetime

    /// Waits for running operations and pending stores, then ends the threads.
    ///
    /// After the call, operations fail with `shutDown`, or find no entry.
    ///
    /// A cache also shuts down when its last reference is released.
    ///
    /// ```swift
    /// await disk.shutdown()
    /// ```
    public func shutdown() async {
        self.store.folders.closing.set()
        await self.operations.close()
        self.endThreads()
        self.store.folders.close()
    }

    private func endThreads() {
        for lane in self.lanes { lane.shutdown() }
        self.housekeeper.shutdown()
    }

    /// Runs `body` as an operation, or returns `nil` if the cache was shut down.
    @discardableResult
    private func whileOpen<Result>(_ body: () async -> Result) async -> Result? {
        guard (try? self.begin()) != nil else { return nil }
        defer { self.operations.end() }
        return await body()
    }

    /// Runs `body`, which opens the folder itself and counts the entries that this removes.
    private func whileCleaning(_ body: () async -> PruneResult) async -> PruneResult? {
        guard self.operations.begin() else { return nil }
        defer { self.operations.end() }
        self.isOpened.store(true, ordering: .relaxed)
        return await body()
    }

    /// Begins an operation, unless the cache was shut down; the caller must end it with ``operations``.
    func begin() throws(CacheError) {
        guard self.operations.begin() else { throw .shutDown(self.store.counters.directory) }
        self.open()
    }

    /// Starts to read the folder in the background, at the first operation.
    private func open() {
        guard !self.isOpened.exchange(true, ordering: .relaxed) else { return }
        self.operations.beginPart()
        // The task retains the cache until the folder is read; `shutdown()` cuts it short.
        Task {
            await self.housekeeper.open()
            self.operations.end()
        }
    }

    /// Starts the maintenance that was requested for the folder.
    private func attend() {
        self.operations.beginPart()
        // The task retains the cache until the maintenance is done; `shutdown()` cuts it short.
        Task {
            await self.housekeeper.attend()
            self.operations.end()
        }
    }

    /// Returns the entry of a store that is not written yet.
    private func read(_ part: EntryPart, of item: PendingStores.Item) -> ByteEntry? {
        let now = self.configuration.now()
        let isAlive = !item.isRefused && item.metadata.expiry.map { $0 > now } ?? true
        self.store.reader.count(isHit: isAlive, part)
        return isAlive ? ByteEntry(data: item.data, metadata: item.metadata, storedAt: now) : nil
    }

    private func lane(of key: CacheKey) -> DiskLane {
        self.lanes[Int(key.hash % UInt64(self.lanes.count))]
    }

    private func report(_ error: CacheError) {
        self.store.counters.storeErrors.note(error)
        self.configuration.storeErrorHandler?(error)
    }

    // MARK: Cleaning and figures

    /// Reads the folder again and removes expired entries, entries over the size limit, and leftovers of killed
    /// writers.
    ///
    /// The limits hold without this call. It frees the space of expired entries that are not requested, and finds files
    /// that were added or removed by hand. If this is the first use of the cache, the result includes what opening the
    /// folder removes.
    ///
    /// ```swift
    /// let result = await disk.prune()
    /// print(result.expiredEntries, result.evictedEntries, result.freedByteCount)
    /// ```
    public func prune() async -> PruneResult {
        await self.whileCleaning { await self.housekeeper.prune() } ?? PruneResult()
    }

    /// Removes the entries that exceed the age limit.
    ///
    /// ```swift
    /// let count = await disk.removeExpired().expiredEntries
    /// ```
    public func removeExpired() async -> PruneResult {
        await self.whileCleaning { await self.housekeeper.removeExpired() } ?? PruneResult()
    }

    /// Removes the least recently used entries until the folder has at most `byteCount` bytes.
    ///
    /// ```swift
    /// let freedBytes = await disk.trim(to: 1 << 30).freedByteCount
    /// ```
    public func trim(to byteCount: Int) async -> PruneResult {
        await self.whileCleaning { await self.housekeeper.trim(to: byteCount) } ?? PruneResult()
    }

    /// Reads every entry, reports damaged ones and removes them by default.
    ///
    /// ```swift
    /// for finding in await disk.verify(removingDamaged: false).findings { print(finding.path, finding.damage) }
    /// ```
    public func verify(removingDamaged isRemoving: Bool = true) async -> VerifyResult {
        await self.whileOpen { await self.housekeeper.verify(removingDamaged: isRemoving) } ?? VerifyResult()
    }

    /// Moves the entries of another cache folder into this one, and removes that folder.
    ///
    /// If both folders have an entry, the one in this folder stays. Damaged entries are removed. No other process may
    /// use the other folder meanwhile.
    ///
    /// ```swift
    /// let count = try await disk.merge(from: URL(filePath: "/var/cache/old-images"))
    /// ```
    ///
    /// - Returns: The number of entries that were moved.
    /// - Throws: ``CacheError``; the entries that were not moved stay in the other folder.
    @discardableResult
    public func merge(from directory: URL) async throws -> Int {
        try self.begin()
        defer { self.operations.end() }
        return try await self.housekeeper.merge(from: Configuration.path(of: directory))
    }

    /// Returns the statistics of the cache.
    ///
    /// Waits only if the catalogue was lost, until the folder has been read.
    ///
    /// ```swift
    /// let statistics = await disk.statistics()
    /// print(statistics.entryCount, statistics.byteCount)
    /// ```
    public func statistics() async -> DiskStatistics {
        let statistics = await self.whileOpen { () async -> DiskStatistics? in
            if let statistics = await self.lanes[0].statistics() { return statistics }
            await self.housekeeper.attend()
            return nil
        }
        return (statistics ?? nil) ?? self.store.knownStatistics
    }

    /// Waits for the maintenance that began or was requested before the call.
    func waitForHousekeeping() async {
        await self.whileOpen { await self.housekeeper.attend() }
    }
}
