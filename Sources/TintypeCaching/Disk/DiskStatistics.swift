// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TintypeConcurrency

/// The statistics of a disk tier: its contents, and its use since it was opened.
public struct DiskStatistics: Sendable {
    /// The path of the cache folder.
    public let directory: String
    /// The number of entries in the folder, whichever process stored them.
    public let entryCount: Int
    /// The bytes of the entries' files.
    public let byteCount: Int
    /// The bytes of all other files: the catalogue, files that are being written, and removed files not yet deleted.
    ///
    /// They count towards the limit.
    public let overheadByteCount: Int
    /// The maximum bytes of all files.
    public let sizeLimit: Int
    /// The number of look-ups that found an entry.
    public let hits: Int
    /// The number of look-ups that found no entry, or one that was expired or damaged.
    public let misses: Int
    /// The number of damaged entries that were found and removed.
    public let damagedEntries: Int
    /// The number of entries that were evicted because of the size limit.
    public let evictions: Int
    /// The number of entries that were removed because of their age.
    public let expiredEntries: Int
    /// The number of stores that failed.
    public let storeErrors: Int
    /// The error of the last store that failed.
    public let lastStoreError: CacheError?
    /// The number of failed attempts to remove a file, whose bytes still count towards the limit.
    public let removalErrors: Int
    /// The error of the last failed attempt to remove a file.
    public let lastRemovalError: CacheError?
    /// How often the folder was opened without a shared catalogue.
    public let catalogueErrors: Int
    /// The reason for the last time without a shared catalogue.
    public let lastCatalogueError: CacheError?
    /// The reason why other users can change what the cache serves, or `nil` if they cannot.
    public let exposure: CacheError?
    /// The number of operations that gave up because another process held the folder's lock.
    public let lockTimeouts: Int

    init(_ store: EntryStore, _ region: CatalogueRegion?) {
        let counters = store.counters
        self.directory = counters.directory
        self.entryCount = Int(clamping: region?[.entryCount] ?? 0)
        self.byteCount = Int(clamping: region?[.byteCount] ?? 0)
        self.overheadByteCount = (region?.usedByteCount ?? 0) - self.byteCount
        self.sizeLimit = store.eviction.sizeLimit
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

/// The counters of a disk tier, which any thread may change.
final class DiskCounters: Sendable {
    /// The number of failures of one kind, and the last error.
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

    /// Records that a file of the folder could not be removed.
    func noteRemovalError(_ error: SystemCallError, of path: String) {
        self.removalErrors.note(.removing(error, of: self.directory + "/" + path))
    }
}
