// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Moves the entries of another cache folder into this cache's folder, and removes the other folder.
struct FolderMerge {
    /// The path of the other folder.
    let directory: String
    let store: EntryStore

    /// Moves the entries.
    ///
    /// - Returns: The number of entries that were moved.
    func run() throws(CacheError) -> Int {
        do {
            let folder = try self.store.folders.openForWriting()
            // Any path may lead to this cache's own folder, which must stay.
            guard !folder.isFolder(at: self.directory) else { return 0 }
            var count = 0
            for path in Self.entryPaths(in: self.directory) {
                guard !self.store.folders.closing.isSet else { return count }
                if try self.move(path, to: folder) { count += 1 }
            }
            self.removeEmptyCache()
            _ = self.store.eviction.evict(downTo: self.store.eviction.sizeLimit, in: folder)
            return count
        } catch {
            throw .writing(error, in: self.store.folders.directory)
        }
    }

    // MARK: Moving

    /// Moves one file, or copies it from another file system; removes a damaged one.
    private func move(_ path: String, to folder: CacheFolder) throws(SystemCallError) -> Bool {
        guard let (name, byteCount) = try Self.wholeEntry(at: path) else {
            if OwnFiles.hasTraceOfEntry(path) { unlink(path) }
            return false
        }
        try self.store.eviction.reserve(byteCount, sparing: nil, in: folder, now: self.store.expiry.now)
        defer { try? folder.withCatalogue { catalogue, _ in catalogue.reserve(-byteCount) } }
        let temporary = self.store.temporary.makePath(in: folder)
        try folder.makeSubfolder(CacheFolder.temporaryName)
        if renameat(AT_FDCWD, path, folder.descriptor, temporary) != 0 {
            guard errno == EXDEV else { throw SystemCallError.last("rename") }
            try self.copy(path, to: temporary, in: folder)
            unlink(path)
        }
        let isAdopted = self.adopt(temporary, as: name, in: folder)
        if !isAdopted { unlinkat(folder.descriptor, temporary, 0) }
        return isAdopted
    }

    private func copy(_ path: String, to temporary: String, in folder: CacheFolder) throws(SystemCallError) {
        let source = try OpenFile(reading: path)
        let buffer = try EntryBuffer(byteCount: try source.status().byteCount)
        let count = try source.read(into: buffer.bytes)
        let target = try self.store.temporary.create(at: temporary, in: folder)
        let whole = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer.bytes)[..<count])
        try target.write(whole, UnsafeRawBufferPointer(start: nil, count: 0))
        try target.closeWritten()
    }

    /// Moves a temporary file to the place of an entry, or removes it if there already is one.
    ///
    /// - Returns: Whether there is an entry now; `false` if the file is not an entry or cannot be moved.
    private func adopt(_ path: String, as name: EntryName, in folder: CacheFolder) -> Bool {
        guard let (header, status) = try? EntryHeader.read(at: path, in: folder.descriptor), let header else {
            return false
        }
        let record = CatalogueRecord(name, header, status, usedAt: status.modifiedAt)
        let isMoved = try? folder.withCatalogue { catalogue, _ throws(SystemCallError) -> Bool in
            guard catalogue.record(of: name) == nil else { return unlinkat(folder.descriptor, path, 0) == 0 }
            try catalogue.moveIntoPlace(path, record)
            return true
        }
        return isMoved ?? false
    }

    /// Returns the name and the size of an entry file, if all its bytes are valid.
    ///
    /// - Throws: The error of reading it, which does not mean that it is damaged.
    private static func wholeEntry(at path: String) throws(SystemCallError) -> (EntryName, byteCount: Int)? {
        // Do not read large files that are not entries.
        if OwnFiles.isRegular(path), access(path, R_OK) == 0, !OwnFiles.hasTraceOfEntry(path) { return nil }
        let file: OpenFile
        do throws(SystemCallError) {
            file = try OpenFile(reading: path)
        } catch {
            // A cache never creates symbolic links.
            guard error.number == ELOOP else { throw error }
            return nil
        }
        let status = try file.status()
        guard status.isRegular, let name = try EntryBuffer.verify(file, status.byteCount).name else { return nil }
        return (name, status.byteCount)
    }

    // MARK: The other folder

    /// Returns the files with names of entries, so that a wrong folder does not lose other files.
    private static func entryPaths(in directory: String) -> [String] {
        let entries = "\(directory)/\(CacheFolder.entriesName)"
        return Folder.names(at: entries).filter(OwnFiles.isShard).flatMap { shard in
            Folder.names(at: "\(entries)/\(shard)").filter(OwnFiles.isEntry).map { "\(entries)/\(shard)/\($0)" }
        }
    }

    /// Removes the folder if it has no entries left, but no files that a cache has not written.
    private func removeEmptyCache() {
        let temporary = "\(self.directory)/\(CacheFolder.temporaryName)"
        for name in Folder.names(at: temporary) where OwnFiles.temporaryOwner(name) != nil {
            _ = OwnFiles.remove("\(temporary)/\(name)")
        }
        let discarded = "\(self.directory)/\(CacheFolder.discardedName)"
        for place in Folder.names(at: discarded).filter(OwnFiles.isDiscarded).map({ "\(discarded)/\($0)" }) {
            for file in Self.entryPaths(in: place) where OwnFiles.hasTraceOfEntry(file) { unlink(file) }
            Self.removeEmptyShards(in: place)
            rmdir(place)
        }
        Self.removeEmptyShards(in: self.directory)
        for name in [discarded, temporary] { rmdir(name) }
        let descriptor = open(self.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        for name in [CacheFolder.catalogueName, CacheFolder.newCatalogueName]
        where OwnFiles.mayReplaceCatalogue(name, in: descriptor) {
            unlinkat(descriptor, name, 0)
        }
        if OwnFiles.isLockFile("\(self.directory)/\(FolderLock.fileName)") {
            unlinkat(descriptor, FolderLock.fileName, 0)
        }
        rmdir(self.directory)
    }

    /// Removes empty entry folders.
    private static func removeEmptyShards(in directory: String) {
        let entries = "\(directory)/\(CacheFolder.entriesName)"
        for shard in Folder.names(at: entries) where OwnFiles.isShard(shard) { rmdir("\(entries)/\(shard)") }
        rmdir(entries)
    }
}
