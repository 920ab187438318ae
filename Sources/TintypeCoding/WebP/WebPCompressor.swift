import CWebP
import FoundationEssentials
import TintypeImage

/// Encodes lossy WebP with libwebp.
enum WebPCompressor {
    /// Encodes upright pixels.
    static func compress(_ pixels: PixelBuffer, options: EncodeOptions) throws -> Data {
        guard max(pixels.width, pixels.height) <= WEBP_MAX_DIMENSION else {
            throw Self.failure("a side may have at most \(WEBP_MAX_DIMENSION) pixels")
        }
        var config = WebPConfig()
        guard WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, Float(min(max(options.quality, 1), 100))) != 0 else {
            throw Self.failure("libwebp refused the options")
        }
        var picture = WebPPicture()
        guard WebPPictureInit(&picture) != 0 else { throw Self.failure("libwebp has another version") }
        defer { WebPPictureFree(&picture) }
        picture.width = CInt(pixels.width)
        picture.height = CInt(pixels.height)
        guard try self.importPixels(pixels, to: &picture) else { throw CodingError.outOfMemory(.webp) }
        return try self.encode(&picture, config: &config)
    }

    private static func importPixels(_ pixels: PixelBuffer, to picture: inout WebPPicture) throws -> Bool {
        let pixels = pixels.format == .gray8 ? try pixels.expandedFromGray() : pixels
        let bytesPerRow = CInt(pixels.layout.planes[0].bytesPerRow)
        return pixels.withUnsafeBytes { source in
            let bytes = source.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return pixels.format.hasAlpha
                ? WebPPictureImportRGBA(&picture, bytes, bytesPerRow) != 0
                : WebPPictureImportRGB(&picture, bytes, bytesPerRow) != 0
        }
    }

    private static func encode(_ picture: inout WebPPicture, config: inout WebPConfig) throws -> Data {
        var writer = WebPMemoryWriter()
        WebPMemoryWriterInit(&writer)
        let isEncoded = withUnsafeMutablePointer(to: &writer) { writer in
            picture.writer = WebPMemoryWrite
            picture.custom_ptr = UnsafeMutableRawPointer(writer)
            picture.progress_hook = { _, _ in Task.isCancelled ? 0 : 1 }
            return WebPEncode(&config, &picture) != 0
        }
        guard isEncoded, let bytes = writer.mem else {
            WebPMemoryWriterClear(&writer)
            try Task.checkCancellation()
            throw Self.failure("libwebp gave error \(picture.error_code.rawValue)")
        }
        return Data(bytesNoCopy: bytes, count: writer.size, deallocator: .custom { pointer, _ in WebPFree(pointer) })
    }

    private static func failure(_ reason: String) -> CodingError {
        CodingError(
            code: .encodingFailed,
            message: "The picture can't be written as WebP: \(reason).",
            format: .webp
        )
    }
}
