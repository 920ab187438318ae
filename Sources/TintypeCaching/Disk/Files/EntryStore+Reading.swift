import FoundationEssentials
import Glibc
import Synchronization

extension EntryStore {
    private enum Outcome {
        case hit(DiskEntry, EntryHeader, OpenFile.Status)
        case missing
        case expired(OpenFile.Status)
        case damaged(OpenFile.Status?)
    }

    /// The entry of `key`, read, checked and marked as used.
    ///
    /// A missing, expired or damaged entry is `nil`, and the last two are removed.
    func read(_ key: CacheKey) throws(CacheError) -> DiskEntry? {
        do {
            if let entry = try self.readOwn(key) ?? self.readElsewhere(key) {
                self.counters.hits.add(1, ordering: .relaxed)
                return entry
            }
            self.counters.misses.add(1, ordering: .relaxed)
            return nil
        } catch {
            self.counters.misses.add(1, ordering: .relaxed)
            throw CacheError.reading(error, in: self.directory)
        }
    }

    /// Whether an entry of `key` is there and alive.
    ///
    /// Reads its header only, and is no use of it.
    func contains(_ key: CacheKey) -> Bool {
        let name = EntryName(key)
        // Twice: a folder that was deleted is opened anew, once.
        for _ in 0..<2 {
            guard let folder = try? self.openFolder() else { break }
            if case .absent = folder.region.find(name), folder.knowsAbsence {
                guard self.isCheckDue(), self.forgetIfMoved(folder) else { break }
                continue
            }
            if let (header, status) = try? name.withPath({ path throws(SystemCallError) in
                try self.header(at: path, in: folder.descriptor)
            }), let header {
                let usedAt = self.lastUse(of: name, in: folder) ?? status.modifiedAt
                if !self.isExpired(header, usedAt: usedAt, now: self.now) { return true }
            }
            break
        }
        return self.isElsewhere(key)
    }

    /// The header of the entry file at `path`; `nil` when the file is none.
    func header(
        at path: UnsafePointer<CChar>,
        in folder: CInt
    ) throws(SystemCallError) -> (EntryHeader?, OpenFile.Status) {
        let file = try OpenFile(reading: path, in: folder)
        let status = try file.status()
        guard status.isRegular, status.byteCount >= EntryHeader.byteCount else { return (nil, status) }
        var bytes = InlineArray<64, UInt8>(repeating: 0)
        let header = try withUnsafeMutableBytes(of: &bytes) { buffer throws(SystemCallError) -> EntryHeader? in
            guard try file.read(into: buffer) == buffer.count else { return nil }
            return EntryHeader(UnsafeRawBufferPointer(buffer), fileByteCount: status.byteCount)
        }
        return (header, status)
    }

    /// The last use that the catalogue knows of.
    func lastUse(of name: EntryName, in folder: CacheFolder) -> Double? {
        guard case .found(let record, _, _) = folder.region.find(name) else { return nil }
        return record.usedAtSeconds
    }

    /// Whether `error` says that there is nothing at a path.
    static func meansMissing(_ error: SystemCallError) -> Bool {
        error.number == ENOENT || error.number == ENOTDIR
    }

    // MARK: Own folder

    private func readOwn(_ key: CacheKey) throws(SystemCallError) -> DiskEntry? {
        let name = EntryName(key)
        let now = self.now
        // Twice: a folder that was deleted is opened anew, once.
        for _ in 0..<2 {
            guard let folder = try self.openFolder() else { return nil }
            if case .absent = folder.region.find(name), folder.knowsAbsence {
                guard self.isCheckDue(), self.forgetIfMoved(folder) else { return nil }
                continue
            }
            switch try self.load(key, name, in: folder, now: now) {
            case .hit(let entry, let header, let status):
                self.noteUse(name, header, status, in: folder, now: now)
                return entry
            case .missing:
                if self.forgetIfMoved(folder) { continue }
                self.settle(name, in: folder)
            case .expired(let status):
                if self.discard(name, status, in: folder) { self.counters.expiredEntries.add(1, ordering: .relaxed) }
            case .damaged(let status):
                if self.discard(name, status, in: folder) { self.counters.damagedEntries.add(1, ordering: .relaxed) }
            }
            return nil
        }
        return nil
    }

