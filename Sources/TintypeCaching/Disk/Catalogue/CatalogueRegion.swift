// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import Synchronization

/// The words of a catalogue in memory, which is either mapped from a shared file or private to this cache.
///
/// Another process may truncate a mapped file, and a write to it may find no room on the disk. A guard on the mapping
/// prevents that this ends the process. It maps empty memory instead, which ``isWhole`` recognises as invalid.
///
/// `Sendable` is safe although unchecked. All access to the memory is through atomic words, and the memory is valid
/// until the last reference is released.
final class CatalogueRegion: @unchecked Sendable {
    /// The identity of a file.
    struct Identity: Sendable, Hashable {
        let device: UInt
        let number: UInt

        init(_ status: stat) {
            self.device = UInt(status.st_dev)
            self.number = UInt(status.st_ino)
        }
    }

    let slotCount: Int
    /// The identity of the mapped file, or `nil` for private memory.
    let identity: Identity?
    /// Whether the memory is shared with other processes.
    let isShared: Bool

    private let base: UnsafeMutableRawPointer
    /// The number of the guard of the mapping, or `nil` for private memory.
    private let guardNumber: CInt?
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    var byteCount: Int { CatalogueLayout.byteCount(slotCount: self.slotCount) }

    private init(_ base: UnsafeMutableRawPointer, slotCount: Int, identity: Identity?, guardNumber: CInt?) {
        self.base = base
        self.guardNumber = guardNumber
        // Mapped memory has no bound type; an atomic word has the layout of a word.
        let byteCount = CatalogueLayout.byteCount(slotCount: slotCount)
        self.words = base.bindMemory(to: Atomic<UInt64>.self, capacity: byteCount / 8)
        self.slotCount = slotCount
        self.identity = identity
        self.isShared = guardNumber != nil
    }

    deinit {
        if let guardNumber { cshims_release_mapping(guardNumber) }
        munmap(self.base, self.byteCount)
    }

    // MARK: Creation

    /// Creates an empty, private catalogue.
    static func makePrivate(slotCount: Int) throws(SystemCallError) -> CatalogueRegion {
        let byteCount = CatalogueLayout.byteCount(slotCount: slotCount)
        let base = try self.map(byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)
        let region = CatalogueRegion(base, slotCount: slotCount, identity: nil, guardNumber: nil)
        region.initialize()
        return region
    }

    /// Creates an empty catalogue in the new, empty file `descriptor`.
    ///
    /// Allocates its blocks at once, because a write to mapped memory cannot report a full disk.
    static func make(in descriptor: CInt, slotCount: Int) throws(SystemCallError) -> CatalogueRegion {
        let byteCount = CatalogueLayout.byteCount(slotCount: slotCount)
        let result = posix_fallocate(descriptor, 0, byteCount)
        guard result == 0 else { throw SystemCallError(call: "posix_fallocate", number: result) }
        let region = try self.share(descriptor, slotCount, try self.status(of: descriptor))
        region.initialize()
        return region
    }

    /// Maps the catalogue file `descriptor`, or returns `nil` if it is not one of this version and machine.
    ///
    /// If `isShared` is false, it copies the file into private memory.
    static func open(_ descriptor: CInt, isShared: Bool) throws(SystemCallError) -> CatalogueRegion? {
        let status = try self.status(of: descriptor)
        let byteCount = Int(status.st_size)
        let slotBytes = byteCount - CatalogueLayout.headerByteCount
        guard status.st_mode & S_IFMT == S_IFREG, slotBytes > 0, slotBytes % CatalogueLayout.slotByteCount == 0,
            slotBytes / CatalogueLayout.slotByteCount <= CatalogueLayout.largestSlotCount,
            // A hole in the file could not be filled on a full disk, which raises `SIGBUS`.
            !isShared || Int(status.st_blocks) * 512 >= byteCount,
            // A file with two names is the catalogue of two folders (`cp -al`).
            !isShared || status.st_nlink == 1
        else { return nil }
        let slotCount = slotBytes / CatalogueLayout.slotByteCount
        guard isShared else { return try self.copy(of: descriptor, slotCount: slotCount) }
        // A write to blocks shared with a copy (`cp --reflink`) needs new blocks, which a full disk does not have.
        guard cshims_own_blocks(descriptor, byteCount) == 0 else { throw SystemCallError.last("fallocate") }
        let region = try self.share(descriptor, slotCount, status)
        return region.hasValidHeader ? region : nil
    }

