// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Files whose few bytes take long to decode: flat images, many scans, and floods of chunks.
package enum SlowFiles {
    // MARK: JPEG

    private static let quantization = Self.segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))

    private static func segment(_ marker: UInt8, _ content: [UInt8]) -> Data {
        Data([0xFF, marker] + UInt16(content.count + 2).bigEndianBytes + content)
    }

    private static func frame(_ marker: UInt8, _ width: Int, _ height: Int, componentCount: Int) -> Data {
        let sides = UInt16(height).bigEndianBytes + UInt16(width).bigEndianBytes
        let components: [UInt8] = (1...componentCount).flatMap { [UInt8($0), 0x11, 0] as [UInt8] }
        return self.segment(marker, [8] + sides + [UInt8(componentCount)] + components)
    }

    /// Returns a table with one code of one bit.
    private static func codes(_ kind: UInt8, _ symbol: UInt8) -> Data {
        self.segment(0xC4, [kind, 1] + [UInt8](repeating: 0, count: 15) + [symbol])
    }

    /// Returns a flat image in one scan with two bits for each block, with `start` before its tables.
    package static func flatJPEG(
        _ width: Int,
        _ height: Int,
        componentCount: Int = 1,
        after start: Data = Data()
    ) -> Data {
        let blocks = (width + 7) / 8 * ((height + 7) / 8) * componentCount
        var data = Data([0xFF, 0xD8]) + start + self.quantization
        data += self.frame(0xC0, width, height, componentCount: componentCount) + self.codes(0x00, 0)
        data += self.codes(0x10, 0)
        let components: [UInt8] = (1...componentCount).flatMap { [UInt8($0), 0] as [UInt8] }
        data += self.segment(0xDA, [UInt8(componentCount)] + components + [0, 63, 0])
        return data + Data(count: (blocks * 2 + 7) / 8) + Data([0xFF, 0xD9])
    }

    /// Returns scans of all blocks that refine nothing, in runs of 32,767.
    ///
    /// Arithmetic scans have no bytes at all.
    package static func scans(_ count: Int, _ width: Int, _ height: Int, isArithmetic: Bool = false) -> Data {
        let blocks = (width + 7) / 8 * ((height + 7) / 8)
        let run: [UInt8] = [0] + [UInt8](repeating: 1, count: 14)
        let runs = (0..<(blocks + 32_766) / 32_767).flatMap { _ in run }
        let coded = isArithmetic ? Data() : self.stuffed(self.packed(runs, padding: 1))
        var data = Data([0xFF, 0xD8]) + self.quantization
        data += self.frame(isArithmetic ? 0xCA : 0xC2, width, height, componentCount: 1)
        if !isArithmetic { data += self.codes(0x10, 0xE0) }
        for _ in 0..<count { data += self.segment(0xDA, [1, 1, 0, 1, 63, 0x10]) + coded }
        return data + Data([0xFF, 0xD9])
    }

    /// Returns empty comments.
    package static func comments(_ count: Int) -> Data {
        let comment: [UInt8] = [0xFF, 0xFE, 0, 2]
        return Data((0..<count).flatMap { _ in comment })
    }

    /// Returns the segment with a small profile (ICC.1:2022, annex B.4).
    package static func profileSegment(_ profile: Data) -> Data {
        self.segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + profile)
    }

    /// Packs bits into bytes, the first bit in the highest position.
    private static func packed(_ bits: [UInt8], padding: UInt8) -> [UInt8] {
        stride(from: 0, to: bits.count, by: 8).map { start in
            (start..<start + 8).reduce(0) { $0 << 1 | ($1 < bits.count ? bits[$1] : padding) }
        }
    }

    private static func stuffed(_ bytes: [UInt8]) -> Data {
        Data(bytes.flatMap { $0 == 0xFF ? [0xFF, 0] : [$0] })
    }

    // MARK: PNG

    /// Returns a zlib stream of `count` zeros that is a thousandth of their size.
    package static func zeros(_ count: Int) -> Data {
        // Fixed codes (RFC 1951, 3.2.6): a zero, then runs of 258 zeros with 13 bits each.
        let run: [UInt8] = [1, 1, 0, 0, 0, 1, 0, 1] + [0, 0, 0, 0, 0]
        let zero: [UInt8] = [0, 0, 1, 1, 0, 0, 0, 0]
        let runCount = (count - 1) / 258
        let start = [1, 1, 0] + zero + run + run
        let end = (0..<(count - 1) % 258).flatMap { _ in zero } + [UInt8](repeating: 0, count: 7)
        let checksum = (UInt32(count % 65_521) << 16 | 1).bigEndianBytes
        guard runCount >= 16 else {
            let bits = [1, 1, 0] + zero + (0..<runCount).flatMap { _ in run } + end
            return Data([0x78, 0x9C] + self.reversed(bits) + checksum)
        }
        // From the third byte on, the bytes of eight runs repeat.
        let period = self.reversed(start + (0..<8).flatMap { _ in run })[2..<15]
        let periods = runCount / 8 - 1
        var data = Data([0x78, 0x9C]) + Data(self.reversed(start)[..<2])
        for _ in 0..<periods { data += period }
        // The first five bits of the next run are already written.
        let rest = run[5...] + (0..<runCount - periods * 8 - 1).flatMap { _ in run }
        data += self.reversed(Array(rest + end))
        return data + checksum
    }

    /// Packs bits into bytes, the first bit in the lowest position.
    private static func reversed(_ bits: [UInt8]) -> [UInt8] {
        stride(from: 0, to: bits.count, by: 8).map { start in
            (start..<min(start + 8, bits.count)).reduce(0) { $0 | bits[$1] << UInt8($1 - start) }
        }
    }

    /// Returns a black image with 8 bits a sample.
    package static func flatPNG(_ width: Int, _ height: Int, colorType: UInt8 = 0) -> PNGFile {
        let channels = [0: 1, 2: 3, 4: 2, 6: 4][colorType] ?? 1
        let header = UInt32(width).bigEndianBytes + UInt32(height).bigEndianBytes + [8, colorType, 0, 0, 0]
        return PNGFile(chunks: [
            .init(type: "IHDR", body: header),
            .init(type: "IDAT", body: Array(self.zeros(height * (1 + width * channels)))),
            .init(type: "IEND", body: []),
        ])
    }

    /// Returns an animation of black frames that cover the canvas.
    package static func flatAPNG(
        _ width: Int,
        _ height: Int,
        frameCount: Int,
        disposals: [UInt8] = [0],
        blend: UInt8 = 0
    ) -> PNGFile {
        var file = self.flatPNG(width, height, colorType: 6)
        let pixels = file.chunks.remove(at: 1).body
        var chunks = [PNGFile.Chunk(type: "acTL", body: UInt32(frameCount).bigEndianBytes + [0, 0, 0, 0])]
        var number: UInt32 = 0
        for index in 0..<frameCount {
            let area = UInt32(width).bigEndianBytes + UInt32(height).bigEndianBytes + [UInt8](repeating: 0, count: 8)
            let drawing = [0, 1, 0, 10, disposals[index % disposals.count], blend]
            chunks.append(.init(type: "fcTL", body: number.bigEndianBytes + area + drawing))
            number += 1
            if index == 0 {
                chunks.append(.init(type: "IDAT", body: pixels))
            } else {
                chunks.append(.init(type: "fdAT", body: number.bigEndianBytes + pixels))
                number += 1
            }
        }
        file.chunks.insert(contentsOf: chunks, at: 1)
        return file
    }
}
