// SPDX-License-Identifier: Apache-2.0

/// The places of the planes of an image in one block of memory.
///
/// Rows start at multiples of 64 bytes, so that SIMD code can load them whole.
public struct PixelLayout: Sendable, Hashable {
    /// One plane of an image.
    public struct Plane: Sendable, Hashable {
        /// The first byte of the plane within the block.
        public let offset: Int
        /// The distance between the starts of two rows, in bytes.
        public let bytesPerRow: Int
        /// The width in samples of this plane.
        public let width: Int
        /// The height in rows of this plane.
        public let height: Int
        /// The bytes of a row that hold samples; the rest is padding.
        public let usedBytesPerRow: Int
    }

    /// The alignment of the block and of each row, in bytes.
    public static let alignment = 64

    /// How the samples lie in memory.
    public let format: PixelFormat
    /// The width in pixels.
    public let width: Int
    /// The height in pixels.
    public let height: Int
    /// The planes, in the format's order.
    public let planes: [Plane]
    /// The size of the whole block in bytes.
    public let byteCount: Int

    /// Lays out an image of `width` by `height` pixels.
    ///
    /// ```swift
    /// let layout = try PixelLayout(format: .rgb8, width: 800, height: 600)
    /// print(layout.byteCount)  // 1,459,200: rows begin at multiples of 64 bytes
    /// ```
    ///
    /// - Throws: `ImageError.Code.invalidSize` when a side is under 1 or the size overflows.
    public init(format: PixelFormat, width: Int, height: Int) throws(ImageError) {
        guard let plane = Plane(bytesPerPixel: format.channelCount, width: width, height: height) else {
            throw ImageError(
                code: .invalidSize,
                message: "An image of \(width)x\(height) pixels cannot be laid out; check its size first."
            )
        }
        self.format = format
        self.width = width
        self.height = height
        self.planes = [plane]
        self.byteCount = plane.bytesPerRow * plane.height
    }

    /// Zeroes what holds no samples: it is handed out with the pixels, and may be old memory.
    func clearPadding(of block: UnsafeMutableRawBufferPointer) {
        for plane in self.planes where plane.usedBytesPerRow < plane.bytesPerRow {
            for row in 0..<plane.height {
                let start = plane.offset + row * plane.bytesPerRow
                let padding = block[(start + plane.usedBytesPerRow)..<(start + plane.bytesPerRow)]
                UnsafeMutableRawBufferPointer(rebasing: padding).initializeMemory(as: UInt8.self, repeating: 0)
            }
        }
    }
}

extension PixelLayout.Plane {
    /// The plane of an image, or `nil` when a side is under 1 or a size overflows.
    fileprivate init?(bytesPerPixel: Int, width: Int, height: Int) {
        guard width > 0, height > 0, width <= Int(Int32.max), height <= Int(Int32.max) else { return nil }
        self.usedBytesPerRow = width * bytesPerPixel
        self.bytesPerRow =
            (self.usedBytesPerRow + PixelLayout.alignment - 1) / PixelLayout.alignment * PixelLayout.alignment
        guard !self.bytesPerRow.multipliedReportingOverflow(by: height).overflow else { return nil }
        self.offset = 0
        self.width = width
        self.height = height
    }
}

/// A width and a height in pixels.
public struct PixelSize: Sendable, Hashable {
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int

    /// Creates a size.
    ///
    /// ```swift
    /// let options = DecodeOptions(sufficientSize: PixelSize(width: 400, height: 300))
    /// ```
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }
}
