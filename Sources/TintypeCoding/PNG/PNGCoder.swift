public import FoundationEssentials
public import TintypeImage

/// Reads and writes PNG through libspng.
///
/// Source: W3C PNG, third edition. Decodes to `gray8`, `rgb8` or, where there is any alpha or
/// transparency chunk, `rgba8`; 16-bit samples keep their high byte. Of an APNG it gives the
/// default image.
public struct PNGCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.png] }
    public var encodableFormats: Set<ImageFormat> { [.png] }

    public func header(of data: Data) throws(CodingError) -> ImageHeader {
        let png = try PNGHeader(data)
        var header = ImageHeader(format: .png, pixelWidth: png.width, pixelHeight: png.height)
        header.bitDepth = png.bitDepth
        header.hasAlpha = png.hasAlpha
        header.orientation = png.exif.flatMap { EXIF.orientation(in: $0) } ?? .up
        header.animation = png.animation
        // Chunks lie before the pixels, so asking the library reads no pixel.
        header.colorProfile = try Self.colorProfile(of: data)
        return header
    }

    public func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage {
        guard options.frame == 0 else {
            throw CodingError(
                code: .unsupportedFeature,
                message: "Only the default image of an animated PNG can be decoded; ask for frame 0.",
                format: .png
            )
        }
        let data = options.allowsTruncated ? PNGRepair.closingLastChunk(of: data) : data
        let png = try PNGHeader(data)
        let pixels = try data.withUnsafeBytes { bytes in
            try PNGDecompressor(bytes, limits: options.limits, ignoresChecksums: options.allowsTruncated)
                .decompress(header: header, png: png, allowsTruncated: options.allowsTruncated)
        }
        return DecodedImage(Image(pixels: pixels, orientation: header.orientation, sourceFormat: .png))
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try PNGCompressor().compress(try image.upright().pixels)
    }

    private static func colorProfile(of data: Data) throws(CodingError) -> Data? {
        let profile = data.withUnsafeBytes { bytes in
            Result<Data?, CodingError> { () throws(CodingError) in
                try PNGDecompressor(bytes, limits: DecodingLimits(), ignoresChecksums: false).colorProfile()
            }
        }
        return try profile.get()
    }
}
