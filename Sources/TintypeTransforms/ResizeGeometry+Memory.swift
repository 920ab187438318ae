package import TintypeImage

extension ResizeGeometry {
    /// The bytes that resampling takes besides source and target, at most about: some rows of the source, as numbers and
    /// as samples, more of them the more the picture shrinks.
    ///
    /// - Parameters:
    ///   - width: The width of the source that is resampled at most.
    ///   - height: Its height.
    ///   - format: Its samples.
    /// - Returns: The bytes.
    package func byteCount(width: Int, height: Int, format: PixelFormat) -> Int {
        let across = self.sourceWidth / Double(max(1, self.width))
        let down = self.sourceHeight / Double(max(1, self.height))
        let shrink = max(1, across, down)
        let samples = Double(max(width, self.width)) * Double(format.channelCount)
        // Measured with zimg 3.0: the rows that the widest kernel reads, rounded up to a power of two.
        return Int(min(samples * (160 + 36 * shrink), Double(Int.max / 2)))
    }

    /// The bytes that resampling rows as they come takes besides the target: the target rows that a source row counts
    /// for, as numbers, and the weights of all columns and rows.
    package static func stripByteCount(width: Int, height: Int, format: PixelFormat) -> Int {
        let row = Double(width) * Double(format.channelCount) * 4
        return Int(min(row * 10 + (Double(width) + Double(height)) * 24, Double(Int.max / 2)))
    }
}
