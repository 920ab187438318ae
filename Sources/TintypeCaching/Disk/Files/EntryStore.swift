import FoundationEssentials
import Glibc
import Synchronization
import TintypeConcurrency

/// The folder of a disk tier: what is written where, and what is known about it.
///
/// Unless it says otherwise, a function blocks and may be called from any of the cache's threads.
///
///     <directory>/entries/ab/...   one file an entry, called by the first 96 bits of its key's SHA-256
///     <directory>/temporary/...    files that are being written, or removed
///     <directory>/discarded/...    what was cleared and waits to be deleted
///     <directory>/catalogue        name, size and last use of each entry
///     <directory>/lock             what keeps the processes apart
///     <directory>/namespaces/...   folders of the same kind
final class EntryStore: Sendable {
    let configuration: DiskCache.Configuration
    let directory: String
    let sizeLimit: Int
    let counters = DiskCounters()
    /// How long changes wait for the lock, and stores for room that others are about to give back.
    let patience: Patience
    let roomPatience: Patience
    /// Asks for ``refillVictims()`` on the thread that may take its time.
    let victimRequest = Atomic<Bool>(false)

    /// The bytes that were stored before all entries were known.
    let earlyByteCount = Atomic<Int>(0)
    /// Has the housekeeper look what there is to do.
    let housekeeping = Locked<(@Sendable () -> Void)?>(nil)

    /// The bytes that are left of what was cleared, and can't be deleted: not to be tried again while they stay the same.
    let stuckByteCount = Atomic<Int>(0)

    /// Whether the catalogue counts towards the limit: not in a cache so small that little else would fit.
    let countsCatalogue: Bool
    let maximumAge: Double
    /// Whether there are folders that are only read.
    let looksElsewhere: Bool
    private let closing = Closing()
    private let nextExpiryCheck = Locked(0.0)
    private let clock: @Sendable () -> Date
    private let folder = Locked<CacheFolder?>(nil)
    private let opening = Monitor(())
    private let temporaryPrefix = OwnFiles.randomDigits()
    private let temporaryNumber = Atomic<Int>(0)
    /// When the folder was last seen in its place: seconds of the monotonic clock.
    private let lastCheck = Atomic<Int>(0)

    init(_ configuration: DiskCache.Configuration) {
        self.configuration = configuration
        self.directory = configuration.folderPath
        self.sizeLimit = max(0, configuration.sizeLimit)
        self.countsCatalogue = configuration.sizeLimit >= 1 << 16
        self.maximumAge = configuration.maximumAge.map(Self.seconds(of:)) ?? .infinity
        self.clock = configuration.now
        self.looksElsewhere = !configuration.readOnlyDirectories.isEmpty
        let closing = self.closing
        self.patience = Patience(
            limit: configuration.lockTimeout,
            isClosing: { closing.isSet.load(ordering: .relaxed) },
            sleep: configuration.sleep
        )
        self.roomPatience = Patience(
            limit: .seconds(10),
            leaverLimit: .seconds(1),
            isClosing: { closing.isSet.load(ordering: .relaxed) },
            sleep: configuration.sleep
        )
    }

    /// Set when the cache shuts down: long work on the folder ends early.
    var isClosing: Bool { self.closing.isSet.load(ordering: .relaxed) }

    /// Has long work on the folder, and waits, end early.
    func beginClosing() { self.closing.isSet.store(true, ordering: .relaxed) }

    // MARK: Folder

    /// The folder if it is open already; never blocks.
    var openedFolder: CacheFolder? { self.folder.withLock { $0 } }

    /// The folder, opened; `nil` when there is none.
    ///
    /// While another process keeps the lock it is opened for look-ups, if it has a catalogue.
    ///
    /// - Throws: ``SystemCallError/lockTimedOut`` also.
    func openFolder() throws(SystemCallError) -> CacheFolder? {
        if let folder = self.openedFolder, !folder.isAbandoned { return folder }
        do throws(SystemCallError) {
            return try self.patience.wait { () throws(SystemCallError) -> CacheFolder?? in
                try self.tryOpening(isLocking: true)
            }
        } catch {
            guard error == .lockTimedOut, let folder = try self.tryOpening(isLocking: false) else { throw error }
            return folder
        }
    }

    /// The folder, or `nil` as there is none; `nil` around it when another holds the lock.
    private func tryOpening(isLocking: Bool) throws(SystemCallError) -> CacheFolder?? {
        try self.opening.withLock { _ throws(SystemCallError) -> CacheFolder?? in
            if let folder = self.openedFolder {
                if !folder.isAbandoned { return folder }
                self.forget(folder)
            }
            switch try CacheFolder.open(self.directory, isLocking: isLocking, patience: self.patience) {
            case .busy:
                return nil
            case .missing:
                return .some(nil)
            case .opened(let folder):
                self.folder.withLock { $0 = folder }
                if let reason = folder.aloneReason { self.noteCatalogueError(reason) }
                if folder.region.flags.contains(.needsReading) { self.requestHousekeeping() }
                return folder
            }
        }
    }

