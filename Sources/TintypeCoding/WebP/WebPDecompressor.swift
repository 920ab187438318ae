import CWebP
import TintypeImage

/// Decodes coded pictures whole.
enum WebPDecompressor {
    /// The bytes of a lossy picture that are decoded between two looks at the budget: some milliseconds.
    private static let step = 128 << 10

    /// Decodes one picture of the file's bytes, scaled to the size of `layout`.
    ///
    /// What is missing of a truncated picture stays zero, where that is allowed.
    static func decompress(
        _ picture: WebPCodedPicture,
        of bytes: UnsafeRawBufferPointer,
        layout: PixelLayout,
        allowsTruncated: Bool,
        work: DecodeWork
    ) throws -> PixelBuffer {
        try PixelBuffer(
            layout,
            fillingUnsafely: { pixels in
                if allowsTruncated { try pixels.clear(work) }
                guard let target = WebPTarget(pixels, layout: layout) else { return }
                try self.decompress(picture, of: bytes, to: target, allowsTruncated: allowsTruncated, work: work)
            }
        )
    }

    /// Decodes one picture of the file's bytes, scaled to the size of `target`.
    ///
    /// What is missing of a truncated picture is not written.
    static func decompress(
        _ picture: WebPCodedPicture,
        of bytes: UnsafeRawBufferPointer,
        to target: WebPTarget,
        allowsTruncated: Bool,
        work: DecodeWork
    ) throws {
        try Task.checkCancellation()
        guard !picture.isLossless else {
            return try self.decompressLossless(
                picture,
                of: bytes,
                to: target,
                allowsTruncated: allowsTruncated,
                work: work
            )
        }
        let coded = UnsafeRawBufferPointer(rebasing: bytes[picture.bytes])
        let decoder = try WebPPictureDecoder(picture, to: target)
        let status = try self.decode(coded, with: decoder, work: work)
        try self.check(
            status,
            rowCount: decoder.rowCount,
            height: target.height,
            allowsTruncated: allowsTruncated
        )
    }

    private static func decompressLossless(
        _ picture: WebPCodedPicture,
        of bytes: UnsafeRawBufferPointer,
        to target: WebPTarget,
        allowsTruncated: Bool,
        work: DecodeWork
    ) throws {
        let stream = picture.losslessStream(of: bytes)
        var decoder = VP8LDecoder(width: target.width, height: target.height)
        do {
            while decoder.row < target.height {
                try decoder.readRow(
                    to: target.base + decoder.row * target.bytesPerRow,
                    hasAlpha: target.hasAlpha,
                    isOpaque: !picture.frame.hasAlpha,
                    from: stream,
                    work: work
                )
            }
        } catch let error as VP8LError {
            guard allowsTruncated, !error.isFatal(afterRows: decoder.row) else { throw CodingError(error) }
        }
    }

    /// Shows the decoder more and more of the bytes, so that a cancelled decode ends early.
    private static func decode(
        _ bytes: UnsafeRawBufferPointer,
        with decoder: borrowing WebPPictureDecoder,
        work: DecodeWork
    ) throws -> VP8StatusCode {
        var status = VP8_STATUS_SUSPENDED
        var end = 0
        while status == VP8_STATUS_SUSPENDED, end < bytes.count {
            let before = end
            end = min(end + self.step, bytes.count)
            try work.count(bytes: end - before)
            status = try decoder.update(UnsafeRawBufferPointer(rebasing: bytes[..<end]), work: work)
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
}
