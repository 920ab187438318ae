// SPDX-License-Identifier: Apache-2.0

#if WebP
import TintypeImage

/// The pixels of one entropy-coded image of a VP8L stream, decoded as far as its bits have arrived.
///
/// Source: RFC 9649, sections 3.6 and 3.7.
struct VP8LPixels: ~Copyable {
    /// The most bytes that one pixel or copy takes, including the bits that a reader loads in advance.
    private static let mostBytesAtOnce = 24
    /// The offsets of short distance codes.
    ///
    /// The upper four bits are the rows above, and the lower four are 8 minus the columns to the left.
    private static let nearby: [UInt8] = [
        0x18, 0x07, 0x17, 0x19, 0x28, 0x06, 0x27, 0x29, 0x16, 0x1a, 0x26, 0x2a, 0x38, 0x05, 0x37, 0x39, 0x15, 0x1b,
        0x36, 0x3a, 0x25, 0x2b, 0x48, 0x04, 0x47, 0x49, 0x14, 0x1c, 0x35, 0x3b, 0x46, 0x4a, 0x24, 0x2c, 0x58, 0x45,
        0x4b, 0x34, 0x3c, 0x03, 0x57, 0x59, 0x13, 0x1d, 0x56, 0x5a, 0x23, 0x2d, 0x44, 0x4c, 0x55, 0x5b, 0x33, 0x3d,
        0x68, 0x02, 0x67, 0x69, 0x12, 0x1e, 0x66, 0x6a, 0x22, 0x2e, 0x54, 0x5c, 0x43, 0x4d, 0x65, 0x6b, 0x32, 0x3e,
        0x78, 0x01, 0x77, 0x79, 0x53, 0x5d, 0x11, 0x1f, 0x64, 0x6c, 0x42, 0x4e, 0x76, 0x7a, 0x21, 0x2f, 0x75, 0x7b,
        0x31, 0x3f, 0x63, 0x6d, 0x52, 0x5e, 0x00, 0x74, 0x7c, 0x41, 0x4f, 0x10, 0x20, 0x62, 0x6e, 0x30, 0x73, 0x7d,
        0x51, 0x5f, 0x40, 0x72, 0x7e, 0x61, 0x6f, 0x50, 0x71, 0x7f, 0x60, 0x70,
    ]

    let width: Int
    let height: Int
    /// The number of decoded pixels, row by row.
    private(set) var count = 0
    private let memory: AlignedMemory
    private let pixels: UnsafeMutablePointer<UInt32>
    private let codes: VP8LPrefixCodes
    /// The group of codes of each tile; empty if one group codes all.
    private let tiles: [UInt16]
    private let tileBits: Int
    private let cacheBits: Int
    private var cache: [UInt32]
    /// The number of pixels that are in the cache already.
    private var cachedCount = 0

    /// Allocates the pixels; `nil` if memory runs out.
    init?(
        width: Int,
        height: Int,
        codes: consuming VP8LPrefixCodes,
        tiles: consuming [UInt16],
        tileBits: Int,
        cacheBits: Int
    ) {
        guard let memory = try? AlignedMemory(byteCount: width * height * 4) else { return nil }
        self.pixels = memory.start.bindMemory(to: UInt32.self, capacity: width * height)
        self.memory = memory
        self.width = width
        self.height = height
        self.codes = codes
        self.tiles = tiles
        self.tileBits = tileBits
        self.cacheBits = cacheBits
        self.cache = cacheBits > 0 ? Array(repeating: 0, count: 1 << cacheBits) : []
    }

    /// The address of the pixels, of which ``count`` are decoded.
    var start: UnsafeMutablePointer<UInt32> { self.pixels }

