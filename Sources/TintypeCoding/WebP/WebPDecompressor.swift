import CWebP
import TintypeImage

/// Decodes still pictures with libwebp.
struct WebPDecompressor {
    /// The bytes that are decoded between two looks at cancellation.
    private static let step = 64 << 10

    /// Decodes `bytes`, scaled down to the sufficient size where one is given.
    func decompress(
        _ bytes: UnsafeRawBufferPointer,
        header: ImageHeader,
        options: DecodeOptions
    ) throws -> PixelBuffer {
        var config = WebPDecoderConfig()
        guard WebPInitDecoderConfig(&config) != 0 else { throw CodingError.outOfMemory(.webp) }
        let size = Self.size(for: header, sufficientSize: options.sufficientSize)
        if size.width < header.pixelWidth {
            config.options.use_scaling = 1
            config.options.scaled_width = CInt(size.width)
            config.options.scaled_height = CInt(size.height)
        }
        let layout = try PixelLayout(format: header.hasAlpha ? .rgba8 : .rgb8, width: size.width, height: size.height)
        return try PixelBuffer(
            layout,
            fillingUnsafely: { pixels in
                if options.allowsTruncated { pixels.initializeMemory(as: UInt8.self, repeating: 0) }
                config.output.colorspace = header.hasAlpha ? MODE_RGBA : MODE_RGB
                config.output.is_external_memory = 1
                config.output.u.RGBA.rgba = pixels.baseAddress?.assumingMemoryBound(to: UInt8.self)
                config.output.u.RGBA.stride = CInt(layout.planes[0].bytesPerRow)
                config.output.u.RGBA.size = pixels.count
                try self.decode(bytes, config: &config, allowsTruncated: options.allowsTruncated)
            }
        )
    }

    /// Shows the decoder more and more of the bytes, so that a cancelled decode ends early.
    private func decode(
        _ bytes: UnsafeRawBufferPointer,
        config: inout WebPDecoderConfig,
        allowsTruncated: Bool
    ) throws {
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        // The decoder keeps the address of the configuration as long as it lives.
        let status = try withUnsafeMutablePointer(to: &config) { config in
            guard let decoder = WebPIDecode(nil, 0, config) else { throw CodingError.outOfMemory(.webp) }
            defer { WebPIDelete(decoder) }
            var status = VP8_STATUS_SUSPENDED
            var end = 0
            while status == VP8_STATUS_SUSPENDED, end < bytes.count {
                try Task.checkCancellation()
                end = min(end + Self.step, bytes.count)
                status = WebPIUpdate(decoder, start, end)
            }
            return status
        }
        if status == VP8_STATUS_OK || (allowsTruncated && status == VP8_STATUS_SUSPENDED) { return }
        throw WebPCoder.error(status)
    }

    /// The picture's own ratio at the sufficient size, never larger than stored.
    private static func size(for header: ImageHeader, sufficientSize: PixelSize?) -> PixelSize {
        let stored = PixelSize(width: header.pixelWidth, height: header.pixelHeight)
        guard let size = sufficientSize, size.width > 0, size.height > 0 else { return stored }
        let scale = max(
            Double(size.width) / Double(stored.width),
            Double(size.height) / Double(stored.height)
        )
        guard scale < 1 else { return stored }
        return PixelSize(
            width: max(1, Int((Double(stored.width) * scale).rounded())),
            height: max(1, Int((Double(stored.height) * scale).rounded()))
        )
    }
}
