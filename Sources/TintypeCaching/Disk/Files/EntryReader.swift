import CShims
import FoundationEssentials
import Glibc
import Synchronization

/// Looks entries up: opens their files, checks them, and notes their use.
final class EntryReader: Sendable {
    /// What is known of a key without waiting for the disk.
    enum CachedAnswer {
        case hit(DiskEntry)
        case miss
        /// The disk must be asked, or something must be put right.
        case unknown
    }

    private enum Outcome {
        case hit(DiskEntry, EntryHeader, OpenFile.Status)
        case missing
        case expired(OpenFile.Status)
        case damaged(OpenFile.Status?)
    }

    /// The largest file that is read on the caller's thread: it takes 50 microseconds.
    private static let cachedByteCountLimit = 512 << 10

    private let folders: FolderHandle
    private let expiry: EntryExpiry
    /// The largest file that is read at all.
    private let byteCountLimit: Int
    /// The paths of the folders that are only read.
    private let readOnlyDirectories: [String]

    init(_ configuration: DiskCache.Configuration, _ expiry: EntryExpiry, _ folders: FolderHandle) {
        self.folders = folders
        self.expiry = expiry
        self.byteCountLimit = max(0, configuration.sizeLimit)
        self.readOnlyDirectories = configuration.readOnlyDirectories.map(DiskCache.Configuration.path)
    }

    /// The entry of `key`, read, checked and marked as used.
    ///
    /// A missing, expired or damaged entry is `nil`, and the last two are removed.
    func read(_ key: CacheKey) throws(CacheError) -> DiskEntry? {
        do {
            if let entry = try self.readOwn(key) ?? self.readElsewhere(key) {
                self.folders.counters.hits.add(1, ordering: .relaxed)
                return entry
            }
            self.folders.counters.misses.add(1, ordering: .relaxed)
            return nil
        } catch {
            self.folders.counters.misses.add(1, ordering: .relaxed)
            throw CacheError.reading(error, in: self.folders.directory)
        }
    }

    /// Whether an entry of `key` is there and alive.
    ///
    /// Reads its header only, and does not count as a use.
    func contains(_ key: CacheKey) -> Bool {
        let name = EntryName(key)
        // Twice: a folder that was deleted is opened anew, once.
        for _ in 0..<2 {
            guard let folder = try? self.folders.open() else { break }
            if case .absent = folder.region.find(name), folder.knowsAbsence() {
                guard self.folders.beginCheck(), self.folders.forgetIfMoved(folder) else { break }
                continue
            }
            if let (header, status) = try? EntryHeader.read(name, in: folder), let header {
                let usedAt = Self.lastUse(of: name, in: folder) ?? status.modifiedAt
                if !self.expiry.isOver(header, usedAt: usedAt, now: self.expiry.now) { return true }
            }
            break
        }
        return self.isElsewhere(key)
    }

    // MARK: On the caller's thread

    /// Looks up `key` as far as that takes no waiting: safe on any thread.
    ///
    /// A miss costs a look into memory, and a hit the reading of what the system has in memory
    /// already.
    func readCached(_ key: CacheKey, countsMiss: Bool = true) -> CachedAnswer {
        guard let folder = self.folders.opened else { return .unknown }
        let region = folder.region
        switch region.find(EntryName(key)) {
        case .unknown:
            return .unknown
        case .absent:
            guard folder.knowsAbsence(region), self.readOnlyDirectories.isEmpty, !self.folders.isCheckDue else {
                return .unknown
            }
            if countsMiss { self.folders.counters.misses.add(1, ordering: .relaxed) }
            return .miss
        case .found(let record, let slot, let word):
            // A use that is noted in a catalogue that was replaced is lost to all others.
            guard !region.flags.contains(.isSuperseded) else { return .unknown }
            guard let (entry, now) = try? self.readCached(key, record, in: folder) else { return .unknown }
            region.touch(slot, from: word, usedAt: CatalogueRecord.ticks(now))
            self.folders.counters.hits.add(1, ordering: .relaxed)
            return .hit(entry)
        }
    }

