// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto

/// The name of an entry in the folder and the catalogue.
///
/// The first 48 bits are bits 0 to 47 of the SHA-256 of the entry's key. The last 48 bits are bits 48 to 95 of the
/// SHA-256 of its family's root key, which is usually the same key. So all entries of a family share the latter half,
/// by which a search finds them. The catalogue hashes by the former half, so that the many thumbnails of an image do
/// not crowd together.
///
/// An entry file contains its whole key, so two keys with the same name are harmless: the later one replaces the other.
struct EntryName: Sendable, Hashable {
    /// The number of hexadecimal digits in a name.
    static let digitCount = 24

    /// The first 64 bits; never 0, which marks an empty slot.
    let high: UInt64
    /// The last 32 bits.
    let low: UInt32

    init(high: UInt64, low: UInt32) {
        self.high = max(1, high)
        self.low = low
    }

    init(_ key: CacheKey) {
        self = key.entryName
    }

    init(_ digest: KeyDigest, root: KeyDigest) {
        self.init(
            high: digest.high & ~Self.familyMask | root.high & Self.familyMask,
            low: UInt32(truncatingIfNeeded: root.low >> 32)
        )
    }

    /// The bits of ``high`` that belong to the family's half.
    private static let familyMask: UInt64 = 0xFFFF

    /// Whether both entries have the same 48 family bits.
    func isOfFamily(of other: EntryName) -> Bool {
        self.low == other.low && (self.high ^ other.high) & Self.familyMask == 0
    }

    /// Parses the name of a file in the folder of `shard`, and fails if it is not the name of an entry.
    init?(shard: UInt8, fileName: UnsafeBufferPointer<UInt8>) {
        guard fileName.count == Self.digitCount - 2 else { return nil }
        var (high, low) = (UInt64(shard), UInt64(0))
        for position in 0..<fileName.count {
            guard let value = KeyDigest.value(of: fileName[position]) else { return nil }
            if position < 14 { high = high << 4 | UInt64(value) } else { low = low << 4 | UInt64(value) }
        }
        guard high != 0 else { return nil }
        self.init(high: high, low: UInt32(truncatingIfNeeded: low))
    }

    /// The first byte, which selects the shard folder.
    var shard: UInt8 { UInt8(truncatingIfNeeded: self.high >> 56) }

    /// The path of the entry's file, relative to the cache folder.
    var path: String { self.withPath { String(cString: $0) } }

    /// Calls `body` with the path of the entry's file, relative to the cache folder.
    func withPath<Result: ~Copyable, Failure: Error>(
        _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.pathByteCount) {
            text throws(Failure) -> Result in
            // The buffer is not empty, so it has an address.
            let start = text.baseAddress.unsafelyUnwrapped
            UnsafeMutableRawPointer(start).storeBytes(of: Self.prefix.littleEndian, as: UInt64.self)
            start[8] = self.digit(0)
            start[9] = self.digit(1)
            start[10] = CChar(UInt8(ascii: "/"))
            for position in 2..<Self.digitCount { start[9 + position] = self.digit(position) }
            start[Self.pathByteCount - 1] = 0
            return try body(start)
        }
    }

    /// The text `entries/` as a little-endian number.
    private static let prefix: UInt64 = 0x2F73_6569_7274_6E65
    private static let pathByteCount = 34

    private func digit(_ position: Int) -> CChar {
        let value =
            position < 16
            ? self.high >> UInt64(60 - 4 * position) : UInt64(self.low) >> UInt64(28 - 4 * (position - 16))
        return CChar(KeyDigest.digit(of: UInt8(value & 15)))
    }
}

/// The SHA-256 of a key's text, from which file names are derived.
struct KeyDigest: Sendable, Hashable {
    /// The number of hexadecimal digits in a digest.
    private static let digitCount = 64

    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    /// Hashes the text of `key`.
    init(_ key: CacheKey) {
        self.init(text: key.text)
    }

    init(text: String) {
        var text = text
        self = text.withUTF8 { KeyDigest(of: UnsafeRawBufferPointer($0)) }
    }

    init(of bytes: UnsafeRawBufferPointer) {
        withUnsafeMutableBytes(of: &self.words) { output in
            let input = bytes.assumingMemoryBound(to: UInt8.self)
            _ = SHA256(input.baseAddress, input.count, output.bindMemory(to: UInt8.self).baseAddress)
        }
    }

    /// The digest as 64 lower-case hexadecimal digits.
    var fileName: String {
        String(unsafeUninitializedCapacity: Self.digitCount) { output in
            withUnsafeBytes(of: self.words) { bytes in
                for (position, byte) in bytes.enumerated() {
                    output[2 * position] = Self.digit(of: byte >> 4)
                    output[2 * position + 1] = Self.digit(of: byte & 15)
                }
            }
            return Self.digitCount
        }
    }

    /// The first 64 bits.
    var high: UInt64 { UInt64(bigEndian: self.words.0) }
    /// The second 64 bits.
    var low: UInt64 { UInt64(bigEndian: self.words.1) }

    static func == (left: KeyDigest, right: KeyDigest) -> Bool {
        left.words == right.words
    }

    func hash(into hasher: inout Hasher) {
        // Any part of a SHA-256 is as well distributed as the whole.
        hasher.combine(self.words.0)
    }

    static func digit(of value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
