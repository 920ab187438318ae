import Glibc

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
        /// The checksum of the six that count, while no process changes them.
        case totalsChecksum
        /// The name of the entry whose file is being moved into place, or 0.
        case intentHigh
        case intentLow
        /// A number that a catalogue has from its making on, and hands on to the one that takes its place.
        case lineage
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

/// The small hash that guards the catalogue's words against accidents.
enum CatalogueChecksum {
    /// Mixes another word into a hash (the finaliser of SplitMix64).
    static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        var value = hash &+ 0x9E37_79B9_7F4A_7C15 ^ word
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    /// Hashes words in their order.
    static func of(_ words: UInt64...) -> UInt64 {
        words.reduce(0x5449_4E54_5950_4531) { self.mix($0, $1) }
    }
}

/// Which start of the system this is: after another one, memory that was mapped may have been lost.
struct BootIdentity: Sendable, Hashable {
    let high: UInt64
    let low: UInt64

    /// This system's; zeros where the kernel does not say, which counts as always the same.
    static let current: BootIdentity = {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return BootIdentity(high: 0, low: 0) }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &text, text.count)
        var digits: [UInt64] = []
        for character in text.prefix(max(0, count)) {
            if let value = KeyDigest.value(of: character) { digits.append(UInt64(value)) }
        }
        guard digits.count == 32 else { return BootIdentity(high: 0, low: 0) }
        return BootIdentity(
            high: digits[..<16].reduce(0) { $0 << 4 | $1 },
            low: digits[16...].reduce(0) { $0 << 4 | $1 }
        )
    }()
}
