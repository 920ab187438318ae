// SPDX-License-Identifier: Apache-2.0

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

    /// Adds or changes an entry, and enlarges the table if necessary.
    mutating func put(_ record: CatalogueRecord) throws(SystemCallError) {
        if !self.region.hasRoom, self.region.slot(of: record.name) == nil { try self.grow() }
        self.region.put(record)
    }

    /// Enlarges the table by half.
    mutating func grow() throws(SystemCallError) {
        try self.replace(slotCount: CatalogueLayout.grown(self.region.slotCount), isKeeping: true)
    }

    /// The bytes of a larger table in the folder, which exists together with the old one for a moment.
    var growthByteCount: Int {
        guard self.region.isShared else { return 0 }
        return CatalogueLayout.byteCount(slotCount: CatalogueLayout.grown(self.region.slotCount))
    }

    @discardableResult
    func remove(_ name: EntryName) -> CatalogueRecord? {
        self.region.remove(name)
    }

    /// Reserves bytes, or releases them if the number is negative.
    func reserve(_ byteCount: Int) {
        self.region.reserve(byteCount, for: self.folder.owner)
    }

    /// Removes all entries.
    mutating func removeAll() throws(SystemCallError) {
        try self.replace(slotCount: CatalogueLayout.smallestSlotCount, isKeeping: false)
    }

    // MARK: Files

    /// Moves a file to the place of an entry, after recording it in the catalogue.
    ///
    /// If this process ends in between, the next process with the lock checks which file is there.
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

    /// Removes the file of an entry, then its record.
    ///
    /// An object that is not a regular file stays, because the cache did not create it.
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

    /// Removes an invalid or damaged file, but only if the catalogue or its first bytes show that it was an entry.
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

    /// Renames over an older entry or to a free name; fails with `EEXIST` if another object is there.
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

    /// Rebuilds the table without damaged slots.
    mutating func dropDamaged() throws(SystemCallError) {
        try self.replace(slotCount: self.region.slotCount, isKeeping: true)
    }

    /// Repairs an unfinished change of a process that ended while it held the lock.
    mutating func repair() throws(SystemCallError) {
        if self.region[.sequence].isMultiple(of: 2) {
            self.region.recountTotals()
        } else {
            self.region.flags.insert(.needsReading)
            try self.replace(slotCount: self.region.slotCount, isKeeping: true)
        }
    }

    /// Checks the entry that a killed process was moving into place.
    mutating func settleIntent() {
        let high = self.region[.intentHigh]
        guard high != 0 else { return }
        let name = EntryName(high: high, low: UInt32(truncatingIfNeeded: self.region[.intentLow]))
        self.settle(name)
        self.region[.intentHigh] = 0
    }

    /// Corrects the record of an entry from its file.
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

    /// Replaces this catalogue by a new one.
    private mutating func replace(slotCount: Int, isKeeping: Bool) throws(SystemCallError) {
        guard slotCount <= CatalogueLayout.largestSlotCount else { throw SystemCallError(call: "mmap", number: ENOSPC) }
        let old = self.region
        let made = try self.folder.makeRegion(slotCount: slotCount, isShared: old.isShared)
        let new = made.region
        if isKeeping { old.copyEntries(to: new) } else { old.copyHeader(to: new) }
        if isKeeping, !old.isWhole { new.flags.insert(.needsReading) }
        new.sealTotals()
        if old.isShared {
            // Set the flag before the new file is in place. If this process ends in between, the next process with the
            // lock finds that no file has replaced this one. In the opposite order, other processes would go on with a
            // catalogue that no longer has a name.
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
