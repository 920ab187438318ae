import Glibc
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

    let path: String
    let descriptor: CInt
    let mode: Mode
    /// The number that stands for this cache in file names and reservations; 0 when there was none
    /// to be had.
    let owner: Int
    let lockFile: FolderLock?

    private let current: Locked<CatalogueRegion>
    private let monitor: Monitor<VictimQueue>

    init(
        path: String,
        descriptor: CInt,
        mode: Mode,
        lockFile: FolderLock?,
        owner: Int,
        region: CatalogueRegion
    ) {
        self.path = path
        self.descriptor = descriptor
        self.mode = mode
        self.lockFile = lockFile
        self.owner = owner
        self.current = Locked(region)
        self.monitor = Monitor(VictimQueue())
    }

    deinit {
        close(self.descriptor)
    }

    /// The catalogue as far as it can be read without the lock.
    var region: CatalogueRegion { self.current.withLock { $0 } }

    /// Whether a name that the catalogue does not know has no file.
    var knowsAbsence: Bool {
        self.knowsAbsence(self.region)
    }

    /// Whether a name that the catalogue `region` does not know has no file.
    func knowsAbsence(_ region: CatalogueRegion) -> Bool {
        guard case .shared = self.mode else { return false }
        let flags = region.flags
        return flags.contains(.isComplete) && !flags.contains(.isSuperseded)
    }

    // MARK: Changing the catalogue

    /// Runs `body` with the catalogue, while no one else changes it or moves files in the folder.
    ///
    /// - Throws: `ENOENT` also when the folder was deleted.
    func withCatalogue<Result>(
        _ body: (inout Catalogue, inout VictimQueue) throws(SystemCallError) -> Result
    ) throws(SystemCallError) -> Result {
        try self.monitor.withLock { queue throws(SystemCallError) in
            self.lockFile?.lock()
            defer { self.lockFile?.unlock() }
            var catalogue = try self.lockedCatalogue()
            defer {
                catalogue.region.sealTotals()
                let region = catalogue.region
                self.current.withLock { $0 = region }
            }
            return try body(&catalogue, &queue)
        }
    }

    /// Puts entries that were picked without a lock into the queue of those that go next.
    func fillVictims(with records: [CatalogueRecord]) {
        self.monitor.withLock { $0.fill(with: records) }
    }

    /// The catalogue of the moment, put in order after one who was killed.
    private func lockedCatalogue() throws(SystemCallError) -> Catalogue {
        var catalogue = Catalogue(region: self.region, folder: self)
        if catalogue.region.flags.contains(.isSuperseded) {
            let descriptor = openat(self.descriptor, Self.catalogueName, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            guard descriptor >= 0 else { throw SystemCallError.last("open") }
            defer { close(descriptor) }
            // A file that is none: as if it were gone, so that the folder is opened anew.
            guard let region = try CatalogueRegion.open(descriptor, isShared: true) else {
                throw SystemCallError(call: "open", number: ENOENT)
            }
            catalogue.region = region
        }
        if !catalogue.region.hasValidTotals { try catalogue.repair() }
        catalogue.settleIntent()
        return catalogue
    }

    // MARK: Place

    /// Whether the folder is still what is found at its path.
    var isInPlace: Bool {
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
