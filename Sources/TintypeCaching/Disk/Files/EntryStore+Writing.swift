import FoundationEssentials
import Glibc

extension EntryStore {
    /// Stores `data` under `key`, in place of an older entry.
    ///
    /// The older entry stays until the new one is whole; when the store fails it stays for good,
    /// unless it was the last one that could make room.
    func write(_ data: Data, metadata: EntryMetadata, for key: CacheKey) throws(CacheError) {
        try self.write(data, metadata: metadata, for: key, storedAt: nil)
    }

    /// Stores like ``write(_:metadata:for:)``, as of another time.
    func write(
        _ data: Data,
        metadata: EntryMetadata,
        for key: CacheKey,
        storedAt: Double?
    ) throws(CacheError) {
        let name = EntryName(key)
        let now = self.now
        let encodedMetadata = metadata.encoded()
        let byteCount = EntryHeader.byteCount + key.text.utf8.count + encodedMetadata.count + data.count
        let limit = min(self.sizeLimit, CatalogueRecord.largestByteCount)
        guard byteCount <= limit else { throw .tooLarge(byteCount, limit: limit, in: self.directory) }
        let expiresAt = metadata.expiry?.timeIntervalSince1970 ?? .infinity
        let record = CatalogueRecord(
            name: name,
            byteCount: byteCount,
            usedAt: now,
            storedAt: storedAt ?? now,
            expiresAt: expiresAt
        )
        let body = data.bytes
        try self.inFolder { folder throws(SystemCallError) in
            try body.withUnsafeBytes { body throws(SystemCallError) in
                let head = EntryHeader.head(
                    key: key,
                    metadata: encodedMetadata,
                    body: body,
                    storedAt: storedAt ?? now,
                    createdAt: self.creationDate(of: name, in: folder, now: now),
                    expiresAt: expiresAt
                )
                try self.write(head, body, record, in: folder, now: now)
            }
        }
    }

    /// Removes the entry of `key`, and says whether there was one.
    func remove(_ key: CacheKey) throws(CacheError) -> Bool {
        let name = EntryName(key)
        do throws(SystemCallError) {
            guard let folder = try self.openFolder() else { return false }
            if case .readOnly = folder.mode {
                // Says why it can't be, if there is one.
                if name.withPath({ unlinkat(folder.descriptor, $0, 0) }) == 0 { return true }
                let error = SystemCallError.last("unlink")
                if Self.meansMissing(error) { return false }
                throw error
            }
            return try folder.withCatalogue { catalogue, _ throws(SystemCallError) in try catalogue.unlink(name) }
        } catch {
            if Self.meansMissing(error) { return false }
            throw .writing(error, in: self.directory)
        }
    }

    /// Runs `body` with the open folder, again with a new one when somebody has deleted it.
    private func inFolder(_ body: (CacheFolder) throws(SystemCallError) -> Void) throws(CacheError) {
        do throws(SystemCallError) {
            for _ in 0..<8 {
                let folder = try self.openFolderForWriting()
                do throws(SystemCallError) {
                    return try body(folder)
                } catch {
                    guard error.number == ENOENT else { throw error }
                    self.forgetIfMoved(folder)
                }
            }
            throw SystemCallError(call: "open", number: ENOENT)
        } catch {
            throw error.call == Self.roomCall
                ? .noRoom(in: self.directory) : .writing(error, in: self.directory)
        }
    }

    // MARK: Files

    private func write(
        _ head: [UInt8],
        _ body: UnsafeRawBufferPointer,
        _ record: CatalogueRecord,
        in folder: CacheFolder,
        now: Double
    ) throws(SystemCallError) {
        try self.reserve(record.byteCount, sparing: record.name, in: folder, now: now)
        let path = self.makeTemporaryPath(in: folder)
        do throws(SystemCallError) {
            try self.makeFile(at: path, head, body, in: folder)
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

    private func makeFile(
        at path: String,
        _ head: [UInt8],
        _ body: UnsafeRawBufferPointer,
        in folder: CacheFolder
    ) throws(SystemCallError) {
        let file = try self.createFile(at: path, in: folder)
        try head.span.bytes.withUnsafeBytes { head throws(SystemCallError) in try file.write(head, body) }
        try file.closeWritten()
    }

    private func createFile(at path: String, in folder: CacheFolder) throws(SystemCallError) -> OpenFile {
        do throws(SystemCallError) {
            return try OpenFile(creating: path, in: folder.descriptor)
        } catch {
            guard error.number == ENOENT else { throw error }
        }
        try folder.makeSubfolder(CacheFolder.temporaryName)
        return try OpenFile(creating: path, in: folder.descriptor)
    }

    /// When bytes were first stored under a name, if the age counts from that.
    private func creationDate(of name: EntryName, in folder: CacheFolder, now: Double) -> Double {
        guard self.configuration.expiry == .creation,
            let (header, status) = try? name.withPath({ path throws(SystemCallError) in
                try self.header(at: path, in: folder.descriptor)
            }),
            let header, !self.isExpired(header, usedAt: status.modifiedAt, now: now)
        else { return now }
        return header.createdAt
    }
}
