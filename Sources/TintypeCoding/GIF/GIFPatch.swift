/// The part of the canvas that one frame draws, in the colours of a palette.
struct GIFPatch {
    /// The colours that the part needs; `nil` for those of the whole file.
    let palette: [UInt32]?
    /// The index that draws nothing, or `nil` when all pixels are drawn.
    let transparentIndex: UInt8?
    /// The image data with its first code size.
    let data: [UInt8]

    /// The bytes that it takes, without the blocks of fixed size.
    var byteCount: Int { self.data.count + (self.palette.map { Self.tableSize(of: $0) * 3 } ?? 0) }

    /// The number of colours of a table that holds `palette`: a power of two, and one more entry to draw nothing.
    static func tableSize(of palette: [UInt32]) -> Int { 2 << Self.tableBits(entryCount: palette.count) }

    /// What a table of `entryCount` colours or more has in its flags.
    static func tableBits(entryCount: Int) -> Int {
        max(0, Int.bitWidth - max(1, entryCount - 1).leadingZeroBitCount - 1)
    }

    /// Finds the palette of a part and writes its pixels with it; `nil` when that can't be exact and must be.
    ///
    /// - Parameters:
    ///   - pixels: What is to be drawn; zero where nothing is.
    ///   - width: The width of the part.
    ///   - shared: The colours of the whole file, where they are few.
    ///   - sharedPalette: The colours of the whole file that are nearest, where they are many.
    ///   - maximumColorCount: The most entries of a palette, 2 to 256.
    ///   - isDithered: Whether colours that are missing are mixed.
    ///   - mustBeExact: Whether only a palette that holds all colours will do.
    /// - Throws: `CancellationError`.
    init?(
        _ pixels: [UInt32],
        width: Int,
        shared: ColorSet?,
        sharedPalette: [UInt32]? = nil,
        maximumColorCount: Int,
        isDithered: Bool,
        mustBeExact: Bool = false
    ) throws {
        let maximum = pixels.contains(0) ? maximumColorCount - 1 : maximumColorCount
        if let shared, shared.colors.count <= maximum {
            self.init(exactly: pixels, colors: shared, isShared: true)
            return
        }
        var colors = ColorSet()
        if sharedPalette == nil, colors.insert(opaque: pixels), colors.colors.count <= maximum {
            self.init(exactly: pixels, colors: colors, isShared: false)
            return
        }
        guard !mustBeExact else { return nil }
        if let sharedPalette {
            let transparentIndex = UInt8(clamping: sharedPalette.count)
            var mapper = PaletteMapper(palette: sharedPalette, transparentIndex: transparentIndex)
            let indices = try isDithered ? mapper.dither(pixels, width: width) : mapper.map(pixels, width: width)
            self.init(
                indices,
                palette: sharedPalette,
                isShared: true,
                transparentIndex: pixels.contains(0) ? transparentIndex : nil
            )
            return
        }
        var quantizer = ColorQuantizer()
        quantizer.count(pixels)
        let palette = try quantizer.colors(maximum: maximum)
        let transparentIndex = UInt8(clamping: palette.count)
        var mapper = PaletteMapper(palette: palette, transparentIndex: transparentIndex)
        let indices = try isDithered ? mapper.dither(pixels, width: width) : mapper.map(pixels, width: width)
        let isWhole = maximum == maximumColorCount
        self.init(indices, palette: palette, isShared: false, transparentIndex: isWhole ? nil : transparentIndex)
    }

    private init(exactly pixels: [UInt32], colors: ColorSet, isShared: Bool) {
        let transparentIndex = UInt8(clamping: colors.colors.count)
        var lastPixel: UInt32 = 0
        var lastIndex = transparentIndex
        var isWhole = true
        let indices = pixels.map { pixel in
            if pixel != lastPixel {
                lastPixel = pixel
                lastIndex = colors.index(of: pixel) ?? transparentIndex
            }
            if pixel == 0 { isWhole = false }
            return lastIndex
        }
        self.init(
            indices,
            palette: colors.colors,
            isShared: isShared,
            transparentIndex: isWhole ? nil : transparentIndex
        )
    }

    private init(_ indices: [UInt8], palette: [UInt32], isShared: Bool, transparentIndex: UInt8?) {
        // The entry that draws nothing has a place in the table too.
        let palette = palette + (transparentIndex == nil ? [] : [0])
        self.palette = isShared ? nil : palette
        self.transparentIndex = transparentIndex
        let bits = Self.tableBits(entryCount: palette.count) + 1
        self.data = GIFCodeWriter.imageData(indices, minimumCodeSize: max(2, bits))
    }
}
