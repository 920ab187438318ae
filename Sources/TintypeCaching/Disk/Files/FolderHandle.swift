// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TintypeConcurrency

/// Opens the cache's folder on demand, and again if it was deleted or replaced.
///
/// Functions block unless their comments say otherwise. Any of the cache's threads may call them.
final class FolderHandle: Sendable {
    let directory: String
    /// The patience of changes that wait for the lock.
    let patience: Patience
    let counters: DiskCounters
    let closing = Closing()
    let housekeeping = HousekeepingRequest()
    private let folder = Locked<CacheFolder?>(nil)
    private let opening = Locked(())
    private let reportError: (@Sendable (CacheError) -> Void)?
    private let hasReportedStrangers = Atomic<Bool>(false)
    /// The second of the monotonic clock at which the folder was last seen in its place.
    private let lastCheck = Atomic<Int>(0)

    init(_ configuration: DiskCache.Configuration) {
        self.directory = configuration.folderPath
        self.counters = DiskCounters(directory: self.directory)
        self.reportError = configuration.storeErrorHandler
        self.patience = self.closing.makePatience(configuration.lockTimeout, configuration)
    }

    // MARK: Opening

    /// The folder if it is already open; never blocks.
    var opened: CacheFolder? { self.folder.withLock { $0 } }

    /// Opens the folder, or returns `nil` if there is no folder or no cache in it; only a store creates one.
    ///
    /// While another process holds the lock, the folder is opened for look-ups if it has a catalogue.
    ///
    /// - Throws: Also ``SystemCallError/lockTimedOut``.
    func open() throws(SystemCallError) -> CacheFolder? {
        try self.open(isMaking: false)
    }

    private func open(isMaking: Bool) throws(SystemCallError) -> CacheFolder? {
        if let folder = self.opened, !folder.isAbandoned { return folder }
        var wait = self.patience.begin()
        repeat {
            if let folder = try self.tryOpening(isLocking: true, isMaking) { return self.inspected(folder) }
        } while wait.pause()
        guard let folder = try self.tryOpening(isLocking: false, isMaking) else { throw .lockTimedOut }
        return self.inspected(folder)
    }

    /// Reports, once, that other users can change the folder.
    private func inspected(_ folder: CacheFolder?) -> CacheFolder? {
        guard let strangers = folder?.strangers(), !self.hasReportedStrangers.exchange(true, ordering: .relaxed) else {
            return folder
        }
        let error = CacheError.exposed(to: strangers, in: self.directory)
        self.counters.exposure.withLock { $0 = error }
        self.reportError?(error)
        return folder
    }

    /// Returns the folder, `.some(nil)` if it is missing, or `nil` if another process holds the lock.
    private func tryOpening(isLocking: Bool, _ isMaking: Bool) throws(SystemCallError) -> CacheFolder?? {
        try self.opening.withLock { _ throws(SystemCallError) -> CacheFolder?? in
            if let folder = self.opened {
                if !folder.isAbandoned { return folder }
                self.forget(folder)
            }
            let opening = try CacheFolder.open(
                self.directory,
                isLocking: isLocking,
                isMaking: isMaking,
                patience: self.patience
            )
            switch opening {
            case .busy:
                return nil
            case .missing:
                return .some(nil)
            case .opened(let folder):
                // Not for a folder that another thread opened, which may not have needed the lock.
                if isLocking { self.patience.noteSuccess() }
                self.folder.withLock { $0 = folder }
                if let reason = folder.aloneReason {
                    self.counters.catalogueErrors.note(.catalogue(reason, in: self.directory))
                }
                if folder.region.flags.contains(.needsReading) { self.housekeeping.send() }
                return folder
            }
        }
    }

    /// Opens the folder, and creates it if it is missing.
    func openForWriting() throws(SystemCallError) -> CacheFolder {
        if let folder = try self.open() {
            guard case .readOnly = folder.mode else { return folder }
            // The folder may be writable by now.
            self.forget(folder)
        }
        for _ in 0..<8 {
            try Self.makeFolder(self.directory)
            guard let folder = try self.open(isMaking: true) else { continue }
            if case .readOnly(let reason) = folder.mode { throw reason }
            return folder
        }
        // An object that is not a folder is in its place.
        throw SystemCallError(call: "open", number: ENOTDIR)
    }

    /// Returns the folder if there is one that can be changed.
    func openForCleaning() -> CacheFolder? {
        guard let folder = try? self.open() else { return nil }
        if case .readOnly = folder.mode { return nil }
        return folder
    }

    /// Returns the folder that is at the path now, if it can be opened.
    func openInPlace() -> CacheFolder? {
        // Another process may delete the folder each time.
        for _ in 0..<8 {
            guard let folder = try? self.open() else { return nil }
            if !self.forgetIfMoved(folder) { return folder }
        }
        return nil
    }

    /// Runs `body` with the folder, and again with a new one if it was deleted meanwhile.
    func withFolder(
        _ open: () throws(SystemCallError) -> CacheFolder?,
        _ body: (CacheFolder) throws(SystemCallError) -> Void
    ) throws(SystemCallError) {
        for _ in 0..<8 {
            guard let folder = try open() else { return }
            do throws(SystemCallError) {
                return try body(folder)
            } catch {
                guard error.number == ENOENT else { throw error }
                self.forgetIfMoved(folder)
            }
        }
        throw SystemCallError(call: "open", number: ENOENT)
    }

    // MARK: Closing

    /// Releases a folder that is no longer at its path.
    ///
    /// - Returns: Whether it was released.
    @discardableResult
    func forgetIfMoved(_ folder: CacheFolder) -> Bool {
        guard !folder.isInPlace else { return false }
        self.forget(folder)
        return true
    }

    private func forget(_ folder: CacheFolder) {
        let dropped = self.folder.withLock { current -> CacheFolder? in
            guard current === folder else { return nil }
            defer { current = nil }
            return current
        }
        // Close its descriptors outside the lock.
        _ = dropped
    }

    /// Releases the folder; the handle must not be used afterwards.
    func close() {
        if let folder = self.opened { self.forget(folder) }
    }

    /// Whether to check that the folder is still in its place, which is due once a second.
    var isCheckDue: Bool { self.second != self.lastCheck.load(ordering: .relaxed) }

    /// Returns whether the check is due, for only one caller, which must then do it.
    func beginCheck() -> Bool {
        let second = self.second
        let last = self.lastCheck.exchange(second, ordering: .relaxed)
        return last != second && last != 0
    }

    private var second: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return time.tv_sec
    }

    /// Creates a folder and its parents, with access for this user only.
    private static func makeFolder(_ path: String) throws(SystemCallError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw SystemCallError.last("mkdir")
        }
        try self.makeFolder(String(path[..<slash]))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemCallError.last("mkdir") }
    }
}

/// A flag for the shutdown of a cache, which ends waits and long maintenance early.
final class Closing: Sendable {
    private let flag = Atomic<Bool>(false)

    var isSet: Bool { self.flag.load(ordering: .relaxed) }

    func set() { self.flag.store(true, ordering: .relaxed) }

    func makePatience(
        _ limit: Duration,
        leaverLimit: Duration = .milliseconds(50),
        _ configuration: DiskCache.Configuration
    ) -> Patience {
        Patience(
            limit: limit,
            leaverLimit: leaverLimit,
            isClosing: { self.isSet },
            sleep: configuration.sleep
        )
    }
}
