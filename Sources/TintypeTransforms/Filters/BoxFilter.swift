// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels

/// Replaces each number with the mean of a square around it, with two additions for each direction, whatever its size.
///
/// Sums are exact: double precision rounds no sum of this many numbers. Border rows and columns repeat beyond the
/// borders.
struct BoxFilter {
    let radius: Int

    /// Returns the bytes of working memory for an image.
    func workingByteCount(width: Int, channels: Int) -> Int {
        NumberRows<Float>.byteCount(count: 4, width: width * channels)
    }

    /// Blurs an image.
    ///
    /// - Throws: `ImageError` if memory runs out, `CancellationError`.
    func run(_ image: FilteredImage<Float>) throws {
        let count = image.width * image.channels
        // A double takes the space of two floats.
        let rows = try NumberRows<Float>(count: 4, width: count)
        let (row, made) = (rows[2], rows[3])
        let sums = UnsafeMutableRawPointer(rows[0]).bindMemory(to: Double.self, capacity: count)
        let columns = 0..<image.width
        func add(_ index: Int, times weight: Int) {
            guard weight != 0 else { return }
            image.load(index, columns, row)
            cpixels_add_row(row, Double(weight), sums, count)
        }
        let last = image.height - 1
        add(0, times: self.radius + 1)
        for index in 1..<max(1, min(self.radius, last) + 1) {
            if index % 16 == 0 { try Task.checkCancellation() }
            add(index, times: index == last ? self.radius - last + 1 : 1)
        }
        // Without a second row, the first stands for all rows below it too.
        if last == 0 { add(0, times: self.radius) }
        let side = Double(2 * self.radius + 1)
        for index in 0...last {
            if index % 16 == 0 { try Task.checkCancellation() }
            cpixels_box_row(sums, self.radius, image.channels, 1 / (side * side), made, image.width)
            image.emit(index, columns, made)
            let (leaving, entering) = (max(index - self.radius, 0), min(index + self.radius + 1, last))
            guard leaving != entering else { continue }
            add(entering, times: 1)
            add(leaving, times: -1)
        }
    }
}
