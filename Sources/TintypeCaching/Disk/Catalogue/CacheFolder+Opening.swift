import CShims
import Glibc

extension CacheFolder {
    /// Opens the folder at `path`; `nil` when there is none.
    static func open(_ path: String) throws(SystemCallError) -> CacheFolder? {
        var descriptor: CInt
        repeat {
            descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        } while descriptor < 0 && errno == EINTR
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw SystemCallError.last("open")
        }
        do {
            return try self.open(path, descriptor)
        } catch {
            close(descriptor)
            throw error
        }
    }

    private static func open(_ path: String, _ descriptor: CInt) throws(SystemCallError) -> CacheFolder {
        let lockFile: FolderLock
        do {
            lockFile = try FolderLock(in: descriptor)
        } catch {
            guard [EROFS, EACCES, EPERM, ENOSPC, EDQUOT].contains(error.number) else { throw error }
            return try self.openReadOnly(path, descriptor, error)
        }
        lockFile.lock()
        defer { lockFile.unlock() }
        let region = try self.openRegion(descriptor)
        let isValid = region.hasValidTotals
        let owner = self.takeOwner(lockFile, region)
        if region.boot != BootIdentity.current {
            // What was mapped when the power went may be older than the files.
            region.flags.insert(.needsReading)
            region.setBoot(.current)
        }
        // Whoever has the lock next repairs what is not valid.
        if isValid { region.sealTotals() }
        return CacheFolder(
            path: path,
            descriptor: descriptor,
            mode: region.isShared ? .shared : .alone,
            lockFile: lockFile,
            owner: owner,
            region: region
        )
    }

    /// Opens the catalogue or makes one; of this cache's own where it can't be shared.
    private static func openRegion(_ folder: CInt) throws(SystemCallError) -> CatalogueRegion {
        // Whoever was making one was ended: the lock is ours.
        unlinkat(folder, self.newCatalogueName, 0)
        if self.canShareMemory(folder) {
            let file = openat(folder, self.catalogueName, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            if file >= 0 {
                defer { close(file) }
                if let region = try? CatalogueRegion.open(file, isShared: true) { return region }
            } else if errno == EMFILE || errno == ENFILE {
                throw SystemCallError.last("open")
            }
            // An empty folder of that name would be in the way.
            unlinkat(folder, self.catalogueName, AT_REMOVEDIR)
            if let region = try? self.makeShared(folder, slotCount: CatalogueLayout.smallestSlotCount),
                renameat(folder, self.newCatalogueName, folder, self.catalogueName) == 0
            {
                region.flags = self.hasEntries(folder) ? .needsReading : .isComplete
                region.sealTotals()
                return region
            }
        }
        // Something that can't be replaced is in its place.
        unlinkat(folder, self.newCatalogueName, 0)
        let region = try CatalogueRegion.makePrivate(slotCount: CatalogueLayout.smallestSlotCount)
        region.flags = self.hasEntries(folder) ? .needsReading : .isComplete
        region.sealTotals()
        return region
    }

    /// Makes a new catalogue, which is to be moved into place where it is shared.
    func makeRegion(slotCount: Int, isShared: Bool) throws(SystemCallError) -> CatalogueRegion {
        guard isShared else { return try .makePrivate(slotCount: slotCount) }
        return try Self.makeShared(self.descriptor, slotCount: slotCount)
    }

    private static func makeShared(_ folder: CInt, slotCount: Int) throws(SystemCallError) -> CatalogueRegion {
        let flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
        let file = openat(folder, self.newCatalogueName, flags, 0o600)
        guard file >= 0 else { throw SystemCallError.last("open") }
        defer { close(file) }
        do {
            return try .make(in: file, slotCount: slotCount)
        } catch {
            unlinkat(folder, self.newCatalogueName, 0)
            throw error
        }
    }

    /// Whether there may be entries that a new catalogue does not know.
    private static func hasEntries(_ folder: CInt) -> Bool {
        var status = stat()
        if fstatat(folder, self.entriesName, &status, AT_SYMLINK_NOFOLLOW) == 0 { return true }
        return LegacyLayout.isPresent(in: folder)
    }

    /// Takes the lowest number that nobody who lives has, and that nobody has left anything under.
    private static func takeOwner(_ lockFile: FolderLock, _ region: CatalogueRegion) -> Int {
        for number in 1..<CatalogueLayout.ownerCount where region[owner: number] == 0 {
            if lockFile.tryOwner(number) { return number }
        }
        return 0
    }

    /// Whether memory can be mapped from a file here, shared with others, and filled without an error
    /// that would end the process: not over a network, and not where a block is copied when written.
    private static func canShareMemory(_ folder: CInt) -> Bool {
        // NFS, SMB (three), 9P, FUSE, Ceph, AFS, Btrfs, ZFS, bcachefs.
        let refused: Set<Int> = [
            0x6969, 0x517B, 0xFE53_4D42, 0xFF53_4D42, 0x0102_1997, 0x6573_5546, 0x00C3_6400, 0x5346_414F,
            0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E,
        ]
        let type = cshims_file_system_type(folder)
        return type >= 0 && !refused.contains(type & 0xFFFF_FFFF)
    }

    /// Makes a folder inside, for this user only.
    func makeSubfolder(_ name: String) throws(SystemCallError) {
        guard mkdirat(self.descriptor, name, 0o700) == 0 || errno == EEXIST else {
            throw SystemCallError.last("mkdir")
        }
    }

    /// A folder on a read-only disk: the catalogue, if there is one, is read into memory of our own.
    private static func openReadOnly(
        _ path: String,
        _ descriptor: CInt,
        _ reason: SystemCallError
    ) throws(SystemCallError) -> CacheFolder {
        var region: CatalogueRegion?
        let file = openat(descriptor, self.catalogueName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        if file >= 0 {
            region = try? CatalogueRegion.open(file, isShared: false)
            close(file)
        }
        let chosen: CatalogueRegion
        if let region {
            chosen = region
        } else {
            chosen = try .makePrivate(slotCount: CatalogueLayout.smallestSlotCount)
        }
        return CacheFolder(
            path: path,
            descriptor: descriptor,
            mode: .readOnly(reason),
            lockFile: nil,
            owner: 0,
            region: chosen
        )
    }
}
