import CShims
import Glibc
import Synchronization

/// Removing all entries: they are moved aside, with the folders that have nothing else in them, and deleted behind.
///
///     <directory>/discarded/<16 digits>/entries/ab/...
extension EntryStore {
    /// Removes all entries at once: moves them aside, to be deleted later.
    func discardAll() throws(CacheError) {
        do throws(SystemCallError) {
            // Another may take the folder away each time.
            for _ in 0..<8 {
                guard let folder = try self.openFolder() else { return }
                if case .readOnly(let reason) = folder.mode { throw reason }
                if self.forgetIfMoved(folder) { continue }
                do throws(SystemCallError) {
                    return try self.discardAll(in: folder)
                } catch {
                    guard error.number == ENOENT else { throw error }
                    self.forgetIfMoved(folder)
                }
            }
            throw SystemCallError(call: "open", number: ENOENT)
        } catch {
            throw .writing(error, in: self.directory)
        }
    }

    private func discardAll(in folder: CacheFolder) throws(SystemCallError) {
        let place = "\(CacheFolder.discardedName)/\(OwnFiles.randomDigits())"
        for part in [CacheFolder.discardedName, place, "\(place)/\(CacheFolder.entriesName)"] {
            try folder.makeSubfolder(part)
        }
        let mixed = self.mixedShards(in: folder)
        try folder.withCatalogue { catalogue, _ throws(SystemCallError) in
            let byteCount = Int(clamping: catalogue.region[.byteCount])
            var failure: SystemCallError?
            for path in (UInt8.min...UInt8.max).map(Self.shardPath)
            where OwnFiles.isFolder(path, in: folder.descriptor) {
                do throws(SystemCallError) {
                    if mixed.contains(path) {
                        try self.discardEntries(of: path, to: "\(place)/\(path)", in: folder)
                    } else if renameat(folder.descriptor, path, folder.descriptor, "\(place)/\(path)") != 0 {
                        guard errno == ENOENT else { throw SystemCallError.last("rename") }
                    }
                } catch {
                    failure = error
                }
            }
            catalogue.region.add(byteCount, to: .discardedByteCount)
            try catalogue.removeAll()
            guard let failure else { return catalogue.region.flags = .isComplete }
            // What could not be moved is still there.
            catalogue.region.flags = .needsReading
            self.requestHousekeeping()
            throw failure
        }
    }

    /// The path of a folder of entries, from the folder of the cache.
    static func shardPath(_ shard: UInt8) -> String {
        "\(CacheFolder.entriesName)/\(shard < 16 ? "0" : "")\(String(shard, radix: 16))"
    }

    /// The folders of entries that have other things in them: these stay where they are.
    private func mixedShards(in folder: CacheFolder) -> Set<String> {
        var mixed: Set<String> = []
        for path in (UInt8.min...UInt8.max).map(Self.shardPath) {
            let isMixed = try? Folder.contains(at: path, in: folder.descriptor) { name, isRegular in
                !isRegular || name.count != EntryName.digitCount - 2
                    || !name.allSatisfy { KeyDigest.value(of: $0) != nil }
            }
            if isMixed != false { mixed.insert(path) }
        }
        return mixed
    }

    /// Moves the entries of one folder aside, and nothing else.
    private func discardEntries(of path: String, to place: String, in folder: CacheFolder) throws(SystemCallError) {
        try folder.makeSubfolder(place)
        for name in Folder.names(at: path, in: folder.descriptor) where OwnFiles.isEntry(name) {
            let entry = "\(path)/\(name)"
            guard OwnFiles.isRegular(entry, in: folder.descriptor) else { continue }
            guard renameat(folder.descriptor, entry, folder.descriptor, "\(place)/\(name)") == 0 || errno == ENOENT
            else { throw SystemCallError.last("rename") }
        }
    }

    // MARK: Deleting

