public import FoundationEssentials

/// Cleaning and figures.
extension DiskCache {
    /// Reads the folder anew and removes the expired, then the least recently used until the size
    /// limit holds, and what killed writers left behind.
    ///
    /// Not needed for the limits, which hold without it. It frees the space of expired entries
    /// that nobody asks for, and takes notice of files that were added or removed by hand.
    public func prune() async -> PruneResult {
        guard (try? self.begin()) != nil else { return PruneResult() }
        defer { self.operations.end() }
        return await self.housekeeper.prune()
    }

    /// Removes the entries that are too old.
    public func removeExpired() async -> PruneResult {
        guard (try? self.begin()) != nil else { return PruneResult() }
        defer { self.operations.end() }
        return await self.housekeeper.removeExpired()
    }

    /// Removes the least recently used entries until the folder takes no more than `byteCount` bytes.
    public func trim(to byteCount: Int) async -> PruneResult {
        guard (try? self.begin()) != nil else { return PruneResult() }
        defer { self.operations.end() }
        return await self.housekeeper.trim(to: byteCount)
    }

    /// Reads every entry and reports the damaged ones, which are removed unless told otherwise.
    public func verify(removingDamaged isRemoving: Bool = true) async -> VerifyResult {
        guard (try? self.begin()) != nil else { return VerifyResult() }
        defer { self.operations.end() }
        return await self.housekeeper.verify(removingDamaged: isRemoving)
    }

    /// Moves the entries of another cache folder into this one, and removes that folder.
    ///
    /// An entry that is here already stays, and a damaged one is dropped. No other process may use
    /// that folder meanwhile.
    ///
    /// - Returns: The entries that were moved.
    /// - Throws: ``CacheError``; the entries that were not moved stay there.
    @discardableResult
    public func merge(from directory: URL) async throws -> Int {
        try self.begin()
        defer { self.operations.end() }
        return try await self.housekeeper.merge(from: Configuration.path(of: directory))
    }

    /// What the cache holds and how it was used.
    ///
    /// Known at once. Only when the catalogue was lost does it wait for the reading of the folder.
    public func statistics() async -> DiskStatistics {
        guard (try? self.begin()) != nil else { return self.store.knownStatistics }
        defer { self.operations.end() }
        if let statistics = await self.lanes[0].statistics() { return statistics }
        await self.housekeeper.attend()
        return self.store.knownStatistics
    }

    /// Waits for the work on the folder that was begun or asked for before.
    func waitForHousekeeping() async {
        guard (try? self.begin()) != nil else { return }
        defer { self.operations.end() }
        await self.housekeeper.attend()
    }
}
