import FoundationEssentials
import TintypeConcurrency

/// The thread that works on a whole cache folder, so that no request waits behind that.
actor DiskHousekeeper {
    private let executor = ThreadExecutor(name: "tintype-clean")
    private let store: EntryStore
    private var isOpen = false

    init(store: EntryStore) {
        self.store = store
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        self.executor.asUnownedSerialExecutor()
    }

    /// Finishes what others left unfinished, and cleans the folder as far as the catalogue knows it.
    func open() {
        guard !self.isOpen else { return }
        self.isOpen = true
        var result = PruneResult()
        self.store.attend(&result, isReading: false)
        self.store.removeExpired(&result)
        self.store.trim(to: self.store.sizeLimit, &result)
    }

    /// Does what was asked for meanwhile.
    func attend() {
        self.open()
        var result = PruneResult()
        self.store.attend(&result, isReading: false)
    }

    func prune() -> PruneResult {
        self.isOpen = true
        var result = PruneResult()
        self.store.attend(&result, isReading: true)
        self.store.removeExpired(&result)
        self.store.trim(to: self.store.sizeLimit, &result)
        return result
    }

    func removeExpired() -> PruneResult {
        self.open()
        var result = PruneResult()
        self.store.removeExpired(&result)
        return result
    }

    func trim(to limit: Int) -> PruneResult {
        self.open()
        var result = PruneResult()
        self.store.trim(to: limit, &result)
        return result
    }

    func verify(removingDamaged isRemoving: Bool) -> VerifyResult {
        self.open()
        return self.store.verify(isRemoving: isRemoving)
    }

    func merge(from directory: String) throws -> Int {
        self.open()
        return try self.store.merge(from: directory)
    }

    /// Ends the thread.
    ///
    /// Nothing may be asked of the housekeeper from then on.
    nonisolated func shutdown() {
        self.executor.shutdown()
    }
}
