// SPDX-License-Identifier: Apache-2.0

#if WebP
/// One of the reversible transforms that the encoder applied to a VP8L image, which are undone row by row.
///
/// Source: RFC 9649, section 3.5. Pixels have alpha in the highest byte, then red, green and blue.
struct VP8LTransform {
    enum Kind {
        /// Pixels are differences from a prediction by neighbours; the tiles select the prediction.
        case predictor
        /// Red and blue are differences from fractions of green and red; the tiles contain the fractions.
        case color
        /// Red and blue are differences from green.
        case subtractGreen
        /// Green contains one or several indices into a palette.
        case palette
    }

    let kind: Kind
    /// The width of the image after this transform is undone.
    let width: Int
    /// As a power of two: the side of a tile or, for a palette, the number of pixels in one coded pixel.
    let sizeBits: Int
    /// One pixel for each tile, or the colours.
    let data: [UInt32]
    /// The previous row of output, followed by the first pixel of the current row.
    private var above: [UInt32] = []

    init(kind: Kind, width: Int, sizeBits: Int = 0, data: [UInt32] = []) {
        self.kind = kind
        self.width = width
        self.sizeBits = sizeBits
        self.data = data
        if kind == .predictor { self.above = Array(repeating: 0, count: width + 1) }
    }

    /// Returns the number of palette indices in one coded pixel, as a power of two.
    static func sizeBits(ofColors count: Int) -> Int { count > 16 ? 0 : count > 4 ? 1 : count > 2 ? 2 : 3 }

    /// Undoes the transform for row `row` in place; there must be room for `width` pixels.
    mutating func undo(_ pixels: UnsafeMutablePointer<UInt32>, row: Int) {
        switch self.kind {
        case .predictor: self.predict(pixels, row: row)
        case .color: self.addColors(pixels, row: row)
        case .subtractGreen:
            for column in 0..<self.width {
                let pixel = pixels[column]
                let green = pixel >> 8 & 0xFF
                let others = (pixel & 0x00FF_00FF) &+ (green << 16 | green)
                pixels[column] = pixel & 0xFF00_FF00 | others & 0x00FF_00FF
            }
        case .palette: self.lookUp(pixels)
        }
    }

    private func lookUp(_ pixels: UnsafeMutablePointer<UInt32>) {
        let bitsPerIndex = UInt32(8 >> self.sizeBits)
        let mask = UInt32(1) << bitsPerIndex - 1
        let (sizeBits, width) = (self.sizeBits, self.width)
        self.data.withUnsafeBufferPointer { colors in
            // From right to left, because the indices take less room than the pixels.
            var coded = (width - 1) >> sizeBits
            var end = width
            while coded >= 0 {
                var indices = pixels[coded] >> 8 & 0xFF
                let start = coded << sizeBits
                for column in start..<end {
                    pixels[column] = colors[Int(indices & mask)]
                    indices &>>= bitsPerIndex
                }
                end = start
                coded -= 1
            }
        }
    }

    private func addColors(_ pixels: UnsafeMutablePointer<UInt32>, row: Int) {
        let tileWidth = 1 << self.sizeBits
        let tilesPerRow = (self.width + tileWidth - 1) >> self.sizeBits
        let tiles = (row >> self.sizeBits) * tilesPerRow
        for tile in 0..<tilesPerRow {
            let element = self.data[tiles + tile]
            let greenToRed = Int32(Int8(truncatingIfNeeded: element))
            let greenToBlue = Int32(Int8(truncatingIfNeeded: element >> 8))
            let redToBlue = Int32(Int8(truncatingIfNeeded: element >> 16))
            for column in tile << self.sizeBits..<min((tile + 1) << self.sizeBits, self.width) {
                let pixel = pixels[column]
                let green = Int32(Int8(truncatingIfNeeded: pixel >> 8))
                let red = Int32(bitPattern: pixel >> 16 & 0xFF) &+ (greenToRed &* green) >> 5
                let sum = Int32(bitPattern: pixel & 0xFF) &+ (greenToBlue &* green) >> 5
                let blue = sum &+ (redToBlue &* Int32(Int8(truncatingIfNeeded: red))) >> 5
                pixels[column] =
                    pixel & 0xFF00_FF00 | UInt32(bitPattern: red & 0xFF) << 16 | UInt32(bitPattern: blue & 0xFF)
            }
        }
    }

    // MARK: Prediction

    private mutating func predict(_ pixels: UnsafeMutablePointer<UInt32>, row: Int) {
        let width = self.width
        if row == 0 {
            pixels[0] = Self.add(pixels[0], 0xFF00_0000)
            for column in 1..<max(1, width) { pixels[column] = Self.add(pixels[column], pixels[column - 1]) }
        } else {
            let sizeBits = self.sizeBits
            let tiles = (row >> sizeBits) * ((width + 1 << sizeBits - 1) >> sizeBits)
            self.above.withUnsafeMutableBufferPointer { above in
                guard let above = above.baseAddress else { return }
                pixels[0] = Self.add(pixels[0], above[0])
                above[width] = pixels[0]
                var start = 1
                while start < width {
                    let end = min((start >> sizeBits + 1) << sizeBits, width)
                    let mode = self.data[tiles + start >> sizeBits] >> 8 & 0xF
                    Self.predict(pixels, above, start..<end, mode: mode)
                    start = end
                }
            }
        }
        self.above.withUnsafeMutableBufferPointer { $0.baseAddress?.update(from: pixels, count: width) }
    }

