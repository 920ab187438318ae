import Glibc
import Synchronization

/// The work on the whole folder. One at a time, on a thread of its own, beside the lanes.
extension EntryStore {
    /// Reads the folder into the index.
    func readFolder() {
        self.index.withLock { $0.beginReading() }
        var found: [DiskIndex.Record] = []
        for shard in self.shardFolders {
            if self.isClosing.load(ordering: .relaxed) {
                self.index.withLock { $0.abandonReading() }
                self.index.notify()
                return
            }
            // A shard that can't be read is one whose entries can't be used either.
            try? Folder.forEachName(in: shard) { name, folder in
                guard let digest = KeyDigest(fileName: name), let status = Folder.status(of: name, in: folder),
                    status.isRegular
                else { return }
                found.append(
                    DiskIndex.Record(digest: digest, byteCount: status.byteCount, usedAt: status.modifiedAt)
                )
            }
        }
        self.index.withLock { $0.endReading(found) }
        self.index.notify()
    }

    /// Removes what killed writers left behind.
    ///
    /// - Returns: The files that were removed.
    func removeStaleTemporaryFiles() -> Int {
        var count = 0
        try? Folder.forEachName(in: self.temporaryFolder) { name, _ in
            let path = self.temporaryFolder + "/" + String(decoding: name, as: UTF8.self)
            // A writer holds the lock of its file until it is done or dead.
            guard let file = try? OpenFile(reading: path), let status = try? file.status(), status.isRegular,
                file.tryLock(), unlink(path) == 0
            else { return }
            count += 1
        }
        return count
    }

    /// Removes the entries whose last use is too long ago, as far as that alone decides.
    func removeExpiredByUse(into result: inout PruneResult) {
        let now = self.now
        guard let limit = self.oldestLivingUse(now: now) else { return }
        while let oldest = self.index.withLock({ $0.oldest }), oldest.usedAt <= limit {
            guard let isRemoved = self.remove(oldest, now: now, into: &result) else { return }
            guard isRemoved else { continue }
            result.expiredEntries += 1
            self.index.withLock { $0.counters.expiredEntries += 1 }
        }
    }

    /// Removes the least recently used entries until the size limit holds.
    func removeOverLimit(into result: inout PruneResult) {
        while let oldest = self.index.withLock({ $0.byteCount > self.sizeLimit ? $0.oldest : nil }) {
            guard let isRemoved = self.remove(oldest, now: self.now, into: &result) else { return }
            guard isRemoved else { continue }
            result.evictedEntries += 1
            self.index.withLock { $0.counters.evictions += 1 }
        }
    }

    /// Opens every entry and removes those that are expired in any way or have no valid header.
    func removeExpiredByHeader(into result: inout PruneResult) {
        for digest in self.index.withLock({ $0.digests }) {
            if self.isClosing.load(ordering: .relaxed) { return }
            self.withStripe(of: digest) {
                let path = self.path(of: digest)
                guard let (header, status) = try? self.header(at: path) else {
                    if access(path, F_OK) != 0, errno == ENOENT { self.index.withLock { $0.remove(digest) } }
                    return
                }
                if let header, !self.isExpired(header, usedAt: status.modifiedAt, now: self.now) { return }
                guard let isRemoved = try? self.unlinkLocked(digest, path), isRemoved else { return }
                result.freedByteCount += status.byteCount
                if header == nil { result.damagedEntries += 1 } else { result.expiredEntries += 1 }
                self.index.withLock { index in
                    if header == nil { index.counters.damagedEntries += 1 } else { index.counters.expiredEntries += 1 }
                }
            }
        }
    }

    /// Removes all entries and what killed writers left, and nothing else.
    func removeAll() throws(CacheError) {
        var failure: SystemCallError?
        for shard in self.shardFolders {
            var digests: [KeyDigest] = []
            do {
                try Folder.forEachName(in: shard) { name, _ in
                    if let digest = KeyDigest(fileName: name) { digests.append(digest) }
                }
            } catch {
                failure = error
            }
            for digest in digests {
                do {
                    _ = try self.withStripe(of: digest) { () throws(SystemCallError) in
                        try self.unlinkLocked(digest, self.path(of: digest))
                    }
                } catch {
                    failure = error
                }
            }
            // Fails, as it should, where a lane has just stored something.
            rmdir(shard)
        }
        _ = self.removeStaleTemporaryFiles()
        if let failure { throw .writing(failure, in: self.directory) }
    }

    /// Evicts one entry, and says whether its file was removed; `nil` when it can't be, so that the
    /// caller does not try for ever.
    private func remove(_ record: DiskIndex.Record, now: Double, into result: inout PruneResult) -> Bool? {
        guard !self.isClosing.load(ordering: .relaxed), let isRemoved = try? self.evict(record, now: now) else {
            return nil
        }
        if isRemoved { result.freedByteCount += record.byteCount }
        return isRemoved
    }
}
