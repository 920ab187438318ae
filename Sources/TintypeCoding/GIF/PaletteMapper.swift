/// Writes a picture in the colours of a palette.
package struct PaletteMapper {
    private static let cacheSize = 1 << 14

    private let palette: [UInt32]
    private let transparentIndex: UInt8
    private let search: NearestColor
    /// Colours that were looked for, which often come again.
    private var cachedColors = [UInt32](repeating: 0, count: cacheSize)
    private var cachedIndices = [UInt8](repeating: 0, count: cacheSize)

    /// Prepares to use a palette; pixels that are zero become `transparentIndex`.
    package init(palette: [UInt32], transparentIndex: UInt8) {
        self.palette = palette
        self.transparentIndex = transparentIndex
        self.search = NearestColor(palette)
    }

    /// The index of the nearest colour, for each pixel.
    ///
    /// - Throws: `CancellationError`.
    package mutating func map(_ pixels: [UInt32], width: Int) throws -> [UInt8] {
        var indices = [UInt8](repeating: self.transparentIndex, count: pixels.count)
        for place in pixels.indices {
            if place % (width * 16) == 0 { try Task.checkCancellation() }
            if pixels[place] != 0 { indices[place] = self.nearest(pixels[place]) }
        }
        return indices
    }

    /// The same, with the error of each pixel spread over those that follow.
    ///
    /// Rows are read to and fro, which hides the pattern. Source: R. Floyd and L. Steinberg, "An Adaptive Algorithm
    /// for Spatial Greyscale", Proceedings of the Society for Information Display 17 (1976).
    ///
    /// - Throws: `CancellationError`.
    package mutating func dither(_ pixels: [UInt32], width: Int) throws -> [UInt8] {
        var indices = [UInt8](repeating: self.transparentIndex, count: pixels.count)
        // One more pixel on both sides; sixteenths of a level.
        var errors = [SIMD4<Int32>](repeating: .zero, count: width + 2)
        var nextErrors = errors
        for row in 0..<pixels.count / max(1, width) {
            try Task.checkCancellation()
            let step = row % 2 == 0 ? 1 : -1
            var column = row % 2 == 0 ? 0 : width - 1
            while column >= 0, column < width {
                let pixel = pixels[row * width + column]
                if pixel != 0 {
                    let wanted = Self.channels(pixel) &+ (errors[column + 1] &+ 8) &>> 4
                    let color = Self.pixel(wanted.clamped(lowerBound: .zero, upperBound: .init(repeating: 255)))
                    let index = self.nearest(color)
                    indices[row * width + column] = index
                    // Where the palette can't follow, an error must not grow without end.
                    let limit = SIMD4<Int32>(repeating: 64)
                    let error = (wanted &- Self.channels(self.palette[Int(index)]))
                        .clamped(lowerBound: SIMD4<Int32>.zero &- limit, upperBound: limit)
                    errors[column + 1 + step] &+= error &* 7
                    nextErrors[column + 1 - step] &+= error &* 3
                    nextErrors[column + 1] &+= error &* 5
                    nextErrors[column + 1 + step] &+= error
                }
                column += step
            }
            swap(&errors, &nextErrors)
            for place in nextErrors.indices { nextErrors[place] = .zero }
        }
        return indices
    }

    private mutating func nearest(_ color: UInt32) -> UInt8 {
        let slot = Int((color &* 0x9E37_79B1) >> 18)
        if self.cachedColors[slot] == color { return self.cachedIndices[slot] }
        let channels = Self.channels(color)
        let index = self.search.index(red: Float(channels.x), green: Float(channels.y), blue: Float(channels.z))
        self.cachedColors[slot] = color
        self.cachedIndices[slot] = UInt8(index)
        return UInt8(index)
    }

    private static func channels(_ pixel: UInt32) -> SIMD4<Int32> {
        SIMD4(Int32(pixel & 255), Int32(pixel >> 8 & 255), Int32(pixel >> 16 & 255), 0)
    }

    private static func pixel(_ channels: SIMD4<Int32>) -> UInt32 {
        0xFF00_0000 | UInt32(channels.z) << 16 | UInt32(channels.y) << 8 | UInt32(channels.x)
    }
}
