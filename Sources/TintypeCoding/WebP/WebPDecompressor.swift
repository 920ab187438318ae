// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeWebP
import TintypeImage

/// One image of a file whose bytes are lent, and how to decode it.
struct WebPSource {
    let image: WebPCodedImage
    /// The bytes of the file.
    let bytes: UnsafeRawBufferPointer
    let allowsTruncated: Bool
    let work: DecodeWork

    init(_ image: WebPCodedImage, of bytes: UnsafeRawBufferPointer, allowsTruncated: Bool, work: DecodeWork) {
        self.image = image
        self.bytes = bytes
        self.allowsTruncated = allowsTruncated
        self.work = work
    }

    /// The bytes of the image.
    var codedBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self.bytes[self.image.bytes]) }
}

/// Decodes complete coded images.
enum WebPDecompressor {
    /// Decodes one image, scaled to the size of `layout`.
    ///
    /// If truncation is allowed, the missing part of an image is zero.
    static func decompress(_ source: WebPSource, layout: PixelLayout) throws -> PixelBuffer {
        try PixelBuffer(
            layout,
            fillingUnsafely: { pixels in
                if source.allowsTruncated { try pixels.clear(source.work) }
                guard let target = WebPTarget(pixels, layout: layout) else { return }
                try self.decompress(source, to: target)
            }
        )
    }

    /// Decodes one image, scaled to the size of `target`.
    ///
    /// If truncation is allowed, the missing part of an image is not written.
    static func decompress(_ source: WebPSource, to target: WebPTarget) throws {
        try Task.checkCancellation()
        let rows = try self.rows(of: source.image, to: target)
        let status = try rows.advance(through: source.codedBytes, work: source.work)
        let allowsTruncated = source.allowsTruncated
        try self.check(status, rowCount: rows.rowCount, height: target.height, allowsTruncated: allowsTruncated)
    }

    /// Returns a writer of the rows of an image to `target`, which must outlive the writer.
    static func rows(of image: WebPCodedImage, to target: WebPTarget) throws(CodingError) -> any WebPRows {
        image.isLossless ? LosslessRows(image, to: target) : try LossyRows(image, to: target)
    }

    /// Throws unless the image is complete, or is decoded as far as possible and truncation is allowed.
    static func check(_ status: VP8StatusCode, rowCount: Int, height: Int, allowsTruncated: Bool) throws(CodingError) {
        if status == VP8_STATUS_OK, rowCount >= height { return }
        // Show a damaged image up to the damage.
        if allowsTruncated, status == VP8_STATUS_SUSPENDED || rowCount > 0 { return }
        switch status {
        case VP8_STATUS_OUT_OF_MEMORY: throw .outOfMemory(.webp)
        case VP8_STATUS_NOT_ENOUGH_DATA, VP8_STATUS_SUSPENDED: throw .truncated(.webp)
        case VP8_STATUS_UNSUPPORTED_FEATURE: throw .corrupt(.webp, "it uses a feature that libwebp does not know")
        default: throw .corrupt(.webp, "its bit stream breaks the format")
        }
    }
}

/// Writes the rows of an image as far as its bytes go.
protocol WebPRows: AnyObject {
    /// The number of complete rows.
    var rowCount: Int { get }

    /// Decodes as far as `bytes` go, which are the bytes of the image from its first one.
    func advance(through bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> VP8StatusCode
}

private final class LossyRows: WebPRows {
    /// The bytes to decode between two checks of the budget: some milliseconds.
    private static let step = 128 << 10

    private let decoder: WebPImageDecoder
    private var end = 0

    init(_ image: WebPCodedImage, to target: WebPTarget) throws(CodingError) {
        self.decoder = try WebPImageDecoder(image, to: target)
    }

    var rowCount: Int { self.decoder.rowCount }

    func advance(through bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> VP8StatusCode {
        var status = VP8_STATUS_SUSPENDED
        while status == VP8_STATUS_SUSPENDED, self.end < bytes.count {
            let before = self.end
            self.end = min(bytes.count, before + Self.step)
            try work.count(bytes: self.end - before)
            status = try self.decoder.update(UnsafeRawBufferPointer(rebasing: bytes[..<self.end]), work: work)
        }
        return status
    }
}

private final class LosslessRows: WebPRows {
    private let target: WebPTarget
    private let isOpaque: Bool
    private var decoder: VP8LDecoder

    init(_ image: WebPCodedImage, to target: WebPTarget) {
        self.target = target
        self.isOpaque = !image.frame.hasAlpha
        self.decoder = VP8LDecoder(width: target.width, height: target.height)
    }

    var rowCount: Int { self.decoder.row }

    func advance(through bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> VP8StatusCode {
        let stream = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(WebPChunk.headByteCount))
        do {
            while self.decoder.row < self.target.height {
                try self.decoder.readRow(
                    to: self.target.base + self.decoder.row * self.target.bytesPerRow,
                    hasAlpha: self.target.hasAlpha,
                    isOpaque: self.isOpaque,
                    from: stream,
                    work: work
                )
            }
            return VP8_STATUS_OK
        } catch let error as VP8LError {
            switch error {
            case .needsBytes: return VP8_STATUS_SUSPENDED
            case .damaged: return VP8_STATUS_BITSTREAM_ERROR
            case .tooManyCodes, .noMemory: throw CodingError(error)
            }
        }
    }
}
#endif
