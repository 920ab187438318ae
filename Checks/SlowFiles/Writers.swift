// SPDX-License-Identifier: Apache-2.0

import CTintypeDeflate
import TintypeTestSupport

/// Bytes as formats store them.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    var count: Int { self.bytes.count }

    mutating func append(_ more: some Sequence<UInt8>) { self.bytes += more }
    mutating func append(_ byte: UInt8) { self.bytes.append(byte) }
    mutating func append(_ text: StaticString) { text.withUTF8Buffer { self.bytes += $0 } }
    mutating func append(repeating byte: UInt8, count: Int) {
        self.bytes.append(contentsOf: repeatElement(byte, count: count))
    }

    /// The lowest `count` bytes of `value`, highest first.
    mutating func big(_ value: Int, _ count: Int) {
        for index in (0..<count).reversed() { self.bytes.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }

    /// The lowest `count` bytes of `value`, lowest first.
    mutating func little(_ value: Int, _ count: Int) {
        for index in 0..<count { self.bytes.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }

    mutating func random(_ count: Int, _ random: inout SeededGenerator) {
        var left = count
        while left > 0 {
            let word = random.next()
            for index in 0..<min(8, left) { self.bytes.append(UInt8(truncatingIfNeeded: word >> (8 * UInt64(index)))) }
            left -= 8
        }
    }

    mutating func replace(at offset: Int, with value: UInt8) { self.bytes[offset] = value }
}

/// Bits into bytes, the lowest bit of a byte first: deflate, GIF and lossless WebP.
struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var pending: UInt64 = 0
    private var count: UInt64 = 0

    /// The lowest `width` bits of `value`, at most 32.
    mutating func write(_ value: Int, _ width: Int) {
        self.pending |= (UInt64(truncatingIfNeeded: value) & ((1 << UInt64(width)) - 1)) << self.count
        self.count += UInt64(width)
        while self.count >= 8 {
            self.bytes.append(UInt8(truncatingIfNeeded: self.pending))
            self.pending >>= 8
            self.count -= 8
        }
    }

    /// A Huffman code, which deflate and WebP store from its highest bit on.
    mutating func writeCode(_ code: Int, _ width: Int) {
        for index in (0..<width).reversed() { self.write(code >> index & 1, 1) }
    }

    mutating func fillByte() {
        if self.count > 0 { self.write(0, 8 - Int(self.count)) }
    }

    mutating func append(_ more: [UInt8]) {
        self.fillByte()
        self.bytes += more
    }
}

/// Returns the canonical codes for the lengths of a Huffman code, where length 0 marks an unused symbol.
func canonicalCodes(_ lengths: [Int]) -> [Int] {
    var codes = [Int](repeating: 0, count: lengths.count)
    var code = 0
    for length in 1...15 {
        for symbol in lengths.indices where lengths[symbol] == length {
            codes[symbol] = code
            code += 1
        }
        code <<= 1
    }
    return codes
}

/// The CRC of PNG's chunks.
func checksum(_ bytes: some Collection<UInt8>) -> Int {
    Array(bytes).withUnsafeBytes { Int(libdeflate_crc32(0, $0.baseAddress, $0.count)) }
}
