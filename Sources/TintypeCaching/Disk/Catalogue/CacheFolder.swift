// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import Synchronization
import TintypeConcurrency

/// An open cache folder, with its descriptor, its lock file and its catalogue.
///
/// The entry files take precedence over the catalogue, which answers without reading them. Under the folder's lock, a
/// record is added before its file, and removed after its file. So the catalogue may name a file that is gone, but it
/// knows every existing file, even if a process is killed at any time.
final class CacheFolder: Sendable {
    enum Mode: Sendable {
        /// All processes that use the folder share the catalogue.
        case shared
        /// The catalogue is private and incomplete.
        ///
        /// The file system cannot share memory, or had no room for a catalogue.
        case alone
        /// The folder is not writable, for this reason.
        case readOnly(SystemCallError)
    }

    static let catalogueName = "catalogue"
    static let newCatalogueName = "catalogue.new"
    static let entriesName = "entries"
    static let temporaryName = "temporary"
    static let discardedName = "discarded"
    static let namespacesName = "namespaces"
    /// The paths of the entry folders, relative to the cache folder.
    static let shardPaths = (UInt8.min...UInt8.max).map(shardPath)

    /// Returns the path of one entry folder.
    static func shardPath(_ shard: UInt8) -> String {
        "\(self.entriesName)/\(shard < 16 ? "0" : "")\(String(shard, radix: 16))"
    }

    let path: String
    let descriptor: CInt
    let mode: Mode
    /// The number of this cache in file names and reservations, or 0 if no number was free.
    let owner: Int
    let lockFile: FolderLock?
    /// The reason why the catalogue is private although the file system could share one.
    let aloneReason: SystemCallError?

    private let patience: Patience
    /// Whether the catalogue is unusable, so that the folder must be opened again.
    private let abandoned = Atomic<Bool>(false)
    private let current: Locked<CatalogueRegion>
    private let victims: Locked<VictimQueue>

    init(
        path: String,
        descriptor: CInt,
        mode: Mode,
        lockFile: FolderLock?,
        owner: Int,
        region: CatalogueRegion,
        aloneReason: SystemCallError? = nil,
        patience: Patience
    ) {
        self.path = path
        self.descriptor = descriptor
        self.mode = mode
        self.lockFile = lockFile
        self.owner = owner
        self.aloneReason = aloneReason
        self.patience = patience
        self.current = Locked(region)
        self.victims = Locked(VictimQueue())
    }

    deinit {
        close(self.descriptor)
    }

    /// The catalogue for reads without the lock.
    var region: CatalogueRegion { self.current.withLock { $0 } }

    /// Returns whether names that are not in the catalogue, or in the given earlier one, have no file.
    func knowsAbsence(_ region: CatalogueRegion? = nil) -> Bool {
        guard case .shared = self.mode else { return false }
        let flags = (region ?? self.region).flags
        return flags.contains(.isComplete) && !flags.contains(.isSuperseded)
    }

    /// Returns the inode number of an entry's file, if it exists.
    func fileNumber(of name: EntryName) -> UInt? {
        var status = stat()
        let isThere = name.withPath { fstatat(self.descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) == 0 }
        return isThere ? UInt(status.st_ino) : nil
    }

    /// Returns the names of a family: from the catalogue if that is complete, otherwise from the folder.
    func names(inFamilyOf name: EntryName) throws(SystemCallError) -> [EntryName] {
        var names: [EntryName] = []
        let region = self.region
        let sequence = region[.sequence]
        let damaged = region.forEachRecord { if $0.name.isOfFamily(of: name) { names.append($0.name) } }
        // The loop may have missed an entry that was moved meanwhile.
        if damaged == 0, self.knowsAbsence(region), sequence.isMultiple(of: 2), region[.sequence] == sequence {
            return names
        }
        names.removeAll()
        for shard in UInt8.min...UInt8.max {
            try Folder.forEachName(at: Self.shardPath(shard), in: self.descriptor) { text, _ in
                guard let entry = EntryName(shard: shard, fileName: text), entry.isOfFamily(of: name) else { return }
                names.append(entry)
            }
        }
        return names
    }

    // MARK: Changing the catalogue

    /// Removes an invalid entry, unless a file with another `number` has replaced it.
    ///
    /// - Returns: Whether it was removed.
    func discard(_ name: EntryName, _ number: UInt?) -> Bool {
        if case .readOnly = self.mode { return false }
        let isRemoved = try? self.withCatalogue { catalogue, _ throws(SystemCallError) -> Bool in
            if let number, self.fileNumber(of: name) != number { return false }
            return try catalogue.unlinkOwn(name)
        }
        return isRemoved ?? false
    }

