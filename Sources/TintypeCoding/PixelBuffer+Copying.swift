// SPDX-License-Identifier: Apache-2.0

import TintypeImage

extension PixelBuffer {
    /// Copies the first rows of an incomplete image with one plane, and fills the missing rows with zeros.
    ///
    /// - Parameters:
    ///   - layout: The layout of the complete image.
    ///   - rows: The bytes of the rows that are complete.
    ///   - work: The counter of the decode's work.
    /// - Throws: `ImageError` when memory runs out, `CancellationError`, `CodingError.Code.tooMuchWork`.
    convenience init(_ layout: PixelLayout, copying rows: UnsafeRawBufferPointer, work: DecodeWork) throws {
        try self.init(
            layout,
            fillingUnsafely: { target in
                for start in stride(from: 0, to: target.count, by: work.bytesAtOnce) {
                    let end = min(start + work.bytesAtOnce, target.count)
                    try work.count(copied: end - start)
                    let there = min(max(start, rows.count), end)
                    if start < there {
                        UnsafeMutableRawBufferPointer(rebasing: target[start..<there])
                            .copyMemory(from: UnsafeRawBufferPointer(rebasing: rows[start..<there]))
                    }
                    UnsafeMutableRawBufferPointer(rebasing: target[there..<end])
                        .initializeMemory(as: UInt8.self, repeating: 0)
                }
            }
        )
    }

    /// Returns the pixels in `format`, which must be at least as rich as the current one.
    func converted(to format: PixelFormat) throws -> PixelBuffer {
        guard format != self.format else { return self }
        let layout = try PixelLayout(format: format, width: self.width, height: self.height)
        let (from, to) = (self.format.channelCount, format.channelCount)
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                self.withUnsafeBytes { source in
                    for row in 0..<self.height {
                        var old = row * self.layout.planes[0].bytesPerRow
                        var new = row * layout.planes[0].bytesPerRow
                        for _ in 0..<self.width {
                            for channel in 0..<to {
                                // Gray becomes red, green and blue, and a new alpha channel is opaque.
                                let isAlpha = channel == 3
                                target[new + channel] = isAlpha ? 255 : source[old + (from == 1 ? 0 : channel)]
                            }
                            old += from
                            new += to
                        }
                    }
                }
            }
        )
    }
}

extension DecodeWork {
    /// The bytes of pixels to copy between two checks.
    fileprivate var bytesAtOnce: Int { 4 << 20 }

    /// Counts bytes of pixels that are about to be copied.
    func count(copied bytes: Int) throws {
        try self.count(Self.units(ofCopying: bytes))
    }

    /// Returns the work of copying bytes of pixels, which is mostly the first touch of new memory.
    static func units(ofCopying bytes: Int) -> Int { bytes / 16 }
}
