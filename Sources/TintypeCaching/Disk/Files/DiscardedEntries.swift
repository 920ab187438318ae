import CTintypeShims
import Glibc
import Synchronization

/// What was cleared: entries are moved aside, with the folders that have nothing else in them, and deleted behind.
///
///     <directory>/discarded/<16 digits>/entries/ab/...
final class DiscardedEntries: Sendable {
    private let folders: FolderHandle
    /// The bytes that are left and can't be deleted: not to be tried again while they stay the same.
    private let stuckByteCount = Atomic<Int>(0)

    init(_ folders: FolderHandle) {
        self.folders = folders
    }

    /// Whether what is left, of so many bytes, could not be deleted when that was last tried.
    func areStuck(byteCount: Int) -> Bool { byteCount == self.stuckByteCount.load(ordering: .relaxed) }

    // MARK: Moving aside

    /// Moves all entries aside, to be deleted later.
    ///
    /// The folders that they go to are made while the lock is held, and empty ones are removed only while it is: another
    /// process that deletes what was cleared never takes them away in between.
    ///
    /// - Throws: Why some could not be moved; the catalogue is to be compared with the folder then.
    func takeAll(in folder: CacheFolder) throws(SystemCallError) {
        let mixed = self.mixedShards(in: folder)
        let place = "\(CacheFolder.discardedName)/\(OwnFiles.randomDigits())"
        try folder.withCatalogue { catalogue, _ throws(SystemCallError) in
            for part in [CacheFolder.discardedName, place, "\(place)/\(CacheFolder.entriesName)"] {
                try folder.makeSubfolder(part)
            }
            let byteCount = Int(clamping: catalogue.region[.byteCount])
            // If this process is ended from here on, the next that has the lock finds totals that do not hold.
            catalogue.region.flags.insert(.needsReading)
            var failure: SystemCallError?
            for path in CacheFolder.shardPaths where OwnFiles.isFolder(path, in: folder.descriptor) {
                do throws(SystemCallError) {
                    if mixed.contains(path) {
                        try self.takeEntries(of: path, to: "\(place)/\(path)", in: folder)
                    } else if renameat(folder.descriptor, path, folder.descriptor, "\(place)/\(path)") != 0 {
                        let error = SystemCallError.last("rename")
                        if OwnFiles.isFolder(path, in: folder.descriptor) { throw error }
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
            self.folders.housekeeping.send()
            throw failure
        }
    }

    /// The folders of entries that have other things in them: these stay where they are.
    private func mixedShards(in folder: CacheFolder) -> Set<String> {
        var mixed: Set<String> = []
        for path in CacheFolder.shardPaths {
            let isMixed = try? Folder.contains(at: path, in: folder.descriptor) { name, isRegular in
                !isRegular || name.count != EntryName.digitCount - 2
                    || !name.allSatisfy { KeyDigest.value(of: $0) != nil }
            }
            if isMixed != false { mixed.insert(path) }
        }
        return mixed
    }

    /// Moves the entries of one folder aside, and nothing else.
    private func takeEntries(of path: String, to place: String, in folder: CacheFolder) throws(SystemCallError) {
        try folder.makeSubfolder(place)
        for name in Folder.names(at: path, in: folder.descriptor) where OwnFiles.isEntry(name) {
            let entry = "\(path)/\(name)"
            guard OwnFiles.isRegular(entry, in: folder.descriptor) else { continue }
            if renameat(folder.descriptor, entry, folder.descriptor, "\(place)/\(name)") == 0 { continue }
            let error = SystemCallError.last("rename")
            if OwnFiles.isRegular(entry, in: folder.descriptor) { throw error }
        }
    }

    // MARK: Deleting

    /// Deletes what was cleared, of that no more files than the limit.
    ///
    /// Where there are some and none can be deleted, they are not tried again before something else changes, except by
    /// the housekeeper.
    func delete(in folder: CacheFolder, fileLimit: Int = .max) {
        var left = fileLimit
        let before = Int(clamping: folder.region[.discardedByteCount])
        for place in self.places(in: folder) {
            guard self.delete("\(CacheFolder.discardedName)/\(place)", in: folder, &left) else { return }
        }
        if folder.region[.discardedByteCount] > 0, self.places(in: folder).isEmpty {
            try? folder.withCatalogue { catalogue, _ in
                // What is left of the count belongs to files that were gone already.
                if self.places(in: folder).isEmpty { catalogue.region[.discardedByteCount] = 0 }
            }
        }
        if left == fileLimit { self.stuckByteCount.store(before, ordering: .relaxed) }
    }

    private func places(in folder: CacheFolder) -> [String] {
        Folder.names(at: CacheFolder.discardedName, in: folder.descriptor).filter(OwnFiles.isDiscarded)
    }

    /// Deletes one folder of what was cleared; `false` when it is time to end.
    private func delete(_ place: String, in folder: CacheFolder, _ left: inout Int) -> Bool {
        let entries = "\(place)/\(CacheFolder.entriesName)"
        for shard in Folder.names(at: entries, in: folder.descriptor) where OwnFiles.isShard(shard) {
            guard self.deleteShard(shard, of: entries, in: folder, &left) else { return false }
        }
        try? folder.withCatalogue { _, _ in
            for path in [entries, place] { unlinkat(folder.descriptor, path, AT_REMOVEDIR) }
        }
        return true
    }

    /// Deletes the entries of one shard, and brings back what is none; `false` when it is time to end.
    private func deleteShard(_ shard: String, of entries: String, in folder: CacheFolder, _ left: inout Int) -> Bool {
        let path = "\(entries)/\(shard)"
        var freed = 0
        defer {
            try? folder.withCatalogue { catalogue, _ in
                if freed > 0 { catalogue.region.add(-freed, to: .discardedByteCount) }
                unlinkat(folder.descriptor, path, AT_REMOVEDIR)
            }
        }
        for name in Folder.names(at: path, in: folder.descriptor) {
            guard left > 0, !self.folders.closing.isSet else { return false }
            let file = "\(path)/\(name)"
            let kind = OwnFiles.kind(of: file, in: folder.descriptor)
            if case .missing = kind { continue }
            guard case .regular(let byteCount) = kind, OwnFiles.isEntry(name) else {
                self.bringBack(file, to: shard, name, in: folder)
                continue
            }
            if unlinkat(folder.descriptor, file, 0) == 0 {
                freed += byteCount
                left -= 1
            } else if errno != ENOENT {
                self.folders.counters.noteRemovalError(.last("unlink"), of: file)
            }
        }
        return true
    }

    /// Moves something that came into a folder of entries while that was cleared back to where it was.
    private func bringBack(_ path: String, to shard: String, _ name: String, in folder: CacheFolder) {
        let home = "\(CacheFolder.entriesName)/\(shard)"
        for part in [CacheFolder.entriesName, home] { try? folder.makeSubfolder(part) }
        let isBack = cshims_rename_exclusively(folder.descriptor, path, folder.descriptor, "\(home)/\(name)") == 0
        if !isBack, errno != ENOENT { self.folders.counters.noteRemovalError(.last("rename"), of: path) }
    }
}
