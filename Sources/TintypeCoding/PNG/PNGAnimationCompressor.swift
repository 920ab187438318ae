// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import FoundationEssentials
import TintypeImage

/// Writes animations as APNG, and of each frame only the rectangle that changed.
///
/// Source: W3C PNG, third edition, section 11.3.6.
struct PNGAnimationCompressor {
    let options: EncodeOptions

    /// Returns the file of an animation.
    ///
    /// - Throws: `CodingError.Code.encodingFailed` if there are no frames, the loop count is negative, the frames
    ///   differ in size, or the file exceeds the byte limit; `CancellationError`.
    func compress(_ animation: AnimationContent) throws -> Data {
        let images = try Self.images(of: animation)
        return try self.options.smallestPNG { try PNGAnimationCompressor(options: $0).compress(images, animation) }
    }

    private func compress(_ images: [PixelBuffer], _ animation: AnimationContent) throws -> Data {
        let first = images[0]
        let format = try PNGSampleFormat(images, format: first.format)
        var writer = PNGWriter()
        writer.append(.imageHeader, format.header(width: first.width, height: first.height))
        try writer.append(self.options.metadata)
        format.appendPalette(to: &writer)
        writer.append(.animationControl, Self.control(frameCount: images.count, animation.loopCount))
        var sequenceNumber: UInt32 = 0
        for (index, image) in images.enumerated() {
            try Task.checkCancellation()
            let area = index == 0 ? Self.whole(image) : Self.change(from: images[index - 1], to: image)
            let duration = animation.frames[index].milliseconds
            writer.append(.frameControl, Self.frameControl(sequenceNumber, area, milliseconds: duration))
            sequenceNumber += 1
            let compressor = PNGCompressor(options: self.options)
            if index == 0 {
                try writer.append(.pixels) { try compressor.compress(area, of: image, format, to: &$0) }
            } else {
                try writer.append(.framePixels) { data in
                    data.append(bigEndian: sequenceNumber)
                    try compressor.compress(area, of: image, format, to: &data)
                }
                sequenceNumber += 1
            }
        }
        writer.append(.end)
        return writer.data
    }

    /// Returns the frames upright, in the richest of their formats.
    private static func images(of animation: AnimationContent) throws -> [PixelBuffer] {
        let images = try animation.frames.map { try $0.image.upright().pixels }
        guard let first = images.first, animation.loopCount >= 0 else {
            throw CodingError.notEncoded(
                .png,
                "An animation needs at least one frame and a loop count that is not negative."
            )
        }
        guard images.allSatisfy({ $0.width == first.width && $0.height == first.height }) else {
            throw CodingError.notEncoded(.png, "All frames of an animation must have the size of the first.")
        }
        let hasAlpha = images.contains { $0.format.hasAlpha }
        let isGray = images.allSatisfy { $0.format == .gray8 }
        let format: PixelFormat = hasAlpha ? .rgba8 : isGray ? .gray8 : .rgb8
        return try images.map { try $0.converted(to: format) }
    }

    // MARK: Areas

    private static func whole(_ image: PixelBuffer) -> PixelArea {
        PixelArea(rows: 0..<image.height, columns: 0..<image.width)
    }

    /// Returns the smallest rectangle that contains all changes; one pixel if nothing changed.
    private static func change(from old: PixelBuffer, to new: PixelBuffer) -> PixelArea {
        var area: PixelArea?
        let columns = 0..<new.width
        var (before, after) = ([UInt32](repeating: 0, count: new.width), [UInt32](repeating: 0, count: new.width))
        for row in 0..<new.height {
            old.read(row: row, columns: columns, into: &before)
            new.read(row: row, columns: columns, into: &after)
            let changed = cpixels_find_changes(before, after, new.width)
            guard changed.end > 0 else { continue }
            let found = PixelArea(rows: row..<row + 1, columns: changed.start..<changed.end)
            area = area?.union(found) ?? found
        }
        return area ?? PixelArea(rows: 0..<1, columns: 0..<1)
    }

    // MARK: Chunks

    private static func control(frameCount: Int, _ loopCount: Int) -> Data {
        var data = Data()
        data.append(bigEndian: UInt32(clamping: frameCount))
        data.append(bigEndian: UInt32(clamping: min(loopCount, Int(Int32.max))))
        return data
    }

    /// Returns the content of an `fcTL` chunk for a frame that replaces its area and stays.
    private static func frameControl(_ sequenceNumber: UInt32, _ area: PixelArea, milliseconds: Int) -> Data {
        var data = Self.bytes(sequenceNumber)
        for number in [area.columns.count, area.rows.count, area.columns.lowerBound, area.rows.lowerBound] {
            data.append(bigEndian: UInt32(clamping: number))
        }
        // Two bytes hold a minute in milliseconds. Longer durations lose precision that nobody sees.
        let duration = max(0, milliseconds)
        let denominator = [1_000, 100, 10].first { duration / (1_000 / $0) <= Int(UInt16.max) } ?? 1
        data.append(bigEndian: UInt16(clamping: duration / (1_000 / denominator)))
        data.append(bigEndian: UInt16(denominator))
        data.append(contentsOf: [0, 0])
        return data
    }

    private static func bytes(_ number: UInt32) -> Data {
        var data = Data()
        data.append(bigEndian: number)
        return data
    }
}
