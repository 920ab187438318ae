// SPDX-License-Identifier: Apache-2.0

#if WebP
import Glibc

/// The prefix codes of a VP8L image: five for each group, of lengths up to 15.
///
/// All tables lie in one block, and a code of one symbol has no table, so that few bytes of a file cannot take much
/// memory. Source: RFC 9649, section 3.7.
struct VP8LPrefixCodes: ~Copyable {
    /// The place of a code's table in the block, or its only symbol.
    struct Code {
        /// The first entry of its table, or the symbol.
        var start: UInt32
        /// The number of bits that index the first table: 0 for a code of one symbol.
        var rootBits: UInt32
    }

    /// The codes of one group of pixels.
    struct Group {
        var green: Code
        var red: Code
        var blue: Code
        var alpha: Code
        var distance: Code
        /// The only pixel that the group can code, if its codes take no bits.
        var onlyPixel: UInt32
        var isOnlyPixel: Bool
        /// Whether red, blue and alpha take no bits.
        ///
        /// ``otherChannels`` has their values, with a green of 0.
        var isOnlyGreen: Bool
        var otherChannels: UInt32
    }

    private static let maximumLength = 15
    private static let rootBits = 8
    /// The order in which the lengths of the code for lengths are stored.
    private static let lengthOrder = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
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
    /// An entry has the length of its code in the lowest byte and the symbol in the upper half. An entry that leads to
    /// a second table has bit 7 set, the number of bits of that table, and its distance from the first one. A large
    /// block usually grows in place, and never beyond the limit.
    private var entries: UnsafeMutablePointer<UInt32>?
    private var entryCount = 0
    private var capacity = 0
    private let entryLimit: Int
    private(set) var groups: [Group] = []
    private var lengths: [UInt8] = []
    /// The symbols in the order of their codes.
    private var sorted: [UInt16] = []

    init(pixelCount: Int) {
        self.entryLimit = Self.entryLimit + pixelCount / 4
    }

    deinit {
        free(self.entries)
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
        return groups * MemoryLayout<Group>.stride + entries * 4
    }

    /// Reserves room for the groups that will be kept.
    mutating func reserveGroups(_ count: Int) {
        self.groups.reserveCapacity(count)
    }

    /// The block of tables.
    var tables: UnsafeBufferPointer<UInt32> { UnsafeBufferPointer(start: self.entries, count: self.entryCount) }

    /// Appends the entries of a table, all of them 0.
    private mutating func appendEntries(_ count: Int) throws(VP8LError) -> UnsafeMutablePointer<UInt32> {
        let needed = self.entryCount + count
        guard needed <= self.entryLimit else { throw .tooManyCodes }
        if needed > self.capacity {
            let capacity = min(self.entryLimit, max(needed, self.capacity * 2, 4_096))
            guard let block = realloc(self.entries, capacity * 4) else { throw .noMemory }
            self.entries = block.bindMemory(to: UInt32.self, capacity: capacity)
            self.capacity = capacity
        }
        guard let entries = self.entries else { throw .noMemory }
        (entries + self.entryCount).initialize(repeating: 0, count: count)
        self.entryCount = needed
        return entries
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
        let isOnlyGreen = red.rootBits == 0 && blue.rootBits == 0 && alpha.rootBits == 0
        let others = isOnlyGreen ? alpha.start << 24 | red.start << 16 | blue.start : 0
        self.groups.append(
            Group(
                green: green,
                red: red,
                blue: blue,
                alpha: alpha,
                distance: distance,
                onlyPixel: others | (green.start & 0xFF) << 8,
                isOnlyPixel: isOnlyGreen && green.rootBits == 0 && green.start < 256,
                isOnlyGreen: isOnlyGreen,
                otherChannels: others
            )
        )
    }

    private mutating func readCode(alphabet: Int, from bits: inout VP8LBitReader) throws(VP8LError) -> Code {
        let lengthCount = max(256, alphabet)
        if self.lengths.count < lengthCount { self.lengths = Array(repeating: 0, count: lengthCount) }
        // In debug builds no generic function fills an array as fast.
        self.lengths.withUnsafeMutableBytes { _ = $0.baseAddress.map { memset($0, 0, lengthCount) } }
        if bits.read(1) == 1 {
            let isPair = bits.read(1) == 1
            let first = bits.read(bits.read(1) == 1 ? 8 : 1)
            let second = isPair ? bits.read(8) : first
            if bits.isExhausted { throw .needsBytes }
            guard first < alphabet || second < alphabet else { throw .damaged }
            if first == second || second >= alphabet { return Code(start: UInt32(first), rootBits: 0) }
            if first >= alphabet { return Code(start: UInt32(second), rootBits: 0) }
            self.lengths[first] = 1
            self.lengths[second] = 1
        } else {
            try self.readLengths(alphabet: alphabet, from: &bits)
        }
        if bits.isExhausted { throw .needsBytes }
        return try self.build(alphabet: alphabet)
    }

