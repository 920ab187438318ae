import Glibc
import Synchronization

/// The work on the whole folder. One at a time, on a thread of its own, beside the lanes.
extension EntryStore {
    /// Puts in order what was left unfinished, as far as there is anything.
    func attend(_ result: inout PruneResult, isReading: Bool) {
        guard let folder = try? self.openFolder() else { return }
        if case .readOnly = folder.mode { return }
        if self.forgetIfMoved(folder) { return self.attend(&result, isReading: isReading) }
        result.temporaryFiles += self.removeLeftovers(in: folder)
        self.deleteDiscarded(in: folder, fileLimit: .max)
        if isReading || folder.region.flags.contains(.needsReading) || LegacyLayout.isPresent(in: folder.descriptor) {
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
            if self.isClosing.load(ordering: .relaxed) { return }
            let removed = try? folder.withCatalogue { catalogue, _ throws(SystemCallError) -> (String, Int)? in
                guard let record = catalogue.record(of: name), self.isReallyExpired(record, in: folder, now: now),
                    let path = try self.beginRemoval(of: record, &catalogue)
                else { return nil }
                return (path, record.byteCount)
            }
            guard let (path, byteCount) = removed ?? nil else { continue }
            try? self.finishRemoval(of: path, byteCount: byteCount, in: folder)
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
        // Who had this cache's number before has left no reservation, or it would not have been given again.
        for name in names where name.hasPrefix("\(folder.owner)-") && folder.owner > 0 {
            guard !self.isOwnTemporary(name, in: folder) else { continue }
            if unlinkat(folder.descriptor, "\(CacheFolder.temporaryName)/\(name)", 0) == 0 { count += 1 }
        }
        for owner in 1..<CatalogueLayout.ownerCount where owner != folder.owner {
            let own = names.filter { $0.hasPrefix("\(owner)-") }
            guard !own.isEmpty || folder.region[owner: owner] > 0, lockFile.tryOwner(owner) else { continue }
            defer { lockFile.releaseOwner(owner) }
            for name in own where unlinkat(folder.descriptor, "\(CacheFolder.temporaryName)/\(name)", 0) == 0 {
                count += 1
            }
            try? folder.withCatalogue { catalogue, _ in
                catalogue.region.reserve(-Int(clamping: catalogue.region[owner: owner]), for: owner)
            }
        }
        return count
    }

    // MARK: Clearing

    /// Removes all entries at once: moves them aside, to be deleted later.
    func discardAll() throws(CacheError) {
        do {
            guard let folder = try self.openFolder() else { return }
            if case .readOnly(let reason) = folder.mode { throw reason }
            if self.forgetIfMoved(folder) { return try self.discardAll() }
            try folder.makeSubfolder(CacheFolder.discardedName)
            let place = "\(CacheFolder.discardedName)/\(String(UInt64.random(in: .min ... .max), radix: 16))"
            try folder.makeSubfolder(place)
            try folder.withCatalogue { catalogue, _ throws(SystemCallError) in
                let byteCount = Int(clamping: catalogue.region[.byteCount])
                let old = LegacyLayout.shardNames(in: folder.descriptor)
                for name in old + [CacheFolder.entriesName] {
                    guard
                        renameat(folder.descriptor, name, folder.descriptor, "\(place)/\(name)") == 0 || errno == ENOENT
                    else { throw SystemCallError.last("rename") }
                }
                catalogue.region.add(byteCount, to: .discardedByteCount)
                try catalogue.removeAll()
                catalogue.region.flags.insert(.isComplete)
            }
        } catch let error as SystemCallError {
            throw .writing(error, in: self.directory)
        } catch let error as CacheError {
            throw error
        } catch {
            throw .shutDown(self.directory)
        }
    }

    /// Deletes what was cleared, of that no more files than the limit.
    func deleteDiscarded(in folder: CacheFolder, fileLimit: Int) {
        var rest = fileLimit
        for place in Folder.names(at: CacheFolder.discardedName, in: folder.descriptor) {
            let path = "\(CacheFolder.discardedName)/\(place)"
            guard self.deleteTree(path, in: folder, &rest) else { return }
        }
        guard folder.region[.discardedByteCount] > 0 else { return }
        try? folder.withCatalogue { catalogue, _ in
            // What is left of the count belongs to files that were gone already.
            if Folder.names(at: CacheFolder.discardedName, in: folder.descriptor).isEmpty {
                catalogue.region[.discardedByteCount] = 0
            }
        }
    }

    /// Deletes a folder and what is in it; says whether it is gone.
    private func deleteTree(_ path: String, in folder: CacheFolder, _ rest: inout Int) -> Bool {
        var freed = 0
        defer {
            if freed > 0 {
                try? folder.withCatalogue { catalogue, _ in catalogue.region.add(-freed, to: .discardedByteCount) }
            }
        }
        for name in Folder.names(at: path, in: folder.descriptor) {
            guard rest > 0, !self.isClosing.load(ordering: .relaxed) else { return false }
            let inner = "\(path)/\(name)"
            var status = stat()
            guard fstatat(folder.descriptor, inner, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            if status.st_mode & S_IFMT == S_IFDIR {
                guard self.deleteTree(inner, in: folder, &rest) else { return false }
            } else if unlinkat(folder.descriptor, inner, 0) == 0 {
                freed += Int(status.st_size)
                rest -= 1
            }
        }
        return unlinkat(folder.descriptor, path, AT_REMOVEDIR) == 0 || errno == ENOENT
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
