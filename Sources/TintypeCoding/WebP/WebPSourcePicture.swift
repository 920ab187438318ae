import CWebP
import FoundationEssentials
import TintypeImage

/// One picture as libwebp's encoder wants it; freed with the value.
struct WebPSourcePicture: ~Copyable {
    /// On the heap, because the encoder writes to it.
    private let picture: UnsafeMutablePointer<WebPPicture>

    /// Converts upright pixels.
    init(_ pixels: PixelBuffer, isLossless: Bool) throws {
        guard max(pixels.width, pixels.height) <= WEBP_MAX_DIMENSION else {
            throw CodingError.webpEncoding("a side may have at most \(WEBP_MAX_DIMENSION) pixels")
        }
        var picture = WebPPicture()
        guard WebPPictureInit(&picture) != 0 else { throw CodingError.webpEncoding("libwebp has another version") }
        picture.width = CInt(pixels.width)
        picture.height = CInt(pixels.height)
        picture.use_argb = isLossless ? 1 : 0
        picture.progress_hook = { _, _ in Task.isCancelled ? 0 : 1 }
        guard try Self.fill(&picture, with: pixels) else {
            WebPPictureFree(&picture)
            throw CodingError.outOfMemory(.webp)
        }
        self.picture = .allocate(capacity: 1)
        self.picture.initialize(to: picture)
    }

    deinit {
        WebPPictureFree(self.picture)
        self.picture.deallocate()
    }

    private static func fill(_ picture: inout WebPPicture, with pixels: PixelBuffer) throws -> Bool {
        let pixels = pixels.format == .gray8 ? try pixels.expandedFromGray() : pixels
        let bytesPerRow = CInt(pixels.layout.planes[0].bytesPerRow)
        return pixels.withUnsafeBytes { source in
            let bytes = source.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return pixels.format.hasAlpha
                ? WebPPictureImportRGBA(&picture, bytes, bytesPerRow) != 0
                : WebPPictureImportRGB(&picture, bytes, bytesPerRow) != 0
        }
    }

    /// Encodes the picture; it may be encoded again.
    borrowing func encode(_ config: inout WebPConfig) throws -> Data {
        var writer = WebPMemoryWriter()
        WebPMemoryWriterInit(&writer)
        let isEncoded = withUnsafeMutablePointer(to: &writer) { writer in
            self.picture.pointee.writer = WebPMemoryWrite
            self.picture.pointee.custom_ptr = UnsafeMutableRawPointer(writer)
            return WebPEncode(&config, self.picture) != 0
        }
        guard isEncoded, let bytes = writer.mem else {
            WebPMemoryWriterClear(&writer)
            try Task.checkCancellation()
            throw self.error
        }
        return Data(bytesNoCopy: bytes, count: writer.size, deallocator: .custom { pointer, _ in WebPFree(pointer) })
    }

    /// Lends the picture to the animation encoder.
    borrowing func withPicture<Result>(_ body: (UnsafeMutablePointer<WebPPicture>) throws -> Result) rethrows -> Result
    {
        try body(self.picture)
    }

    /// What libwebp says about its last failure.
    private var error: CodingError {
        self.picture.pointee.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY
            ? .outOfMemory(.webp)
            : .webpEncoding("libwebp gave error \(self.picture.pointee.error_code.rawValue)")
    }
}
