// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import Synchronization
import TintypeHTTP

/// Looks entries up: opens their files, checks them and records their use.
final class EntryReader: Sendable {
    /// The result of a look-up that does not wait for the disk.
    enum CachedAnswer {
        case hit(ByteEntry)
        case miss
        /// A look-up on a lane is necessary, because it must read from the disk or repair the catalogue.
        case unknown
    }

    private enum Outcome {
        case hit(ByteEntry, EntryHeader, OpenFile.Status)
        case missing
        case expired(OpenFile.Status)
        case damaged(OpenFile.Status?)
    }

    /// The size limit for files that are read on the caller's thread, which takes 50 microseconds.
    private static let cachedByteCountLimit = 512 << 10
    /// The size limit for heads that are read there; the heads of images have less than a thousand bytes.
    private static let cachedHeadByteCountLimit = 4 << 10
    /// The shortest time in seconds between two stores of a body that differ only in their dates.
    private static let rewritingInterval = 60.0

    private let folders: FolderHandle
    private let expiry: EntryExpiry
    let heads = KnownHeads()
    /// The size limit for all reads.
    private let byteCountLimit: Int
    /// The paths of the read-only folders.
    private let readOnlyDirectories: [String]

    init(_ configuration: DiskCache.Configuration, _ expiry: EntryExpiry, _ folders: FolderHandle) {
        self.folders = folders
        self.expiry = expiry
        self.byteCountLimit = max(0, configuration.sizeLimit)
        self.readOnlyDirectories = configuration.readOnlyDirectories.map(DiskCache.Configuration.path)
    }

    /// Reads and checks the entry of `key`, or its head, and records a use if it reads the whole entry.
    ///
    /// Returns `nil` for a missing, expired or damaged entry, and removes the latter two.
    func read(_ part: EntryPart, of key: CacheKey) throws(CacheError) -> ByteEntry? {
        do {
            let entry = try self.readOwn(part, of: key) ?? self.readElsewhere(part, of: key)
            self.count(isHit: entry != nil, part)
            return entry
        } catch {
            self.count(isHit: false, part)
            throw CacheError.reading(error, in: self.folders.directory)
        }
    }

    /// Opens the file of the entry of `key`, after reading and checking its bytes, and records a use.
    func file(of key: CacheKey) throws(CacheError) -> CachedFile? {
        // This read removes expired and damaged entries.
        guard try self.read(.whole, of: key) != nil else { return nil }
        let path = EntryName(key).path
        for directory in [self.folders.directory] + self.readOnlyDirectories {
            guard let file = try? OpenFile(reading: "\(directory)/\(path)"), let status = try? file.status(),
                status.isRegular, status.byteCount <= self.byteCountLimit,
                let (entry, header) = try? self.read(.whole, of: key, from: file, status)
            else { continue }
            return CachedFile(file, at: "\(directory)/\(path)", header, entry.metadata)
        }
        // Another process removed or replaced the entry since the read, so report a miss.
        return nil
    }

    /// Keeps newer metadata of the entry of `key` in memory, and returns `false` if the file must be written instead.
    ///
    /// Memory suffices if only dates differ, and if the file is younger than a minute. Without this, a popular image with
    /// a short lifetime would be written again and again. Another process asks the origin itself.
    func renew(_ metadata: EntryMetadata, of key: CacheKey) -> Bool {
        let name = EntryName(key)
        guard let folder = self.folders.opened, case .found(let record, _, _) = folder.region.find(name),
            0..<Self.rewritingInterval ~= self.expiry.now - Double(record.storedAt),
            let stored = try? self.readOwn(.head, of: key)?.metadata, metadata.isRenewal(of: stored)
        else { return false }
        self.heads.renew(name, by: metadata)
        return true
    }

    /// Counts a hit or a miss, but only for a read of the whole entry.
    func count(isHit: Bool, _ part: EntryPart) {
        guard part == .whole else { return }
        if isHit {
            self.folders.counters.hits.add(1, ordering: .relaxed)
        } else {
            self.folders.counters.misses.add(1, ordering: .relaxed)
        }
    }

