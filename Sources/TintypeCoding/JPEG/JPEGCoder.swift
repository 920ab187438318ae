public import FoundationEssentials
public import TintypeImage

/// Reads and writes JPEG through libjpeg-turbo.
///
/// Source: ITU-T T.81. Decodes to `rgb8`, or `gray8` for grayscale. CMYK and YCCK become sRGB by
/// their profile, or RGB without one. A smaller sufficient size decodes to 1/2, 1/4 or 1/8 by the
/// DCT. What is missing of a truncated picture is as the library leaves it: gray, or the last
/// colour before.
public struct JPEGCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.jpeg] }
    public var encodableFormats: Set<ImageFormat> { [.jpeg] }

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedJPEG(data, limits: limits)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        JPEGIncrementalDecoder(options: options)
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try JPEGCompressor().compress(try image.upright().pixels, options: options.keepingProfile(of: image))
    }
}
