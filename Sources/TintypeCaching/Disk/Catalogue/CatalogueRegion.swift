import CShims
import Glibc
import Synchronization

/// The words of a catalogue in memory: mapped from its file and shared with every process that uses
/// the folder, or this cache's own where that is not possible.
///
/// A file that is mapped may be made shorter by any process that may write it, and a write to it may find no room on the
/// disk. The mapping is guarded, so that this does not end the process: empty memory takes its place, which says of
/// itself that it knows nothing (``isWhole``).
///
/// Sendable although unchecked: the memory is reached through atomic words only, and stays until
/// the last reference goes away.
final class CatalogueRegion: @unchecked Sendable {
    /// Which file was mapped.
    struct Identity: Sendable, Hashable {
        let device: UInt
        let number: UInt

        init(_ status: stat) {
            self.device = UInt(status.st_dev)
            self.number = UInt(status.st_ino)
        }
    }

    let slotCount: Int
    /// The file that was mapped; `nil` for memory of this cache's own.
    let identity: Identity?
    /// Whether other processes see what is written here, and their writes are seen.
    let isShared: Bool

    private let base: UnsafeMutableRawPointer
    /// What the mapping is guarded as; `nil` for memory of this cache's own.
    private let guardNumber: CInt?
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    var byteCount: Int { CatalogueLayout.byteCount(slotCount: self.slotCount) }

    private init(_ base: UnsafeMutableRawPointer, slotCount: Int, identity: Identity?, guardNumber: CInt?) {
        self.base = base
        self.guardNumber = guardNumber
        // Mapped memory is bound to no type; a word has the layout of its atomic.
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

    // MARK: Making

    /// Makes an empty catalogue of this cache's own.
    static func makePrivate(slotCount: Int) throws(SystemCallError) -> CatalogueRegion {
        let byteCount = CatalogueLayout.byteCount(slotCount: slotCount)
        let base = try self.map(byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)
        let region = CatalogueRegion(base, slotCount: slotCount, identity: nil, guardNumber: nil)
        region.initialize()
        return region
    }

    /// Makes an empty catalogue in the new, empty file `descriptor`.
    ///
    /// Its blocks are taken at once: a write to mapped memory can't say that the disk is full.
    static func make(in descriptor: CInt, slotCount: Int) throws(SystemCallError) -> CatalogueRegion {
        let byteCount = CatalogueLayout.byteCount(slotCount: slotCount)
        let result = posix_fallocate(descriptor, 0, byteCount)
        guard result == 0 else { throw SystemCallError(call: "posix_fallocate", number: result) }
        let region = try self.share(descriptor, slotCount, try self.status(of: descriptor))
        region.initialize()
        return region
    }

    /// Maps the catalogue file `descriptor`; `nil` when it is none of this version and machine.
    ///
    /// Where it is not shared, it is read into memory of this cache's own instead.
    static func open(_ descriptor: CInt, isShared: Bool) throws(SystemCallError) -> CatalogueRegion? {
        let status = try self.status(of: descriptor)
        let byteCount = Int(status.st_size)
        let slotBytes = byteCount - CatalogueLayout.headerByteCount
        guard status.st_mode & S_IFMT == S_IFREG, slotBytes > 0, slotBytes % CatalogueLayout.slotByteCount == 0,
            slotBytes / CatalogueLayout.slotByteCount <= CatalogueLayout.largestSlotCount,
            // A hole in the file could not be filled on a full disk: `SIGBUS`.
            !isShared || Int(status.st_blocks) * 512 >= byteCount,
            // One of another name as well is the catalogue of two folders (`cp -al`).
            !isShared || status.st_nlink == 1
        else { return nil }
        let slotCount = slotBytes / CatalogueLayout.slotByteCount
        guard isShared else { return try self.copy(of: descriptor, slotCount: slotCount) }
        // Blocks that a copy shares (`cp --reflink`) would be written elsewhere, for which a full disk has no room.
        guard cshims_own_blocks(descriptor, byteCount) == 0 else { throw SystemCallError.last("fallocate") }
        let region = try self.share(descriptor, slotCount, status)
        return region.hasValidHeader ? region : nil
    }

    /// Maps a catalogue file, guarded.
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

    /// Reads a catalogue file that others may write, and this cache may not.
    ///
    /// Mapped, it would end this process (`SIGBUS`) as soon as somebody made the file shorter.
    private static func copy(of descriptor: CInt, slotCount: Int) throws(SystemCallError) -> CatalogueRegion? {
        let region = try self.makePrivate(slotCount: slotCount)
        // The header first: a large file of anything else is not read whole.
        guard try region.read(0..<CatalogueLayout.headerByteCount, of: descriptor), region.hasValidHeader,
            try region.read(CatalogueLayout.headerByteCount..<region.byteCount, of: descriptor)
        else { return nil }
        return region
    }

    /// Reads some bytes of a file to their place in memory; says whether it has them all.
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
        self.setBoot(boot)
        self.sealTotals()
    }

    /// Whether this still is the memory that was mapped, or made: not when the file was cut short or emptied meanwhile.
    var isWhole: Bool {
        if let guardNumber, cshims_is_mapping_lost(guardNumber) != 0 { return false }
        return self.hasValidHeader
    }

    private var hasValidHeader: Bool {
        self[.magic] == CatalogueLayout.magic && self[.version] == CatalogueLayout.version
            && self[.slotCount] == UInt64(self.slotCount) && self[.fixedChecksum] == self.fixedChecksum
    }

    /// The system that last used the catalogue.
    var boot: BootIdentity { BootIdentity(high: self[.bootHigh], low: self[.bootLow]) }

    func setBoot(_ boot: BootIdentity) {
        self[.bootHigh] = boot.high
        self[.bootLow] = boot.low
        self[.fixedChecksum] = self.fixedChecksum
    }

    private var fixedChecksum: UInt64 {
        CatalogueChecksum.of(self[.magic], self[.version], self[.slotCount], self[.bootHigh], self[.bootLow])
    }

    /// Whether nobody was ended, or interfered, while the totals were changed.
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

    /// The slot where the search for a name begins: rises with the name, so that the names of a shard
    /// lie together.
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

    /// Fills an empty slot, or changes one; the name comes last, so that a look-up finds all or nothing.
    func storeSlot(_ slot: Int, _ record: CatalogueRecord) {
        let words = record.words
        self.storeSlot(slot, word: 3, words.3)
        self.storeSlot(slot, word: 2, words.2)
        self.storeSlot(slot, word: 1, words.1)
        self.storeSlot(slot, word: 0, words.0)
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
}
