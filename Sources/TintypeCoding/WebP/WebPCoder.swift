public import FoundationEssentials
public import TintypeImage

/// Reads and writes WebP through libwebp.
///
/// Source: RFC 9649. Stills are decoded to `rgb8`, or `rgba8` where they have alpha; a smaller sufficient size is
/// decoded straight to. Frames of an animation are decoded to `rgba8`, each by itself.
///
/// Lossy pictures are decoded by libwebp, lossless ones by code of our own: see ``VP8LDecoder``.
///
/// Memory: a lossy still needs its rows and little else, and with ``EncodedImage/withRows(options:_:)`` only a strip of
/// them; but rows that are flat from edge to edge take no bytes, and come all at once. The format makes a lossless one
/// need four bytes a pixel besides: any pixel may refer to any before it. So does the alpha of a lossy one, which is
/// stored as a lossless picture.
public struct WebPCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.webp] }
    public var encodableFormats: Set<ImageFormat> { [.webp] }

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedWebP(data, limits: limits)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        format == .webp ? WebPIncrementalDecoder(options: options) : nil
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        // Gray is stored as RGB, which a profile for gray says nothing of.
        let image = image.pixels.format == .gray8 ? try image.inSRGB() : image
        return try WebPCompressor(options.keepingProfile(of: image)).compress(try image.upright().pixels)
    }

    public func encode(_ animation: AnimationContent, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try WebPAnimationCompressor(options).compress(try animation.inSRGB())
    }
}
