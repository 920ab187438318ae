// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import TintypeImage

/// The distinct colours of images, as long as they are few.
///
/// A colour has red in its lowest byte, then green, blue and alpha.
package struct ColorSet {
    /// Memory for all colours, of which the first ``count`` are in use.
    private var storage = [UInt32](repeating: 0, count: Int(cpixels_most_colors))
    /// The indices of colours by the hash of the colour; -1 is a free place.
    private var places = [Int16](repeating: -1, count: Int(cpixels_color_places))
    /// The number of colours.
    package private(set) var count = 0

    /// Creates an empty set.
    package init() {}

    /// The colours in the order in which they were added.
    package var colors: [UInt32] { Array(self.storage[..<self.count]) }

    /// Adds the colours of pixels, except pixels that are zero, which are transparent.
    ///
    /// - Returns: `false` if there are too many colours.
    package mutating func insert(opaque pixels: [UInt32]) -> Bool {
        cpixels_collect_colors(pixels, pixels.count, true, &self.storage, &self.count, &self.places)
    }

    /// Writes the index of each pixel's colour, and `missing` for colours that are not in the set.
    package func write(_ pixels: [UInt32], missing: UInt8, to indices: inout [UInt8]) {
        precondition(indices.count >= pixels.count)
        cpixels_index_colors(pixels, pixels.count, self.storage, self.places, missing, &indices)
    }
}

// MARK: - Colours of images

extension ColorSet {
    /// Adds the colours of an image.
    ///
    /// Returns `false` if there are too many.
    mutating func insert(_ image: PixelBuffer) throws -> Bool {
        var row = [UInt32](repeating: 0, count: image.width)
        for index in 0..<image.height {
            if index % 64 == 0 { try Task.checkCancellation() }
            image.read(row: index, columns: 0..<image.width, into: &row)
            guard cpixels_collect_colors(row, row.count, false, &self.storage, &self.count, &self.places) else {
                return false
            }
        }
        return true
    }

    /// Writes the indices of a row of pixels, one byte each.
    ///
    /// The set must contain all the row's colours.
    func write(row: Int, of image: PixelBuffer, columns: Range<Int>, to indices: UnsafeMutablePointer<UInt8>) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: columns.count) { pixels in
            guard let start = pixels.baseAddress else { return }
            image.read(row: row, columns: columns, into: start)
            cpixels_index_colors(start, columns.count, self.storage, self.places, 0, indices)
        }
    }
}

extension [UInt32] {
    /// The red, green and blue of each colour, as palettes are stored.
    var paletteBytes: [UInt8] {
        self.flatMap { color in (0..<3).map { UInt8(truncatingIfNeeded: color >> ($0 * 8)) } }
    }
}

extension PixelBuffer {
    /// Reads pixels of a row as colours: red in the lowest byte, then green, blue and alpha.
    func read(row: Int, columns: Range<Int>, into colors: inout [UInt32]) {
        precondition(colors.count >= columns.count)
        colors.withUnsafeMutableBufferPointer { colors in
            if let start = colors.baseAddress { self.read(row: row, columns: columns, into: start) }
        }
    }

    fileprivate func read(row: Int, columns: Range<Int>, into colors: UnsafeMutablePointer<UInt32>) {
        precondition((0..<self.height).contains(row) && (0...self.width).contains(columns.upperBound))
        let channels = self.format.channelCount
        let plane = self.layout.planes[0]
        self.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
            let first = start + plane.offset + row * plane.bytesPerRow + columns.lowerBound * channels
            cpixels_pack_pixels(first, channels, colors, columns.count)
        }
    }
}
