package import TintypeImage

extension ResizeGeometry {
    /// What zimg may take: for more a picture is resampled row by row, also where it is there whole.
    private static let zimgByteLimit = 32 << 20

    /// The bytes that resampling takes besides source and target, at most about.
    ///
    /// - Parameters:
    ///   - width: The width of the source.
    ///   - height: Its height.
    ///   - format: Its samples.
    /// - Returns: The bytes.
    package func byteCount(width: Int, height: Int, format: PixelFormat) -> Int {
        guard self.isResampledByRows(width: width, height: height, format: format) else {
            return self.zimgByteCount(width: width, height: height, format: format)
        }
        return Self.stripByteCount(width: width, height: height, format: format)
    }

    /// Whether a picture that is there whole is resampled row by row, because zimg would take much memory: very wide
    /// ones that shrink to little.
    func isResampledByRows(width: Int, height: Int, format: PixelFormat) -> Bool {
        // Where the picture grows, a source row counts for any number of target rows.
        guard self.sourceHeight >= Double(self.height), self.sourceWidth >= Double(self.width) else { return false }
        return self.zimgByteCount(width: width, height: height, format: format) > Self.zimgByteLimit
    }

    /// The rows of the source that the widest kernel reads, as numbers, and more of them where alpha is multiplied in.
    private func zimgByteCount(width: Int, height: Int, format: PixelFormat) -> Int {
        let across = self.sourceWidth / Double(max(1, self.width))
        let down = self.sourceHeight / Double(max(1, self.height))
        let shrink = max(1, across, down)
        // Measured with zimg 3.0: the rows of a kernel of six are rounded up to a power of two.
        let needed = min(6 * shrink, Double(max(8, height)))
        let rows = Double(1 << (Int.bitWidth - (Int(needed.rounded(.up)) - 1).leadingZeroBitCount))
        let samples = Double(max(width, self.width)) * Double(format.channelCount)
        return Int(min(samples * (300 + rows * (format.hasAlpha ? 16 : 7)), Double(Int.max / 2)))
    }

    /// The bytes that resampling rows as they come takes besides the target: the target rows that a source row counts
    /// for, as numbers, and the weights of all columns and rows.
    package static func stripByteCount(width: Int, height: Int, format: PixelFormat) -> Int {
        let row = Double(width) * Double(format.channelCount) * 4
        return Int(min(row * 10 + (Double(width) + Double(height)) * 24, Double(Int.max / 2)))
    }
}
