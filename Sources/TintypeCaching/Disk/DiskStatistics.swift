import Synchronization
import TintypeConcurrency

/// What a disk tier holds and how it was used since it was opened.
public struct DiskStatistics: Sendable {
    /// The path of the cache folder.
    public let directory: String
    /// The entries in the folder, whichever process stored them.
    public let entryCount: Int
    /// The bytes of their files.
    public let byteCount: Int
    /// The bytes of all else in the folder: the catalogue, files that are being written, and what
    /// was removed and is not yet deleted.
    ///
    /// They count towards the limit.
    public let overheadByteCount: Int
    /// The bytes that the files may take.
    public let sizeLimit: Int
    /// The look-ups that found an entry.
    public let hits: Int
    /// The look-ups that found none, or one that was expired or damaged.
    public let misses: Int
    /// The damaged entries that were found and removed.
    public let damagedEntries: Int
    /// The entries that were removed to keep the size limit.
    public let evictions: Int
    /// The entries that were removed because of their age.
    public let expiredEntries: Int
    /// The stores that failed.
    public let storeErrors: Int
    /// Why the last of them failed.
    public let lastStoreError: CacheError?
    /// The attempts to remove a file that failed: its bytes go on counting towards the limit.
    public let removalErrors: Int
    /// Why the last of them failed.
    public let lastRemovalError: CacheError?
    /// How often the folder was opened without a catalogue that other processes share.
    public let catalogueErrors: Int
    /// Why that was so the last time.
    public let lastCatalogueError: CacheError?
    /// Why other users may change what the cache serves, or `nil` if they may not.
    public let exposure: CacheError?
    /// The waits for the folder's lock that were given up because another process kept it.
    public let lockTimeouts: Int

    init(_ store: EntryStore, _ region: CatalogueRegion?) {
        let counters = store.counters
        self.directory = counters.directory
        self.entryCount = Int(clamping: region?[.entryCount] ?? 0)
        self.byteCount = Int(clamping: region?[.byteCount] ?? 0)
        self.overheadByteCount = (region?.usedByteCount ?? 0) - self.byteCount
        self.sizeLimit = store.limit.byteCount
        self.hits = counters.hits.load(ordering: .relaxed)
        self.misses = counters.misses.load(ordering: .relaxed)
        self.damagedEntries = counters.damagedEntries.load(ordering: .relaxed)
        self.evictions = counters.evictions.load(ordering: .relaxed)
        self.expiredEntries = counters.expiredEntries.load(ordering: .relaxed)
        self.storeErrors = counters.storeErrors.count
        self.lastStoreError = counters.storeErrors.last
        self.removalErrors = counters.removalErrors.count
        self.lastRemovalError = counters.removalErrors.last
        self.catalogueErrors = counters.catalogueErrors.count
        self.lastCatalogueError = counters.catalogueErrors.last
        self.exposure = counters.exposure.withLock { $0 }
        self.lockTimeouts = store.folders.patience.timeouts.load(ordering: .relaxed)
    }
}

/// How the disk tier was used by this cache, counted from any thread.
final class DiskCounters: Sendable {
    /// Failures of one kind: how many, and the last.
    final class Failures: Sendable {
        private let counter = Atomic<Int>(0)
        private let lastError = Locked<CacheError?>(nil)

        var count: Int { self.counter.load(ordering: .relaxed) }
        var last: CacheError? { self.lastError.withLock { $0 } }

        func note(_ error: CacheError) {
            self.counter.add(1, ordering: .relaxed)
            self.lastError.withLock { $0 = error }
        }
    }

    let directory: String
    let hits = Atomic<Int>(0)
    let misses = Atomic<Int>(0)
    let damagedEntries = Atomic<Int>(0)
    let evictions = Atomic<Int>(0)
    let expiredEntries = Atomic<Int>(0)
    let storeErrors = Failures()
    let removalErrors = Failures()
    let catalogueErrors = Failures()
    let exposure = Locked<CacheError?>(nil)

    init(directory: String) {
        self.directory = directory
    }

    /// Keeps that a file of the folder could not be removed.
    func noteRemovalError(_ error: SystemCallError, of path: String) {
        self.removalErrors.note(.removing(error, of: self.directory + "/" + path))
    }
}
