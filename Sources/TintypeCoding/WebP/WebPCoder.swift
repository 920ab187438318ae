import CWebP
public import FoundationEssentials
public import TintypeImage

/// Reads and writes WebP through libwebp.
///
/// Source: RFC 9649. Decodes to `rgb8`, or `rgba8` where the file announces alpha. A smaller
/// sufficient size is decoded straight to. Of an animation it gives one frame, as
/// composited on its canvas.
public struct WebPCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.webp] }
    public var encodableFormats: Set<ImageFormat> { [.webp] }

    public func header(of data: Data) throws(CodingError) -> ImageHeader {
        var features = WebPBitstreamFeatures()
        let status = data.withUnsafeBytes { bytes in
            WebPGetFeatures(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, &features)
        }
        guard status == VP8_STATUS_OK else { throw Self.error(status) }
        let webp = WebPHeader(data)
        var header = ImageHeader(format: .webp, pixelWidth: Int(features.width), pixelHeight: Int(features.height))
        header.hasAlpha = features.has_alpha != 0
        header.orientation = webp.exif.flatMap { EXIF.orientation(in: $0) } ?? .up
        header.colorProfile = webp.colorProfile
        header.animation = webp.animation
        // Besides the output a lossless picture is held whole, and an animation as two canvases and a frame.
        let pixels = header.pixelWidth * header.pixelHeight
        if !header.animation.durations.isEmpty {
            header.codecByteCount = pixels * 12
        } else if features.format != 1 {
            header.codecByteCount = pixels * 4
        }
        return header
    }

    public func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage {
        // The last bytes may hold nothing that the decoder still needs, but then the file was cut all the same.
        guard options.allowsTruncated || WebPHeader(data).isComplete else { throw CodingError.truncated(.webp) }
        let pixels = try data.withUnsafeBytes { bytes in
            if header.animation.durations.isEmpty {
                try WebPDecompressor().decompress(bytes, header: header, options: options)
            } else {
                try WebPAnimationDecompressor(bytes).frame(options.frame, header: header)
            }
        }
        return DecodedImage(Image(pixels: pixels, orientation: header.orientation, sourceFormat: .webp))
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try WebPCompressor.compress(try image.upright().pixels, options: options)
    }

    /// The error for a status that is not success.
    static func error(_ status: VP8StatusCode) -> CodingError {
        switch status {
        case VP8_STATUS_OUT_OF_MEMORY: .outOfMemory(.webp)
        case VP8_STATUS_NOT_ENOUGH_DATA, VP8_STATUS_SUSPENDED: .truncated(.webp)
        case VP8_STATUS_UNSUPPORTED_FEATURE: .corrupt(.webp, "it uses a feature that libwebp does not know")
        default: .corrupt(.webp, "its bit stream breaks the format")
        }
    }
}
