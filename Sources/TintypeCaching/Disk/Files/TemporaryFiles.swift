// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The files that are being written or removed: `<directory>/temporary/<number of the cache>-<digits>-<count>`.
final class TemporaryFiles: Sendable {
    private let counters: DiskCounters
    private let prefix = OwnFiles.randomDigits()
    private let number = Atomic<Int>(0)

    init(_ counters: DiskCounters) {
        self.counters = counters
    }

    /// Returns a path that no other writer uses, in any process.
    func makePath(in folder: CacheFolder) -> String {
        let number = self.number.wrappingAdd(1, ordering: .relaxed).newValue
        return "\(CacheFolder.temporaryName)/\(folder.owner)-\(self.prefix)-\(number)"
    }

    /// Creates a file at a new path.
    func create(at path: String, in folder: CacheFolder) throws(SystemCallError) -> OpenFile {
        do throws(SystemCallError) {
            return try OpenFile(creating: path, in: folder.descriptor)
        } catch {
            guard error.number == ENOENT else { throw error }
        }
        try folder.makeSubfolder(CacheFolder.temporaryName)
        return try OpenFile(creating: path, in: folder.descriptor)
    }

    // MARK: Removing entries

    /// Moves the file of an entry to a temporary path; its bytes stay reserved until it is deleted.
    ///
    /// To free the blocks of a file may take milliseconds, so the deletion happens without the lock.
    ///
    /// - Returns: The temporary path, or `nil` if there was no file, or an object that is not a regular file and stays.
    func takeOut(_ record: CatalogueRecord, _ catalogue: inout Catalogue) throws(SystemCallError) -> String? {
        let folder = catalogue.folder
        guard record.name.withPath({ OwnFiles.isRegular($0, in: folder.descriptor) }) else {
            catalogue.remove(record.name)
            return nil
        }
        let path = self.makePath(in: folder)
        catalogue.reserve(record.byteCount)
        if self.move(record.name, to: path, in: folder) {
            catalogue.remove(record.name)
            return path
        }
        let error = SystemCallError.last("rename")
        catalogue.reserve(-record.byteCount)
        guard error.meansMissing else { throw error }
        catalogue.remove(record.name)
        return nil
    }

    /// Deletes a file at a temporary path and releases its bytes.
    ///
    /// If that fails, the bytes stay reserved, because the file still needs them.
    ///
    /// - Returns: Whether the file is gone.
    func delete(_ path: String, byteCount: Int, in folder: CacheFolder) throws(SystemCallError) -> Bool {
        guard unlinkat(folder.descriptor, path, 0) == 0 || errno == ENOENT else {
            self.counters.noteRemovalError(.last("unlink"), of: path)
            return false
        }
        try folder.withCatalogue { catalogue, _ in catalogue.reserve(-byteCount) }
        return true
    }

    private func move(_ name: EntryName, to path: String, in folder: CacheFolder) -> Bool {
        let descriptor = folder.descriptor
        if name.withPath({ renameat(descriptor, $0, descriptor, path) }) == 0 { return true }
        // The folder of temporary files or the entry is missing.
        guard errno == ENOENT, (try? folder.makeSubfolder(CacheFolder.temporaryName)) != nil else { return false }
        return name.withPath { renameat(descriptor, $0, descriptor, path) } == 0
    }

    // MARK: Leftovers

    /// Removes files of killed writers, and releases the bytes that these had reserved.
    ///
    /// - Returns: The number of files that were removed.
    @discardableResult
    func removeLeftovers(in folder: CacheFolder) -> Int {
        guard let lockFile = folder.lockFile else { return 0 }
        var count = 0
        let names = Folder.names(at: CacheFolder.temporaryName, in: folder.descriptor)
        let left = Dictionary(grouping: names) { OwnFiles.temporaryOwner($0) ?? 0 }
        // An earlier owner of this number has no reservation left, because the number was free.
        if folder.owner > 0 {
            for name in left[folder.owner] ?? [] where !name.hasPrefix("\(folder.owner)-\(self.prefix)-") {
                if self.remove(name, in: folder) { count += 1 }
            }
        }
        for owner in 1..<CatalogueLayout.ownerCount where owner != folder.owner {
            let own = left[owner] ?? []
            guard !own.isEmpty || folder.region[owner: owner] > 0, lockFile.tryOwner(owner) else { continue }
            defer { lockFile.releaseOwner(owner) }
            for name in own where self.remove(name, in: folder) { count += 1 }
            try? folder.withCatalogue { catalogue, _ in
                catalogue.region.reserve(-Int(clamping: catalogue.region[owner: owner]), for: owner)
            }
        }
        return count
    }

    private func remove(_ name: String, in folder: CacheFolder) -> Bool {
        let path = "\(CacheFolder.temporaryName)/\(name)"
        guard OwnFiles.isRegular(path, in: folder.descriptor) else { return false }
        if unlinkat(folder.descriptor, path, 0) == 0 { return true }
        if errno != ENOENT { self.counters.noteRemovalError(.last("unlink"), of: path) }
        return false
    }
}
