import Synchronization
import TintypeConcurrency

/// How the disk tier was used by this cache, counted from any thread.
final class DiskCounters: Sendable {
    let hits = Atomic<Int>(0)
    let misses = Atomic<Int>(0)
    let damagedEntries = Atomic<Int>(0)
    let evictions = Atomic<Int>(0)
    let expiredEntries = Atomic<Int>(0)
    let storeErrors = Atomic<Int>(0)
    let lastStoreError = Locked<CacheError?>(nil)

    /// Keeps the error of a store for the statistics.
    func noteStoreError(_ error: CacheError) {
        self.storeErrors.add(1, ordering: .relaxed)
        self.lastStoreError.withLock { $0 = error }
    }
}