    /// Deletes what was cleared, of that no more files than the limit.
    ///
    /// - Returns: How many files were deleted. Where there are some and none can be, they are not tried again before
    ///   something else changes, except by the housekeeper.
    @discardableResult
    func deleteDiscarded(in folder: CacheFolder, fileLimit: Int) -> Int {
        var deleted = 0
        let before = Int(clamping: folder.region[.discardedByteCount])
        let places = Folder.names(at: CacheFolder.discardedName, in: folder.descriptor).filter(OwnFiles.isDiscarded)
        for place in places {
            let path = "\(CacheFolder.discardedName)/\(place)"
            guard self.deleteDiscarded(path, in: folder, fileLimit, &deleted) else { return deleted }
        }
        let isEmpty = !Folder.names(at: CacheFolder.discardedName, in: folder.descriptor).contains(
            where: OwnFiles.isDiscarded
        )
        if isEmpty, folder.region[.discardedByteCount] > 0 {
            try? folder.withCatalogue { catalogue, _ in
                // What is left of the count belongs to files that were gone already.
                let names = Folder.names(at: CacheFolder.discardedName, in: folder.descriptor)
                if !names.contains(where: OwnFiles.isDiscarded) { catalogue.region[.discardedByteCount] = 0 }
            }
        }
        if deleted == 0 { self.stuckByteCount.store(before, ordering: .relaxed) }
        return deleted
    }

    /// Deletes one folder of what was cleared; `false` when it is time to end.
    private func deleteDiscarded(
        _ place: String,
        in folder: CacheFolder,
        _ limit: Int,
        _ deleted: inout Int
    ) -> Bool {
        let entries = "\(place)/\(CacheFolder.entriesName)"
        for shard in Folder.names(at: entries, in: folder.descriptor) where OwnFiles.isShard(shard) {
            let home = "\(CacheFolder.entriesName)/\(shard)"
            guard self.deleteShard("\(entries)/\(shard)", home: home, in: folder, limit, &deleted) else { return false }
        }
        for path in [entries, place] { unlinkat(folder.descriptor, path, AT_REMOVEDIR) }
        return true
    }

    /// Deletes the entries of a folder of the path `home`, and brings back there what is none; `false` when it is
    /// time to end.
    private func deleteShard(
        _ path: String,
        home: String,
        in folder: CacheFolder,
        _ limit: Int,
        _ deleted: inout Int
    ) -> Bool {
        var freed = 0
        defer {
            if freed > 0 {
                try? folder.withCatalogue { catalogue, _ in catalogue.region.add(-freed, to: .discardedByteCount) }
            }
        }
        for name in Folder.names(at: path, in: folder.descriptor) {
            guard deleted < limit, !self.isClosing else { return false }
            let file = "\(path)/\(name)"
            let kind = OwnFiles.kind(of: file, in: folder.descriptor)
            if case .missing = kind { continue }
            guard case .regular(let byteCount) = kind, OwnFiles.isEntry(name) else {
                self.bringBack(file, to: "\(home)/\(name)", in: folder)
                continue
            }
            if unlinkat(folder.descriptor, file, 0) == 0 {
                freed += byteCount
                deleted += 1
            } else if errno != ENOENT {
                self.noteRemovalError(.last("unlink"), of: file)
            }
        }
        unlinkat(folder.descriptor, path, AT_REMOVEDIR)
        return true
    }

    /// Moves something that came into a folder of entries while that was cleared back to where it was.
    private func bringBack(_ path: String, to home: String, in folder: CacheFolder) {
        let parent = home.split(separator: "/").dropLast().map(String.init)
        for count in 1...max(1, parent.count) { try? folder.makeSubfolder(parent.prefix(count).joined(separator: "/")) }
        if cshims_rename_exclusively(folder.descriptor, path, folder.descriptor, home) != 0, errno != ENOENT {
            self.noteRemovalError(.last("rename"), of: path)
        }
    }
}