    /// Maps a catalogue file with a guard.
    private static func share(
        _ descriptor: CInt,
        _ slotCount: Int,
        _ status: stat
    ) throws(SystemCallError) -> CatalogueRegion {
        let byteCount = CatalogueLayout.byteCount(slotCount: slotCount)
        let base = try self.map(byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor)
        let number = cshims_guard_mapping(base, byteCount)
        guard number >= 0 else {
            let error = SystemCallError.last("sigaction")
            munmap(base, byteCount)
            throw error
        }
        return CatalogueRegion(base, slotCount: slotCount, identity: Identity(status), guardNumber: number)
    }

    /// Copies a catalogue file that other processes may write but this cache may not.
    ///
    /// If it were mapped, a truncation by another process would end this process (`SIGBUS`).
    private static func copy(of descriptor: CInt, slotCount: Int) throws(SystemCallError) -> CatalogueRegion? {
        let region = try self.makePrivate(slotCount: slotCount)
        // Read the header first, so that a large file of another kind is not read whole.
        guard try region.read(0..<CatalogueLayout.headerByteCount, of: descriptor), region.hasValidHeader,
            try region.read(CatalogueLayout.headerByteCount..<region.byteCount, of: descriptor)
        else { return nil }
        return region
    }

    /// Reads a range of bytes of a file to its place in memory, and returns whether the file has them all.
    private func read(_ range: Range<Int>, of descriptor: CInt) throws(SystemCallError) -> Bool {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = pread(descriptor, self.base + offset, range.upperBound - offset, offset)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemCallError.last("read") }
            guard count > 0 else { return false }
            offset += count
        }
        return true
    }

    private static func map(
        _ byteCount: Int,
        _ protection: CInt,
        _ flags: CInt,
        _ descriptor: CInt
    ) throws(SystemCallError) -> UnsafeMutableRawPointer {
        guard let base = mmap(nil, byteCount, protection, flags, descriptor, 0), base != MAP_FAILED else {
            throw SystemCallError.last("mmap")
        }
        return base
    }

    private static func status(of descriptor: CInt) throws(SystemCallError) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemCallError.last("fstat") }
        return status
    }

    // MARK: Header

    private func initialize() {
        let boot = BootIdentity.current
        self[.magic] = CatalogueLayout.magic
        self[.version] = CatalogueLayout.version
        self[.slotCount] = UInt64(self.slotCount)
        self[.lineage] = UInt64.random(in: 1 ... .max)
        self.setBoot(boot)
        self.sealTotals()
    }

    /// Whether the memory is still valid; `false` if another process truncated or emptied the file.
    var isWhole: Bool {
        if let guardNumber, cshims_is_mapping_lost(guardNumber) != 0 { return false }
        return self.hasValidHeader
    }

    private var hasValidHeader: Bool {
        self[.magic] == CatalogueLayout.magic && self[.version] == CatalogueLayout.version
            && self[.slotCount] == UInt64(self.slotCount) && self[.fixedChecksum] == self.fixedChecksum
    }

    /// The identity of the system start that last used the catalogue.
    var boot: BootIdentity { BootIdentity(high: self[.bootHigh], low: self[.bootLow]) }

    func setBoot(_ boot: BootIdentity) {
        self[.bootHigh] = boot.high
        self[.bootLow] = boot.low
        self[.fixedChecksum] = self.fixedChecksum
    }

    private var fixedChecksum: UInt64 {
        CatalogueChecksum.of(self[.magic], self[.version], self[.slotCount], self[.bootHigh], self[.bootLow])
    }

    /// Whether the totals are consistent, because no process ended while it changed them.
    var hasValidTotals: Bool {
        self[.sequence].isMultiple(of: 2) && self[.totalsChecksum] == self.totalsChecksum
    }

    func sealTotals() {
        self[.totalsChecksum] = self.totalsChecksum
    }

    private var totalsChecksum: UInt64 {
        CatalogueChecksum.of(
            self[.sequence],
            self[.entryCount],
            self[.byteCount],
            self[.reservedByteCount],
            self[.discardedByteCount],
            self[.flags]
        )
    }

    var flags: CatalogueLayout.Flags {
        get { CatalogueLayout.Flags(rawValue: self[.flags]) }
        set { self[.flags] = newValue.rawValue }
    }

    // MARK: Words

    subscript(word: CatalogueLayout.Word) -> UInt64 {
        get { self.words[word.rawValue].load(ordering: .acquiring) }
        set { self.words[word.rawValue].store(newValue, ordering: .releasing) }
    }

    /// The bytes that an owner has reserved.
    subscript(owner owner: Int) -> UInt64 {
        get { self.words[CatalogueLayout.firstOwnerWord + owner].load(ordering: .acquiring) }
        set { self.words[CatalogueLayout.firstOwnerWord + owner].store(newValue, ordering: .releasing) }
    }

    // MARK: Slots

    /// Returns the slot at which the search for a name begins.
    ///
    /// It increases with the name, so that the names of a shard are adjacent.
    func home(of name: EntryName) -> Int {
        Int(name.high.multipliedFullWidth(by: UInt64(self.slotCount)).high)
    }

    func loadSlot(_ slot: Int, word: Int) -> UInt64 {
        self.words[self.position(slot, word)].load(ordering: .acquiring)
    }

    func storeSlot(_ slot: Int, word: Int, _ value: UInt64) {
        self.words[self.position(slot, word)].store(value, ordering: .releasing)
    }

    func loadSlot(_ slot: Int) -> (UInt64, UInt64, UInt64, UInt64) {
        (
            self.loadSlot(slot, word: 0), self.loadSlot(slot, word: 1), self.loadSlot(slot, word: 2),
            self.loadSlot(slot, word: 3)
        )
    }

    /// Stores the words of a slot, the name last, so that a look-up finds all of them or no entry.
    func storeSlot(_ slot: Int, _ words: (UInt64, UInt64, UInt64, UInt64)) {
        self.storeSlot(slot, word: 3, words.3)
        self.storeSlot(slot, word: 2, words.2)
        self.storeSlot(slot, word: 1, words.1)
        self.storeSlot(slot, word: 0, words.0)
    }

    func storeSlot(_ slot: Int, _ record: CatalogueRecord) {
        self.storeSlot(slot, record.words)
    }

    /// Records a use, unless the slot has changed meanwhile.
    func touch(_ slot: Int, from word: UInt64, usedAt ticks: UInt64) {
        let wanted = CatalogueRecord.second(word, usedAt: ticks)
        guard wanted != word else { return }
        _ = self.words[self.position(slot, 1)].compareExchange(expected: word, desired: wanted, ordering: .relaxed)
    }

    private func position(_ slot: Int, _ word: Int) -> Int {
        CatalogueLayout.headerWordCount + slot * CatalogueLayout.wordsPerSlot + word
    }

    /// The result of a look-up without a lock.
    enum Finding {
        /// The record, its slot, and the second word of the slot at that time.
        case found(CatalogueRecord, slot: Int, word: UInt64)
        /// There is no entry.
        case absent
        /// Slots were being moved, or one is damaged, so only the folder can answer.
        case unknown
    }

    /// Looks `name` up from any thread, without a lock.
    func find(_ name: EntryName) -> Finding {
        let sequence = self[.sequence]
        var slot = self.home(of: name)
        for _ in 0..<self.slotCount {
            let first = self.loadSlot(slot, word: 0)
            if first == 0 {
                // A process that moves slots makes the sequence odd before, and increments it after.
                return sequence.isMultiple(of: 2) && self[.sequence] == sequence ? .absent : .unknown
            }
            if first == name.high {
                let (second, third) = (self.loadSlot(slot, word: 1), self.loadSlot(slot, word: 2))
                if CatalogueRecord.matches(name, second, third) {
                    // The slot was being changed, or is damaged.
                    guard let record = CatalogueRecord((first, second, third, self.loadSlot(slot, word: 3))) else {
                        return .unknown
                    }
                    return .found(record, slot: slot, word: second)
                }
            }
            slot = slot + 1 == self.slotCount ? 0 : slot + 1
        }
        return .unknown
    }

    /// Calls `body` with every record, from any thread, without a lock.
    ///
    /// It may pass a record that is moved meanwhile twice or not at all.
    ///
    /// - Returns: The number of slots that are damaged or were being changed.
    func forEachRecord(in slots: Range<Int>? = nil, _ body: (CatalogueRecord) -> Void) -> Int {
        var damaged = 0
        for slot in slots ?? 0..<self.slotCount {
            let words = self.loadSlot(slot)
            guard words.0 != 0 else { continue }
            if let record = CatalogueRecord(words) { body(record) } else { damaged += 1 }
        }
        return damaged
    }

    /// Whether there is a record that a search does not find.
    ///
    /// A damaged bit in its name can cause this, if its check is right by chance. Moves during the search can cause it
    /// as well.
    var hasMisplacedRecords: Bool {
        (0..<self.slotCount).contains { slot in
            guard let record = CatalogueRecord(self.loadSlot(slot)) else { return false }
            guard case .found(_, let place, _) = self.find(record.name) else { return true }
            return place != slot
        }
    }

    // MARK: Changes, which require the folder's lock

    /// Whether there is room for one more entry.
    var hasRoom: Bool {
        Int(clamping: self[.entryCount]) < CatalogueLayout.capacity(slotCount: self.slotCount)
    }

    /// Returns the slot of `name`, if it has one.
    func slot(of name: EntryName) -> (slot: Int, record: CatalogueRecord)? {
        var slot = self.home(of: name)
        for _ in 0..<self.slotCount {
            let words = self.loadSlot(slot)
            if words.0 == 0 { return nil }
            if words.0 == name.high, CatalogueRecord.matches(name, words.1, words.2) {
                if let record = CatalogueRecord(words) { return (slot, record) }
                // The slot is damaged. Replace it with a record of size 0, and have the totals corrected. The check does
                // not cover the last use, without which the next look-up would take the entry for an expired one.
                let usedAt = CatalogueRecord.seconds(ofSecond: words.1)
                let record = CatalogueRecord(
                    name: name,
                    byteCount: 0,
                    usedAt: usedAt,
                    storedAt: usedAt,
                    expiresAt: .infinity
                )
                self.storeSlot(slot, record)
                self.flags.insert(.needsReading)
                return (slot, record)
            }
            slot = slot + 1 == self.slotCount ? 0 : slot + 1
        }
        return nil
    }

    /// Adds or changes an entry; there must be room for one more.
    ///
    /// - Returns: The previous record of the name.
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

    /// Writes a new entry into the first free slot.
    func insert(_ record: CatalogueRecord) {
        var slot = self.home(of: record.name)
        for _ in 0..<self.slotCount {
            if self.loadSlot(slot, word: 0) == 0 { return self.storeSlot(slot, record) }
            slot = slot + 1 == self.slotCount ? 0 : slot + 1
        }
    }

    /// Removes an entry.
    ///
    /// - Returns: Its record.
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

    /// Adds to one of the totals, which never becomes negative.
    func add(_ amount: Int, to word: CatalogueLayout.Word) {
        self[word] = UInt64(max(0, Int(clamping: self[word]).addingClamped(amount)))
    }

    /// Changes the bytes that an owner has reserved.
    func reserve(_ amount: Int, for owner: Int) {
        self[owner: owner] = UInt64(max(0, Int(clamping: self[owner: owner]).addingClamped(amount)))
        self.add(amount, to: .reservedByteCount)
    }

    /// The bytes of the folder: entries, files that are being written or wait for deletion, the catalogue and its lock.
    var usedByteCount: Int {
        let bytes = [CatalogueLayout.Word.byteCount, .reservedByteCount, .discardedByteCount].reduce(0) {
            $0.addingClamped(Int(clamping: self[$1]))
        }
        return bytes.addingClamped(self.ownByteCount)
    }

    /// The bytes of the files of the catalogue and the lock.
    var ownByteCount: Int { self.isShared ? self.byteCount + FolderLock.byteCount : 0 }

    /// Counts the entries and their bytes again, and returns the number of damaged slots.
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

    /// Recomputes the totals, after a process ended while it changed them.
    func recountTotals() {
        _ = self.countEntries()
        // Processes without a number can no longer release their reservations.
        self[owner: 0] = 0
        let reserved = (1..<CatalogueLayout.ownerCount).map { self[owner: $0] }
        self[.reservedByteCount] = UInt64(reserved.reduce(0) { $0.addingClamped(Int(clamping: $1)) })
        self.flags.insert(.needsReading)
    }

    /// Copies entries and header into a new catalogue, in the order of the names.
    func copyEntries(to other: CatalogueRegion) {
        var seen = Set<EntryName>()
        let isCertain = self[.sequence].isMultiple(of: 2)
        var (count, bytes) = (0, 0)
        let damaged = self.forEachRecord { record in
            // A process that ended while it closed a gap may have left an entry in two slots.
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

    /// Copies the header into a new catalogue, without counts of entries.
    func copyHeader(to other: CatalogueRegion) {
        for owner in 0..<CatalogueLayout.ownerCount { other[owner: owner] = self[owner: owner] }
        for word in [CatalogueLayout.Word.reservedByteCount, .discardedByteCount, .intentHigh, .intentLow, .lineage] {
            other[word] = self[word]
        }
        other.flags = self.flags.subtracting(.isSuperseded)
    }

    /// Moves entries after a removed one forward.
    ///
    /// A search ends at the first empty slot, so no entry may have a gap before it.
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
            self.storeSlot(gap, words)
            gap = slot
        }
        self.storeSlot(gap, word: 0, 0)
    }
}

extension Int {
    /// Returns the sum, or the largest number on overflow, because counts in a file may have any value.
    func addingClamped(_ other: Int) -> Int {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