    /// The entry, and when it was read; `nil` when that takes waiting, or when it is not as it should be.
    private func readCached(
        _ key: CacheKey,
        _ record: CatalogueRecord,
        in folder: CacheFolder
    ) throws(SystemCallError) -> (DiskEntry, Double)? {
        guard record.byteCount <= min(self.byteCountLimit, Self.cachedByteCountLimit) else { return nil }
        let descriptor = record.name.withPath { cshims_open_cached(folder.descriptor, $0) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let now = self.expiry.now
        // One byte more than there should be shows that the file ends there.
        let buffer = try EntryBuffer(byteCount: record.byteCount + 1)
        guard let base = buffer.bytes.baseAddress,
            cshims_read_cached(descriptor, base, UInt(buffer.bytes.count)) == record.byteCount,
            let (header, metadata) = buffer.check(record.byteCount, key: key),
            !self.expiry.isOver(header, usedAt: record.usedAtSeconds, now: now)
        else { return nil }
        return (buffer.makeEntry(header, metadata), now)
    }

    // MARK: Own folder

    private func readOwn(_ key: CacheKey) throws(SystemCallError) -> DiskEntry? {
        let name = EntryName(key)
        // Twice: a folder that was deleted is opened anew, once.
        for _ in 0..<2 {
            guard let folder = try self.folders.open() else { return nil }
            if case .absent = folder.region.find(name), folder.knowsAbsence() {
                guard self.folders.beginCheck(), self.folders.forgetIfMoved(folder) else { return nil }
                continue
            }
            let now = self.expiry.now
            switch try self.load(key, name, in: folder, now: now) {
            case .hit(let entry, let header, let status):
                self.noteUse(name, header, status, in: folder, now: now)
                return entry
            case .missing:
                if self.folders.forgetIfMoved(folder) { continue }
                // Brings what is known of it in line with its file.
                try? folder.withCatalogue { catalogue, _ in catalogue.settle(name) }
            // That the removal may fail (on a read-only disk) makes the look-up no less a miss.
            case .expired(let status):
                if folder.discard(name, status.number) {
                    self.folders.counters.expiredEntries.add(1, ordering: .relaxed)
                }
            case .damaged(let status):
                if folder.discard(name, status?.number) {
                    self.folders.counters.damagedEntries.add(1, ordering: .relaxed)
                }
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
            file = try OpenFile(reading: name, in: folder)
        } catch {
            if error.meansMissing { return .missing }
            // A symbolic link, which no cache makes.
            guard error.number == ELOOP else { throw error }
            return .damaged(nil)
        }
        let status = try file.status()
        guard status.isRegular, status.byteCount >= EntryHeader.byteCount else { return .damaged(status) }
        // Of a process with a higher limit: not ours to read into memory.
        guard status.byteCount <= self.byteCountLimit else { return .missing }
        let buffer = try EntryBuffer(byteCount: status.byteCount)
        guard try file.read(into: buffer.bytes) == status.byteCount,
            let (header, metadata) = buffer.check(status.byteCount, key: key)
        else { return .damaged(status) }
        let usedAt = Self.lastUse(of: name, in: folder) ?? status.modifiedAt
        guard !self.expiry.isOver(header, usedAt: usedAt, now: now) else { return .expired(status) }
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
            guard folder.fileNumber(of: name) == status.number else { return }
            try catalogue.put(CatalogueRecord(name, header, status, usedAt: now))
        }
    }

    /// The last use that the catalogue knows of.
    private static func lastUse(of name: EntryName, in folder: CacheFolder) -> Double? {
        guard case .found(let record, _, _) = folder.region.find(name) else { return nil }
        return record.usedAtSeconds
    }

    // MARK: Read-only folders

    /// The entry of `key` in one of the folders that are only read.
    private func readElsewhere(_ key: CacheKey) -> DiskEntry? {
        for path in self.pathsElsewhere(of: key) {
            guard let file = try? OpenFile(reading: path), let status = try? file.status(), status.isRegular,
                status.byteCount <= self.byteCountLimit, let buffer = try? EntryBuffer(byteCount: status.byteCount),
                (try? file.read(into: buffer.bytes)) == status.byteCount,
                let (header, metadata) = buffer.check(status.byteCount, key: key), header.expiresAt > self.expiry.now
            else { continue }
            return buffer.makeEntry(header, metadata)
        }
        return nil
    }

    private func isElsewhere(_ key: CacheKey) -> Bool {
        self.pathsElsewhere(of: key).contains { path in
            guard let (header, _) = try? EntryHeader.read(at: path, in: AT_FDCWD), let header else { return false }
            return header.expiresAt > self.expiry.now
        }
    }

    private func pathsElsewhere(of key: CacheKey) -> [String] {
        self.readOnlyDirectories.map { "\($0)/\(EntryName(key).path)" }
    }
}
