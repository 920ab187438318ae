// SPDX-License-Identifier: Apache-2.0

/// The record of an entry in the catalogue, and its packed form in the four words of a slot.
///
///     word 0   bits 0..63 of the name; 0 means an empty slot
///     word 1   bits 64..79 of the name, last use (48 bits, in 1/65536 s since 1970)
///     word 2   bits 80..95 of the name, check (8 bits), bytes of the file (40 bits)
///     word 3   time of the store (32 bits, s), expiry (32 bits, s; 0 for never)
///
/// Any process may change the last use at any time, and the check does not cover it.
struct CatalogueRecord: Sendable, Hashable {
    /// The size of the largest file that a slot can represent: 1 TiB.
    static let largestByteCount = 1 << 40 - 1
    private static let useBits: UInt64 = 48
    private static let useMask: UInt64 = 1 << 48 - 1
    private static let sizeMask: UInt64 = 1 << 40 - 1

    let name: EntryName
    var byteCount: Int
    /// The last use in ticks; see ``ticks(_:)``.
    var usedAt: UInt64
    /// The time of the store in seconds since 1970.
    var storedAt: UInt32
    /// The expiry in seconds since 1970, rounded up; 0 for never.
    var deadline: UInt32

    init(name: EntryName, byteCount: Int, usedAt: Double, storedAt: Double, expiresAt: Double) {
        self.name = name
        self.byteCount = min(max(0, byteCount), Self.largestByteCount)
        self.usedAt = Self.ticks(usedAt)
        self.storedAt = UInt32(clamping: Self.whole(storedAt))
        self.deadline = expiresAt < Double(UInt32.max) ? UInt32(clamping: max(1, Self.whole(expiresAt) + 1)) : 0
    }

    /// Creates the record of an existing file from its header.
    init(_ name: EntryName, _ header: EntryHeader, _ status: OpenFile.Status, usedAt: Double) {
        self.init(
            name: name,
            byteCount: status.byteCount,
            usedAt: usedAt,
            storedAt: header.storedAt,
            expiresAt: header.expiresAt
        )
    }

    /// Unpacks a slot; `nil` if it is empty or damaged.
    init?(_ words: (UInt64, UInt64, UInt64, UInt64)) {
        guard words.0 != 0 else { return nil }
        let low = (words.1 >> Self.useBits) << 16 | words.2 >> 48
        self.name = EntryName(high: words.0, low: UInt32(low))
        self.usedAt = words.1 & Self.useMask
        self.byteCount = Int(words.2 & Self.sizeMask)
        self.storedAt = UInt32(words.3 >> 32)
        self.deadline = UInt32(truncatingIfNeeded: words.3)
        guard self.check == UInt8(truncatingIfNeeded: words.2 >> 40) else { return nil }
    }

    /// The four words of the slot.
    var words: (UInt64, UInt64, UInt64, UInt64) {
        (
            self.name.high,
            Self.firstLow(self.name) << Self.useBits | self.usedAt,
            UInt64(self.name.low & 0xFFFF) << 48 | UInt64(self.check) << 40 | UInt64(self.byteCount),
            UInt64(self.storedAt) << 32 | UInt64(self.deadline)
        )
    }

    /// Returns whether the second and third words of a slot belong to `name`, if the first does.
    static func matches(_ name: EntryName, _ second: UInt64, _ third: UInt64) -> Bool {
        second >> self.useBits == self.firstLow(name) && third >> 48 == UInt64(name.low & 0xFFFF)
    }

    /// Returns the last use in the second word of a slot, in seconds since 1970.
    static func seconds(ofSecond word: UInt64) -> Double { Double(word & self.useMask) / 65_536 }

    /// Returns the second word with another last use.
    static func second(_ word: UInt64, usedAt ticks: UInt64) -> UInt64 {
        word & ~self.useMask | ticks
    }

    /// Converts seconds since 1970 to ticks of 1/65536 s.
    static func ticks(_ seconds: Double) -> UInt64 {
        guard seconds > 0 else { return 0 }
        return seconds < 4_294_967_295 ? UInt64(seconds * 65_536) : self.useMask
    }

    /// The last use in seconds since 1970.
    var usedAtSeconds: Double { Double(self.usedAt) / 65_536 }

    private static func firstLow(_ name: EntryName) -> UInt64 { UInt64(name.low >> 16) }

    private static func whole(_ seconds: Double) -> Int {
        seconds.isFinite && abs(seconds) < 1e15 ? Int(seconds.rounded(.down)) : 0
    }

    /// A hash of the fields that do not change while the entry stays, which detects 255 of 256 kinds of damage.
    private var check: UInt8 {
        var rest = CatalogueChecksum.mix(self.name.high, UInt64(self.name.low))
        rest = CatalogueChecksum.mix(rest, UInt64(self.byteCount))
        rest = CatalogueChecksum.mix(rest, UInt64(self.storedAt) << 32 | UInt64(self.deadline))
        return UInt8(truncatingIfNeeded: rest >> 56)
    }
}
