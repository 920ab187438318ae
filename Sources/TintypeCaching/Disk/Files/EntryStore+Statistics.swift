extension EntryStore {
    /// Keeps the error of a store for the statistics.
    func noteStoreError(_ error: CacheError) {
        self.index.withLock { index in
            index.counters.storeErrors += 1
            index.counters.lastStoreError = error
        }
    }

    /// What is known now, without looking at the folder.
    var statistics: DiskStatistics {
        self.index.withLock { index in
            DiskStatistics(
                directory: self.directory,
                entryCount: index.count,
                byteCount: index.byteCount,
                sizeLimit: self.sizeLimit,
                hits: index.counters.hits,
                misses: index.counters.misses,
                damagedEntries: index.counters.damagedEntries,
                evictions: index.counters.evictions,
                expiredEntries: index.counters.expiredEntries,
                storeErrors: index.counters.storeErrors,
                lastStoreError: index.counters.lastStoreError
            )
        }
    }
}
