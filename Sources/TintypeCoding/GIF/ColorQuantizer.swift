// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
package import TintypeImage

/// Chooses the few colours that represent an image best.
///
/// It cuts boxes of the colour space at the place that lowers the squared error most. Then it moves each colour to the
/// mean of its nearest pixels. Sources: X. Wu, "Color Quantization by Dynamic Programming and Principal Analysis", ACM
/// Transactions on Graphics 11 (1992), its greedy variant; S. Lloyd, "Least Squares Quantization in PCM", IEEE
/// Transactions on Information Theory 28 (1982).
package struct ColorQuantizer: ~Copyable {
    private static let refinements = 4
    private static let cellByteCount = Int(cpixels_cell_count) * MemoryLayout<cpixels_cell>.stride
    private static let sumByteCount = Int(cpixels_sum_count) * MemoryLayout<cpixels_cell>.stride
    /// The memory in bytes of a quantizer that chooses colours.
    static let byteCount = cellByteCount + sumByteCount

    private let memory: AlignedMemory

    /// Creates a quantizer without pixels.
    package init() throws(ImageError) {
        self.memory = try AlignedMemory(zeroedByteCount: Self.cellByteCount)
    }

    private var cells: UnsafeMutablePointer<cpixels_cell> {
        self.memory.start.assumingMemoryBound(to: cpixels_cell.self)
    }

    /// Counts pixels, except pixels that are zero, which are transparent.
    package mutating func count(_ pixels: [UInt32]) {
        cpixels_count_pixels(self.cells, pixels, pixels.count)
    }

    /// Returns the best colours, at most `maximum`: opaque pixels, red in the lowest byte.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    package func colors(maximum: Int) throws -> [UInt32] {
        var colors = [UInt32](repeating: 0, count: 256)
        let sums = try AlignedMemory(zeroedByteCount: Self.sumByteCount)
        let sumCells = sums.start.assumingMemoryBound(to: cpixels_cell.self)
        let count = cpixels_cut_boxes(self.cells, sumCells, max(1, maximum), &colors)
        for _ in 0..<Self.refinements {
            try Task.checkCancellation()
            guard cpixels_move_colors(self.cells, &colors, count) else { break }
        }
        return Array(colors[..<count])
    }

    /// Returns the mean squared distance of the pixels from the nearest of `colors`, with the precision of the cells.
    func error(of colors: [UInt32]) -> Double {
        cpixels_palette_error(self.cells, colors, colors.count)
    }
}