    /// The folder, opened, and made where there is none.
    func openFolderForWriting() throws(SystemCallError) -> CacheFolder {
        if let folder = try self.openFolder() {
            guard case .readOnly = folder.mode else { return folder }
            // It may have become writable.
            self.forget(folder)
        }
        for _ in 0..<8 {
            try Self.makeFolder(self.directory)
            guard let folder = try self.openFolder() else { continue }
            if case .readOnly(let reason) = folder.mode { throw reason }
            return folder
        }
        // Something that is no folder is in its place.
        throw SystemCallError(call: "open", number: ENOTDIR)
    }

    /// Lets go of a folder that is no longer what is found at its path.
    ///
    /// - Returns: Whether it was.
    @discardableResult
    func forgetIfMoved(_ folder: CacheFolder) -> Bool {
        guard !folder.isInPlace else { return false }
        self.forget(folder)
        return true
    }

    /// The folder that is found at its path, where there is one that can be opened.
    func folderInPlace() -> CacheFolder? {
        // Another may take it away each time.
        for _ in 0..<8 {
            guard let folder = try? self.openFolder() else { return nil }
            if !self.forgetIfMoved(folder) { return folder }
        }
        return nil
    }

    private func forget(_ folder: CacheFolder) {
        let dropped = self.folder.withLock { current -> CacheFolder? in
            guard current === folder else { return nil }
            defer { current = nil }
            return current
        }
        // Its descriptors are closed outside the lock.
        _ = dropped
    }

    /// Lets go of the folder; nothing may be asked of it from then on.
    func closeFolder() {
        if let folder = self.openedFolder { self.forget(folder) }
    }

    /// Whether it is time to see if the folder is still in its place: once a second.
    func isCheckDue() -> Bool {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        let last = self.lastCheck.load(ordering: .relaxed)
        guard time.tv_sec != last else { return false }
        self.lastCheck.store(time.tv_sec, ordering: .relaxed)
        return last != 0
    }

    /// A path in the folder of temporary files that no other writer uses, in any process.
    func makeTemporaryPath(in folder: CacheFolder) -> String {
        let number = self.temporaryNumber.wrappingAdd(1, ordering: .relaxed).newValue
        return "\(CacheFolder.temporaryName)/\(folder.owner)-\(self.temporaryPrefix)-\(number)"
    }

    /// Whether a temporary file is one that this cache has made, and not one of those that had its number before.
    func isOwnTemporary(_ name: String, in folder: CacheFolder) -> Bool {
        name.hasPrefix("\(folder.owner)-\(self.temporaryPrefix)-")
    }

    /// Makes a folder and those above it, for this user only.
    static func makeFolder(_ path: String) throws(SystemCallError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw SystemCallError.last("mkdir")
        }
        try self.makeFolder(String(path[..<slash]))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemCallError.last("mkdir") }
    }

    // MARK: Age

    /// The time in seconds since 1970.
    var now: Double { self.clock().timeIntervalSince1970 }

    /// Whether an entry's time is over.
    func isExpired(_ header: EntryHeader, usedAt: Double, now: Double) -> Bool {
        if header.expiresAt <= now { return true }
        let start =
            switch self.configuration.expiry {
            case .access: usedAt
            case .modification: header.storedAt
            case .creation: header.createdAt
            }
        return now - start >= self.maximumAge
    }

    /// Whether it is time to look for entries whose age is over.
    func isExpiryCheckDue(now: Double) -> Bool {
        self.nextExpiryCheck.withLock { now >= $0 || now < $0 - 61 }
    }

    func noteNothingExpired(now: Double) {
        self.nextExpiryCheck.withLock { $0 = now + min(60, self.maximumAge / 100) }
    }

    /// Keeps for the statistics why the catalogue can't be shared.
    private func noteCatalogueError(_ error: SystemCallError) {
        self.counters.catalogueErrors.note(.catalogue(error, in: self.directory))
    }

    /// Keeps for the statistics that a file could not be removed.
    func noteRemovalError(_ error: SystemCallError, of path: String) {
        self.counters.removalErrors.note(.removing(error, of: self.directory + "/" + path))
    }

    func requestHousekeeping() {
        let request = self.housekeeping.withLock { $0 }
        request?()
    }

    private static func seconds(of duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}

/// Whether a cache shuts down, apart from the store so that what the store owns may look.
private final class Closing: Sendable {
    let isSet = Atomic<Bool>(false)
}
