import CWebP
import TintypeImage

/// One libwebp animation decoder over the bytes of one file; freed with the value.
///
/// The bytes must outlive it: use it inside the closure that lends them.
struct WebPAnimationDecompressor: ~Copyable {
    private let decoder: OpaquePointer

    init(_ bytes: UnsafeRawBufferPointer) throws(CodingError) {
        var options = WebPAnimDecoderOptions()
        guard WebPAnimDecoderOptionsInit(&options) != 0 else { throw .outOfMemory(.webp) }
        options.color_mode = MODE_RGBA
        var data = WebPData(bytes: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), size: bytes.count)
        guard let decoder = WebPAnimDecoderNew(&data, &options) else {
            throw .corrupt(.webp, "its frames can't be read")
        }
        self.decoder = decoder
    }

    deinit {
        WebPAnimDecoderDelete(self.decoder)
    }

    /// A frame as it looks on the canvas; those before it are composited first.
    borrowing func frame(_ index: Int, header: ImageHeader) throws -> PixelBuffer {
        // The frames are read at the header's size: it must be the decoder's.
        var info = WebPAnimInfo()
        guard WebPAnimDecoderGetInfo(self.decoder, &info) != 0, Int(info.canvas_width) == header.pixelWidth,
            Int(info.canvas_height) == header.pixelHeight
        else { throw CodingError.corrupt(.webp, "its chunks disagree about the size of the canvas") }
        var frame: UnsafeMutablePointer<UInt8>?
        var timestamp: CInt = 0
        for _ in 0...index {
            try Task.checkCancellation()
            guard WebPAnimDecoderGetNext(self.decoder, &frame, &timestamp) != 0 else {
                throw CodingError.corrupt(.webp, "frame \(index) can't be decoded")
            }
        }
        guard let frame else { throw CodingError.outOfMemory(.webp) }
        let layout = try PixelLayout(format: .rgba8, width: header.pixelWidth, height: header.pixelHeight)
        let plane = layout.planes[0]
        return try PixelBuffer(
            layout,
            fillingUnsafely: { pixels in
                guard let target = pixels.baseAddress else { return }
                for row in 0..<layout.height {
                    (target + row * plane.bytesPerRow)
                        .copyMemory(from: frame + row * plane.usedBytesPerRow, byteCount: plane.usedBytesPerRow)
                }
            }
        )
    }
}
