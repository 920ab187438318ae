// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels

/// The pixels that one frame draws, and the palette for them.
struct GIFPatch {
    /// How pixels are mapped to colours.
    enum Colors {
        /// The palette has the colour of each pixel.
        case exact(ColorSet)
        /// Each pixel gets the nearest colour of the palette.
        case nearest([UInt32])
    }

    /// The work of finding the colours of a pixel, and of writing one.
    private static let (scanUnits, writeUnits) = (1, 8)

    let drawing: GIFDrawing
    private let colors: Colors
    /// The colours, including the entry for transparent pixels if there is one.
    let palette: [UInt32]
    /// Whether the palette is that of the whole file.
    let isShared: Bool
    /// The index of transparent pixels, or `nil` if all pixels are drawn.
    let transparentIndex: UInt8?

    /// Returns the number of colours in a table that holds `palette`, which is a power of two.
    static func tableSize(of palette: [UInt32]) -> Int { 2 << Self.tableBits(entryCount: palette.count) }

    /// Returns the value in the flags of the smallest table with at least `entryCount` colours.
    static func tableBits(entryCount: Int) -> Int {
        max(0, Int.bitWidth - max(1, entryCount - 1).leadingZeroBitCount - 1)
    }

    /// Returns the memory in bytes for writing rows of `width` pixels, without the output.
    static func byteCount(width: Int) -> Int {
        // Two rows of pixels and one of indices; the distinct colours of the file and of a frame.
        GIFCodeWriter.byteCount + PaletteMapper.byteCount(width: width) + 9 * width + 16 << 10
    }

    private init(_ drawing: GIFDrawing, _ colors: Colors, isShared: Bool, hasTransparency: Bool) {
        let palette =
            switch colors {
            case .exact(let set): set.colors
            case .nearest(let palette): palette
            }
        self.drawing = drawing
        self.colors = colors
        self.isShared = isShared
        self.transparentIndex = hasTransparency ? UInt8(clamping: palette.count) : nil
        self.palette = hasTransparency ? palette + [0] : palette
    }

    // MARK: Palettes

    /// The result of scanning the pixels of a drawing.
    struct Scan {
        let drawing: GIFDrawing
        /// Whether some pixels are transparent.
        var hasTransparency = false
        /// All colours, if they were requested and are few.
        var colors: ColorSet?

        /// Scans all pixels.
        ///
        /// - Throws: `CancellationError`.
        init(_ drawing: GIFDrawing, findsColors: Bool, work: DecodeWork) throws {
            self.drawing = drawing
            var (colors, areFew, hasTransparency) = (ColorSet(), findsColors, false)
            try drawing.forEachRow(work, unitsPerPixel: GIFPatch.scanUnits) { row in
                areFew = areFew && colors.insert(opaque: row)
                hasTransparency = hasTransparency || cpixels_has_zero(row, row.count)
                return areFew || !hasTransparency
            }
            self.colors = areFew ? colors : nil
            self.hasTransparency = hasTransparency
        }

        /// Returns the patch in exact colours; `nil` if a palette of `maximumColorCount` entries, 2 to 256, cannot hold
        /// them.
        ///
        /// `shared` are the colours of the whole file, if they are few.
        func exactPatch(shared: ColorSet?, maximumColorCount: Int) -> GIFPatch? {
            let maximum = self.hasTransparency ? maximumColorCount - 1 : maximumColorCount
            func patch(_ colors: ColorSet?, isShared: Bool) -> GIFPatch? {
                guard let colors, colors.count <= maximum else { return nil }
                return GIFPatch(
                    self.drawing,
                    .exact(colors),
                    isShared: isShared,
                    hasTransparency: self.hasTransparency
                )
            }
            return patch(shared, isShared: true) ?? patch(self.colors, isShared: false)
        }

        /// Returns the patch in the nearest colours: of `shared`, the palette of the whole file, or of a palette of its
        /// own.
        ///
        /// - Throws: `ImageError` when memory runs out, `CancellationError`.
        func nearestPatch(shared: [UInt32]?, maximumColorCount: Int, work: DecodeWork) throws -> GIFPatch {
            let palette = try shared ?? self.quantized(maximumColorCount: maximumColorCount, work: work)
            return GIFPatch(
                self.drawing,
                .nearest(palette),
                isShared: shared != nil,
                hasTransparency: self.hasTransparency
            )
        }

        private func quantized(maximumColorCount: Int, work: DecodeWork) throws -> [UInt32] {
            var quantizer = try ColorQuantizer()
            try self.drawing.forEachRow(work, unitsPerPixel: GIFPatch.scanUnits) { row in
                quantizer.count(row)
                return true
            }
            return try quantizer.colors(
                maximum: self.hasTransparency ? maximumColorCount - 1 : maximumColorCount
            )
        }
    }

    // MARK: Image data

    /// Writes the image data.
    ///
    /// - Throws: `ImageError` or `CodingError` when memory runs out, `CancellationError`.
    func write(to output: inout GIFOutput, isDithered: Bool, work: DecodeWork) throws {
        let bits = max(2, Self.tableBits(entryCount: self.palette.count) + 1)
        var writer = try GIFCodeWriter(minimumCodeSize: bits, output: &output)
        let width = self.drawing.area.columns.count
        var indices = [UInt8](repeating: 0, count: width)
        switch self.colors {
        case .exact(let colors):
            try self.drawing.forEachRow(work, unitsPerPixel: Self.writeUnits) { row in
                colors.write(row, missing: self.transparentIndex ?? 0, to: &indices)
                try writer.write(indices, to: &output)
                return true
            }
        case .nearest(let palette):
            var mapper = try PaletteMapper(
                palette: palette,
                transparentIndex: self.transparentIndex ?? 0,
                width: width,
                isDithered: isDithered
            )
            try self.drawing.forEachRow(work, unitsPerPixel: Self.writeUnits) { row in
                mapper.map(row, to: &indices)
                try writer.write(indices, to: &output)
                return true
            }
        }
        try writer.finish(to: &output)
    }
}
