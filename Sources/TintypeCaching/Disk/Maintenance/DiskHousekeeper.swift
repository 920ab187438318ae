import FoundationEssentials
import Synchronization
import TintypeConcurrency

/// The thread that works on a whole cache folder, beside the lanes, so that no request waits behind that.
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

    /// Finishes what others left unfinished, and cleans the folder as far as the catalogue knows it.
    ///
    /// - Returns: What that removed; nothing where it was done before.
    @discardableResult
    func open() -> PruneResult {
        self.isOpen ? PruneResult() : self.clean(isReading: false)
    }

    /// Does what was asked for meanwhile.
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
    /// Nothing may be asked of the housekeeper from then on.
    nonisolated func shutdown() {
        self.executor.shutdown()
    }

    // MARK: Parts

    private func clean(isReading: Bool) -> PruneResult {
        self.isOpen = true
        var result = PruneResult()
        self.settle(&result, isReading: isReading)
        self.removeExpired(&result)
        self.trim(to: self.store.limit.byteCount, &result)
        return result
    }

    /// Puts in order what was left unfinished, as far as there is anything.
    private func settle(_ result: inout PruneResult, isReading: Bool) {
        // Each time, the catalogue may be lost while the folder is read.
        for _ in 0..<Self.readingLimit {
            guard let folder = self.store.folders.openInPlace() else { return }
            if case .readOnly = folder.mode { return }
            if self.settle(folder, &result, isReading: isReading) || self.store.folders.closing.isSet { return }
        }
    }

    /// - Returns: Whether the catalogue knows all that is in the folder.
    private func settle(_ folder: CacheFolder, _ result: inout PruneResult, isReading: Bool) -> Bool {
        let store = self.store
        // What another process was ended in is repaired before it is asked whether the folder needs reading.
        if !folder.region.hasValidTotals { try? folder.withCatalogue { _, _ in } }
        result.temporaryFiles += store.temporary.removeLeftovers(in: folder)
        store.discarded.delete(in: folder)
        var isDone = true
        if isReading || folder.region.flags.contains(.needsReading) {
            var scan = FolderScan(folder: folder, store: store, isChecking: isReading, result: result)
            isDone = scan.run()
            result = scan.result
        }
        store.limit.refillVictimsIfLow(in: folder)
        return isDone
    }

    /// Removes the entries that are expired, as the catalogue knows it.
    ///
    /// Where the age counts from the first store, only the entries' headers know, and each is read.
    private func removeExpired(_ result: inout PruneResult) {
        let store = self.store
        guard let folder = store.folders.openForCleaning() else { return }
        let now = store.expiry.now
        // Collected without the lock.
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
                // Each of the others would wait for as long.
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

    /// Removes the least recently used entries until no more than `limit` bytes are taken.
    private func trim(to limit: Int, _ result: inout PruneResult) {
        guard let folder = self.store.folders.openForCleaning() else { return }
        let (count, byteCount) = self.store.limit.evict(downTo: max(0, limit), in: folder)
        result.evictedEntries += count
        result.freedByteCount += byteCount
    }
}

/// What a cleaning of the disk tier removed.
public struct PruneResult: Sendable, Hashable {
    /// The entries that were too old.
    public internal(set) var expiredEntries = 0
    /// The entries that had to go to keep the size limit, the least recently used first.
    public internal(set) var evictedEntries = 0
    /// The files that had begun like no entry does.
    public internal(set) var damagedEntries = 0
    /// The temporary files that killed writers had left behind.
    public internal(set) var temporaryFiles = 0
    /// The bytes of the entries that were removed.
    public internal(set) var freedByteCount = 0

    /// Creates the result of a cleaning that found nothing to do.
    public init() {}
}

/// Has the housekeeper look what there is to do.
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