    /// Decodes up to the end of row `row`, or further.
    ///
    /// - Throws: `VP8LError.needsBytes` after decoding all complete pixels, `.damaged`.
    mutating func decode(toRow row: Int, from bits: inout VP8LBitReader) throws(VP8LError) {
        let end = (row + 1) * self.width
        let last = self.width * self.height
        let (width, pixels, tileBits) = (self.width, self.pixels, self.tileBits)
        let tilesPerRow = self.tiles.isEmpty ? 0 : (width + (1 << tileBits) - 1) >> tileBits
        var position = self.count
        var failure: VP8LError?
        let tiles = self.tiles
        let cacheBits = self.cacheBits
        var cachedCount = self.cachedCount
        let entries = self.codes.tables
        self.codes.groups.withUnsafeBufferPointer { groups in
            tiles.withUnsafeBufferPointer { tiles in
                self.cache.withUnsafeMutableBufferPointer { cache in
                    var column = position % width
                    // A local copy stays in registers.
                    var reader = bits
                    var before = bits
                    defer { bits = reader }
                    var y = position / width
                    stretches: while position < end {
                        // All pixels up to the end of a tile, or of the row, have the same codes.
                        var stretchEnd = width
                        var group = 0
                        if tilesPerRow > 0 {
                            let tile = column >> tileBits
                            stretchEnd = min((tile + 1) << tileBits, width)
                            group = Int(tiles[(y >> tileBits) * tilesPerRow + tile])
                        }
                        let codes = groups[group]
                        if codes.isOnlyPixel {
                            let length = stretchEnd - column
                            (pixels + position).update(repeating: codes.onlyPixel, count: length)
                            position += length
                            column += length
                        }
                        while column < stretchEnd {
                            // If bytes may run out, remember the position, to undo an incomplete pixel.
                            let mayRunOut = !reader.has(Self.mostBytesAtOnce)
                            if mayRunOut { before = reader }
                            reader.refill()
                            let green = Self.symbol(codes.green, entries, &reader)
                            if green < 256 {
                                var pixel = codes.otherChannels | UInt32(green) << 8
                                if !codes.isOnlyGreen {
                                    let red = Self.symbol(codes.red, entries, &reader)
                                    reader.refill()
                                    let blue = Self.symbol(codes.blue, entries, &reader)
                                    let alpha = Self.symbol(codes.alpha, entries, &reader)
                                    pixel |= UInt32(alpha) << 24 | UInt32(red) << 16 | UInt32(blue)
                                }
                                if mayRunOut, reader.isExhausted {
                                    reader = before
                                    failure = .needsBytes
                                    break stretches
                                }
                                pixels[position] = pixel
                                position &+= 1
                                column &+= 1
                                continue
                            }
                            if green >= 256 + 24 {
                                while cachedCount < position {
                                    let pixel = pixels[cachedCount]
                                    cache[Self.key(pixel, cacheBits)] = pixel
                                    cachedCount &+= 1
                                }
                                if mayRunOut, reader.isExhausted {
                                    reader = before
                                    failure = .needsBytes
                                    break stretches
                                }
                                pixels[position] = cache[green - 280]
                                position &+= 1
                                column &+= 1
                                continue
                            }
                            let length = Self.number(green - 256, &reader)
                            reader.refill()
                            let code = Self.symbol(codes.distance, entries, &reader)
                            let distance = Self.distance(Self.number(code, &reader), width)
                            if mayRunOut, reader.isExhausted {
                                reader = before
                                failure = .needsBytes
                                break stretches
                            }
                            guard distance <= position, length <= last - position else {
                                failure = .damaged
                                break stretches
                            }
                            Self.copy(pixels + position, distance: distance, count: length)
                            position += length
                            column += length
                            if column >= width {
                                y += column / width
                                column %= width
                                continue stretches
                            }
                            if column >= stretchEnd { continue stretches }
                        }
                        if column == width {
                            column = 0
                            y += 1
                        }
                    }
                }
            }
        }
        self.count = position
        self.cachedCount = cachedCount
        if let failure { throw failure }
    }

    @inline(__always)
    private static func symbol(
        _ code: VP8LPrefixCodes.Code,
        _ entries: UnsafeBufferPointer<UInt32>,
        _ bits: inout VP8LBitReader
    ) -> Int {
        if code.rootBits == 0 { return Int(code.start) }
        var entry = entries[Int(code.start) &+ Int(truncatingIfNeeded: bits.bits & (1 &<< UInt64(code.rootBits) &- 1))]
        if entry & 0x80 != 0 {
            let mask = UInt64(1) &<< UInt64(entry & 0x7F) &- 1
            let rest = Int(truncatingIfNeeded: bits.bits &>> UInt64(code.rootBits) & mask)
            entry = entries[Int(code.start) &+ Int(entry >> 16) &+ rest]
        }
        bits.skip(Int(entry & 0xFF))
        return Int(entry >> 16)
    }

    /// Returns the length or distance given by a prefix and the bits behind it.
    @inline(__always)
    private static func number(_ prefix: Int, _ bits: inout VP8LBitReader) -> Int {
        guard prefix >= 4 else { return prefix + 1 }
        let extra = (prefix - 2) >> 1
        let value = (2 + prefix & 1) << extra + Int(truncatingIfNeeded: bits.bits & (1 &<< UInt64(extra) &- 1)) + 1
        bits.skip(extra)
        return value
    }

    @inline(__always)
    private static func distance(_ code: Int, _ width: Int) -> Int {
        guard code <= 120 else { return code - 120 }
        let place = Int(self.nearby[code - 1])
        return max(1, place >> 4 * width + 8 - place & 0xF)
    }

    @inline(__always)
    private static func key(_ pixel: UInt32, _ bits: Int) -> Int {
        Int((pixel &* 0x1E35_A7BD) &>> UInt32(32 - bits))
    }

    /// Copies pixels from `distance` earlier; the source may overlap the target.
    @inline(__always)
    private static func copy(_ target: UnsafeMutablePointer<UInt32>, distance: Int, count: Int) {
        let source = target - distance
        if distance == 1 {
            target.update(repeating: source[0], count: count)
        } else if distance >= count {
            target.update(from: source, count: count)
        } else {
            for index in 0..<count { target[index] = source[index] }
        }
    }
}
#endif
