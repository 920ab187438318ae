import TintypeImage

extension PixelBuffer {
    /// The pixels laid over an opaque background; itself when there is no alpha.
    func flattened(over background: EncodeOptions.Color) throws -> PixelBuffer {
        guard self.format.hasAlpha else { return self }
        let layout = try PixelLayout(format: .rgb8, width: self.width, height: self.height)
        let backdrop = [background.red, background.green, background.blue].map { UInt32($0) }
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                try self.withUnsafeBytes { source in
                    for row in 0..<self.height {
                        try Task.checkCancellation()
                        var from = row * self.layout.planes[0].bytesPerRow
                        var to = row * layout.planes[0].bytesPerRow
                        for _ in 0..<self.width {
                            let alpha = UInt32(source[from + 3])
                            for channel in 0..<3 {
                                let mixed = UInt32(source[from + channel]) * alpha + backdrop[channel] * (255 - alpha)
                                target[to + channel] = UInt8((mixed + 127) / 255)
                            }
                            from += 4
                            to += 3
                        }
                    }
                }
            }
        )
    }
}
