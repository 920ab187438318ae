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

    /// Reads the folder once, and cleans it as far as that takes no further reading.
    func open() {
        guard !self.isOpen else { return }
        self.isOpen = true
        self.store.readFolder()
        var result = PruneResult()
        result.temporaryFiles = self.store.removeStaleTemporaryFiles()
        self.store.removeExpiredByUse(into: &result)
        self.store.removeOverLimit(into: &result)
    }

    func prune() -> PruneResult {
        self.isOpen = true
        self.store.readFolder()
        var result = PruneResult()
        result.temporaryFiles = self.store.removeStaleTemporaryFiles()
        self.store.removeExpiredByHeader(into: &result)
        self.store.removeOverLimit(into: &result)
        return result
    }

    func removeAll() throws {
        try self.store.removeAll()
    }

    func statistics() -> DiskStatistics {
        self.open()
        return self.store.statistics
    }

    /// Ends the thread.
    ///
    /// Nothing may be asked of the housekeeper from then on.
    nonisolated func shutdown() {
        self.executor.shutdown()
    }
}
