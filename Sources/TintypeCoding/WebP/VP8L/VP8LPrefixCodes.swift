// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeVP8L
import Glibc

/// The prefix codes of a VP8L image: five for each group, of lengths up to 15.
///
/// All tables lie in one block, and a code of one symbol has no table, so that few bytes of a file cannot take much
/// memory. Source: RFC 9649, section 3.7.
struct VP8LPrefixCodes: ~Copyable {
    /// The most entries of all tables together, in addition to one for four pixels of the image.
    private static let entryLimit = 4 << 20
    /// The most entries that a byte of a stream can define.
    ///
    /// A code's largest table has 2,704 entries (with a cache of 11 bits, by zlib's `enough`). It has lengths over 8
    /// bits. Therefore its own lengths need a code with 13 lengths of three bits, which makes at least 45 bits with the
    /// rest of the code's head. The other four codes of its group take four bits each if they have no table. They have
    /// at most 630 entries if they take as many bits.
    private static let entriesPerByte = 2_704 * 8 / (45 + 4 * 4) + 1

    /// The block of tables.
    ///
    /// A large block usually grows in place, and never beyond the limit.
    private var entries: UnsafeMutablePointer<UInt32>?
    private var entryCount = 0
    private var capacity = 0
    private let entryLimit: Int
    private(set) var groups: [cvp8l_group] = []
    /// The tables of the code that is being read.
    private let table = UnsafeMutablePointer<UInt32>.allocate(capacity: Int(cvp8l_most_entries))

    init(pixelCount: Int) {
        self.entryLimit = Self.entryLimit + pixelCount / 4
    }

    deinit {
        free(self.entries)
        self.table.deallocate()
    }

    /// Returns the most memory in bytes of all groups and tables of an image with so many tiles in a stream of so many
    /// bytes.
    static func byteCount(pixelCount: Int, tileCount: Int, streamByteCount: Int) -> Int {
        // A tile that names a new group takes at least one bit.
        let groups = min(tileCount, 1 << 16, streamByteCount.saturatingMultiplied(by: 8))
        let entries = min(
            self.entryLimit + pixelCount / 4,
            streamByteCount.saturatingMultiplied(by: self.entriesPerByte)
        )
        return groups * MemoryLayout<cvp8l_group>.stride + entries * 4
    }

    /// Reserves room for the groups that will be kept.
    mutating func reserveGroups(_ count: Int) {
        self.groups.reserveCapacity(count)
    }

    /// The block of tables.
    var tables: UnsafeBufferPointer<UInt32> { UnsafeBufferPointer(start: self.entries, count: self.entryCount) }

    /// Appends entries to the block.
    private mutating func append(_ table: UnsafePointer<UInt32>, count: Int) throws(VP8LError) {
        let needed = self.entryCount + count
        guard needed <= self.entryLimit else { throw .tooManyCodes }
        if needed > self.capacity {
            let capacity = min(self.entryLimit, max(needed, self.capacity * 2, 4_096))
            guard let block = realloc(self.entries, capacity * 4) else { throw .noMemory }
            self.entries = block.bindMemory(to: UInt32.self, capacity: capacity)
            self.capacity = capacity
        }
        guard let entries = self.entries else { throw .noMemory }
        (entries + self.entryCount).initialize(from: table, count: count)
        self.entryCount = needed
    }

    /// Reads the codes of the next group, and keeps them if `isKept`.
    mutating func readGroup(cacheBits: Int, isKept: Bool, from bits: inout VP8LBitReader) throws(VP8LError) {
        let start = self.entryCount
        let green = try self.readCode(alphabet: 256 + 24 + (cacheBits > 0 ? 1 << cacheBits : 0), from: &bits)
        let red = try self.readCode(alphabet: 256, from: &bits)
        let blue = try self.readCode(alphabet: 256, from: &bits)
        let alpha = try self.readCode(alphabet: 256, from: &bits)
        let distance = try self.readCode(alphabet: 40, from: &bits)
        guard isKept else {
            self.entryCount = start
            return
        }
        let isOnlyGreen = red.root_bits == 0 && blue.root_bits == 0 && alpha.root_bits == 0
        let others = isOnlyGreen ? alpha.start << 24 | red.start << 16 | blue.start : 0
        self.groups.append(
            cvp8l_group(
                green: green,
                red: red,
                blue: blue,
                alpha: alpha,
                distance: distance,
                only_pixel: others | (green.start & 0xFF) << 8,
                other_channels: others,
                is_only_pixel: isOnlyGreen && green.root_bits == 0 && green.start < 256,
                is_only_green: isOnlyGreen
            )
        )
    }

    private mutating func readCode(
        alphabet: Int,
        from bits: inout VP8LBitReader
    ) throws(VP8LError) -> cvp8l_code {
        var (bitOffset, count, code) = (bits.bitOffset, 0, cvp8l_code())
        let bytes = bits.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        try cvp8l_read_code(alphabet, bytes, bits.bytes.count, &bitOffset, self.table, &count, &code).check()
        bits = VP8LBitReader(bits.bytes, at: bitOffset)
        if count > 0 {
            code.start = UInt32(self.entryCount)
            try self.append(self.table, count: count)
        }
        return code
    }
}
#endif
