import Synchronization
import TintypeConcurrency

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

    init(directory: String) {
        self.directory = directory
    }

    /// Keeps that a file of the folder could not be removed.
    func noteRemovalError(_ error: SystemCallError, of path: String) {
        self.removalErrors.note(.removing(error, of: self.directory + "/" + path))
    }
}