    /// Runs `body` with the catalogue, while no other thread or process changes it or moves files in the folder.
    ///
    /// - Throws: Also `ENOENT` if the folder was deleted or must be opened again, and ``SystemCallError/lockTimedOut``.
    func withCatalogue<Result: Sendable>(
        _ body: (inout Catalogue, inout VictimQueue) throws(SystemCallError) -> Result
    ) throws(SystemCallError) -> Result {
        // Pause outside the lock, so that each thread can cancel its own wait.
        try self.patience.wait { () throws(SystemCallError) -> Result? in
            try self.victims.withLock { queue throws(SystemCallError) -> Result? in
                if let lockFile, !lockFile.tryLock() { return nil }
                defer { self.lockFile?.unlock() }
                var catalogue = try self.lockedCatalogue()
                defer {
                    catalogue.region.sealTotals()
                    let region = catalogue.region
                    self.current.withLock { $0 = region }
                }
                return .some(try body(&catalogue, &queue))
            }
        }
    }

    /// Fills the queue of entries to evict with entries that were found without a lock.
    func fillVictims(with records: [CatalogueRecord]) {
        self.victims.withLock { $0.fill(with: records) }
    }

    /// Returns the current catalogue, after repairs if a process was killed.
    private func lockedCatalogue() throws(SystemCallError) -> Catalogue {
        var catalogue = Catalogue(region: self.region, folder: self)
        if !catalogue.region.isWhole {
            self.putAside(catalogue.region)
            throw self.abandon()
        }
        if catalogue.region.flags.contains(.isSuperseded) { catalogue.region = try self.successor() }
        if !catalogue.region.hasValidTotals { try catalogue.repair() }
        catalogue.settleIntent()
        return catalogue
    }

    /// Returns the catalogue that has replaced a superseded one.
    private func successor() throws(SystemCallError) -> CatalogueRegion {
        let descriptor = Self.openCatalogue(self.descriptor)
        if descriptor < 0, errno == EMFILE || errno == ENFILE { throw SystemCallError.last("open") }
        defer { if descriptor >= 0 { close(descriptor) } }
        // Treat an invalid catalogue, or a private one of another user, as missing.
        guard descriptor >= 0, let region = try? CatalogueRegion.open(descriptor, isShared: true), region.isWhole else {
            throw self.abandon()
        }
        // A damaged bit set this flag; no other catalogue has replaced this one.
        region.flags.remove(.isSuperseded)
        return region
    }

    /// Removes the file of a lost catalogue if it is still in its place, and notifies the caches that map it.
    ///
    /// A truncated catalogue is useless. If the disk has no room for its blocks, the next write would lose it again.
    private func putAside(_ region: CatalogueRegion) {
        guard let identity = region.identity else { return }
        let descriptor = Self.openCatalogue(self.descriptor)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, CatalogueRegion.Identity(status) == identity else { return }
        var flags = CatalogueLayout.Flags.isSuperseded.rawValue
        // If the disk is full, the other caches notice that the file is no longer in its place.
        _ = pwrite(descriptor, &flags, 8, CatalogueLayout.Word.flags.rawValue * 8)
        unlinkat(self.descriptor, Self.catalogueName, 0)
    }

    /// Marks the folder so that the next operation opens it again.
    private func abandon() -> SystemCallError {
        self.abandoned.store(true, ordering: .relaxed)
        return SystemCallError(call: "open", number: ENOENT)
    }

    // MARK: Place

    /// Whether the catalogue is unusable, so that the folder must be opened again.
    var isAbandoned: Bool { self.abandoned.load(ordering: .relaxed) }

    /// Whether the folder is still at its path.
    var isInPlace: Bool {
        if self.isAbandoned { return false }
        var status = stat()
        let region = self.region
        if let identity = region.identity, case .shared = self.mode {
            guard stat(self.path + "/" + Self.catalogueName, &status) == 0 else { return false }
            return CatalogueRegion.Identity(status) == identity || region.flags.contains(.isSuperseded)
        }
        return self.isFolder(at: self.path)
    }

    /// Returns whether `path` leads to this folder.
    func isFolder(at path: String) -> Bool {
        var (status, own) = (stat(), stat())
        guard stat(path, &status) == 0, fstat(self.descriptor, &own) == 0 else { return false }
        return CatalogueRegion.Identity(status) == CatalogueRegion.Identity(own)
    }

    /// Returns which other users can change the folder, apart from root, or `nil` if no others can.
    ///
    /// Ignores group permissions, which the owner has granted on purpose.
    func strangers() -> String? {
        var status = stat()
        guard fstat(self.descriptor, &status) == 0 else { return nil }
        if status.st_mode & S_IWOTH != 0 { return "Every user" }
        return status.st_uid == 0 || status.st_uid == geteuid() ? nil : "The user \(status.st_uid)"
    }

    // MARK: Opening

