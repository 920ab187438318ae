// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// Stores and removes entries: writes a whole file under a temporary name and moves it into place.
struct EntryWriter: Sendable {
    let folders: FolderHandle
    let eviction: DiskEviction
    let expiry: EntryExpiry
    let temporary: TemporaryFiles
    let discarded: DiscardedEntries
    let heads: KnownHeads

    /// Stores `data` for `key` and replaces an older entry; the time of the store is `storedAt` or now.
    ///
    /// The older entry stays until the new file is complete. If the store fails it stays for good, unless it was
    /// evicted to make room.
    func store(
        _ data: Data,
        metadata: EntryMetadata,
        for key: CacheKey,
        storedAt: Double? = nil
    ) throws(CacheError) {
        let directory = self.folders.directory
        let name = EntryName(key)
        let now = self.expiry.now
        let encodedMetadata = metadata.encoded()
        let byteCount = EntryHeader.byteCount + key.text.utf8.count + encodedMetadata.count + data.count
        let limit = min(self.eviction.sizeLimit, CatalogueRecord.largestByteCount)
        guard byteCount <= limit else { throw .tooLarge(byteCount, limit: limit, in: directory) }
        let expiresAt = metadata.expiry?.timeIntervalSince1970 ?? .infinity
        let record = CatalogueRecord(
            name: name,
            byteCount: byteCount,
            usedAt: now,
            storedAt: storedAt ?? now,
            expiresAt: expiresAt
        )
        let body = data.bytes
        defer { self.heads.forget(name) }
        do throws(SystemCallError) {
            try self.folders.withFolder(self.folders.openForWriting) { folder throws(SystemCallError) in
                try body.withUnsafeBytes { body throws(SystemCallError) in
                    let head = EntryHeader.head(
                        key: key,
                        metadata: encodedMetadata,
                        body: body,
                        storedAt: storedAt ?? now,
                        createdAt: self.creationDate(of: name, in: folder, now: now),
                        expiresAt: expiresAt
                    )
                    do throws(SystemCallError) {
                        try self.write(head, body, record, in: folder, now: now)
                    } catch {
                        guard error.meansNoInode, self.eviction.evictForInodes(in: folder) else {
                            throw error
                        }
                        try self.write(head, body, record, in: folder, now: now)
                    }
                }
            }
        } catch {
            throw error == .noRoom ? .noRoom(in: directory) : .writing(error, in: directory)
        }
    }

    /// Removes the entry of `key`, and returns whether there was one.
    func remove(_ key: CacheKey) throws(CacheError) -> Bool {
        let name = EntryName(key)
        do throws(SystemCallError) {
            guard let folder = try self.folders.open() else { return false }
            if case .readOnly = folder.mode {
                // Try the removal, which fails with the reason if there is an entry.
                if name.withPath({ unlinkat(folder.descriptor, $0, 0) }) == 0 { return true }
                throw SystemCallError.last("unlink")
            }
            return try folder.withCatalogue { catalogue, _ throws(SystemCallError) in try catalogue.unlink(name) }
        } catch {
            if error.meansMissing { return false }
            throw .writing(error, in: self.folders.directory)
        }
    }

    /// Removes the entries of the family of `key`, and returns whether there were any.
    func removeFamily(of key: CacheKey) throws(CacheError) -> Bool {
        do throws(SystemCallError) {
            guard let folder = try self.folders.open() else { return false }
            let names = try folder.names(inFamilyOf: EntryName(key))
            if case .readOnly(let reason) = folder.mode, !names.isEmpty { throw reason }
            var isRemoved = false
            for name in names {
                let isOne = try folder.withCatalogue { catalogue, _ throws(SystemCallError) in
                    try catalogue.unlinkOwn(name)
                }
                if isOne { isRemoved = true }
            }
            return isRemoved
        } catch {
            if error.meansMissing { return false }
            throw .writing(error, in: self.folders.directory)
        }
    }

    /// Moves all entries aside at once, for deletion later.
    func removeAll() throws(CacheError) {
        do throws(SystemCallError) {
            try self.folders.withFolder(self.folders.open) { folder throws(SystemCallError) in
                if case .readOnly(let reason) = folder.mode { throw reason }
                guard folder.isInPlace else { throw SystemCallError(call: "open", number: ENOENT) }
                try self.discarded.takeAll(in: folder)
            }
        } catch {
            throw .writing(error, in: self.folders.directory)
        }
    }

    private func write(
        _ head: [UInt8],
        _ body: UnsafeRawBufferPointer,
        _ record: CatalogueRecord,
        in folder: CacheFolder,
        now: Double
    ) throws(SystemCallError) {
        try self.eviction.reserve(record.byteCount, sparing: record.name, in: folder, now: now)
        let path = self.temporary.makePath(in: folder)
        do throws(SystemCallError) {
            let file = try self.temporary.create(at: path, in: folder)
            try head.span.bytes.withUnsafeBytes { head throws(SystemCallError) in try file.write(head, body) }
            try file.closeWritten()
            try folder.withCatalogue { catalogue, _ throws(SystemCallError) in
                try catalogue.moveIntoPlace(path, record)
                catalogue.reserve(-record.byteCount)
            }
        } catch {
            unlinkat(folder.descriptor, path, 0)
            try? folder.withCatalogue { catalogue, _ in catalogue.reserve(-record.byteCount) }
            throw error
        }
    }

    /// Returns the time of the first store under a name, if the age counts from that.
    private func creationDate(of name: EntryName, in folder: CacheFolder, now: Double) -> Double {
        guard self.expiry.start == .creation, let (header, status) = try? EntryHeader.read(name, in: folder),
            let header, !self.expiry.isOver(header, usedAt: status.modifiedAt, now: now)
        else { return now }
        return header.createdAt
    }
}
