// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
public import TintypeImage

/// Replaces blocks of pixels with their mean colour.
///
/// Blocks begin at the top left; the last block of each row and column may be smaller. Colours count in proportion to
/// their alpha.
public struct Pixelate: Hashable, ImageTransformer {
    /// The side of a block in pixels, at least 1, which changes nothing.
    public var size: Int

    /// Creates a transform with blocks of `size` by `size` pixels.
    ///
    /// ```swift
    /// let coarse = try Pixelate(size: 16).transform(image)
    /// ```
    public init(size: Int) {
        self.size = size
    }

    public var key: String { "pixelate(\(self.size))" }

    private func check() throws(TransformError) {
        guard self.size < 1 else { return }
        throw .invalidParameter("Blocks cannot have a side of \(self.size) pixels; choose at least 1.")
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try self.check()
        guard self.size > 1 else { return TransformFootprint(result: source) }
        let working = NumberRows<Float>.byteCount(count: 4, width: source.width * source.format.channelCount)
        return TransformFootprint(result: source, workingByteCount: working)
    }

    public func transform(_ image: Image) throws -> Image {
        try self.check()
        guard self.size > 1 else { return image }
        let (width, height) = (image.width, image.height)
        let working = WorkingRows(format: image.pixels.format, light: .sRGB)
        let count = width * working.channels
        return try image.filtered { stored in
            // A double takes the space of two floats.
            let rows = try NumberRows<Float>(count: 4, width: count)
            let sums = UnsafeMutableRawPointer(rows[0]).bindMemory(to: Double.self, capacity: count)
            for start in Swift.stride(from: 0, to: height, by: min(self.size, height)) {
                let block = start..<min(start + min(self.size, height), height)
                sums.update(repeating: 0, count: count)
                for row in block {
                    if row % 16 == 0 { try Task.checkCancellation() }
                    working.load(stored.source(row, 0), to: rows[2], count: width)
                    cpixels_add_row(rows[2], 1, sums, count)
                }
                cpixels_average_blocks(sums, min(self.size, width), block.count, working.channels, rows[3], width)
                working.store(rows[3], to: stored.target(start, 0), count: width)
                for row in block.dropFirst() {
                    stored.target(row, 0).update(from: stored.target(start, 0), count: count)
                }
            }
        }
    }
}

extension Pixelate: Codable {}
