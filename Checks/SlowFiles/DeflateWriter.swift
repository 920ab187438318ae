// SPDX-License-Identifier: Apache-2.0

import CTintypeDeflate

/// Writes a zlib stream that is expensive to read, without ever holding its contents in memory.
struct DeflateWriter {
    private var bits = BitWriter()
    private var adler: UInt32 = 1

    init() { self.bits.write(0x0178, 16) }

    /// The bytes so far, with the end of the stream.
    func finished() -> [UInt8] {
        var copy = self.bits
        copy.write(1, 3)
        copy.write(0, 7)
        copy.fillByte()
        for index in (0..<4).reversed() { copy.write(Int(self.adler >> (8 * UInt32(index)) & 255), 8) }
        return copy.bytes
    }

    var count: Int { self.bits.bytes.count }

    /// `count` bytes of `value` in one block: two bits for 258 of them.
    mutating func run(of value: UInt8, count: Int) {
        guard count > 0 else { return }
        self.sum(of: value, count: count)
        // 285 is a match of 258, and its one distance is 1: both have the code 0 of one bit.
        var lengths = [Int](repeating: 0, count: 286)
        lengths[Int(value)] = 2
        lengths[256] = 2
        lengths[285] = 1
        self.beginDynamicBlock(lengths, distances: [1])
        let codes = canonicalCodes(lengths)
        self.bits.writeCode(codes[Int(value)], 2)
        let matches = (count - 1) / 258
        for _ in 0..<matches / 16 { self.bits.write(0, 32) }
        for _ in 0..<matches % 16 { self.bits.write(0, 2) }
        for _ in 0..<(count - 1) % 258 { self.bits.writeCode(codes[Int(value)], 2) }
        self.bits.writeCode(codes[256], 2)
    }

    /// `bytes` once, then matches of `length` bytes a row of them back, in the fixed code.
    mutating func pattern(_ bytes: [UInt8], repeated count: Int, length: Int, room: Int) {
        self.stored(bytes)
        guard bytes.count <= 32_768, count > 0 else { return }
        let limit = self.count + room
        self.bits.write(0b010, 3)
        var left = bytes.count * count
        while left >= 3, self.count < limit {
            let match = min(left, min(max(length, 3), 258))
            self.fixedMatch(length: match, distance: bytes.count)
            left -= match
        }
        self.bits.write(0, 7)
        for _ in 0..<count { self.sum(bytes) }
    }

    /// `bytes` as they are.
    mutating func stored(_ bytes: [UInt8]) {
        self.sum(bytes)
        for start in stride(from: 0, to: bytes.count, by: 65_535) {
            let part = Array(bytes[start..<min(bytes.count, start + 65_535)])
            self.bits.write(0, 3)
            self.bits.fillByte()
            self.bits.write(part.count, 16)
            self.bits.write(~part.count, 16)
            self.bits.append(part)
        }
    }

    /// Writes `count` empty blocks: stored (0), with the fixed code (1), or each with its own code (2).
    mutating func emptyBlocks(_ count: Int, kind: Int) {
        for _ in 0..<count {
            switch kind {
            case 0:
                self.bits.write(0, 3)
                self.bits.fillByte()
                self.bits.write(0xFFFF_0000, 32)
            case 1:
                self.bits.write(0b010, 3)
                self.bits.write(0, 7)
            default:
                // A code of many lengths, whose tables are the largest.
                var lengths = [Int](repeating: 0, count: 286)
                for index in 0..<14 { lengths[243 + index] = index + 1 }
                lengths[257] = 15
                lengths[258] = 15
                lengths[256] = 14
                self.beginDynamicBlock(lengths, distances: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15])
                self.bits.writeCode(canonicalCodes(lengths)[256], 14)
            }
        }
    }

    private mutating func fixedMatch(length: Int, distance: Int) {
        var base = 3
        var symbol = 257
        var extra = 0
        while symbol < 284 {
            extra = symbol < 265 ? 0 : (symbol - 261) / 4
            if length < base + (1 << extra) { break }
            base += 1 << extra
            symbol += 1
        }
        if length == 258 { (symbol, extra, base) = (285, 0, 258) }
        if symbol < 280 { self.bits.writeCode(symbol - 256, 7) } else { self.bits.writeCode(symbol - 280 + 0xC0, 8) }
        self.bits.write(length - base, extra)
        var distanceBase = 1
        var distanceSymbol = 0
        var distanceExtra = 0
        while distanceSymbol < 29 {
            distanceExtra = distanceSymbol < 4 ? 0 : (distanceSymbol - 2) / 2
            if distance < distanceBase + (1 << distanceExtra) { break }
            distanceBase += 1 << distanceExtra
            distanceSymbol += 1
        }
        self.bits.writeCode(distanceSymbol, 5)
        self.bits.write(distance - distanceBase, distanceExtra)
    }

    private mutating func beginDynamicBlock(_ lengths: [Int], distances: [Int]) {
        self.bits.write(0b100, 3)
        self.bits.write(lengths.count - 257, 5)
        self.bits.write(distances.count - 1, 5)
        self.bits.write(15, 4)
        // Symbols 0 to 15 and 18 take five or four bits. Symbol 18 is a run of zeros.
        let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
        var widths = [Int](repeating: 4, count: 19)
        (widths[16], widths[17], widths[14], widths[15]) = (0, 0, 5, 5)
        for symbol in order { self.bits.write(widths[symbol], 3) }
        let codes = canonicalCodes(widths)
        let all = lengths + distances
        var index = 0
        while index < all.count {
            var zeros = 0
            while index + zeros < all.count, all[index + zeros] == 0, zeros < 138 { zeros += 1 }
            if zeros >= 11 {
                self.bits.writeCode(codes[18], widths[18])
                self.bits.write(zeros - 11, 7)
                index += zeros
            } else {
                self.bits.writeCode(codes[all[index]], widths[all[index]])
                index += 1
            }
        }
    }

    private mutating func sum(_ bytes: [UInt8]) {
        self.adler = bytes.withUnsafeBytes { libdeflate_adler32(self.adler, $0.baseAddress, $0.count) }
    }

    private mutating func sum(of value: UInt8, count: Int) {
        let piece = [UInt8](repeating: value, count: 1 << 20)
        for _ in 0..<count >> 20 { self.sum(piece) }
        self.sum([UInt8](repeating: value, count: count & (1 << 20 - 1)))
    }
}