    private mutating func readLengths(alphabet: Int, from bits: inout VP8LBitReader) throws(VP8LError) {
        let lengthCount = bits.read(4) + 4
        for index in 0..<lengthCount { self.lengths[Self.lengthOrder[index]] = UInt8(bits.read(3)) }
        if bits.isExhausted { throw .needsBytes }
        let start = self.entryCount
        let code = try self.build(alphabet: Self.lengthOrder.count)
        defer { self.entryCount = start }
        for index in 0..<Self.lengthOrder.count { self.lengths[index] = 0 }
        var left = alphabet
        if bits.read(1) == 1 {
            left = 2 + bits.read(2 + 2 * bits.read(3))
            guard left <= alphabet else { throw bits.isExhausted ? .needsBytes : .damaged }
        }
        var previous: UInt8 = 8
        var symbol = 0
        while symbol < alphabet, left > 0 {
            left -= 1
            bits.refill()
            let value = self.symbol(code, &bits)
            if bits.isExhausted { throw .needsBytes }
            if value < 16 {
                self.lengths[symbol] = UInt8(value)
                symbol += 1
                if value > 0 { previous = UInt8(value) }
                continue
            }
            let count = value == 16 ? 3 + bits.read(2) : value == 17 ? 3 + bits.read(3) : 11 + bits.read(7)
            guard symbol + count <= alphabet else { throw bits.isExhausted ? .needsBytes : .damaged }
            if value == 16 { for index in symbol..<symbol + count { self.lengths[index] = previous } }
            symbol += count
        }
    }

    private func symbol(_ code: Code, _ bits: inout VP8LBitReader) -> Int {
        guard code.rootBits > 0 else { return Int(code.start) }
        let mask = UInt64(1) &<< UInt64(code.rootBits) &- 1
        let entry = self.tables[Int(code.start) + Int(bits.bits & mask)]
        bits.skip(Int(entry & 0xFF))
        return Int(entry >> 16)
    }

    /// Builds the table for the lengths of `alphabet` symbols.
    private mutating func build(alphabet: Int) throws(VP8LError) -> Code {
        var counts = InlineArray<16, Int>(repeating: 0)
        var only = 0
        for symbol in 0..<alphabet where self.lengths[symbol] > 0 {
            counts[Int(self.lengths[symbol])] += 1
            only = symbol
        }
        var used = 0
        for length in 1...Self.maximumLength { used += counts[length] }
        if used == 1 { return Code(start: UInt32(only), rootBits: 0) }
        var space = 0
        for length in 1...Self.maximumLength { space += counts[length] << (Self.maximumLength - length) }
        // A complete code has neither unused bit patterns nor symbols without one.
        guard used > 0, space == 1 << Self.maximumLength else { throw .damaged }
        let longest = self.sort(alphabet: alphabet, counts)
        let rootBits = min(Self.rootBits, longest)
        let start = self.entryCount
        var entries = try self.appendEntries(1 << rootBits)
        var next = 0
        var place = 0
        var secondStart = 0
        var secondBits = 0
        var secondPrefix = -1
        for length in 1...longest {
            next <<= 1
            for _ in 0..<counts[length] {
                let symbol = self.sorted[place]
                place += 1
                let code = Self.reversed(next, length)
                next += 1
                let entry = UInt32(symbol) << 16 | UInt32(length)
                if length <= rootBits {
                    for index in stride(from: code, to: 1 << rootBits, by: 1 << length) {
                        entries[start + index] = entry
                    }
                    continue
                }
                let prefix = code & (1 << rootBits - 1)
                if prefix != secondPrefix {
                    secondPrefix = prefix
                    secondBits = Self.secondBits(counts, from: length, rootBits: rootBits)
                    secondStart = self.entryCount - start
                    entries = try self.appendEntries(1 << secondBits)
                    entries[start + prefix] = UInt32(secondStart) << 16 | 0x80 | UInt32(secondBits)
                }
                for index in stride(from: code >> rootBits, to: 1 << secondBits, by: 1 << (length - rootBits)) {
                    entries[start + secondStart + index] = entry
                }
                counts[length] -= 1
            }
        }
        return Code(start: UInt32(start), rootBits: UInt32(rootBits))
    }

    /// Sorts the symbols by the lengths of their codes, and returns the longest length.
    private mutating func sort(alphabet: Int, _ counts: InlineArray<16, Int>) -> Int {
        var places = InlineArray<16, Int>(repeating: 0)
        var longest = 1
        for length in 1...Self.maximumLength {
            if counts[length] > 0 { longest = length }
            if length < Self.maximumLength { places[length + 1] = places[length] + counts[length] }
        }
        if self.sorted.count < alphabet { self.sorted = Array(repeating: 0, count: alphabet) }
        for symbol in 0..<alphabet where self.lengths[symbol] > 0 {
            let length = Int(self.lengths[symbol])
            self.sorted[places[length]] = UInt16(symbol)
            places[length] += 1
        }
        return longest
    }

    /// Returns the bits of a second table that begins with the first remaining code of `length`.
    private static func secondBits(_ counts: InlineArray<16, Int>, from length: Int, rootBits: Int) -> Int {
        var bits = length - rootBits
        var left = 1 << bits
        while bits + rootBits < self.maximumLength {
            left -= counts[bits + rootBits]
            if left <= 0 { break }
            bits += 1
            left <<= 1
        }
        return bits
    }

    private static func reversed(_ code: Int, _ length: Int) -> Int {
        var code = code
        var result = 0
        for _ in 0..<length {
            result = result << 1 | code & 1
            code >>= 1
        }
        return result
    }
}
#endif
