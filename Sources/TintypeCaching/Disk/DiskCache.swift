public import FoundationEssentials
import Synchronization
import TintypeConcurrency

/// The disk tier: encoded bytes in files, within limits of age and size.
///
/// One file an entry, written whole and then moved into place, with its own key, metadata and a
/// checksum over all: whatever is not exactly what was stored is a miss and is removed. No file
/// is synchronised: a power cut may cost the newest entries, and never brings back a wrong one.
///
/// All files are touched on threads of the cache's own (one for each lane, and one for the work
/// on the whole folder). The operations on one key run in the order in which they were called.
///
/// Several processes, and several caches in one, may share a folder. Each keeps the size limit
/// by what it knows; ``prune()`` learns what the others did.
public final class DiskCache: Sendable {
    /// What the cache was made with.
    public let configuration: Configuration

    private let store: EntryStore
    private let lanes: [DiskLane]
    private let housekeeper: DiskHousekeeper
    private let operations = OperationCounter()
    private let isOpened = Atomic<Bool>(false)

    /// Creates a cache over a folder, which need not exist.
    ///
    /// Touches no file.
    public init(_ configuration: Configuration = Configuration()) {
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
                reportError: { error in
                    store.noteStoreError(error)
                    errorHandler?(error)
                }
            )
        }
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
    public func entry(for key: CacheKey) async throws -> DiskEntry? {
        try self.begin()
        defer { self.operations.end() }
        return try await self.lane(of: key).entry(for: key)
    }

    /// Whether an entry of `key` is there and not expired.
    ///
    /// Does not check its body, and is no use of it.
    public func contains(_ key: CacheKey) async -> Bool {
        guard (try? self.begin()) != nil else { return false }
        defer { self.operations.end() }
        return await self.lane(of: key).contains(key)
    }

    // MARK: Writing

    /// Stores `data` under `key`, in place of an older entry, and returns when it can be read.
    ///
    /// Removes the least recently used entries first where the size limit asks for it.
    ///
    /// - Throws: ``CacheError``. Then no part of the new entry is left, and the older one stays
    ///   (except where it alone stood in the way of the size limit). Not cancellable.
    public func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        try self.begin()
        defer { self.operations.end() }
        do {
            try await self.lane(of: key).store(data, metadata: metadata, for: key)
        } catch {
            if let error = error as? CacheError { self.store.noteStoreError(error) }
            throw error
        }
    }

    /// Stores `data` under `key` in the background, and returns at once.
    ///
    /// Every later operation on `key` sees it. An error goes to the statistics and to the
    /// configuration's handler. When more bytes wait than the configuration permits, the store is
    /// refused, also with an error there.
    public func enqueueStore(_ data: Data, metadata: EntryMetadata, for key: CacheKey) {
        guard self.operations.begin() else {
            self.report(.shutDown(self.store.directory))
            return
        }
        defer { self.operations.end() }
        self.open()
        let lane = self.lane(of: key)
        switch lane.pending.add(PendingStores.Item(key: key, data: data, metadata: metadata)) {
        case .queued:
            break
        case .refused(let byteCount):
            self.report(.tooManyPending(byteCount, in: self.store.directory))
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
        guard (try? self.begin()) != nil else { return }
        defer { self.operations.end() }
        for lane in self.lanes { await lane.flush() }
    }

    /// Removes the entry of `key`, and a store of it that waits.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``CacheError`` when the file is there and can't be removed.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool {
        try self.begin()
        defer { self.operations.end() }
        return try await self.lane(of: key).remove(key)
    }

    /// Removes all entries and the stores that wait.
    ///
    /// Leaves other files in the folder alone.
    ///
    /// - Throws: ``CacheError`` when something could not be removed; all else was.
    public func removeAll() async throws {
        try self.begin()
        defer { self.operations.end() }
        for lane in self.lanes { lane.pending.removeAll() }
        try await self.housekeeper.removeAll()
    }

    // MARK: Cleaning and figures

    /// Reads the folder anew and removes the expired, then the least recently used until the size
    /// limit holds, and what killed writers left behind.
    ///
    /// Not needed for the limits, which hold without it. It frees the space of expired entries
    /// that nobody asks for, and takes notice of what other processes did.
    public func prune() async -> PruneResult {
        guard (try? self.begin()) != nil else { return PruneResult() }
        defer { self.operations.end() }
        return await self.housekeeper.prune()
    }

    /// What the cache holds and how it was used; waits for the first reading of the folder.
    public func statistics() async -> DiskStatistics {
        guard (try? self.begin()) != nil else { return self.store.statistics }
        defer { self.operations.end() }
        return await self.housekeeper.statistics()
    }

    // MARK: Lifetime

    /// Waits for the operations that are under way and the stores that are enqueued, then ends the
    /// threads.
    ///
    /// From the call on, an operation fails with `shutDown`, or finds nothing.
    ///
    /// A cache whose last reference goes away does the same by itself.
    public func shutdown() async {
        self.store.isClosing.store(true, ordering: .relaxed)
        await self.operations.close()
        self.endThreads()
    }

    private func endThreads() {
        for lane in self.lanes { lane.shutdown() }
        self.housekeeper.shutdown()
    }

    private func begin() throws(CacheError) {
        guard self.operations.begin() else { throw .shutDown(self.store.directory) }
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

    private func lane(of key: CacheKey) -> DiskLane {
        self.lanes[Int(key.hash % UInt64(self.lanes.count))]
    }

    private func report(_ error: CacheError) {
        self.store.noteStoreError(error)
        self.configuration.storeErrorHandler?(error)
    }
}
