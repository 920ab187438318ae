// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TintypeConcurrency

/// A thread for maintenance of a whole cache folder, separate from the lanes so that requests do not wait for it.
actor DiskHousekeeper {
    private let executor = ThreadExecutor(name: "tintype-clean")
    private static let readingLimit = 8

    private let store: EntryStore
    private var isOpen = false

    init(store: EntryStore) {
        self.store = store
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        self.executor.asUnownedSerialExecutor()
    }

    /// Finishes the unfinished work of other processes, and cleans the folder according to the catalogue.
    ///
    /// - Returns: The result of the cleaning; empty if the folder was opened before.
    @discardableResult
    func open() -> PruneResult {
        self.isOpen ? PruneResult() : self.clean(isReading: false)
    }

    /// Does the maintenance that was requested.
    func attend() {
        self.open()
        var result = PruneResult()
        self.settle(&result, isReading: false)
    }

    func prune() -> PruneResult {
        self.clean(isReading: true)
    }

    func removeExpired() -> PruneResult {
        var result = self.open()
        self.removeExpired(&result)
        return result
    }

    func trim(to limit: Int) -> PruneResult {
        var result = self.open()
        self.trim(to: limit, &result)
        return result
    }

    func verify(removingDamaged isRemoving: Bool) -> VerifyResult {
        self.open()
        var verification = FolderVerification(store: self.store, isRemoving: isRemoving)
        return verification.run()
    }

    func merge(from directory: String) throws -> Int {
        self.open()
        return try FolderMerge(directory: directory, store: self.store).run()
    }

    /// Ends the thread.
    ///
    /// The housekeeper must not be used afterwards.
    nonisolated func shutdown() {
        self.executor.shutdown()
    }

    // MARK: Parts

    private func clean(isReading: Bool) -> PruneResult {
        self.isOpen = true
        var result = PruneResult()
        self.settle(&result, isReading: isReading)
        self.removeExpired(&result)
        self.trim(to: self.store.eviction.sizeLimit, &result)
        return result
    }

    /// Completes unfinished work, if there is any.
    private func settle(_ result: inout PruneResult, isReading: Bool) {
        // Each time, the catalogue may be lost while the folder is read.
        for _ in 0..<Self.readingLimit {
            guard let folder = self.store.folders.openInPlace() else { return }
            if case .readOnly = folder.mode { return }
            if self.settle(folder, &result, isReading: isReading) || self.store.folders.closing.isSet { return }
        }
    }

    /// Completes unfinished work in an open folder.
    ///
    /// - Returns: Whether the catalogue knows all files in the folder.
    private func settle(_ folder: CacheFolder, _ result: inout PruneResult, isReading: Bool) -> Bool {
        let store = self.store
        // Repair the catalogue first if a process was killed, because that decides whether to read the folder.
        if !folder.region.hasValidTotals { try? folder.withCatalogue { _, _ in } }
        result.temporaryFiles += store.temporary.removeLeftovers(in: folder)
        store.discarded.delete(in: folder)
        var isDone = true
        if isReading || folder.region.flags.contains(.needsReading) {
            var scan = FolderScan(folder: folder, store: store, isChecking: isReading, result: result)
            isDone = scan.run()
            result = scan.result
        }
        store.eviction.refillVictimsIfLow(in: folder)
        return isDone
    }

    /// Removes expired entries, which it finds in the catalogue.
    ///
    /// If the age counts from the first store, only the headers have the time, so it reads each of them.
    private func removeExpired(_ result: inout PruneResult) {
        let store = self.store
        guard let folder = store.folders.openForCleaning() else { return }
        let now = store.expiry.now
        // Collect the names without the lock.
        var names: [EntryName] = []
        _ = folder.region.forEachRecord { if store.expiry.mayBeOver($0, now: now) { names.append($0.name) } }
        for name in names {
            if store.folders.closing.isSet { return }
            let removed: (String, Int)?
            do throws(SystemCallError) {
                removed = try folder.withCatalogue { catalogue, _ throws(SystemCallError) -> (String, Int)? in
                    guard let record = catalogue.record(of: name),
                        let (header, _) = try? EntryHeader.read(name, in: folder),
                        let header, store.expiry.isOver(header, usedAt: record.usedAtSeconds, now: now),
                        let path = try store.temporary.takeOut(record, &catalogue)
                    else { return nil }
                    return (path, record.byteCount)
                }
            } catch {
                // Each of the other entries would wait as long.
                if error == .lockTimedOut { return }
                store.counters.noteRemovalError(error, of: name.path)
                continue
            }
            guard let (path, byteCount) = removed else { continue }
            _ = try? store.temporary.delete(path, byteCount: byteCount, in: folder)
            result.expiredEntries += 1
            result.freedByteCount += byteCount
            store.counters.expiredEntries.add(1, ordering: .relaxed)
        }
    }

    /// Removes the least recently used entries until the folder has at most `limit` bytes.
    private func trim(to limit: Int, _ result: inout PruneResult) {
        guard let folder = self.store.folders.openForCleaning() else { return }
        let (count, byteCount) = self.store.eviction.evict(downTo: max(0, limit), in: folder)
        result.evictedEntries += count
        result.freedByteCount += byteCount
    }
}

/// The result of cleaning the disk tier.
public struct PruneResult: Sendable, Hashable {
    /// The number of expired entries that were removed.
    public internal(set) var expiredEntries = 0
    /// The number of entries that were evicted because of the size limit, least recently used first.
    public internal(set) var evictedEntries = 0
    /// The number of removed files that do not begin like an entry.
    public internal(set) var damagedEntries = 0
    /// The number of removed temporary files of killed writers.
    public internal(set) var temporaryFiles = 0
    /// The bytes of the removed entries.
    public internal(set) var freedByteCount = 0

    /// Creates an empty result.
    ///
    /// ```swift
    /// let result = PruneResult()
    /// ```
    public init() {}
}

/// A request to the housekeeper to look for work.
final class HousekeepingRequest: Sendable {
    private let handler = Locked<(@Sendable () -> Void)?>(nil)

    func send() {
        let handler = self.handler.withLock { $0 }
        handler?()
    }

    func setHandler(_ handler: @escaping @Sendable () -> Void) {
        self.handler.withLock { $0 = handler }
    }
}