    /// The result of an attempt to open a folder.
    enum Opening {
        case opened(CacheFolder)
        /// There is no folder, or no cache in it.
        case missing
        /// Another process holds the lock.
        case busy
    }

    /// The descriptors of an open folder: its own, the lock, the catalogue, and an entry that is read or written.
    private static let neededDescriptors: CInt = 4

    /// Opens the folder at `path`.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - isLocking: Whether to take the lock, under which unfinished work is completed, and a missing catalogue is
    ///     created. Without the lock, only a folder in use can be opened.
    ///   - isMaking: Whether to create a cache in a folder without one.
    ///   - patience: The patience of later waits for the lock.
    /// - Returns: The folder, or the reason why it is not open.
    /// - Throws: The error of a system call, except for a missing folder.
    static func open(
        _ path: String,
        isLocking: Bool = true,
        isMaking: Bool,
        patience: Patience
    ) throws(SystemCallError) -> Opening {
        guard cshims_has_descriptors(self.neededDescriptors) != 0 else { throw SystemCallError.last("open") }
        var descriptor: CInt
        repeat {
            descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        } while descriptor < 0 && errno == EINTR
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return .missing }
            throw SystemCallError.last("open")
        }
        guard isMaking || self.hasCache(descriptor) else {
            close(descriptor)
            return .missing
        }
        do {
            let folder = try isLocking ? self.open(path, descriptor, patience) : self.join(path, descriptor, patience)
            if let folder { return .opened(folder) }
        } catch {
            close(descriptor)
            throw error
        }
        close(descriptor)
        return .busy
    }

    private static func open(
        _ path: String,
        _ descriptor: CInt,
        _ patience: Patience
    ) throws(SystemCallError) -> CacheFolder? {
        let lockFile: FolderLock
        do {
            lockFile = try FolderLock(in: descriptor)
        } catch {
            guard [EROFS, EACCES, EPERM, ENOSPC, EDQUOT].contains(error.number) else { throw error }
            return try self.openReadOnly(path, descriptor, error, patience)
        }
        guard lockFile.tryLock() else { return nil }
        defer { lockFile.unlock() }
        let (region, aloneReason) = try self.openRegion(descriptor)
        let isValid = region.hasValidTotals
        let owner = self.takeOwner(lockFile, region)
        if region.boot != BootIdentity.current {
            // The catalogue may be older than the files if the system stopped while it was mapped.
            region.flags.insert(.needsReading)
            region.setBoot(.current)
        }
        // The next holder of the lock repairs invalid totals.
        if isValid { region.sealTotals() }
        return CacheFolder(
            path: path,
            descriptor: descriptor,
            mode: region.isShared ? .shared : .alone,
            lockFile: lockFile,
            owner: owner,
            region: region,
            aloneReason: aloneReason,
            patience: patience
        )
    }

    /// Opens a folder while another process holds the lock; `nil` if it has no usable catalogue.
    ///
    /// Look-ups need no lock. The next holder of the lock completes unfinished work.
    private static func join(
        _ path: String,
        _ descriptor: CInt,
        _ patience: Patience
    ) throws(SystemCallError) -> CacheFolder? {
        let lockFile = try FolderLock(in: descriptor)
        let file = self.openCatalogue(descriptor)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard self.canShareMemory(descriptor), let region = try? CatalogueRegion.open(file, isShared: true),
            region.boot == BootIdentity.current
        else { return nil }
        return CacheFolder(
            path: path,
            descriptor: descriptor,
            mode: .shared,
            lockFile: lockFile,
            owner: self.takeOwner(lockFile, region),
            region: region,
            patience: patience
        )
    }

    /// Opens the file of the catalogue for sharing, and returns the descriptor, or -1 with `errno` set.
    private static func openCatalogue(_ folder: CInt) -> CInt {
        openat(folder, self.catalogueName, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    }

    /// Opens or creates the catalogue.
    ///
    /// If it cannot be shared, returns a private one, with the reason.
    private static func openRegion(_ folder: CInt) throws(SystemCallError) -> (CatalogueRegion, SystemCallError?) {
        var reason: SystemCallError?
        self.removeNewCatalogue(folder)
        if self.canShareMemory(folder) {
            let file = self.openCatalogue(folder)
            if file >= 0 {
                defer { close(file) }
                if let region = try? CatalogueRegion.open(file, isShared: true) {
                    // A damaged bit set this flag; no other catalogue has replaced this one.
                    region.flags.remove(.isSuperseded)
                    return (region, nil)
                }
            } else if errno == EMFILE || errno == ENFILE {
                throw SystemCallError.last("open")
            }
            do throws(SystemCallError) {
                let new = try self.makeShared(folder, slotCount: CatalogueLayout.smallestSlotCount)
                try new.moveIntoPlace(in: folder)
                let region = new.region
                region.flags = self.hasEntries(folder) ? .needsReading : .isComplete
                region.sealTotals()
                return (region, nil)
            } catch {
                if error.number == EMFILE || error.number == ENFILE { throw error }
                reason = error
            }
        }
        let region = try CatalogueRegion.makePrivate(slotCount: CatalogueLayout.smallestSlotCount)
        region.flags = self.hasEntries(folder) ? .needsReading : .isComplete
        region.sealTotals()
        return (region, reason)
    }

    /// Creates a catalogue; the caller must move a shared one into place.
    func makeRegion(slotCount: Int, isShared: Bool) throws(SystemCallError) -> NewCatalogue {
        guard isShared else { return NewCatalogue(region: try .makePrivate(slotCount: slotCount), name: nil) }
        return try Self.makeShared(self.descriptor, slotCount: slotCount)
    }

    private static func makeShared(_ folder: CInt, slotCount: Int) throws(SystemCallError) -> NewCatalogue {
        self.removeNewCatalogue(folder)
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        var name = self.newCatalogueName
        var file = openat(folder, name, flags, 0o600)
        if file < 0, errno == EEXIST {
            // A file that is not a catalogue has the name.
            name += ".\(OwnFiles.randomDigits())"
            file = openat(folder, name, flags, 0o600)
        }
        guard file >= 0 else { throw SystemCallError.last("open") }
        defer { close(file) }
        do {
            return NewCatalogue(region: try .make(in: file, slotCount: slotCount), name: name)
        } catch {
            unlinkat(folder, name, 0)
            throw error
        }
    }

    /// Removes an unfinished catalogue of a killed process; the caller holds the lock.
    private static func removeNewCatalogue(_ folder: CInt) {
        guard case .regular = OwnFiles.kind(of: self.newCatalogueName, in: folder),
            OwnFiles.mayReplaceCatalogue(self.newCatalogueName, in: folder)
        else { return }
        unlinkat(folder, self.newCatalogueName, 0)
    }

    /// Returns whether there may be entries that a new catalogue does not know.
    private static func hasEntries(_ folder: CInt) -> Bool { self.has(self.entriesName, folder) }

    /// Returns whether a cache has created any files in the folder.
    private static func hasCache(_ folder: CInt) -> Bool {
        [self.catalogueName, self.entriesName, FolderLock.fileName, self.temporaryName].contains {
            self.has($0, folder)
        }
    }

    private static func has(_ name: String, _ folder: CInt) -> Bool {
        var status = stat()
        return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Takes the lowest number that no living process has and that has no reservation left.
    private static func takeOwner(_ lockFile: FolderLock, _ region: CatalogueRegion) -> Int {
        for number in 1..<CatalogueLayout.ownerCount where region[owner: number] == 0 {
            if lockFile.tryOwner(number) { return number }
        }
        return 0
    }

    /// Returns whether the file system can share mapped memory, and fill it without an error that ends the process.
    ///
    /// It cannot over a network, or if it copies blocks on write.
    private static func canShareMemory(_ folder: CInt) -> Bool {
        // NFS, SMB (three), 9P, FUSE, Ceph, AFS, Btrfs, ZFS, bcachefs.
        let refused: Set<Int> = [
            0x6969, 0x517B, 0xFE53_4D42, 0xFF53_4D42, 0x0102_1997, 0x6573_5546, 0x00C3_6400, 0x5346_414F,
            0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E,
        ]
        let type = cshims_file_system_type(folder)
        return type >= 0 && !refused.contains(type & 0xFFFF_FFFF)
    }

    /// Creates a subfolder with access for this user only.
    func makeSubfolder(_ name: String) throws(SystemCallError) {
        guard mkdirat(self.descriptor, name, 0o700) == 0 || errno == EEXIST else {
            throw SystemCallError.last("mkdir")
        }
    }

    /// Opens a folder on a read-only disk, and reads its catalogue, if there is one, into private memory.
    private static func openReadOnly(
        _ path: String,
        _ descriptor: CInt,
        _ reason: SystemCallError,
        _ patience: Patience
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
            region: chosen,
            patience: patience
        )
    }
}

/// A new catalogue that is not yet in its place.
struct NewCatalogue {
    let region: CatalogueRegion
    /// The name of its file; `nil` without a file.
    let name: String?

    /// Replaces the old catalogue, unless another kind of object is in its place.
    func moveIntoPlace(in folder: CInt) throws(SystemCallError) {
        guard let name = self.name else { return }
        let isFree = OwnFiles.mayReplaceCatalogue(CacheFolder.catalogueName, in: folder)
        if isFree, renameat(folder, name, folder, CacheFolder.catalogueName) == 0 { return }
        let error = isFree ? SystemCallError.last("rename") : SystemCallError(call: "rename", number: EEXIST)
        unlinkat(folder, name, 0)
        throw error
    }
}
