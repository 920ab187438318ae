import Glibc
import Synchronization

extension EntryStore {
    /// Moves the entries of another cache folder into this one, and removes that folder.
    ///
    /// - Returns: The entries that were moved.
    func merge(from directory: String) throws(CacheError) -> Int {
        do {
            let folder = try self.openFolderForWriting()
            // By any path: this cache's own folder must not be taken apart.
            guard !folder.isFolder(at: directory) else { return 0 }
            var count = 0
            for path in Self.entryPaths(in: directory) {
                guard !self.isClosing else { return count }
                if try self.merge(path, in: folder) { count += 1 }
            }
            Self.removeEmptyCache(at: directory)
            _ = self.evict(downTo: self.sizeLimit, in: folder)
            return count
        } catch {
            throw .writing(error, in: self.directory)
        }
    }

    /// Moves one file, or copies it from another file system; a damaged one is removed.
    private func merge(_ path: String, in folder: CacheFolder) throws(SystemCallError) -> Bool {
        guard let (name, byteCount) = try Self.wholeEntry(at: path) else {
            if OwnFiles.hasTraceOfEntry(path) { unlink(path) }
            return false
        }
        try self.reserve(byteCount, sparing: nil, in: folder, now: self.now)
        defer { try? folder.withCatalogue { catalogue, _ in catalogue.reserve(-byteCount) } }
        let temporary = self.makeTemporaryPath(in: folder)
        try folder.makeSubfolder(CacheFolder.temporaryName)
        if renameat(AT_FDCWD, path, folder.descriptor, temporary) != 0 {
            guard errno == EXDEV else { throw SystemCallError.last("rename") }
            try Self.copy(path, to: temporary, in: folder)
            unlink(path)
        }
        let isAdopted = self.adopt(temporary, as: name, in: folder) != nil
        if !isAdopted { unlinkat(folder.descriptor, temporary, 0) }
        return isAdopted
    }

    /// The files that may be entries, by their names: whoever names a wrong folder must
    /// not lose what is in it.
    private static func entryPaths(in directory: String) -> [String] {
        let entries = "\(directory)/\(CacheFolder.entriesName)"
        return Folder.names(at: entries).filter(OwnFiles.isShard).flatMap { shard in
            Folder.names(at: "\(entries)/\(shard)").filter(OwnFiles.isEntry).map { "\(entries)/\(shard)/\($0)" }
        }
    }

    /// The name that an entry file has here, if all of it is as it was stored.
    ///
    /// - Throws: Why it could not be read, which says nothing against it.
    private static func wholeEntry(at path: String) throws(SystemCallError) -> (EntryName, byteCount: Int)? {
        // A large file of another's is not read at all.
        if OwnFiles.isRegular(path), access(path, R_OK) == 0, !OwnFiles.hasTraceOfEntry(path) { return nil }
        let file: OpenFile
        do throws(SystemCallError) {
            file = try OpenFile(reading: path)
        } catch {
            // A symbolic link, which no cache makes.
            guard error.number == ELOOP else { throw error }
            return nil
        }
        let status = try file.status()
        guard status.isRegular, status.byteCount >= EntryHeader.byteCount else { return nil }
        let buffer = try EntryBuffer(byteCount: status.byteCount)
        guard try file.read(into: buffer.bytes) == status.byteCount else { return nil }
        let bytes = UnsafeRawBufferPointer(buffer.bytes)
        guard let header = EntryHeader(bytes, fileByteCount: bytes.count), header.matches(bytes) else { return nil }
        let key = bytes[EntryHeader.byteCount..<EntryHeader.byteCount + header.keyByteCount]
        return String(validating: key, as: UTF8.self).map { (EntryName(CacheKey($0)), status.byteCount) }
    }

    private static func copy(_ path: String, to temporary: String, in folder: CacheFolder) throws(SystemCallError) {
        let source = try OpenFile(reading: path)
        let buffer = try EntryBuffer(byteCount: try source.status().byteCount)
        let count = try source.read(into: buffer.bytes)
        let target = try OpenFile(creating: temporary, in: folder.descriptor)
        let whole = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer.bytes)[..<count])
        try target.write(whole, UnsafeRawBufferPointer(start: nil, count: 0))
        try target.closeWritten()
    }

    /// Removes a cache folder in which no entry is left; what is not a cache's own stays.
    private static func removeEmptyCache(at directory: String) {
        let entries = "\(directory)/\(CacheFolder.entriesName)"
        let temporary = "\(directory)/\(CacheFolder.temporaryName)"
        for name in Folder.names(at: temporary) where OwnFiles.temporaryOwner(name) != nil {
            _ = OwnFiles.remove("\(temporary)/\(name)")
        }
        self.removeDiscarded(in: directory)
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        // Only folders that are empty go.
        for name in Folder.names(at: entries) where OwnFiles.isShard(name) { rmdir("\(entries)/\(name)") }
        for name in [entries, temporary] { rmdir(name) }
        for name in [CacheFolder.catalogueName, CacheFolder.newCatalogueName]
        where OwnFiles.mayReplaceCatalogue(name, in: descriptor) {
            unlinkat(descriptor, name, 0)
        }
        if OwnFiles.isLockFile("\(directory)/\(FolderLock.fileName)") {
            unlinkat(descriptor, FolderLock.fileName, 0)
        }
        rmdir(directory)
    }

    /// Removes what was cleared in another folder and is not yet deleted.
    private static func removeDiscarded(in directory: String) {
        let discarded = "\(directory)/\(CacheFolder.discardedName)"
        for place in Folder.names(at: discarded).filter(OwnFiles.isDiscarded).map({ "\(discarded)/\($0)" }) {
            for file in self.entryPaths(in: place) where OwnFiles.hasTraceOfEntry(file) { unlink(file) }
            let entries = "\(place)/\(CacheFolder.entriesName)"
            for shard in Folder.names(at: entries) where OwnFiles.isShard(shard) { rmdir("\(entries)/\(shard)") }
            for part in [entries, place] { rmdir(part) }
        }
        rmdir(discarded)
    }
}
