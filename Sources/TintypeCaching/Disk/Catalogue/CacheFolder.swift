import CTintypeShims
import Glibc
import Synchronization
import TintypeConcurrency

/// A cache folder that is open: its descriptor, its lock file and its catalogue.
///
/// The entries' files are the truth, and the catalogue is what is known about them without
/// looking. A file is written into the catalogue before it is added, and removed from there after it
/// was deleted, both under the folder's lock; so the catalogue may name a file that is gone,
/// but knows every file that is there, whenever a process is killed.
final class CacheFolder: Sendable {
    enum Mode: Sendable {
        /// The catalogue is shared by all processes that use the folder.
        case shared
        /// The file system can't share memory, or had no room for a catalogue: it is this cache's
        /// own, and only the folder knows what is there.
        case alone
        /// Nothing can be written, for this reason.
        case readOnly(SystemCallError)
    }

    static let catalogueName = "catalogue"
    static let newCatalogueName = "catalogue.new"
    static let entriesName = "entries"
    static let temporaryName = "temporary"
    static let discardedName = "discarded"
    static let namespacesName = "namespaces"
    /// The paths of the folders of entries, from the folder of the cache.
    static let shardPaths = (UInt8.min...UInt8.max).map(shardPath)

    /// The path of one folder of entries.
    static func shardPath(_ shard: UInt8) -> String {
        "\(self.entriesName)/\(shard < 16 ? "0" : "")\(String(shard, radix: 16))"
    }

    let path: String
    let descriptor: CInt
    let mode: Mode
    /// The number that stands for this cache in file names and reservations; 0 when there was none
    /// to be had.
    let owner: Int
    let lockFile: FolderLock?
    /// Why the catalogue is this cache's own although the file system could share one.
    let aloneReason: SystemCallError?

    private let patience: Patience
    /// Set when the catalogue can't be used any more: the folder is to be opened anew.
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

    /// The catalogue as far as it can be read without the lock.
    var region: CatalogueRegion { self.current.withLock { $0 } }

    /// Whether a name that the catalogue, or the given one of before, does not know has no file.
    func knowsAbsence(_ region: CatalogueRegion? = nil) -> Bool {
        guard case .shared = self.mode else { return false }
        let flags = (region ?? self.region).flags
        return flags.contains(.isComplete) && !flags.contains(.isSuperseded)
    }

    /// Which file an entry is now, if it is there.
    func fileNumber(of name: EntryName) -> UInt? {
        var status = stat()
        let isThere = name.withPath { fstatat(self.descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) == 0 }
        return isThere ? UInt(status.st_ino) : nil
    }

