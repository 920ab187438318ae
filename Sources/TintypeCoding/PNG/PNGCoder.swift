public import FoundationEssentials
public import TintypeImage

/// Reads and writes PNG and APNG.
///
/// Source: W3C PNG, third edition. Decodes to `gray8`, `rgb8` or, where there is any alpha, a
/// transparency chunk or an animation, `rgba8`; 16-bit samples keep their high byte. Gamma is
/// not applied. An animation that breaks the rules is shown as its default image.
public struct PNGCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.png] }
    public var encodableFormats: Set<ImageFormat> { [.png] }

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedPNG(data, limits: limits)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        format == .png ? PNGIncrementalDecoder(options: options) : nil
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try PNGCompressor(options.keepingProfile(of: image)).compress(try image.upright().pixels)
    }

    public func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) throws -> Data {
        try PNGAnimationCompressor(options).compress(try animation.inSRGB())
    }
}
