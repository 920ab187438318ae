import CWebP
import TintypeImage

/// One libwebp decoder for one coded picture; freed with the value.
///
/// Shown more and more of the picture's bytes, it writes rows to memory that is not its own and must outlive it. The
/// bytes may move between two calls.
struct WebPPictureDecoder: ~Copyable {
    /// On the heap, because the decoder keeps its address.
    private let config: UnsafeMutablePointer<WebPDecoderConfig>
    private let decoder: OpaquePointer

    /// Makes a decoder that writes to `target`, scaled to the size of `layout`.
    init(_ picture: WebPCodedPicture, to target: UnsafeMutableRawBufferPointer, layout: PixelLayout) throws(CodingError)
    {
        var config = WebPDecoderConfig()
        guard WebPInitDecoderConfig(&config) != 0 else { throw .outOfMemory(.webp) }
        if (layout.width, layout.height) != (picture.frame.width, picture.frame.height) {
            config.options.use_scaling = 1
            config.options.scaled_width = CInt(layout.width)
            config.options.scaled_height = CInt(layout.height)
        }
        config.output.colorspace = layout.format.hasAlpha ? MODE_RGBA : MODE_RGB
        config.output.is_external_memory = 1
        config.output.u.RGBA.rgba = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
        config.output.u.RGBA.stride = CInt(layout.planes[0].bytesPerRow)
        config.output.u.RGBA.size = target.count
        let kept = UnsafeMutablePointer<WebPDecoderConfig>.allocate(capacity: 1)
        kept.initialize(to: config)
        guard let decoder = WebPIDecode(nil, 0, kept) else {
            kept.deallocate()
            throw .outOfMemory(.webp)
        }
        self.config = kept
        self.decoder = decoder
    }

    deinit {
        WebPIDelete(self.decoder)
        self.config.deallocate()
    }

    /// Decodes as far as `bytes` go: those of the picture from its first one on, never fewer than before.
    borrowing func update(_ bytes: UnsafeRawBufferPointer) -> VP8StatusCode {
        WebPIUpdate(self.decoder, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    }

    /// The rows that are complete.
    var rowCount: Int {
        var rows: CInt = 0
        guard WebPIDecGetRGB(self.decoder, &rows, nil, nil, nil) != nil else { return 0 }
        return Int(rows)
    }
}
