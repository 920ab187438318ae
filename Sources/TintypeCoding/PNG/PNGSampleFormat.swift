// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// The storage of images in a PNG that is being written.
///
/// It has the colour type with the fewest bits that keeps every pixel.
struct PNGSampleFormat {
    let bitDepth: Int
    let colorType: PNGLayout.ColorType
    /// The colours, if the image is stored as indices; otherwise `nil`.
    let palette: ColorSet?
    let pixelFormat: PixelFormat

    /// Chooses the storage for images with one pixel format, which share a palette.
    init(_ images: [PixelBuffer], format: PixelFormat) throws {
        self.pixelFormat = format
        let palette = try Self.palette(of: images)
        if let palette, format != .gray8, Self.isWorthwhile(palette, for: images, format) {
            self.palette = palette
            self.colorType = .palette
            self.bitDepth = [1, 2, 4].first { palette.colors.count <= 1 << $0 } ?? 8
        } else {
            self.palette = nil
            self.colorType = format == .gray8 ? .gray : format == .rgb8 ? .rgb : .rgba
            self.bitDepth = format == .gray8 ? Self.grayDepth(of: palette) : 8
        }
    }

    /// Whether filters are likely to help; with few colours, neighbouring indices are unrelated.
    var suitsFilters: Bool { self.palette == nil && self.bitDepth == 8 }

    /// Returns the content of the header chunk.
    func header(width: Int, height: Int) -> Data {
        var data = Data()
        data.append(bigEndian: UInt32(width))
        data.append(bigEndian: UInt32(height))
        data.append(contentsOf: [UInt8(self.bitDepth), self.colorType.rawValue, 0, 0, 0])
        return data
    }

    /// Appends the palette with its transparency, if there is one.
    func appendPalette(to writer: inout PNGWriter) {
        guard let palette else { return }
        writer.append(.palette, Data(palette.colors.paletteBytes))
        guard self.pixelFormat.hasAlpha else { return }
        // Missing entries at the end are opaque. Write at least one entry, so that the image keeps its alpha.
        let last = palette.colors.lastIndex { $0 >> 24 != 255 } ?? 0
        writer.append(.transparency, Data(palette.colors[...last].map { UInt8($0 >> 24) }))
    }

    /// Returns the bytes of a scanline of `width` pixels, without its filter byte.
    func byteCount(ofLine width: Int) -> Int {
        (width * self.bitDepth * self.colorType.channelCount + 7) / 8
    }

    /// Writes a part of a row as a scanline, and leaves the rest of `line` unchanged.
    func write(row: Int, of pixels: PixelBuffer, columns: Range<Int>, to line: UnsafeMutablePointer<UInt8>) {
        if let palette {
            palette.write(row: row, of: pixels, columns: columns, to: line)
            self.pack(line, count: columns.count, shift: 0)
            return
        }
        let channels = pixels.format.channelCount
        let plane = pixels.layout.planes[0]
        pixels.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            let start = base + plane.offset + row * plane.bytesPerRow + columns.lowerBound * channels
            UnsafeMutableRawPointer(line).copyMemory(from: start, byteCount: columns.count * channels)
        }
        // For gray of fewer bits, the highest bits determine the rest.
        self.pack(line, count: columns.count, shift: 8 - self.bitDepth)
    }

    /// Packs samples of one byte each, the leftmost into the highest bits.
    private func pack(_ line: UnsafeMutablePointer<UInt8>, count: Int, shift: Int) {
        guard self.bitDepth < 8 else { return }
        let perByte = 8 / self.bitDepth
        for start in stride(from: 0, to: count, by: perByte) {
            var byte: UInt8 = 0
            for index in 0..<perByte {
                let sample = start + index < count ? line[start + index] >> UInt8(shift) : 0
                byte |= sample << UInt8(8 - self.bitDepth * (index + 1))
            }
            line[start / perByte] = byte
        }
    }

    private static func palette(of images: [PixelBuffer]) throws -> ColorSet? {
        var palette = ColorSet()
        for image in images {
            guard try palette.insert(image) else { return nil }
        }
        return palette
    }

    /// Returns whether the palette takes less than half of what it saves, because the saved bytes compress well.
    private static func isWorthwhile(_ palette: ColorSet, for images: [PixelBuffer], _ format: PixelFormat) -> Bool {
        let pixels = images.reduce(0) { $0 + $1.width * $1.height }
        return 2 * (palette.colors.count * format.channelCount + 2 * PNGChunk.overhead) < pixels
            * (format.channelCount - 1)
    }

    /// Returns the fewest bits that store every gray exactly.
    private static func grayDepth(of palette: ColorSet?) -> Int {
        guard let palette else { return 8 }
        let grays = palette.colors.map { $0 & 255 }
        // One step of this depth in units of 8-bit gray.
        return [(1, 255), (2, 85), (4, 17)].first { step in grays.allSatisfy { $0 % UInt32(step.1) == 0 } }?.0 ?? 8
    }
}