    private func load(
        _ key: CacheKey,
        _ name: EntryName,
        in folder: CacheFolder,
        now: Double
    ) throws(SystemCallError) -> Outcome {
        let file: OpenFile
        do throws(SystemCallError) {
            file = try name.withPath { path throws(SystemCallError) -> OpenFile in
                try OpenFile(reading: path, in: folder.descriptor)
            }
        } catch {
            if Self.meansMissing(error) { return .missing }
            // A symbolic link, which no cache makes.
            guard error.number == ELOOP else { throw error }
            return .damaged(nil)
        }
        let status = try file.status()
        guard status.isRegular, status.byteCount >= EntryHeader.byteCount else { return .damaged(status) }
        // Of a process with a higher limit: not ours to read into memory.
        guard status.byteCount <= self.sizeLimit else { return .missing }
        let buffer = try EntryBuffer(byteCount: status.byteCount)
        guard try file.read(into: buffer.bytes) == status.byteCount,
            let (header, metadata) = buffer.check(status.byteCount, key: key)
        else { return .damaged(status) }
        let usedAt = self.lastUse(of: name, in: folder) ?? status.modifiedAt
        guard !self.isExpired(header, usedAt: usedAt, now: now) else { return .expired(status) }
        return .hit(buffer.makeEntry(header, metadata), header, status)
    }

    /// Marks an entry that was read as used, and takes one up that the catalogue does not know.
    private func noteUse(
        _ name: EntryName,
        _ header: EntryHeader,
        _ status: OpenFile.Status,
        in folder: CacheFolder,
        now: Double
    ) {
        // Opens the catalogue that has taken the place of this one.
        if folder.region.flags.contains(.isSuperseded) { try? folder.withCatalogue { _, _ in } }
        let region = folder.region
        if case .found(let record, let slot, let word) = region.find(name), record.byteCount == status.byteCount {
            region.touch(slot, from: word, usedAt: CatalogueRecord.ticks(now))
            return
        }
        guard case .shared = folder.mode else { return }
        try? folder.withCatalogue { catalogue, _ throws(SystemCallError) in
            guard self.number(of: name, in: folder) == status.number else { return }
            try catalogue.put(
                CatalogueRecord(
                    name: name,
                    byteCount: status.byteCount,
                    usedAt: now,
                    storedAt: header.storedAt,
                    expiresAt: header.expiresAt
                )
            )
        }
    }

    /// Brings what is known of an entry in line with its file.
    private func settle(_ name: EntryName, in folder: CacheFolder) {
        try? folder.withCatalogue { catalogue, _ in catalogue.settle(name) }
    }

    /// Removes an entry that nobody can use, unless another has taken its place.
    ///
    /// That this may fail (on a read-only disk) makes the look-up no less a miss.
    private func discard(_ name: EntryName, _ status: OpenFile.Status?, in folder: CacheFolder) -> Bool {
        if case .readOnly = folder.mode { return false }
        let isRemoved = try? folder.withCatalogue { catalogue, _ throws(SystemCallError) -> Bool in
            if let status, self.number(of: name, in: folder) != status.number { return false }
            return try self.unlinkOwn(name, catalogue)
        }
        return isRemoved ?? false
    }

    /// Removes a file that is no entry, or no longer a good one, if it ever was one: the catalogue knows it, or its
    /// first bytes tell.
    func unlinkOwn(_ name: EntryName, _ catalogue: Catalogue) throws(SystemCallError) -> Bool {
        let folder = catalogue.folder.descriptor
        guard catalogue.record(of: name) != nil || name.withPath({ OwnFiles.hasTraceOfEntry($0, in: folder) }) else {
            return false
        }
        return try catalogue.unlink(name)
    }

    /// Which file an entry is now, if it is there.
    func number(of name: EntryName, in folder: CacheFolder) -> UInt? {
        var status = stat()
        let isThere = name.withPath { fstatat(folder.descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) == 0 }
        return isThere ? UInt(status.st_ino) : nil
    }

    // MARK: Read-only folders

    /// The entry of `key` in one of the folders that are only read.
    private func readElsewhere(_ key: CacheKey) -> DiskEntry? {
        for path in self.pathsElsewhere(of: key) {
            guard let file = try? OpenFile(reading: path), let status = try? file.status(), status.isRegular,
                status.byteCount <= self.sizeLimit, let buffer = try? EntryBuffer(byteCount: status.byteCount),
                (try? file.read(into: buffer.bytes)) == status.byteCount,
                let (header, metadata) = buffer.check(status.byteCount, key: key), header.expiresAt > self.now
            else { continue }
            return buffer.makeEntry(header, metadata)
        }
        return nil
    }

    private func isElsewhere(_ key: CacheKey) -> Bool {
        self.pathsElsewhere(of: key).contains { path in
            guard let (header, _) = try? self.header(at: path, in: AT_FDCWD), let header else { return false }
            return header.expiresAt > self.now
        }
    }

    /// Where `key` lies in the folders that are only read.
    private func pathsElsewhere(of key: CacheKey) -> [String] {
        let directories = self.configuration.readOnlyDirectories
        guard !directories.isEmpty else { return [] }
        let path = EntryName(key).path
        return directories.map { DiskCache.Configuration.path(of: $0) + "/" + path }
    }
}
