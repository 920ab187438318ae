// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeVP8L
import TintypeImage

/// The pixels of one entropy-coded image of a VP8L stream, decoded as far as its bits have arrived.
///
/// Source: RFC 9649, sections 3.6 and 3.7.
struct VP8LPixels: ~Copyable {
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
        let (end, bytes) = ((row + 1) * self.width, bits.bytes)
        var bitOffset = bits.bitOffset
        var (count, cachedCount) = (self.count, self.cachedCount)
        let (width, height, pixels, tiles) = (self.width, self.height, self.pixels, self.tiles)
        let (tileBits, cacheBits) = (UInt32(self.tileBits), UInt32(self.cacheBits))
        let entries = self.codes.tables.baseAddress
        let status = self.codes.groups.withUnsafeBufferPointer { groups in
            tiles.withUnsafeBufferPointer { tiles in
                self.cache.withUnsafeMutableBufferPointer { cache in
                    guard let groups = groups.baseAddress else { return cvp8l_is_damaged }
                    var image = cvp8l_pixels(
                        width: width,
                        height: height,
                        pixels: pixels,
                        count: count,
                        entries: entries,
                        groups: groups,
                        tiles: tiles.isEmpty ? nil : tiles.baseAddress,
                        tile_bits: tileBits,
                        cache_bits: cacheBits,
                        cache: cache.baseAddress,
                        cached_count: cachedCount
                    )
                    let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                    let status = cvp8l_decode(&image, end, start, bytes.count, &bitOffset)
                    (count, cachedCount) = (image.count, image.cached_count)
                    return status
                }
            }
        }
        (self.count, self.cachedCount) = (count, cachedCount)
        bits = VP8LBitReader(bytes, at: bitOffset)
        try status.check()
    }
}

extension cvp8l_status {
    /// Throws the error that the status stands for, if there is one.
    func check() throws(VP8LError) {
        switch self {
        case cvp8l_needs_bytes: throw .needsBytes
        case cvp8l_is_damaged: throw .damaged
        default: break
        }
    }
}
#endif