    // MARK: On the caller's thread

    /// Looks `key` up without waiting, so that any thread may call it.
    ///
    /// A miss only reads memory, and a hit only reads pages in the system's page cache.
    func readCached(_ part: EntryPart, of key: CacheKey, countsMiss: Bool = true) -> CachedAnswer {
        guard let folder = self.folders.opened else { return .unknown }
        let region = folder.region
        switch region.find(EntryName(key)) {
        case .unknown:
            return .unknown
        case .absent:
            guard folder.knowsAbsence(region), self.readOnlyDirectories.isEmpty, !self.folders.isCheckDue else {
                return .unknown
            }
            if countsMiss { self.count(isHit: false, part) }
            return .miss
        case .found(let record, let slot, let word):
            // A use recorded in a replaced catalogue would be lost for all other processes.
            guard !region.flags.contains(.isSuperseded) else { return .unknown }
            guard let (entry, _, now) = try? self.readCached(part, of: key, record, in: folder) else { return .unknown }
            if part == .whole { region.touch(slot, from: word, usedAt: CatalogueRecord.ticks(now)) }
            self.count(isHit: true, part)
            return .hit(entry)
        }
    }

    /// Returns the metadata of the entry of `key` without waiting, from memory if it is known.
    func readyMetadata(of key: CacheKey) -> EntryMetadata? {
        guard let folder = self.folders.opened else { return nil }
        let region = folder.region
        guard case .found(let record, _, _) = region.find(EntryName(key)), !region.flags.contains(.isSuperseded) else {
            return nil
        }
        let now = self.expiry.now
        if let head = self.heads.head(of: key, record) {
            return self.expiry.isOver(head.header, usedAt: record.usedAtSeconds, now: now)
                ? nil : self.heads.renewed(head.metadata, record.name)
        }
        let isSettled = KnownHeads.isSettled(record, in: folder, now: now)
        guard let (entry, header, _) = try? self.readCached(.head, of: key, record, in: folder) else { return nil }
        if isSettled { self.heads.remember(header, entry.metadata, of: key, record) }
        return entry.metadata
    }

