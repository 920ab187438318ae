import CWebP
import TintypeImage

/// Decodes coded pictures whole.
enum WebPDecompressor {
    /// The bytes that are decoded between two looks at cancellation: some 20 ms.
    private static let steps = (lossy: 256 << 10, lossless: 1 << 20)

    /// Decodes one picture of the file's bytes, scaled to the size of `layout`.
    ///
    /// What is missing of a truncated picture stays zero, where that is allowed.
    static func decompress(
        _ picture: WebPCodedPicture,
        of bytes: UnsafeRawBufferPointer,
        layout: PixelLayout,
        allowsTruncated: Bool
    ) throws -> PixelBuffer {
        let coded = UnsafeRawBufferPointer(rebasing: bytes[picture.bytes])
        return try PixelBuffer(
            layout,
            fillingUnsafely: { pixels in
                if allowsTruncated { pixels.initializeMemory(as: UInt8.self, repeating: 0) }
                let decoder = try WebPPictureDecoder(picture, to: pixels, layout: layout)
                let status = try self.decode(
                    coded,
                    with: decoder,
                    step: picture.isLossless ? self.steps.lossless : self.steps.lossy
                )
                try self.check(
                    status,
                    rowCount: decoder.rowCount,
                    height: layout.height,
                    allowsTruncated: allowsTruncated
                )
                if !picture.frame.hasAlpha, picture.isLossless, layout.format.hasAlpha {
                    self.makeOpaque(pixels, layout: layout)
                }
            }
        )
    }

    /// Shows the decoder more and more of the bytes, so that a cancelled decode ends early.
    private static func decode(
        _ bytes: UnsafeRawBufferPointer,
        with decoder: borrowing WebPPictureDecoder,
        step: Int
    ) throws -> VP8StatusCode {
        var status = VP8_STATUS_SUSPENDED
        var end = 0
        while status == VP8_STATUS_SUSPENDED, end < bytes.count {
            try Task.checkCancellation()
            // The header of a lossless picture is read from its start until all of it is there: without rows, ever
            // more bytes keep that linear.
            end = min(end + max(step, decoder.rowCount == 0 ? end / 4 : 0), bytes.count)
            status = decoder.update(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
        }
        return status
    }

    /// Throws unless the picture is whole, or as far as it goes where that is allowed.
    static func check(_ status: VP8StatusCode, rowCount: Int, height: Int, allowsTruncated: Bool) throws(CodingError) {
        if status == VP8_STATUS_OK, rowCount >= height { return }
        // A damaged picture is shown up to the damage.
        if allowsTruncated, status == VP8_STATUS_SUSPENDED || rowCount > 0 { return }
        switch status {
        case VP8_STATUS_OUT_OF_MEMORY: throw .outOfMemory(.webp)
        case VP8_STATUS_NOT_ENOUGH_DATA, VP8_STATUS_SUSPENDED: throw .truncated(.webp)
        case VP8_STATUS_UNSUPPORTED_FEATURE: throw .corrupt(.webp, "it uses a feature that libwebp does not know")
        default: throw .corrupt(.webp, "its bit stream breaks the format")
        }
    }

    /// Sets alpha where the bit stream says that there is none, but may hold some all the same.
    private static func makeOpaque(_ pixels: UnsafeMutableRawBufferPointer, layout: PixelLayout) {
        let plane = layout.planes[0]
        for row in 0..<layout.height {
            let start = row * plane.bytesPerRow
            for alpha in stride(from: start + 3, to: start + plane.usedBytesPerRow, by: 4) { pixels[alpha] = 255 }
        }
    }
}
