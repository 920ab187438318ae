/// What the disk tier knows about its folder without looking: the size and last use of each
/// entry, their order and their sum.
///
/// It is a picture of the folder, not the truth: other processes may add and remove files. A file
/// that is missing is found out when it is used, one that was added when the folder is read again.
struct DiskIndex: Sendable {
    struct Record: Sendable {
        let digest: KeyDigest
        var byteCount: Int
        /// Seconds since 1970.
        var usedAt: Double
        /// Tells two uses of one entry apart; higher is later.
        var serial = 0
    }

    /// What a store must do before it may write.
    enum Reservation {
        case granted
        case evict(Record)
    }

    private var positions: [KeyDigest: Int] = [:]
    private var slots: [Record?] = []
    private var freeSlots: [Int] = []
    private var order = RecencyList()
    /// Entries that were removed while the folder is read; its reader may have seen them before.
    private var removedWhileReading: Set<KeyDigest> = []
    private var isReading = false
    private var lastSerial = 0
    private var serialBeforeReading = 0
    private var bytesBeforeFirstReading = 0

    /// The sum of the entries.
    private(set) var byteCount = 0
    /// The bytes of entries that are being written.
    private(set) var reservedByteCount = 0
    /// Whether the folder was read at least once, so that the sum is right.
    private(set) var isComplete = false
    /// The figures that are not about single entries.
    var counters = DiskCounters()

    var count: Int { self.positions.count }

    /// The entry that was used longest ago.
    var oldest: Record? {
        guard let slot = self.order.oldest else { return nil }
        return self.slots[slot]
    }

    /// The digests of all entries, the one used longest ago first.
    var digests: [KeyDigest] {
        var digests: [KeyDigest] = []
        var next = self.order.oldest
        while let slot = next {
            if let record = self.slots[slot] { digests.append(record.digest) }
            next = self.order.newer(than: slot)
        }
        return digests
    }

    // MARK: Room

    /// Sets room for `bytes` aside, or names an entry that must go first.
    ///
    /// Spares `digest`, whose older value is about to be replaced, as long as there is any other.
    ///
    /// - Returns: `nil` when it can't be known yet: the caller waits for a notification.
    mutating func reserve(_ bytes: Int, limit: Int, sparing digest: KeyDigest) -> Reservation? {
        if !self.isComplete {
            // Until the sum is known, no more than the permitted 1 % may be added to it.
            let (sum, overflow) = self.bytesBeforeFirstReading.addingReportingOverflow(bytes)
            guard !overflow, sum <= limit / 100 else { return nil }
            self.bytesBeforeFirstReading = sum
        } else if self.byteCount + self.reservedByteCount > limit - bytes {
            if let victim = self.victim(sparing: digest) { return .evict(victim) }
            // Nothing is left but what other lanes are writing: they end without our help.
            guard self.reservedByteCount == 0 else { return nil }
        }
        self.reservedByteCount += bytes
        return .granted
    }

    /// Gives back room that was set aside for a store that failed.
    mutating func release(_ bytes: Int) {
        self.reservedByteCount -= bytes
    }

    /// The entry was written into the room that was set aside.
    mutating func commit(_ digest: KeyDigest, byteCount: Int, usedAt: Double) {
        self.reservedByteCount -= byteCount
        self.noteUse(digest, byteCount: byteCount, usedAt: usedAt)
    }

    private func victim(sparing digest: KeyDigest) -> Record? {
        guard let slot = self.order.oldest, let oldest = self.slots[slot] else { return nil }
        guard oldest.digest == digest, let next = self.order.newer(than: slot) else { return oldest }
        return self.slots[next] ?? oldest
    }

    // MARK: Entries

    /// The entry was stored, read or seen to be in use: it becomes the newest.
    mutating func noteUse(_ digest: KeyDigest, byteCount: Int, usedAt: Double) {
        self.lastSerial += 1
        let record = Record(digest: digest, byteCount: byteCount, usedAt: usedAt, serial: self.lastSerial)
        self.removedWhileReading.remove(digest)
        if let slot = self.positions[digest], let old = self.slots[slot] {
            self.byteCount += byteCount - old.byteCount
            self.slots[slot] = record
            self.order.moveToNewest(slot)
        } else {
            self.add(record)
        }
    }

    /// The entry was read.
    ///
    /// Returns `false` when the index does not know it.
    mutating func noteRead(_ digest: KeyDigest, usedAt: Double) -> Bool {
        guard let slot = self.positions[digest], let known = self.slots[slot] else { return false }
        self.noteUse(digest, byteCount: known.byteCount, usedAt: usedAt)
        return true
    }

    /// Whether the entry of `record` was neither used nor removed since the record was taken.
    func isCurrent(_ record: Record) -> Bool {
        guard let slot = self.positions[record.digest] else { return false }
        return self.slots[slot]?.serial == record.serial
    }

    /// The entry's file is gone.
    mutating func remove(_ digest: KeyDigest) {
        if self.isReading { self.removedWhileReading.insert(digest) }
        guard let slot = self.positions.removeValue(forKey: digest), let old = self.slots[slot] else { return }
        self.byteCount -= old.byteCount
        self.slots[slot] = nil
        self.freeSlots.append(slot)
        self.order.remove(slot)
    }

    private mutating func add(_ record: Record) {
        let slot = self.freeSlots.popLast() ?? self.slots.count
        if slot == self.slots.count { self.slots.append(record) } else { self.slots[slot] = record }
        self.positions[record.digest] = slot
        self.order.append(slot)
        self.byteCount += record.byteCount
    }

    // MARK: Reading the folder

    /// The folder is about to be read.
    mutating func beginReading() {
        self.isReading = true
        self.serialBeforeReading = self.lastSerial
        self.removedWhileReading = []
    }

    /// The folder was read: takes over what `found` says, except about entries that changed
    /// meanwhile.
    mutating func endReading(_ found: [Record]) {
        var records: [KeyDigest: Record] = [:]
        records.reserveCapacity(max(found.count, self.count))
        for record in found where !self.removedWhileReading.contains(record.digest) {
            records[record.digest] = record
        }
        for known in self.slots {
            guard let known else { continue }
            if known.serial > self.serialBeforeReading {
                records[known.digest] = known
            } else if let seen = records[known.digest], seen.usedAt < known.usedAt {
                // Not every use is written to the file.
                records[known.digest]?.usedAt = known.usedAt
            }
        }
        self.rebuild(from: records.values.sorted { $0.usedAt < $1.usedAt })
        self.abandonReading()
    }

    /// The folder could not be read to its end: what was known stays.
    mutating func abandonReading() {
        self.isReading = false
        self.isComplete = true
        self.removedWhileReading = []
    }

    private mutating func rebuild(from records: [Record]) {
        self.positions = [:]
        self.positions.reserveCapacity(records.count)
        self.slots = []
        self.slots.reserveCapacity(records.count)
        self.freeSlots = []
        self.order.removeAll()
        self.byteCount = 0
        for record in records { self.add(record) }
    }
}
