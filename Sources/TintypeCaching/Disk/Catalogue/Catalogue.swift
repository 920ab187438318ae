import CTintypeShims
import Glibc

/// The catalogue of a folder while its lock is held.
struct Catalogue {
    var region: CatalogueRegion
    let folder: CacheFolder

    // MARK: Entries

    func record(of name: EntryName) -> CatalogueRecord? {
        self.region.slot(of: name)?.record
    }

    /// Adds or changes an entry, and makes the table larger where it must be.
    mutating func put(_ record: CatalogueRecord) throws(SystemCallError) {
        if !self.region.hasRoom, self.region.slot(of: record.name) == nil { try self.grow() }
        self.region.put(record)
    }

    /// Makes the table half as large again.
    mutating func grow() throws(SystemCallError) {
        try self.replace(slotCount: CatalogueLayout.grown(self.region.slotCount), isKeeping: true)
    }

    /// The bytes that a larger table takes in the folder while the old one is there as well.
    var growthByteCount: Int {
        guard self.region.isShared else { return 0 }
        return CatalogueLayout.byteCount(slotCount: CatalogueLayout.grown(self.region.slotCount))
    }

    @discardableResult
    func remove(_ name: EntryName) -> CatalogueRecord? {
        self.region.remove(name)
    }

    /// Reserves room, or gives it back.
    func reserve(_ byteCount: Int) {
        self.region.reserve(byteCount, for: self.folder.owner)
    }

    /// Forgets all entries.
    mutating func removeAll() throws(SystemCallError) {
        try self.replace(slotCount: CatalogueLayout.smallestSlotCount, isKeeping: false)
    }

    // MARK: Files

    /// Moves a file to the place of an entry, which the catalogue must know before.
    ///
    /// If this process is ended in between, the next process that has the lock looks what is there.
    mutating func moveIntoPlace(_ source: String, _ record: CatalogueRecord) throws(SystemCallError) {
        let old = self.record(of: record.name)
        self.region[.intentLow] = UInt64(record.name.low)
        self.region[.intentHigh] = record.name.high
        defer { self.region[.intentHigh] = 0 }
        do {
            try self.put(record)
            try self.rename(source, to: record.name, isKnown: old != nil)
        } catch {
            if let old { self.region.put(old) } else { self.region.remove(record.name) }
            throw error
        }
    }

    /// Removes the file of an entry, then the entry.
    ///
    /// What is no file is not the cache's, and stays.
    ///
    /// - Returns: Whether there was a file.
    @discardableResult
    func unlink(_ name: EntryName) throws(SystemCallError) -> Bool {
        let isFile = name.withPath { OwnFiles.isRegular($0, in: self.folder.descriptor) }
        let isRemoved = isFile && name.withPath { unlinkat(self.folder.descriptor, $0, 0) == 0 }
        if isFile, !isRemoved, errno != ENOENT, errno != ENOTDIR { throw SystemCallError.last("unlink") }
        self.region.remove(name)
        return isRemoved
    }

    /// Removes a file that is no entry, or no longer a good one, if it ever was one: the catalogue knows it, or its
    /// first bytes tell.
    func unlinkOwn(_ name: EntryName) throws(SystemCallError) -> Bool {
        let folder = self.folder.descriptor
        guard self.record(of: name) != nil || name.withPath({ OwnFiles.hasTraceOfEntry($0, in: folder) }) else {
            return false
        }
        return try self.unlink(name)
    }

    private func rename(_ source: String, to name: EntryName, isKnown: Bool) throws(SystemCallError) {
        if self.move(source, to: name, isKnown: isKnown) { return }
        guard errno == ENOENT else { throw SystemCallError.last("rename") }
        try self.folder.makeSubfolder(CacheFolder.entriesName)
        try self.folder.makeSubfolder(String(name.path.dropLast(EntryName.digitCount - 1)))
        guard self.move(source, to: name, isKnown: isKnown) else { throw SystemCallError.last("rename") }
    }

    /// Renames over an older entry, or where there is none; over nothing else (`EEXIST`).
    private func move(_ source: String, to name: EntryName, isKnown: Bool) -> Bool {
        let folder = self.folder.descriptor
        if !isKnown {
            if name.withPath({ cshims_rename_exclusively(folder, source, folder, $0) }) == 0 { return true }
            guard [EEXIST, EINVAL, ENOSYS].contains(errno) else { return false }
        }
        switch name.withPath({ OwnFiles.kind(of: $0, in: folder) }) {
        case .regular, .missing:
            return name.withPath { renameat(folder, source, folder, $0) } == 0
        case .folder, .other:
            errno = EEXIST
            return false
        }
    }

    // MARK: Repair

    /// Makes the table anew, without the slots that are damaged.
    mutating func dropDamaged() throws(SystemCallError) {
        try self.replace(slotCount: self.region.slotCount, isKeeping: true)
    }

    /// Repairs what a process left half done that was ended while it had the lock.
    mutating func repair() throws(SystemCallError) {
        if self.region[.sequence].isMultiple(of: 2) {
            self.region.recountTotals()
        } else {
            self.region.flags.insert(.needsReading)
            try self.replace(slotCount: self.region.slotCount, isKeeping: true)
        }
    }

    /// Looks what became of an entry that a process was moving into place when it was ended.
    mutating func settleIntent() {
        let high = self.region[.intentHigh]
        guard high != 0 else { return }
        let name = EntryName(high: high, low: UInt32(truncatingIfNeeded: self.region[.intentLow]))
        self.settle(name)
        self.region[.intentHigh] = 0
    }

    /// Brings what is known of an entry in line with its file.
    func settle(_ name: EntryName) {
        guard var record = self.record(of: name) else { return }
        var status = stat()
        let isThere = name.withPath { fstatat(self.folder.descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) == 0 }
        if isThere {
            guard record.byteCount != Int(status.st_size) else { return }
            record.byteCount = Int(status.st_size)
            self.region.put(record)
        } else if errno == ENOENT || errno == ENOTDIR {
            self.region.remove(name)
        }
    }

    /// Puts a new catalogue in the place of this one.
    private mutating func replace(slotCount: Int, isKeeping: Bool) throws(SystemCallError) {
        guard slotCount <= CatalogueLayout.largestSlotCount else { throw SystemCallError(call: "mmap", number: ENOSPC) }
        let old = self.region
        let made = try self.folder.makeRegion(slotCount: slotCount, isShared: old.isShared)
        let new = made.region
        if isKeeping { old.copyEntries(to: new) } else { old.copyHeader(to: new) }
        if isKeeping, !old.isWhole { new.flags.insert(.needsReading) }
        new.sealTotals()
        if old.isShared {
            // Before the new one has the place: if this process is ended in between, the next process that has the lock finds
            // that nothing has taken it. The other way round, others would go on with a catalogue that no one opens.
            old.flags.insert(.isSuperseded)
            do throws(SystemCallError) {
                try made.moveIntoPlace(in: self.folder.descriptor)
            } catch {
                old.flags.remove(.isSuperseded)
                throw error
            }
        }
        self.region = new
    }
}
