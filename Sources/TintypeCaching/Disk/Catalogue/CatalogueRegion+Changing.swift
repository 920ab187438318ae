/// What only the holder of the folder's lock may do.
extension CatalogueRegion {
    /// Whether one more entry fits.
    var hasRoom: Bool {
        Int(clamping: self[.entryCount]) < CatalogueLayout.capacity(slotCount: self.slotCount)
    }

    /// The slot of `name`, if it has one.
    func slot(of name: EntryName) -> (slot: Int, record: CatalogueRecord)? {
        var slot = self.home(of: name)
        for _ in 0..<self.slotCount {
            let words = self.loadSlot(slot)
            if words.0 == 0 { return nil }
            if words.0 == name.high, CatalogueRecord.matches(name, words.1, words.2) {
                if let record = CatalogueRecord(words) { return (slot, record) }
                // Damaged: its size counts as what it says, until it is written anew.
                let size = CatalogueRecord(name: name, byteCount: 0, usedAt: 0, storedAt: 0, expiresAt: .infinity)
                self.storeSlot(slot, size)
                self.flags.insert(.needsReading)
                return (slot, size)
            }
            slot = slot + 1 == self.slotCount ? 0 : slot + 1
        }
        return nil
    }

    /// Adds or changes an entry; there must be room for one more.
    ///
    /// - Returns: What was known under the name before.
    @discardableResult
    func put(_ record: CatalogueRecord) -> CatalogueRecord? {
        if let (slot, old) = self.slot(of: record.name) {
            self.storeSlot(slot, record)
            self.add(record.byteCount - old.byteCount, to: .byteCount)
            return old
        }
        self.insert(record)
        self.add(record.byteCount, to: .byteCount)
        self.add(1, to: .entryCount)
        return nil
    }

    /// Writes an entry that is not there into the first free slot.
    func insert(_ record: CatalogueRecord) {
        var slot = self.home(of: record.name)
        for _ in 0..<self.slotCount {
            if self.loadSlot(slot, word: 0) == 0 { return self.storeSlot(slot, record) }
            slot = slot + 1 == self.slotCount ? 0 : slot + 1
        }
    }

    /// Removes an entry.
    ///
    /// - Returns: What was known of it.
    @discardableResult
    func remove(_ name: EntryName) -> CatalogueRecord? {
        guard let (slot, old) = self.slot(of: name) else { return nil }
        self[.sequence] += 1
        self.closeGap(at: slot)
        self[.sequence] += 1
        self.add(-old.byteCount, to: .byteCount)
        self.add(-1, to: .entryCount)
        return old
    }

    /// Adds to one of the totals, which never falls below zero.
    func add(_ amount: Int, to word: CatalogueLayout.Word) {
        self[word] = UInt64(max(0, Int(clamping: self[word]).addingClamped(amount)))
    }

    /// Changes what an owner has reserved.
    func reserve(_ amount: Int, for owner: Int) {
        self[owner: owner] = UInt64(max(0, Int(clamping: self[owner: owner]).addingClamped(amount)))
        self.add(amount, to: .reservedByteCount)
    }

    /// The bytes that the folder takes: entries, files that are written or wait to be deleted, and
    /// the catalogue with its lock.
    var usedByteCount: Int {
        let bytes = [CatalogueLayout.Word.byteCount, .reservedByteCount, .discardedByteCount].reduce(0) {
            $0.addingClamped(Int(clamping: self[$1]))
        }
        return bytes.addingClamped(self.ownByteCount)
    }

    /// The bytes of the catalogue's file and the lock's.
    var ownByteCount: Int { self.isShared ? self.byteCount + FolderLock.byteCount : 0 }

    /// Counts the entries and their bytes anew; says how many slots are damaged.
    func countEntries() -> Int {
        var (count, bytes) = (0, 0)
        let damaged = self.forEachRecord { record in
            count += 1
            bytes = bytes.addingClamped(record.byteCount)
        }
        self[.entryCount] = UInt64(count + damaged)
        self[.byteCount] = UInt64(bytes)
        return damaged
    }

    /// Works the totals out anew, after a process was ended while changing them.
    func recountTotals() {
        _ = self.countEntries()
        // Nobody could give back what those without a number of their own had reserved.
        self[owner: 0] = 0
        let reserved = (1..<CatalogueLayout.ownerCount).map { self[owner: $0] }
        self[.reservedByteCount] = UInt64(reserved.reduce(0) { $0.addingClamped(Int(clamping: $1)) })
        self.flags.insert(.needsReading)
    }

    /// Copies what is still to be known into a new catalogue, in the order of the names.
    func copyEntries(to other: CatalogueRegion) {
        var seen = Set<EntryName>()
        let isCertain = self[.sequence].isMultiple(of: 2)
        var (count, bytes) = (0, 0)
        let damaged = self.forEachRecord { record in
            // Whoever was ended while closing a gap has left an entry in two slots.
            if !isCertain, !seen.insert(record.name).inserted { return }
            other.insert(record)
            count += 1
            bytes = bytes.addingClamped(record.byteCount)
        }
        other[.entryCount] = UInt64(count)
        other[.byteCount] = UInt64(bytes)
        self.copyHeader(to: other)
        if damaged > 0 { other.flags.insert(.needsReading) }
    }

    /// Copies what is not about entries into a new catalogue.
    func copyHeader(to other: CatalogueRegion) {
        for owner in 0..<CatalogueLayout.ownerCount { other[owner: owner] = self[owner: owner] }
        for word in [CatalogueLayout.Word.reservedByteCount, .discardedByteCount, .intentHigh, .intentLow] {
            other[word] = self[word]
        }
        other.flags = self.flags.subtracting(.isSuperseded)
    }

    /// Moves the entries after an empty place to where a search for them, which ends at the first
    /// empty slot, still comes by.
    private func closeGap(at start: Int) {
        var gap = start
        var slot = start
        for _ in 0..<self.slotCount {
            slot = slot + 1 == self.slotCount ? 0 : slot + 1
            let words = self.loadSlot(slot)
            guard words.0 != 0 else { break }
            let home = self.home(of: EntryName(high: words.0, low: 0))
            let distance = slot >= home ? slot - home : slot + self.slotCount - home
            let shift = slot >= gap ? slot - gap : slot + self.slotCount - gap
            guard distance >= shift else { continue }
            self.storeSlot(gap, word: 3, words.3)
            self.storeSlot(gap, word: 2, words.2)
            self.storeSlot(gap, word: 1, words.1)
            self.storeSlot(gap, word: 0, words.0)
            gap = slot
        }
        self.storeSlot(gap, word: 0, 0)
    }
}

extension Int {
    /// The sum, or the largest number where it would be larger: counts from a file may be anything.
    func addingClamped(_ other: Int) -> Int {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
