import Glibc
import Synchronization
import TintypeConcurrency

/// A cache folder that is open: its descriptor, its lock file and its catalogue.
///
/// The entries' files are the truth, and the catalogue is what is known about them without
/// looking. Whoever adds a file writes it into the catalogue first, and whoever removes one removes
/// it from there last, both under the folder's lock; so the catalogue may name a file that is gone,
/// but knows every file that is there, whenever a process is killed.
final class CacheFolder: Sendable {
    enum Mode: Sendable {
        /// The catalogue is shared with all who use the folder.
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
    private let monitor: Monitor<VictimQueue>

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
        self.monitor = Monitor(VictimQueue())
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
    func withCatalogue<Result>(
        _ body: (inout Catalogue, inout VictimQueue) throws(SystemCallError) -> Result
    ) throws(SystemCallError) -> Result {
        // Pauses lie outside of the monitor, so that each thread may give up its own wait.
        try self.patience.wait { () throws(SystemCallError) -> Result? in
            try self.monitor.withLock { queue throws(SystemCallError) -> Result? in
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
        self.monitor.withLock { $0.fill(with: records) }
    }

    /// The catalogue of the moment, put in order after one who was killed.
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
        let descriptor = openat(self.descriptor, Self.catalogueName, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
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
        let descriptor = openat(self.descriptor, Self.catalogueName, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
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
}