    /// The names of the entries of a family: from the catalogue if that knows all, else from the folder.
    func names(inFamilyOf name: EntryName) throws(SystemCallError) -> [EntryName] {
        var names: [EntryName] = []
        let region = self.region
        let sequence = region[.sequence]
        let damaged = region.forEachRecord { if $0.name.isOfFamily(of: name) { names.append($0.name) } }
        // An entry that was moved meanwhile may have been missed.
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

    /// Removes an entry of no more use, unless another file than that of `number` has taken its place; says whether
    /// there was one.
    func discard(_ name: EntryName, _ number: UInt?) -> Bool {
        if case .readOnly = self.mode { return false }
        let isRemoved = try? self.withCatalogue { catalogue, _ throws(SystemCallError) -> Bool in
            if let number, self.fileNumber(of: name) != number { return false }
            return try catalogue.unlinkOwn(name)
        }
        return isRemoved ?? false
    }

    /// Runs `body` with the catalogue, while no one else changes it or moves files in the folder.
    ///
    /// - Throws: `ENOENT` also when the folder was deleted, or is to be opened anew; ``SystemCallError/lockTimedOut``.
    func withCatalogue<Result: Sendable>(
        _ body: (inout Catalogue, inout VictimQueue) throws(SystemCallError) -> Result
    ) throws(SystemCallError) -> Result {
        // Pauses lie outside of the lock, so that each thread may give up its own wait.
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

    /// Puts entries that were picked without a lock into the queue of those that go next.
    func fillVictims(with records: [CatalogueRecord]) {
        self.victims.withLock { $0.fill(with: records) }
    }

    /// The catalogue of the moment, put in order after a process that was killed.
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

    /// The catalogue that has taken the place of one that was superseded.
    private func successor() throws(SystemCallError) -> CatalogueRegion {
        let descriptor = Self.openCatalogue(self.descriptor)
        if descriptor < 0, errno == EMFILE || errno == ENFILE { throw SystemCallError.last("open") }
        defer { if descriptor >= 0 { close(descriptor) } }
        // One that is none, or that another user has made for itself: as if it were gone.
        guard descriptor >= 0, let region = try? CatalogueRegion.open(descriptor, isShared: true), region.isWhole else {
            throw self.abandon()
        }
        // A bit that turned over: nothing has taken its place.
        region.flags.remove(.isSuperseded)
        return region
    }

    /// Takes the file of a catalogue that was lost out of its place, where it still is, and tells the caches that map it.
    ///
    /// Cut short it is of no use, and one whose blocks the disk can't give would be lost again at the next write.
    private func putAside(_ region: CatalogueRegion) {
        guard let identity = region.identity else { return }
        let descriptor = Self.openCatalogue(self.descriptor)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, CatalogueRegion.Identity(status) == identity else { return }
        var flags = CatalogueLayout.Flags.isSuperseded.rawValue
        // On a full disk they find out by the place that is no longer the file's.
        _ = pwrite(descriptor, &flags, 8, CatalogueLayout.Word.flags.rawValue * 8)
        unlinkat(self.descriptor, Self.catalogueName, 0)
    }

    /// Has the folder opened anew by the next operation.
    private func abandon() -> SystemCallError {
        self.abandoned.store(true, ordering: .relaxed)
        return SystemCallError(call: "open", number: ENOENT)
    }

    // MARK: Place

    /// Whether the catalogue can't be used any more, so that the folder is to be opened anew.
    var isAbandoned: Bool { self.abandoned.load(ordering: .relaxed) }

    /// Whether the folder is still what is found at its path.
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

    /// Whether `path` leads to this folder.
    func isFolder(at path: String) -> Bool {
        var (status, own) = (stat(), stat())
        guard stat(path, &status) == 0, fstat(self.descriptor, &own) == 0 else { return false }
        return CatalogueRegion.Identity(status) == CatalogueRegion.Identity(own)
    }

    /// Returns who may change the folder besides this user and root, or `nil` if no one may.
    ///
    /// A group is not named: it was given the right on purpose.
    func strangers() -> String? {
        var status = stat()
        guard fstat(self.descriptor, &status) == 0 else { return nil }
        if status.st_mode & S_IWOTH != 0 { return "Every user" }
        return status.st_uid == 0 || status.st_uid == geteuid() ? nil : "The user \(status.st_uid)"
    }

    // MARK: Opening

    /// What came of an attempt to open a folder.
    enum Opening {
        case opened(CacheFolder)
        /// There is no folder, or no cache in it.
        case missing
        /// Another holds the lock, which is not waited for.
        case busy
    }

    /// The descriptors that an open folder takes: its own, the lock, the catalogue, and an entry that is read or written.
    private static let neededDescriptors: CInt = 4

    /// Opens the folder at `path`.
    ///
    /// `isLocking` says whether to take the lock for it, which puts in order what was left unfinished, and makes a
    /// catalogue if there is none. Without it only a folder that is in use can be opened. `isMaking` says whether to
    /// make a cache in a folder that has none.
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
            // What was mapped when the power went may be older than the files.
            region.flags.insert(.needsReading)
            region.setBoot(.current)
        }
        // The process that has the lock next repairs what is not valid.
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

    /// Opens a folder whose lock another process keeps; `nil` where it has no catalogue that can be used at once.
    ///
    /// Look-ups need no lock. What is out of order is put right by its next holder.
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

    /// Opens the file of the catalogue to share it; the descriptor, or -1 with errno set.
    private static func openCatalogue(_ folder: CInt) -> CInt {
        openat(folder, self.catalogueName, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    }

    /// Opens the catalogue or makes one; of this cache's own, for the reason that is returned, where it can't be
    /// shared.
    private static func openRegion(_ folder: CInt) throws(SystemCallError) -> (CatalogueRegion, SystemCallError?) {
        var reason: SystemCallError?
        self.removeNewCatalogue(folder)
        if self.canShareMemory(folder) {
            let file = self.openCatalogue(folder)
            if file >= 0 {
                defer { close(file) }
                if let region = try? CatalogueRegion.open(file, isShared: true) {
                    // A bit that turned over: nothing has taken its place.
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

    /// Makes a new catalogue, which is to be moved into place where it is shared.
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
            // Something of others' has the name.
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

    /// Removes what a process has left that was ended while making a catalogue: the lock is ours.
    private static func removeNewCatalogue(_ folder: CInt) {
        guard case .regular = OwnFiles.kind(of: self.newCatalogueName, in: folder),
            OwnFiles.mayReplaceCatalogue(self.newCatalogueName, in: folder)
        else { return }
        unlinkat(folder, self.newCatalogueName, 0)
    }

    /// Whether there may be entries that a new catalogue does not know.
    private static func hasEntries(_ folder: CInt) -> Bool { self.has(self.entriesName, folder) }

    /// Whether a cache has made anything in the folder.
    private static func hasCache(_ folder: CInt) -> Bool {
        [self.catalogueName, self.entriesName, FolderLock.fileName, self.temporaryName].contains {
            self.has($0, folder)
        }
    }

    private static func has(_ name: String, _ folder: CInt) -> Bool {
        var status = stat()
        return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Takes the lowest number that no process has that lives, and under which nothing was left.
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

/// A catalogue that was made, and is not yet where one is looked for.
struct NewCatalogue {
    let region: CatalogueRegion
    /// The name of its file; `nil` where it has none.
    let name: String?

    /// Puts it in the place of the old one, unless something that is no catalogue is there.
    func moveIntoPlace(in folder: CInt) throws(SystemCallError) {
        guard let name = self.name else { return }
        let isFree = OwnFiles.mayReplaceCatalogue(CacheFolder.catalogueName, in: folder)
        if isFree, renameat(folder, name, folder, CacheFolder.catalogueName) == 0 { return }
        let error = isFree ? SystemCallError.last("rename") : SystemCallError(call: "rename", number: EEXIST)
        unlinkat(folder, name, 0)
        throw error
    }
}
