// SPDX-License-Identifier: Apache-2.0

import Tintype

/// Writes images as Sixel: bands of six rows, in which each colour of a palette is drawn by itself.
///
/// Source: "VT330/VT340 Programmer Reference Manual", volume 2, chapter 14. Colours have 101 levels a channel there.
enum SixelEncoder {
    /// The rows of a band.
    static let bandHeight = 6
    private static let maximumColorCount = 256

    /// Draws an image at the cursor; pixels that are hardly opaque leave what is there.
    ///
    /// - Parameters:
    ///   - pixels: The image.
    ///   - isDithered: Whether colours that are missing are mixed: for stills, since the grain of frames would crawl.
    /// - Returns: The escape code.
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    static func encode(_ pixels: TerminalPixels, isDithered: Bool) throws -> [UInt8] {
        let (palette, indices) = try Self.indexed(pixels, isDithered: isDithered)
        // 1: what is not drawn stays. Then the shape of a pixel, and the size.
        var bytes = Array("\u{1B}P0;1;0q\"1;1;\(pixels.width);\(pixels.height)".utf8)
        for (index, color) in palette.enumerated() {
            let levels = (0..<3).map { ((color >> ($0 * 8) & 255) * 100 + 127) / 255 }
            bytes += "#\(index);2;\(levels[0]);\(levels[1]);\(levels[2])".utf8
        }
        var band = Band(width: pixels.width, colorCount: palette.count)
        for top in stride(from: 0, to: pixels.height, by: Self.bandHeight) {
            try Task.checkCancellation()
            if top > 0 { bytes.append(UInt8(ascii: "-")) }
            let rows = top..<min(top + Self.bandHeight, pixels.height)
            band.write(indices[rows.lowerBound * pixels.width..<rows.upperBound * pixels.width], to: &bytes)
        }
        bytes += "\u{1B}\\".utf8
        return bytes
    }

    /// The colours, and for each pixel the index of one; the index after the last stands for no colour.
    private static func indexed(
        _ pixels: TerminalPixels,
        isDithered: Bool
    ) throws -> (palette: [UInt32], indices: [UInt16]) {
        let masked = pixels.masked
        var (colors, indices) = (ColorSet(), [UInt8](repeating: 0, count: masked.count))
        if colors.insert(opaque: masked) {
            colors.write(masked, missing: 0, to: &indices)
            return (colors.colors, Self.marking(masked, indices, none: colors.count))
        }
        var quantizer = try ColorQuantizer()
        quantizer.count(masked)
        let palette = try quantizer.colors(maximum: Self.maximumColorCount)
        var mapper = try PaletteMapper(
            palette: palette,
            transparentIndex: 0,
            width: pixels.width,
            isDithered: isDithered
        )
        var row = [UInt8](repeating: 0, count: pixels.width)
        for start in stride(from: 0, to: masked.count, by: max(1, pixels.width)) {
            try Task.checkCancellation()
            mapper.map(Array(masked[start..<start + pixels.width]), to: &row)
            indices.replaceSubrange(start..<start + pixels.width, with: row)
        }
        return (palette, Self.marking(masked, indices, none: palette.count))
    }

    /// The indices: pixels without a colour have the index `none`.
    private static func marking(_ pixels: [UInt32], _ indices: [UInt8], none: Int) -> [UInt16] {
        zip(pixels, indices).map { $0 == 0 ? UInt16(none) : UInt16($1) }
    }

    /// One band, colour by colour.
    private struct Band {
        private let width: Int
        private let colorCount: Int
        /// For each colour the columns, in each of them a bit for each row.
        private var masks: [UInt8]
        /// The columns from the first to the last that have a colour.
        private var extents: [Range<Int>?]

        init(width: Int, colorCount: Int) {
            self.width = width
            self.colorCount = colorCount
            self.masks = Array(repeating: 0, count: width * colorCount)
            self.extents = Array(repeating: nil, count: colorCount)
        }

        mutating func write(_ indices: ArraySlice<UInt16>, to bytes: inout [UInt8]) {
            for (offset, index) in indices.enumerated() where index < self.colorCount {
                let (row, column) = (offset / self.width, offset % self.width)
                self.masks[Int(index) * self.width + column] |= 1 << row
                let extent = self.extents[Int(index)] ?? column..<column + 1
                self.extents[Int(index)] = min(extent.lowerBound, column)..<max(extent.upperBound, column + 1)
            }
            var isFirst = true
            for color in 0..<self.colorCount {
                guard let extent = self.extents[color].take() else { continue }
                // Back to the first column of the band.
                if !isFirst { bytes.append(UInt8(ascii: "$")) }
                isFirst = false
                bytes += "#\(color)".utf8
                self.writeRow(of: color, extent, to: &bytes)
            }
        }

        private mutating func writeRow(of color: Int, _ extent: Range<Int>, to bytes: inout [UInt8]) {
            let start = color * self.width
            Self.write(0, count: extent.lowerBound, to: &bytes)
            var run = 0
            var last = self.masks[start + extent.lowerBound]
            for column in extent {
                let mask = self.masks[start + column]
                self.masks[start + column] = 0
                if mask != last {
                    Self.write(last, count: run, to: &bytes)
                    (last, run) = (mask, 0)
                }
                run += 1
            }
            Self.write(last, count: run, to: &bytes)
        }

        /// Writes equal columns; from four on a count is shorter.
        private static func write(_ mask: UInt8, count: Int, to bytes: inout [UInt8]) {
            let sixel = UInt8(ascii: "?") + mask
            if count > 3 {
                bytes += "!\(count)".utf8
                bytes.append(sixel)
            } else {
                for _ in 0..<count { bytes.append(sixel) }
            }
        }
    }
}
