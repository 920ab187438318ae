// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import TintypeCoding

/// Lossless WebPs whose few bytes take much memory or time.
enum HostileWebP {
    /// Returns an image of 1,024 columns in which each tile of 4x4 pixels has its own prefix codes with full tables.
    ///
    /// The end of the file is missing if `hasPixels` is false.
    static func prefixCodes(groupCount: Int, hasPixels: Bool) -> Data {
        WebPSamples.file([WebPSamples.chunk("VP8L", self.stream(groupCount: groupCount, hasPixels: hasPixels))])
    }

    /// Returns a lossy image whose alpha channel has such prefix codes.
    static func alphaCodes(groupCount: Int, hasPixels: Bool) throws -> Data {
        let height = self.height(groupCount: groupCount)
        let pixels = try WebPSamples.flat([1, 2, 3], width: 1_024, height: height)
        // Remove the header, which gives the size.
        let alpha = self.stream(groupCount: groupCount, hasPixels: hasPixels).dropFirst(5)
        return WebPSamples.file([
            WebPSamples.extended(0x10, 1_024, height), WebPSamples.chunk("ALPH", [1] + alpha),
            try WebPSamples.image(pixels, .lossy),
        ])
    }

    /// Returns a flat image with two transforms, whose tiles of 4x4 pixels are all the same.
    static func transforms(width: Int, height: Int) -> Data {
        var bits = BitWriter()
        bits.append(0x2F, 8)
        bits.append(width - 1, 14)
        bits.append(height - 1, 14)
        bits.append(0, 1 + 3)
        for transform in 0..<2 {
            bits.append(1, 1)
            bits.append(transform, 2)
            bits.append(0, 3)
            // No cache, and five codes with one symbol each.
            bits.append(0, 1)
            for _ in 0..<5 { bits.append(0b0001, 4) }
        }
        // No further transform, no cache and no tiles.
        bits.append(0, 1 + 1 + 1)
        for _ in 0..<5 { bits.append(0b0001, 4) }
        return WebPSamples.file([WebPSamples.chunk("VP8L", bits.bytes + [0, 0, 0])])
    }

    /// Returns the height of an image that has `groupCount` groups.
    private static func height(groupCount: Int) -> Int { (groupCount + 255) / 256 * 4 }

    private static func stream(groupCount: Int, hasPixels: Bool) -> [UInt8] {
        let tileRows = (groupCount + 255) / 256
        var bits = BitWriter()
        bits.append(0x2F, 8)
        bits.append(1_023, 14)
        bits.append(tileRows * 4 - 1, 14)
        // No alpha, version 0, no transform and no cache, then codes by tiles of 4 pixels.
        bits.append(0, 1 + 3 + 1 + 1)
        bits.append(1, 1)
        bits.append(0, 3)
        // The tiles follow as numbers of 16 bits, without a cache.
        bits.append(0, 1)
        self.appendCodes(&bits)
        for tile in 0..<tileRows * 256 {
            let group = min(tile, groupCount - 1)
            bits.append(self.reversed(group & 255), 8)
            bits.append(self.reversed(group >> 8), 8)
        }
        for _ in 0..<groupCount { self.appendCodes(&bits, isFull: true) }
        // Four bytes are enough for a pixel of four codes.
        return bits.bytes + [0, 0, 0] + [UInt8](repeating: 0, count: hasPixels ? tileRows * 4 * 1_024 * 4 : 0)
    }

    /// Appends codes of 8 bits for green and red, and for blue and alpha too if `isFull`.
    ///
    /// The other channels have one symbol of no bits.
    private static func appendCodes(_ bits: inout BitWriter, isFull: Bool = false) {
        for channel in 0..<5 {
            if channel < 2 || (isFull && channel < 4) {
                self.appendFullCode(&bits)
            } else {
                bits.append(0b0001, 4)
            }
        }
    }

    /// Appends 256 code lengths of 8, for which the code for lengths alone is enough.
    private static func appendFullCode(_ bits: inout BitWriter) {
        bits.append(0, 1)
        bits.append(8, 4)
        for _ in 0..<11 { bits.append(0, 3) }
        bits.append(1, 3)
        bits.append(1, 1)
        bits.append(3, 3)
        bits.append(254, 8)
    }

    private static func reversed(_ value: Int) -> Int {
        (0..<8).reduce(0) { $0 | (value >> $1 & 1) << (7 - $1) }
    }
}
#endif