    private static func predict(
        _ pixels: UnsafeMutablePointer<UInt32>,
        _ above: UnsafeMutablePointer<UInt32>,
        _ columns: Range<Int>,
        mode: UInt32
    ) {
        switch mode {
        case 1: self.fill(pixels, columns) { left, _ in left }
        case 2: for column in columns { pixels[column] = self.add(pixels[column], above[column]) }
        case 3: for column in columns { pixels[column] = self.add(pixels[column], above[column + 1]) }
        case 4: for column in columns { pixels[column] = self.add(pixels[column], above[column - 1]) }
        case 5:
            self.fill(pixels, columns) { left, column in
                self.mean(self.mean(left, above[column + 1]), above[column])
            }
        case 6: self.fill(pixels, columns) { left, column in self.mean(left, above[column - 1]) }
        case 7: self.fill(pixels, columns) { left, column in self.mean(left, above[column]) }
        case 8:
            for column in columns {
                pixels[column] = self.add(pixels[column], self.mean(above[column - 1], above[column]))
            }
        case 9:
            for column in columns {
                pixels[column] = self.add(pixels[column], self.mean(above[column], above[column + 1]))
            }
        case 10:
            self.fill(pixels, columns) { left, column in
                self.mean(self.mean(left, above[column - 1]), self.mean(above[column], above[column + 1]))
            }
        case 11:
            self.fill(pixels, columns) { left, column in self.select(above[column], left, above[column - 1]) }
        case 12:
            self.fill(pixels, columns) { left, column in
                self.clampedSum(left, above[column], less: above[column - 1])
            }
        case 13:
            self.fill(pixels, columns) { left, column in
                self.clampedHalf(self.mean(left, above[column]), above[column - 1])
            }
        default: for column in columns { pixels[column] = self.add(pixels[column], 0xFF00_0000) }
        }
    }

    /// Adds predictions that depend on the pixel to the left.
    @inline(__always)
    private static func fill(
        _ pixels: UnsafeMutablePointer<UInt32>,
        _ columns: Range<Int>,
        _ prediction: (_ left: UInt32, _ column: Int) -> UInt32
    ) {
        var left = pixels[columns.lowerBound - 1]
        for column in columns {
            left = self.add(pixels[column], prediction(left, column))
            pixels[column] = left
        }
    }

    @inline(__always)
    private static func add(_ first: UInt32, _ second: UInt32) -> UInt32 {
        let alphaAndGreen = (first & 0xFF00_FF00) &+ (second & 0xFF00_FF00)
        let redAndBlue = (first & 0x00FF_00FF) &+ (second & 0x00FF_00FF)
        return alphaAndGreen & 0xFF00_FF00 | redAndBlue & 0x00FF_00FF
    }

    @inline(__always)
    private static func mean(_ first: UInt32, _ second: UInt32) -> UInt32 {
        ((first ^ second) & 0xFEFE_FEFE) >> 1 &+ (first & second)
    }

    /// Returns the top or the left pixel, whichever is nearer to their sum minus `corner`.
    @inline(__always)
    private static func select(_ top: UInt32, _ left: UInt32, _ corner: UInt32) -> UInt32 {
        var toTop: Int32 = 0
        var toLeft: Int32 = 0
        for shift in 0..<4 {
            let corner = self.channel(corner, shift)
            toTop &+= abs(self.channel(left, shift) &- corner)
            toLeft &+= abs(self.channel(top, shift) &- corner)
        }
        return toTop <= toLeft ? top : left
    }

    @inline(__always)
    private static func channel(_ pixel: UInt32, _ number: Int) -> Int32 {
        Int32(bitPattern: pixel &>> UInt32(8 &* number) & 0xFF)
    }

    @inline(__always)
    private static func clamped(_ value: Int32, _ number: Int) -> UInt32 {
        UInt32(bitPattern: min(max(value, 0), 255)) &<< UInt32(8 &* number)
    }

    @inline(__always)
    private static func clampedSum(_ left: UInt32, _ top: UInt32, less corner: UInt32) -> UInt32 {
        var result: UInt32 = 0
        for number in 0..<4 {
            let sum = self.channel(left, number) &+ self.channel(top, number) &- self.channel(corner, number)
            result |= self.clamped(sum, number)
        }
        return result
    }

    @inline(__always)
    private static func clampedHalf(_ mean: UInt32, _ corner: UInt32) -> UInt32 {
        var result: UInt32 = 0
        for number in 0..<4 {
            let value = self.channel(mean, number)
            // Halves are rounded towards zero.
            result |= self.clamped(value &+ (value &- self.channel(corner, number)) / 2, number)
        }
        return result
    }
}
#endif
