import CPixelKernels
import TintypeImage

/// What one frame draws, and the colours of a palette in which it does.
struct GIFPatch {
    /// How pixels get their colours.
    enum Colors {
        /// All of them are there.
        case exact(ColorSet)
        /// The nearest one is taken.
        case nearest([UInt32])
    }

    /// The work of finding the colours of a pixel, and of writing one.
    private static let (scanUnits, writeUnits) = (1, 8)

    let drawing: GIFDrawing
    private let colors: Colors
    /// The colours with the entry that draws nothing.
    let palette: [UInt32]
    /// Whether the palette is that of the whole file.
    let isShared: Bool
    /// The index that draws nothing, or `nil` when all pixels are drawn.
    let transparentIndex: UInt8?

    /// The number of colours of a table that holds `palette`: a power of two, and one more entry to draw nothing.
    static func tableSize(of palette: [UInt32]) -> Int { 2 << Self.tableBits(entryCount: palette.count) }

    /// What a table of `entryCount` colours or more has in its flags.
    static func tableBits(entryCount: Int) -> Int {
        max(0, Int.bitWidth - max(1, entryCount - 1).leadingZeroBitCount - 1)
    }

    /// The memory of writing rows of `width` pixels, beside what is written.
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

    /// What is known about the pixels of a drawing.
    struct Scan {
        let drawing: GIFDrawing
        /// Whether pixels are left out.
        var hasTransparency = false
        /// All colours, if they are few and were looked for.
        var colors: ColorSet?

        /// Looks at all pixels.
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

        /// Returns the patch in colours that are all exact, or `nil` when no palette of `maximumColorCount` entries, 2
        /// to 256, holds them; `shared` are those of the whole file, if they are few.
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

        /// Returns the patch in the nearest colours: those of `shared`, the palette of the whole file, if there is one.
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
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
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
