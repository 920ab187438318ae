// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import Synchronization

/// The entries of a cleared cache, which were moved aside and are deleted in the background.
///
/// Folders that contain only entries move as a whole.
///
///     <directory>/discarded/<16 digits>/entries/ab/...
final class DiscardedEntries: Sendable {
    private let folders: FolderHandle
    /// The number of remaining bytes that cannot be deleted; another attempt is pointless while it stays the same.
    private let stuckByteCount = Atomic<Int>(0)

    init(_ folders: FolderHandle) {
        self.folders = folders
    }

    /// Returns whether the last attempt to delete this many remaining bytes failed.
    func areStuck(byteCount: Int) -> Bool { byteCount == self.stuckByteCount.load(ordering: .relaxed) }

    // MARK: Moving aside

    /// Moves all entries aside, for deletion later.
    ///
    /// Target folders are created, and empty ones removed, only under the lock. So another process that deletes cleared
    /// entries never removes a folder that is about to be used.
    ///
    /// - Throws: The error of an entry that could not be moved; then the catalogue must be compared with the folder.
    func takeAll(in folder: CacheFolder) throws(SystemCallError) {
        let mixed = self.mixedShards(in: folder)
        let place = "\(CacheFolder.discardedName)/\(OwnFiles.randomDigits())"
        try folder.withCatalogue { catalogue, _ throws(SystemCallError) in
            for part in [CacheFolder.discardedName, place, "\(place)/\(CacheFolder.entriesName)"] {
                try folder.makeSubfolder(part)
            }
            let byteCount = Int(clamping: catalogue.region[.byteCount])
            // If this process ends from here on, the next process must read the folder to correct the totals.
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
            // The entries that could not be moved are still there.
            catalogue.region.flags = .needsReading
            self.folders.housekeeping.send()
            throw failure
        }
    }

    /// Returns the entry folders that also contain other files, which stay in place.
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

    /// Moves the entries of one folder aside, but no other files.
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

    /// Deletes discarded entries, up to a limit of files.
    ///
    /// If no file can be deleted, only the housekeeper tries again before the number of bytes changes.
    func delete(in folder: CacheFolder, fileLimit: Int = .max) {
        var left = fileLimit
        let before = Int(clamping: folder.region[.discardedByteCount])
        for place in self.places(in: folder) {
            guard self.delete("\(CacheFolder.discardedName)/\(place)", in: folder, &left) else { return }
        }
        if folder.region[.discardedByteCount] > 0, self.places(in: folder).isEmpty {
            try? folder.withCatalogue { catalogue, _ in
                // The rest of the count belongs to files that were already gone.
                if self.places(in: folder).isEmpty { catalogue.region[.discardedByteCount] = 0 }
            }
        }
        if left == fileLimit { self.stuckByteCount.store(before, ordering: .relaxed) }
    }

    private func places(in folder: CacheFolder) -> [String] {
        Folder.names(at: CacheFolder.discardedName, in: folder.descriptor).filter(OwnFiles.isDiscarded)
    }

    /// Deletes one discarded folder, and returns `false` if the caller must stop.
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

    /// Deletes the entries of one shard and moves other files back; returns `false` if the caller must stop.
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

    /// Moves a file back that was added to an entry folder while the folder was being cleared.
    private func bringBack(_ path: String, to shard: String, _ name: String, in folder: CacheFolder) {
        let home = "\(CacheFolder.entriesName)/\(shard)"
        for part in [CacheFolder.entriesName, home] { try? folder.makeSubfolder(part) }
        let isBack = cshims_rename_exclusively(folder.descriptor, path, folder.descriptor, "\(home)/\(name)") == 0
        if !isBack, errno != ENOENT { self.folders.counters.noteRemovalError(.last("rename"), of: path) }
    }
}
