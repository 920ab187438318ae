// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeVP8L

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
        let sizeBits = UInt32(self.sizeBits)
        switch self.kind {
        case .predictor: cvp8l_add_prediction(pixels, &self.above, self.width, row, self.data, sizeBits)
        case .color: cvp8l_add_colors(pixels, self.width, row, self.data, sizeBits)
        case .subtractGreen: cvp8l_add_green(pixels, self.width)
        case .palette: cvp8l_look_up(pixels, self.width, self.data, sizeBits)
        }
    }
}
#endif
