// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

extension PixelBuffer {
    /// Creates pixels from a function of column, row and channel.
    public static func make(
        _ format: PixelFormat,
        width: Int,
        height: Int,
        _ sample: (_ column: Int, _ row: Int, _ channel: Int) -> UInt8
    ) throws -> PixelBuffer {
        let layout = try PixelLayout(format: format, width: width, height: height)
        let bytesPerRow = layout.planes[0].bytesPerRow
        let channels = format.channelCount
        return try PixelBuffer(
            layout,
            filling: { bytes in
                for row in 0..<height {
                    for column in 0..<width {
                        for channel in 0..<channels {
                            let offset = row * bytesPerRow + column * channels + channel
                            bytes.storeBytes(of: sample(column, row, channel), toByteOffset: offset, as: UInt8.self)
                        }
                    }
                }
            }
        )
    }

    /// Returns the largest difference between a sample and the value that `expected` returns for it.
    public func largestDifference(_ expected: (_ column: Int, _ row: Int, _ channel: Int) -> Int) -> Int {
        let channels = self.format.channelCount
        var largest = 0
        for row in 0..<self.height {
            for (index, sample) in self.row(row).enumerated() {
                largest = max(largest, abs(Int(sample) - expected(index / channels, row, index % channels)))
            }
        }
        return largest
    }

    /// Creates pixels without structure, which are the same for the same seed.
    public static func noise(_ format: PixelFormat, width: Int, height: Int, seed: UInt64 = 1) throws -> PixelBuffer {
        var generator = SeededGenerator(seed: seed)
        return try self.make(format, width: width, height: height) { _, _, _ in
            UInt8(truncatingIfNeeded: generator.next())
        }
    }

    /// Creates a smooth image that lossy formats preserve well, with alpha that increases from left to right.
    public static func smooth(_ format: PixelFormat, width: Int, height: Int) throws -> PixelBuffer {
        try self.make(format, width: width, height: height) { column, row, channel in
            switch channel {
            case 0: UInt8(40 + 180 * row / height)
            case 1: UInt8(60 + 120 * column / width)
            case 2: UInt8(200 - 90 * (column + row) / (width + height))
            default: UInt8(255 * column / max(1, width - 1))
            }
        }
    }

    /// Returns the samples of one row, without padding.
    public func row(_ row: Int) -> [UInt8] {
        let plane = self.layout.planes[0]
        let start = plane.offset + row * plane.bytesPerRow
        return self.withUnsafeBytes { Array($0[start..<start + plane.usedBytesPerRow]) }
    }

    /// All samples row by row, without padding.
    public var samples: [UInt8] {
        (0..<self.height).flatMap { self.row($0) }
    }

    /// Returns one sample.
    public func sample(_ column: Int, _ row: Int, _ channel: Int = 0) -> Int {
        let plane = self.layout.planes[0]
        return self.withUnsafeBytes {
            Int($0[plane.offset + row * plane.bytesPerRow + column * self.format.channelCount + channel])
        }
    }

    /// Returns RGBA samples with colours multiplied by alpha, to compare only what is visible.
    public static func premultiplied(_ samples: [UInt8]) -> [Int] {
        samples.indices.map { index in
            guard index % 4 < 3 else { return Int(samples[index]) }
            return Int(samples[index]) * Int(samples[index - index % 4 + 3]) / 255
        }
    }
}