    /// Returns the entry, its header and the time of the read; `nil` if that needs waiting or the entry is not valid.
    private func readCached(
        _ part: EntryPart,
        of key: CacheKey,
        _ record: CatalogueRecord,
        in folder: CacheFolder
    ) throws(SystemCallError) -> (ByteEntry, EntryHeader, Double)? {
        guard record.byteCount <= self.byteCountLimit,
            record.byteCount <= Self.cachedByteCountLimit || part == .head
        else { return nil }
        let descriptor = record.name.withPath { cshims_open_cached(folder.descriptor, $0) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let now = self.expiry.now
        // Ask for one more byte than the record says, to verify that the file ends there.
        let wanted = part == .whole ? record.byteCount + 1 : min(record.byteCount + 1, Self.cachedHeadByteCountLimit)
        let buffer = try EntryBuffer(byteCount: wanted)
        let count = min(record.byteCount, wanted)
        guard let base = buffer.bytes.baseAddress, cshims_read_cached(descriptor, base, UInt(wanted)) == count,
            let (header, metadata) = buffer.check(part, count, of: record.byteCount, key: key),
            !self.expiry.isOver(header, usedAt: record.usedAtSeconds, now: now)
        else { return nil }
        return (buffer.makeEntry(part, header, self.heads.renewed(metadata, record.name)), header, now)
    }

    // MARK: Own folder

    private func readOwn(_ part: EntryPart, of key: CacheKey) throws(SystemCallError) -> ByteEntry? {
        let name = EntryName(key)
        // Try twice: a deleted folder is opened again once.
        for _ in 0..<2 {
            guard let folder = try self.folders.open() else { return nil }
            if case .absent = folder.region.find(name), folder.knowsAbsence() {
                guard self.folders.beginCheck(), self.folders.forgetIfMoved(folder) else { return nil }
                continue
            }
            let now = self.expiry.now
            switch try self.load(part, of: key, name, in: folder, now: now) {
            case .hit(let entry, let header, let status):
                if part == .whole { self.noteUse(name, header, status, in: folder, now: now) }
                return entry
            case .missing:
                if self.folders.forgetIfMoved(folder) { continue }
                // Correct the record of the entry from its file.
                try? folder.withCatalogue { catalogue, _ in catalogue.settle(name) }
            // A failed removal, as on a read-only disk, does not change that the look-up is a miss.
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
        _ part: EntryPart,
        of key: CacheKey,
        _ name: EntryName,
        in folder: CacheFolder,
        now: Double
    ) throws(SystemCallError) -> Outcome {
        let file: OpenFile
        do throws(SystemCallError) {
            file = try OpenFile(reading: name, in: folder)
        } catch {
            if error.meansMissing { return .missing }
            // A cache never creates symbolic links.
            guard error.number == ELOOP else { throw error }
            return .damaged(nil)
        }
        let status = try file.status()
        guard status.isRegular, status.byteCount >= EntryHeader.byteCount else { return .damaged(status) }
        // A process with a higher limit stored this file; do not read it into memory.
        guard status.byteCount <= self.byteCountLimit else { return .missing }
        guard let (entry, header) = try self.read(part, of: key, from: file, status) else { return .damaged(status) }
        let usedAt = Self.lastUse(of: name, in: folder) ?? status.modifiedAt
        guard !self.expiry.isOver(header, usedAt: usedAt, now: now) else { return .expired(status) }
        return .hit(entry, header, status)
    }

    /// Returns the entry in an open file, if the file is valid and belongs to `key`.
    private func read(
        _ part: EntryPart,
        of key: CacheKey,
        from file: borrowing OpenFile,
        _ status: OpenFile.Status
    ) throws(SystemCallError) -> (ByteEntry, EntryHeader)? {
        let count = try part == .whole ? status.byteCount : EntryHeader.read(file, status)?.bodyOffset
        guard let count else { return nil }
        let buffer = try EntryBuffer(byteCount: count)
        guard try file.read(into: buffer.bytes) == count,
            let (header, metadata) = buffer.check(part, count, of: status.byteCount, key: key)
        else { return nil }
        return (buffer.makeEntry(part, header, self.heads.renewed(metadata, EntryName(key))), header)
    }

    /// Records the use of an entry that was read, and adds it to the catalogue if that does not know it.
    private func noteUse(
        _ name: EntryName,
        _ header: EntryHeader,
        _ status: OpenFile.Status,
        in folder: CacheFolder,
        now: Double
    ) {
        // Open the catalogue that has replaced this one.
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

    /// Returns the last use of an entry according to the catalogue.
    private static func lastUse(of name: EntryName, in folder: CacheFolder) -> Double? {
        guard case .found(let record, _, _) = folder.region.find(name) else { return nil }
        return record.usedAtSeconds
    }

    // MARK: Read-only folders

    /// Returns the entry of `key` from one of the read-only folders.
    private func readElsewhere(_ part: EntryPart, of key: CacheKey) -> ByteEntry? {
        for directory in self.readOnlyDirectories {
            guard let file = try? OpenFile(reading: "\(directory)/\(EntryName(key).path)"),
                let status = try? file.status(), status.isRegular, status.byteCount <= self.byteCountLimit,
                let (entry, header) = try? self.read(part, of: key, from: file, status),
                header.expiresAt > self.expiry.now
            else { continue }
            return entry
        }
        return nil
    }
}

extension EntryMetadata {
    /// Whether these metadata differ from `other` only in the time at which an origin confirmed the response.
    fileprivate func isRenewal(of other: EntryMetadata) -> Bool {
        guard self.bodyDigest != nil, let response, let old = other.response, response.isRenewal(of: old) else {
            return false
        }
        var other = other
        other.response = response
        other.responseDate = self.responseDate
        return self == other
    }
}
