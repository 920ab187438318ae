// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The layout of a catalogue file.
///
/// A header of 64-bit words is followed by slots of four words each. All words are in this machine's byte order. A file
/// with the other byte order is foreign, so the cache rebuilds it from the entries.
enum CatalogueLayout {
    /// The words of the header, by their index.
    enum Word: Int {
        case magic
        case version
        case slotCount
        case bootHigh
        case bootLow
        /// The checksum of the words above, which never change.
        case fixedChecksum
        /// An odd number while slots are being moved, during which a look-up cannot prove absence.
        case sequence
        case entryCount
        case byteCount
        /// The bytes of files that are being written or removed.
        case reservedByteCount
        /// The bytes of discarded folders that wait for deletion.
        case discardedByteCount
        case flags
        /// The checksum of the counters, which is valid while no process changes them.
        case totalsChecksum
        /// The name of the entry whose file is being moved into place, or 0.
        case intentHigh
        case intentLow
        /// A random number of a new catalogue, which a replacement inherits.
        case lineage
    }

    /// The flags in ``Word/flags``.
    struct Flags: OptionSet {
        let rawValue: UInt64
        /// The catalogue contains every entry in the folder.
        static let isComplete = Flags(rawValue: 1)
        /// The folder must be compared with the catalogue.
        static let needsReading = Flags(rawValue: 2)
        /// Another file has replaced this one.
        static let isSuperseded = Flags(rawValue: 4)
    }

    static let magic: UInt64 = 0x7461_6354_4E49_5489
    static let version: UInt64 = 1
    /// The index of the first word with the bytes that each owner has reserved.
    static let firstOwnerWord = 16
    /// The highest number of an owner plus one; 0 means no owner.
    static let ownerCount = 96
    static let headerWordCount = 128
    static let headerByteCount = headerWordCount * 8
    static let wordsPerSlot = 4
    static let slotByteCount = wordsPerSlot * 8
    /// The number of slots that fit into the first page.
    static let smallestSlotCount = (4_096 - headerByteCount) / slotByteCount
    /// The limit, which corresponds to 8 GiB.
    static let largestSlotCount = 1 << 28

    static func byteCount(slotCount: Int) -> Int {
        self.headerByteCount + slotCount * self.slotByteCount
    }

    /// Returns how many slots may be in use before the table must grow.
    static func capacity(slotCount: Int) -> Int { slotCount / 5 * 4 }

    /// Returns the number of slots after enlarging a table of `slotCount` slots.
    static func grown(_ slotCount: Int) -> Int {
        // Use whole pages, and grow by half, so that a million entries need 50 MB instead of 64 MB.
        let pages = (self.byteCount(slotCount: slotCount + max(slotCount / 2, 128)) + 4_095) / 4_096
        return (pages * 4_096 - self.headerByteCount) / self.slotByteCount
    }
}

/// A small hash that detects accidental changes of the catalogue's words.
enum CatalogueChecksum {
    /// Mixes another word into a hash, with the finaliser of SplitMix64.
    static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        var value = hash &+ 0x9E37_79B9_7F4A_7C15 ^ word
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    /// Returns the hash of words in their order.
    static func of(_ words: UInt64...) -> UInt64 {
        words.reduce(0x5449_4E54_5950_4531) { self.mix($0, $1) }
    }
}

/// The identity of a system start; memory that was mapped before another start may be lost.
struct BootIdentity: Sendable, Hashable {
    let high: UInt64
    let low: UInt64

    /// The identity of the current start; zeros if the kernel does not provide it, which counts as always the same.
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
