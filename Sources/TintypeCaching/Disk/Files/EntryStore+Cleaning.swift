import Glibc
import Synchronization

/// The work on the whole folder. One at a time, on a thread of its own, beside the lanes.
extension EntryStore {
    /// Puts in order what was left unfinished, as far as there is anything.
    func attend(_ result: inout PruneResult, isReading: Bool) {
        guard let folder = self.folderInPlace() else { return }
        if case .readOnly = folder.mode { return }
        result.temporaryFiles += self.removeLeftovers(in: folder)
        self.deleteDiscarded(in: folder, fileLimit: .max)
        if isReading || folder.region.flags.contains(.needsReading) {
            self.readFolder(folder, isChecking: isReading, &result)
        }
        if self.victimRequest.load(ordering: .relaxed) { self.refillVictims(in: folder) }
    }

    /// Removes the entries that are expired, as the catalogue knows it.
    ///
    /// Where the age counts from the first store, only the entries' headers know, and each is read.
    func removeExpired(_ result: inout PruneResult) {
        guard let folder = self.folderToClean() else { return }
        let now = self.now
        let needsHeader = self.configuration.expiry == .creation && self.maximumAge < .infinity
        for name in self.names(in: folder, where: { needsHeader || self.isExpired($0, now: now) }) {
            if self.isClosing { return }
            let removed: (String, Int)?
            do throws(SystemCallError) {
                removed = try folder.withCatalogue { catalogue, _ throws(SystemCallError) -> (String, Int)? in
                    guard let record = catalogue.record(of: name), self.isReallyExpired(record, in: folder, now: now),
                        let path = try self.beginRemoval(of: record, &catalogue)
                    else { return nil }
                    return (path, record.byteCount)
                }
            } catch {
                // Each of the others would wait for as long.
                if error == .lockTimedOut { return }
                self.noteRemovalError(error, of: name.path)
                continue
            }
            guard let (path, byteCount) = removed else { continue }
            _ = try? self.finishRemoval(of: path, byteCount: byteCount, in: folder)
            result.expiredEntries += 1
            result.freedByteCount += byteCount
            self.counters.expiredEntries.add(1, ordering: .relaxed)
        }
    }

    /// Removes the least recently used entries until no more than `limit` bytes are taken.
    func trim(to limit: Int, _ result: inout PruneResult) {
        guard let folder = self.folderToClean(), self.usedByteCount(folder.region) > limit else { return }
        let (count, byteCount) = self.evict(downTo: max(0, limit), in: folder)
        result.evictedEntries += count
        result.freedByteCount += byteCount
    }

    /// Removes what killed writers left behind, and gives back the room that they had reserved.
    ///
    /// - Returns: The files that were removed.
    @discardableResult
    func removeLeftovers(in folder: CacheFolder) -> Int {
        guard let lockFile = folder.lockFile else { return 0 }
        var count = 0
        let names = Folder.names(at: CacheFolder.temporaryName, in: folder.descriptor)
        let left = Dictionary(grouping: names) { OwnFiles.temporaryOwner($0) ?? 0 }
        // Who had this cache's number before has left no reservation, or it would not have been given again.
        if folder.owner > 0 {
            for name in left[folder.owner] ?? [] where !self.isOwnTemporary(name, in: folder) {
                if self.removeTemporary(name, in: folder) { count += 1 }
            }
        }
        for owner in 1..<CatalogueLayout.ownerCount where owner != folder.owner {
            let own = left[owner] ?? []
            guard !own.isEmpty || folder.region[owner: owner] > 0, lockFile.tryOwner(owner) else { continue }
            defer { lockFile.releaseOwner(owner) }
            for name in own where self.removeTemporary(name, in: folder) { count += 1 }
            try? folder.withCatalogue { catalogue, _ in
                catalogue.region.reserve(-Int(clamping: catalogue.region[owner: owner]), for: owner)
            }
        }
        return count
    }

    private func removeTemporary(_ name: String, in folder: CacheFolder) -> Bool {
        let path = "\(CacheFolder.temporaryName)/\(name)"
        guard OwnFiles.isRegular(path, in: folder.descriptor) else { return false }
        if unlinkat(folder.descriptor, path, 0) == 0 { return true }
        if errno != ENOENT { self.noteRemovalError(.last("unlink"), of: path) }
        return false
    }

    // MARK: Parts

    /// The folder, where there is one that can be changed.
    private func folderToClean() -> CacheFolder? {
        guard let folder = try? self.openFolder() else { return nil }
        if case .readOnly = folder.mode { return nil }
        return folder
    }

    /// The names of the entries that a condition holds for, collected without the lock.
    func names(in folder: CacheFolder, where condition: (CatalogueRecord) -> Bool) -> [EntryName] {
        var names: [EntryName] = []
        _ = folder.region.forEachRecord { if condition($0) { names.append($0.name) } }
        return names
    }

    private func isExpired(_ record: CatalogueRecord, now: Double) -> Bool {
        if record.deadline != 0, Double(record.deadline) <= now + 1 { return true }
        return switch self.configuration.expiry {
        case .access: now - record.usedAtSeconds >= self.maximumAge
        // Whole seconds; the header knows better.
        case .modification: now - Double(record.storedAt) >= self.maximumAge
        case .creation: false
        }
    }

    private func isReallyExpired(_ record: CatalogueRecord, in folder: CacheFolder, now: Double) -> Bool {
        guard
            let (header, _) = try? record.name.withPath({ path throws(SystemCallError) in
                try self.header(at: path, in: folder.descriptor)
            }), let header
        else { return false }
        return self.isExpired(header, usedAt: record.usedAtSeconds, now: now)
    }
}
