public import FoundationEssentials
import Synchronization
import TintypeConcurrency

/// The disk tier: encoded bytes in files, within limits of age and size.
///
/// One file an entry, written whole and then moved into place, with its own key, metadata and a
/// checksum over all: whatever is not exactly what was stored is a miss and is removed. No file
/// is synchronised: a power cut may cost the newest entries, and never brings back a wrong one.
///
/// A catalogue in memory that is mapped from a file, and shared by all processes that use the
/// folder, knows each entry's size and last use: a folder of a million entries is open at once,
/// a miss reads no file, and the size limit holds over all processes that write. It is never trusted over the files,
/// and is made anew from them where it is lost, damaged or of another version. So that a process that cuts it short does
/// not end others, a handler of `SIGBUS` is installed with the first catalogue that is mapped; it hands on every signal
/// that is not about one.
///
/// Only what a cache has written is ever removed from its folder.
///
/// A hit on a file that the system has in memory is read in the caller's task, which never waits for the disk, and
/// never on the caller's actor. All else runs on threads of the cache's own (one for each lane, and one for the work on
/// the whole folder). The operations on one key run in the order in which they were called.
public final class DiskCache: Sendable {
    /// What the cache was made with.
    public let configuration: Configuration

    let store: EntryStore
    let lanes: [DiskLane]
    let housekeeper: DiskHousekeeper
    let operations = OperationCounter()
    private let isOpened = Atomic<Bool>(false)

