// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// One of the threads that read and write the entries of a disk tier.
///
/// A key always belongs to the same lane, so that operations on it keep their order without a lock.
actor DiskLane {
    private nonisolated let executor: ThreadExecutor
    private let store: EntryStore
    private let reportError: @Sendable (CacheError) -> Void
    /// The stores in the background.
    ///
    /// The lane writes the pending store of a key before any other operation on it.
    nonisolated let pending: PendingStores

    init(
        name: String,
        store: EntryStore,
        pendingByteLimit: Int,
        startThread: @escaping POSIXThread.Starter,
        reportError: @escaping @Sendable (CacheError) -> Void
    ) {
        self.executor = ThreadExecutor(name: name, startThread: startThread)
        self.store = store
        self.pending = PendingStores(byteLimit: pendingByteLimit)
        self.reportError = reportError
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        self.executor.asUnownedSerialExecutor()
    }

    /// Returns the lane after starting its thread.
    nonisolated func started() throws(CacheError) -> DiskLane {
        do throws(ThreadError) {
            try self.executor.start()
        } catch {
            throw .threadRefused(error)
        }
        return self
    }

    func read(_ part: EntryPart, of key: CacheKey) throws -> ByteEntry? {
        // The caller may have been cancelled while it waited for its turn.
        try Task.checkCancellation()
        self.writePending(key)
        return try self.store.reader.read(part, of: key)
    }

    func contains(_ key: CacheKey) -> Bool {
        if self.pending.item(key)?.isRefused == false { return true }
        self.writePending(key)
        return ((try? self.store.reader.read(.head, of: key)) ?? nil) != nil
    }

    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) throws {
        self.writePending(key)
        do throws(CacheError) {
            try self.store.writer.store(data, metadata: metadata, for: key)
        } catch {
            self.removeOther(than: metadata, key)
            throw error
        }
    }

    func remove(_ key: CacheKey) throws -> Bool {
        // Drop the pending store last, because it hides the file until that is gone.
        let result = Result { () throws(CacheError) in try self.store.writer.remove(key) }
        let isDropped = self.pending.drop(key)
        return try result.get() || isDropped
    }

    /// Refuses the pending stores of the family of `key`, and returns whether there were any.
    func refuseFamily(of key: CacheKey) -> Bool {
        self.pending.refuseFamily(of: key)
    }

    /// Removes the entries of the family of `key` from the folder, and returns whether there were any.
    func removeFamily(of key: CacheKey) throws -> Bool {
        try self.store.writer.removeFamily(of: key)
    }

    func file(of key: CacheKey) throws -> CachedFile? {
        self.writePending(key)
        return try self.store.reader.file(of: key)
    }

    /// Changes the metadata of the entry of `key`, and returns whether there is an entry.
    func updateMetadata(of key: CacheKey, _ change: (inout EntryMetadata) -> Void) throws -> Bool {
        self.writePending(key)
        guard let entry = try self.store.reader.read(.whole, of: key) else { return false }
        var metadata = entry.metadata
        change(&metadata)
        if metadata != entry.metadata {
            let storedAt = entry.storedAt.timeIntervalSince1970
            try self.store.writer.store(entry.data, metadata: metadata, for: key, storedAt: storedAt)
        }
        return true
    }

    /// Writes all pending stores, and lets reads run between two of them.
    func writeAllPending() async {
        while true {
            while let item = self.pending.takeNext() {
                self.write(item)
                await Task.yield()
            }
            if self.pending.endWriting() { return }
        }
    }

    /// Writes the stores that were pending before the call.
    func flush() {
        // Do not wait for an empty queue, because other tasks may add stores all the time.
        for _ in 0..<self.pending.count {
            guard let item = self.pending.takeNext() else { return }
            self.write(item)
        }
    }

    func removeAll() throws {
        try self.store.writer.removeAll()
    }

    /// Returns the statistics of the folder, or `nil` while they are incomplete.
    func statistics() -> DiskStatistics? {
        self.store.statistics()
    }

    /// Ends the thread.
    ///
    /// The lane must not be used afterwards.
    nonisolated func shutdown() {
        self.executor.shutdown()
    }

    private func writePending(_ key: CacheKey) {
        if let item = self.pending.take(key) { self.write(item) }
    }

    /// Removes an entry whose body differs from the one that could not be stored, because it is out of date.
    private func removeOther(than metadata: EntryMetadata, _ key: CacheKey) {
        guard let body = metadata.bodyDigest else { return }
        let found = (try? self.store.reader.read(.head, of: key)) ?? nil
        if found?.metadata.bodyDigest != body { _ = try? self.store.writer.remove(key) }
    }

    private func write(_ item: PendingStores.Item) {
        do throws(CacheError) {
            if item.isRefused, item.metadata.bodyDigest == nil {
                _ = try self.store.writer.remove(item.key)
            } else if item.isRefused {
                self.removeOther(than: item.metadata, item.key)
            } else if !self.store.reader.renew(item.metadata, of: item.key) {
                try self.store.writer.store(item.data, metadata: item.metadata, for: item.key)
            }
        } catch {
            self.reportError(error)
            self.removeOther(than: item.metadata, item.key)
        }
        guard !self.pending.endItem(isRemoved: item.isRefused), !item.isRefused else { return }
        // All entries were removed during the write.
        _ = try? self.store.writer.remove(item.key)
        _ = self.pending.endItem(isRemoved: true)
    }
}
