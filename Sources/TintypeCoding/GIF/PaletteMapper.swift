// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
package import TintypeImage

/// Maps an image to the colours of a palette, row by row from the top.
///
/// Dithering spreads the error of each pixel over the next ones. Rows alternate in direction, which hides the pattern.
/// Source: R. Floyd and L. Steinberg, "An Adaptive Algorithm for Spatial Greyscale", Proceedings of the Society for
/// Information Display 17 (1976).
package struct PaletteMapper: ~Copyable {
    private let memory: AlignedMemory
    private let transparentIndex: UInt8
    private let isDithered: Bool
    private var isReversed = false
    /// The errors of this row and the next one: four numbers a pixel, with one extra pixel on both sides.
    private var errors: [Int32]
    private var nextErrors: [Int32]

    /// Prepares a palette.
    ///
    /// - Parameters:
    ///   - palette: 1 to 256 opaque colours.
    ///   - transparentIndex: The index of pixels that are zero.
    ///   - width: The pixels of a row.
    ///   - isDithered: Whether missing colours are mixed from others.
    /// - Throws: `ImageError` when memory runs out.
    package init(palette: [UInt32], transparentIndex: UInt8, width: Int, isDithered: Bool) throws(ImageError) {
        precondition((1...256).contains(palette.count))
        self.memory = try AlignedMemory(byteCount: cpixels_palette_size())
        self.transparentIndex = transparentIndex
        self.isDithered = isDithered
        self.errors = Array(repeating: 0, count: isDithered ? 4 * (width + 2) : 0)
        self.nextErrors = self.errors
        cpixels_palette_prepare(OpaquePointer(self.memory.start), palette, palette.count)
    }

    /// Returns the memory in bytes of a mapper for rows of `width` pixels.
    static func byteCount(width: Int) -> Int { cpixels_palette_size() + 2 * 16 * (width + 2) }

    /// Writes the index of the nearest colour of each pixel of the next row.
    package mutating func map(_ row: [UInt32], to indices: inout [UInt8]) {
        precondition(indices.count >= row.count)
        let palette = OpaquePointer(self.memory.start)
        guard self.isDithered else {
            return cpixels_map_row(palette, row, row.count, self.transparentIndex, &indices)
        }
        precondition(self.errors.count >= 4 * (row.count + 2))
        cpixels_dither_row(
            palette,
            row,
            row.count,
            self.transparentIndex,
            self.isReversed,
            self.errors,
            &self.nextErrors,
            &indices
        )
        swap(&self.errors, &self.nextErrors)
        self.isReversed.toggle()
    }
}
