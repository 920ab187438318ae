public import TintypeImage

extension PixelBuffer {
    /// Makes pixels from a function of column, row and channel.
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

    /// The largest difference of a sample to what `expected` gives for column, row and channel.
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

    /// Makes pixels without structure, the same for the same seed.
    public static func noise(_ format: PixelFormat, width: Int, height: Int, seed: UInt64 = 1) throws -> PixelBuffer {
        var generator = SeededGenerator(seed: seed)
        return try self.make(format, width: width, height: height) { _, _, _ in
            UInt8(truncatingIfNeeded: generator.next())
        }
    }

    /// Makes a soft image that lossy formats keep well; its alpha runs from left to right.
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

    /// The samples of one row, without padding.
    public func row(_ row: Int) -> [UInt8] {
        let plane = self.layout.planes[0]
        let start = plane.offset + row * plane.bytesPerRow
        return self.withUnsafeBytes { Array($0[start..<start + plane.usedBytesPerRow]) }
    }

    /// All samples, row by row, without padding.
    public var samples: [UInt8] {
        (0..<self.height).flatMap { self.row($0) }
    }

    /// One sample.
    public func sample(_ column: Int, _ row: Int, _ channel: Int = 0) -> Int {
        let plane = self.layout.planes[0]
        return self.withUnsafeBytes {
            Int($0[plane.offset + row * plane.bytesPerRow + column * self.format.channelCount + channel])
        }
    }

    /// RGBA samples with colours multiplied by alpha: what of hidden and faint colours can be seen.
    public static func premultiplied(_ samples: [UInt8]) -> [Int] {
        samples.indices.map { index in
            guard index % 4 < 3 else { return Int(samples[index]) }
            return Int(samples[index]) * Int(samples[index - index % 4 + 3]) / 255
        }
    }
}