    /// Creates a cache over a folder, which need not exist.
    ///
    /// Touches no file.
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
        // Operations hold the cache, so none is under way.
        self.endThreads()
    }

    // MARK: Reading

    /// The entry of `key`, checked, which counts as its use; `nil` when there is none.
    ///
    /// An expired or damaged entry, and one of another key under the same name, is `nil` as well
    /// and is removed.
    ///
    /// - Throws: `CancellationError` when the caller was cancelled before the read began, and
    ///   ``CacheError`` when the system failed to read a file that is there (no permission, no file
    ///   descriptor, a bad disk) or when the cache was shut down. A load takes that as a miss, as
    ///   ``CacheActor`` does.
    @concurrent
    public func entry(for key: CacheKey) async throws -> DiskEntry? {
        try self.begin()
        defer { self.operations.end() }
        switch try self.readCached(.whole, of: key) {
        case .hit(let entry): return entry
        case .miss: return nil
        // Only here, because another asynchronous call costs a miss a fifth more.
        case .unknown: return try await self.lane(of: key).started().read(.whole, of: key)
        }
    }

    /// What was stored with the bytes of `key`, checked; `nil` when there is no entry.
    ///
    /// The bytes are neither read nor checked, and the look-up does not count as their use.
    ///
    /// - Throws: As ``entry(for:)``.
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

    /// What can be told of `key` without waiting.
    ///
    /// - Throws: `CancellationError`.
    private func readCached(_ part: EntryPart, of key: CacheKey) throws -> EntryReader.CachedAnswer {
        try Task.checkCancellation()
        if let item = self.lane(of: key).pending.item(key) {
            // A refused store removes an entry of another body, and leaves one of the same: only its lane can tell.
            if item.isRefused, item.metadata.bodyDigest != nil { return .unknown }
            return self.read(part, of: item).map { .hit($0) } ?? .miss
        }
        return self.store.reader.readCached(part, of: key)
    }

    /// The entry of `key`, checked, which counts as its use, if it is small and the system has it in memory, or if its
    /// store still waits.
    ///
    /// Takes no waiting. That it is `nil` says nothing, and does not count as a miss.
    public func readyEntry(for key: CacheKey) -> DiskEntry? {
        guard (try? self.begin()) != nil else { return nil }
        defer { self.operations.end() }
        if let item = self.lane(of: key).pending.item(key) { return self.read(.whole, of: item) }
        guard case .hit(let entry) = self.store.reader.readCached(.whole, of: key, countsMiss: false) else {
            return nil
        }
        return entry
    }

    /// The metadata of the entry of `key`, checked, if the system has it in memory, or if its store still waits.
    ///
    /// Takes no waiting and does not count as a use. `nil` does not mean that there is no entry.
    public func readyMetadata(for key: CacheKey) -> EntryMetadata? {
        guard (try? self.begin()) != nil else { return nil }
        defer { self.operations.end() }
        if let item = self.lane(of: key).pending.item(key) { return self.read(.head, of: item)?.metadata }
        return self.store.reader.readyMetadata(of: key)
    }

    /// The file that has the entry of `key`, opened and checked, which counts as its use; `nil` when there is none.
    ///
    /// A store of `key` that waits is written before.
    ///
    /// - Throws: As ``entry(for:)``.
    public func file(for key: CacheKey) async throws -> CachedFile? {
        try self.begin()
        defer { self.operations.end() }
        return try await self.lane(of: key).started().file(of: key)
    }

    /// Whether an entry of `key` is there and not expired.
    ///
    /// Does not check its body, and does not count as a use.
    public func contains(_ key: CacheKey) async -> Bool {
        await self.whileOpen { await self.lane(of: key).contains(key) } ?? false
    }

    // MARK: Writing

    /// Stores `data` under `key`, in place of an older entry, and returns when it can be read.
    ///
    /// Removes the least recently used entries first where the size limit asks for it.
    ///
    /// - Throws: ``CacheError``. Then no part of the new entry is left, and the older one stays, unless the metadata says
    ///   that it is of another body (``EntryMetadata/bodyDigest``), or it alone stood in the way of the size limit. Not
    ///   cancellable.
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

    /// Stores `data` under `key` in the background, and returns at once.
    ///
    /// Every later operation on `key` sees it. An error goes to the statistics and to the
    /// configuration's handler. When more bytes wait than the configuration permits, the store is
    /// refused, also with an error there. What is left then is as ``store(_:metadata:for:)`` says.
    public func enqueueStore(_ data: Data, metadata: EntryMetadata, for key: CacheKey) {
        guard self.operations.begin() else {
            self.report(.shutDown(self.store.counters.directory))
            return
        }
        defer { self.operations.end() }
        self.open()
        let lane = self.lane(of: key)
        switch lane.pending.add(PendingStores.Item(key: key, data: data, metadata: metadata)) {
        case .queued:
            break
        case .refused(let byteCount):
            self.report(.tooManyPending(byteCount, in: self.store.counters.directory))
        case .queuedFirst:
            self.operations.beginPart()
            // The task owns the cache until all is written; `shutdown()` waits for it.
            Task {
                await lane.writeAllPending()
                self.operations.end()
            }
        }
    }

    /// Returns when all stores that were enqueued before the call have been written or have failed.
    public func waitForPendingStores() async {
        await self.whileOpen { for lane in self.lanes { await lane.flush() } }
    }

    /// Removes the entry of `key`, and a store of it that waits.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``CacheError`` when the file is there and can't be removed.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool {
        try self.begin()
        defer { self.operations.end() }
        return try await self.lane(of: key).started().remove(key)
    }

    /// Removes the entries of the family of `key`, and stores of them that wait.
    ///
    /// The catalogue knows them; where it has to be made anew, or can't be shared, the folder is searched.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``CacheError`` when a file is there and can't be removed.
    @discardableResult
    public func removeFamily(of key: CacheKey) async throws -> Bool {
        try self.begin()
        defer { self.operations.end() }
        var isDropped = false
        for lane in self.lanes where await lane.refuseFamily(of: key) { isDropped = true }
        return try await self.lanes[0].started().removeFamily(of: key) || isDropped
    }

    /// Removes all entries and the stores that wait.
    ///
    /// The entries are moved aside by their folders, and deleted behind; what is not deleted when the
    /// process ends is deleted when the folder is next opened. Until then it counts towards the size
    /// limit. Other files in the folder, also among the entries, are left alone.
    ///
    /// - Parameter isWaiting: Whether to return when all is deleted; default no.
    /// - Throws: ``CacheError`` when the entries can't be moved.
    public func removeAll(waitingForDeletion isWaiting: Bool = false) async throws {
        try self.begin()
        defer { self.operations.end() }
        for lane in self.lanes { lane.pending.refuseAll() }
        // Not the housekeeper, which may be at work for long.
        try await self.lanes[0].started().removeAll()
        if isWaiting { await self.housekeeper.attend() } else { self.attend() }
    }

    // MARK: Extended data

    /// Changes what is stored with the bytes of `key`; the bytes and their age stay.
    ///
    /// - Returns: Whether there is an entry.
    /// - Throws: ``CacheError``; then the entry is as it was.
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

    /// Waits for the operations that are under way and the stores that are enqueued, then ends the
    /// threads.
    ///
    /// From the call on, an operation fails with `shutDown`, or finds nothing.
    ///
    /// A cache whose last reference goes away does the same by itself.
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

    /// Runs `body` as an operation; `nil` where the cache was shut down.
    @discardableResult
    private func whileOpen<Result>(_ body: () async -> Result) async -> Result? {
        guard (try? self.begin()) != nil else { return nil }
        defer { self.operations.end() }
        return await body()
    }

    /// Runs `body`, which opens the folder itself and counts what that removes.
    private func whileCleaning(_ body: () async -> PruneResult) async -> PruneResult? {
        guard self.operations.begin() else { return nil }
        defer { self.operations.end() }
        self.isOpened.store(true, ordering: .relaxed)
        return await body()
    }

    /// Begins an operation, unless the cache was shut down; its end is told to ``operations``.
    func begin() throws(CacheError) {
        guard self.operations.begin() else { throw .shutDown(self.store.counters.directory) }
        self.open()
    }

    /// Has the folder read in the background, once; called within an operation.
    private func open() {
        guard !self.isOpened.exchange(true, ordering: .relaxed) else { return }
        self.operations.beginPart()
        // The task owns the cache until the folder is read; `shutdown()` cuts it short.
        Task {
            await self.housekeeper.open()
            self.operations.end()
        }
    }

    /// Has the work on the folder done that was asked for.
    private func attend() {
        self.operations.beginPart()
        // The task owns the cache until the work is done; `shutdown()` cuts it short.
        Task {
            await self.housekeeper.attend()
            self.operations.end()
        }
    }

    /// What a store that is not yet written will be.
    private func read(_ part: EntryPart, of item: PendingStores.Item) -> DiskEntry? {
        let now = self.configuration.now()
        let isAlive = !item.isRefused && item.metadata.expiry.map { $0 > now } ?? true
        self.store.reader.count(isHit: isAlive, part)
        return isAlive ? DiskEntry(data: item.data, metadata: item.metadata, storedAt: now) : nil
    }

    private func lane(of key: CacheKey) -> DiskLane {
        self.lanes[Int(key.hash % UInt64(self.lanes.count))]
    }

    private func report(_ error: CacheError) {
        self.store.counters.storeErrors.note(error)
        self.configuration.storeErrorHandler?(error)
    }

    // MARK: Cleaning and figures

    /// Reads the folder anew and removes the expired, then the least recently used until the size
    /// limit holds, and what killed writers left behind.
    ///
    /// Not needed for the limits, which hold without it. It frees the space of expired entries
    /// that are not asked for, and takes notice of files that were added or removed by hand.
    /// A cache that is first used by this counts what its opening removes as well.
    public func prune() async -> PruneResult {
        await self.whileCleaning { await self.housekeeper.prune() } ?? PruneResult()
    }

    /// Removes the entries that are too old.
    public func removeExpired() async -> PruneResult {
        await self.whileCleaning { await self.housekeeper.removeExpired() } ?? PruneResult()
    }

    /// Removes the least recently used entries until the folder takes no more than `byteCount` bytes.
    public func trim(to byteCount: Int) async -> PruneResult {
        await self.whileCleaning { await self.housekeeper.trim(to: byteCount) } ?? PruneResult()
    }

    /// Reads every entry and reports the damaged ones, which are removed unless told otherwise.
    public func verify(removingDamaged isRemoving: Bool = true) async -> VerifyResult {
        await self.whileOpen { await self.housekeeper.verify(removingDamaged: isRemoving) } ?? VerifyResult()
    }

    /// Moves the entries of another cache folder into this one, and removes that folder.
    ///
    /// An entry that is here already stays, and a damaged one is dropped. No other process may use
    /// that folder meanwhile.
    ///
    /// - Returns: The entries that were moved.
    /// - Throws: ``CacheError``; the entries that were not moved stay there.
    @discardableResult
    public func merge(from directory: URL) async throws -> Int {
        try self.begin()
        defer { self.operations.end() }
        return try await self.housekeeper.merge(from: Configuration.path(of: directory))
    }

    /// What the cache holds and how it was used.
    ///
    /// Known at once. Only when the catalogue was lost does it wait for the reading of the folder.
    public func statistics() async -> DiskStatistics {
        let statistics = await self.whileOpen { () async -> DiskStatistics? in
            if let statistics = await self.lanes[0].statistics() { return statistics }
            await self.housekeeper.attend()
            return nil
        }
        return (statistics ?? nil) ?? self.store.knownStatistics
    }

    /// Waits for the work on the folder that was begun or asked for before.
    func waitForHousekeeping() async {
        await self.whileOpen { await self.housekeeper.attend() }
    }
}
