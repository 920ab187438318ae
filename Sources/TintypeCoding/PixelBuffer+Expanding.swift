import TintypeImage

extension PixelBuffer {
    /// Gray pixels as `rgb8`, for encoders that know no gray.
    func expandedFromGray() throws -> PixelBuffer {
        let layout = try PixelLayout(format: .rgb8, width: self.width, height: self.height)
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                self.withUnsafeBytes { source in
                    for row in 0..<self.height {
                        let from = row * self.layout.planes[0].bytesPerRow
                        let to = row * layout.planes[0].bytesPerRow
                        for column in 0..<self.width {
                            let gray = source[from + column]
                            for channel in 0..<3 { target[to + column * 3 + channel] = gray }
                        }
                    }
                }
            }
        )
    }
}
