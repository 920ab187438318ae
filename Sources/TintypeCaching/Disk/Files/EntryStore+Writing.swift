import FoundationEssentials
import Glibc

extension EntryStore {
    /// Stores `data` under `key`, in place of an older entry.
    ///
    /// The older entry stays until the new one is whole; when the store fails it stays for good,
    /// unless it was the last one that could make room.
    func write(_ data: Data, metadata: EntryMetadata, for key: CacheKey) throws(CacheError) {
        let digest = KeyDigest(key)
        let now = self.now
        let encodedMetadata = metadata.encoded()
        let byteCount = EntryHeader.byteCount + key.text.utf8.count + encodedMetadata.count + data.count
        guard byteCount <= self.sizeLimit else {
            throw .tooLarge(byteCount, limit: self.sizeLimit, in: self.directory)
        }
        self.removeSomeExpired(now: now)
        try self.makeRoom(byteCount, for: digest, now: now)
        do {
            try data.bytes.withUnsafeBytes { body throws(SystemCallError) in
                let head = EntryHeader.head(
                    key: key,
                    metadata: encodedMetadata,
                    body: body,
                    storedAt: now,
                    createdAt: self.creationDate(of: digest, now: now),
                    expiresAt: metadata.expiry?.timeIntervalSince1970 ?? .infinity
                )
                try self.write(head, body, to: digest, now: now)
            }
        } catch {
            self.index.withLock { $0.release(byteCount) }
            self.index.notify()
            throw .writing(error, in: self.directory)
        }
        self.index.notify()
    }

    /// Removes the entry of `key`, and says whether there was one.
    func remove(_ key: CacheKey) throws(CacheError) -> Bool {
        do {
            return try self.unlinkEntry(KeyDigest(key))
        } catch {
            throw .writing(error, in: self.directory)
        }
    }

    // MARK: Removing

    /// Removes an entry that nobody can use.
    ///
    /// That this may fail (on a read-only disk) makes the look-up no less a miss.
    func discard(_ digest: KeyDigest, count: (inout DiskCounters) -> Void) {
        guard let isRemoved = try? self.unlinkEntry(digest), isRemoved else { return }
        self.index.withLock { count(&$0.counters) }
    }

    /// Removes the entry that is longest unused, unless it turns out that it is in use.
    ///
    /// - Returns: Whether its file was removed.
    func evict(_ record: DiskIndex.Record, now: Double) throws(SystemCallError) -> Bool {
        try self.withStripe(of: record.digest) { () throws(SystemCallError) -> Bool in
            // Another lane may have stored it anew since it was chosen.
            guard self.index.withLock({ $0.isCurrent(record) }) else { return false }
            let path = self.path(of: record.digest)
            var status = stat()
            if lstat(path, &status) == 0 {
                let usedAt = OpenFile.Status(status).modifiedAt
                if usedAt > record.usedAt + self.useResolution, usedAt <= now {
                    // Another process uses it.
                    self.index.withLock {
                        $0.noteUse(record.digest, byteCount: Int(status.st_size), usedAt: usedAt)
                    }
                    return false
                }
            }
            return try self.unlinkLocked(record.digest, path)
        }
    }

    private func unlinkEntry(_ digest: KeyDigest) throws(SystemCallError) -> Bool {
        try self.withStripe(of: digest) { () throws(SystemCallError) -> Bool in
            try self.unlinkLocked(digest, self.path(of: digest))
        }
    }

    /// Removes the file of `digest` at `path`; the caller holds the stripe.
    func unlinkLocked(_ digest: KeyDigest, _ path: String) throws(SystemCallError) -> Bool {
        let isRemoved = unlink(path) == 0
        if !isRemoved {
            let error = SystemCallError.last("unlink")
            guard Self.meansMissing(error) else { throw error }
        }
        self.index.withLock { $0.remove(digest) }
        return isRemoved
    }

    // MARK: Room

    private func makeRoom(_ byteCount: Int, for digest: KeyDigest, now: Double) throws(CacheError) {
        while true {
            let step = self.index.wait { $0.reserve(byteCount, limit: self.sizeLimit, sparing: digest) }
            guard case .evict(let victim) = step else { return }
            do {
                guard try self.evict(victim, now: now) else { continue }
                self.index.withLock { $0.counters.evictions += 1 }
            } catch {
                throw .writing(error, in: self.directory)
            }
        }
    }

    /// Removes up to two entries whose age is over, so that a cache which is only written to
    /// cleans itself in step.
    private func removeSomeExpired(now: Double) {
        guard let limit = self.oldestLivingUse(now: now) else { return }
        for _ in 0..<2 {
            guard let oldest = self.index.withLock({ $0.oldest }), oldest.usedAt <= limit,
                let isRemoved = try? self.evict(oldest, now: now), isRemoved
            else { return }
            self.index.withLock { $0.counters.expiredEntries += 1 }
        }
    }

    // MARK: Files

    private func creationDate(of digest: KeyDigest, now: Double) -> Double {
        guard self.keepsCreationDate, let (header, status) = try? self.header(at: self.path(of: digest)), let header,
            !self.isExpired(header, usedAt: status.modifiedAt, now: now)
        else { return now }
        return header.createdAt
    }

    private func write(
        _ head: [UInt8],
        _ body: UnsafeRawBufferPointer,
        to digest: KeyDigest,
        now: Double
    ) throws(SystemCallError) {
        var attempt = 1
        while true {
            let path = self.makeTemporaryPath()
            do {
                let file = try self.createFile(at: path)
                try head.span.bytes.withUnsafeBytes { head throws(SystemCallError) in try file.write(head, body) }
                try file.setModificationTime(now)
                try file.checkWritten()
                try self.moveIntoPlace(path, digest, byteCount: head.count + body.count, now: now)
                // Only now: the lock on the file must last until it has its place.
                file.close()
                return
            } catch {
                unlink(path)
                // Somebody deleted the folder, or took the file for one that a killed writer left.
                guard error.number == ENOENT, attempt < 8 else { throw error }
                attempt += 1
                try self.makeFolder(self.temporaryFolder)
            }
        }
    }

    /// Makes a file and locks it, which tells those who clean up, in any process, that its writer
    /// lives.
    ///
    /// - Throws: `ENOENT` also when one of them was faster and has taken the file for a dead writer's.
    private func createFile(at path: String) throws(SystemCallError) -> OpenFile {
        let file = try OpenFile(creating: path)
        if !file.tryLock(), errno == EWOULDBLOCK { throw SystemCallError(call: "flock", number: ENOENT) }
        guard try file.status().hasName else { throw SystemCallError(call: "flock", number: ENOENT) }
        return file
    }

    private func moveIntoPlace(
        _ path: String,
        _ digest: KeyDigest,
        byteCount: Int,
        now: Double
    ) throws(SystemCallError) {
        try self.withStripe(of: digest) { () throws(SystemCallError) in
            let destination = self.path(of: digest)
            if rename(path, destination) != 0 {
                guard errno == ENOENT else { throw SystemCallError.last("rename") }
                try self.makeFolder(self.shardFolder(digest.shard))
                guard rename(path, destination) == 0 else { throw SystemCallError.last("rename") }
            }
            self.index.withLock { $0.commit(digest, byteCount: byteCount, usedAt: now) }
        }
    }

    /// Makes a folder and those above it, for this user only.
    private func makeFolder(_ path: String) throws(SystemCallError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw SystemCallError.last("mkdir")
        }
        try self.makeFolder(String(path[..<slash]))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemCallError.last("mkdir") }
    }
}
