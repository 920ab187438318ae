/// Where things lie in a catalogue file.
///
/// A header of 64-bit words, then the slots of four words each. All words are of this machine's
/// byte order: a file of another is foreign, and is made anew from the entries.
enum CatalogueLayout {
    /// The words of the header, by their number.
    enum Word: Int {
        case magic
        case version
        case slotCount
        case bootHigh
        case bootLow
        /// The checksum of those above, which never change.
        case fixedChecksum
        /// Odd while slots are moved: a look-up that finds nothing then knows nothing.
        case sequence
        case entryCount
        case byteCount
        /// The bytes of files that are being written, or removed.
        case reservedByteCount
        /// The bytes of folders that were cleared and wait to be deleted.
        case discardedByteCount
        case flags
        /// The checksum of the six that count, when nobody changes them.
        case totalsChecksum
        /// The name of the entry whose file is being moved into place, or 0.
        case intentHigh
        case intentLow
    }

    /// What is written in ``Word/flags``.
    struct Flags: OptionSet {
        let rawValue: UInt64
        /// Every entry in the folder is in the catalogue.
        static let isComplete = Flags(rawValue: 1)
        /// The folder is to be compared with the catalogue.
        static let needsReading = Flags(rawValue: 2)
        /// Another file has taken this one's place.
        static let isSuperseded = Flags(rawValue: 4)
    }

    static let magic: UInt64 = 0x7461_6354_4E49_5489
    static let version: UInt64 = 1
    /// The first word of the bytes that each owner has reserved.
    static let firstOwnerWord = 16
    /// One more than the highest number of an owner; 0 is none.
    static let ownerCount = 96
    static let headerWordCount = 128
    static let headerByteCount = headerWordCount * 8
    static let wordsPerSlot = 4
    static let slotByteCount = wordsPerSlot * 8
    /// As many as fit in the first page.
    static let smallestSlotCount = (4_096 - headerByteCount) / slotByteCount
    /// No more than 8 GiB of slots.
    static let largestSlotCount = 1 << 28

    static func byteCount(slotCount: Int) -> Int {
        self.headerByteCount + slotCount * self.slotByteCount
    }

    /// How many slots may be in use before the table must grow.
    static func capacity(slotCount: Int) -> Int { slotCount / 5 * 4 }

    /// The slots of a table that has outgrown `slotCount`.
    static func grown(_ slotCount: Int) -> Int {
        // Whole pages; half as many again, so that a million entries take 50 MB and not 64.
        let pages = (self.byteCount(slotCount: slotCount + max(slotCount / 2, 128)) + 4_095) / 4_096
        return (pages * 4_096 - self.headerByteCount) / self.slotByteCount
    }
}
