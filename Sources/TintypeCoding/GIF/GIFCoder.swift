public import FoundationEssentials
public import TintypeImage

/// Reads and writes GIF.
///
/// Source: GIF89a, CompuServe 1990. Written in Swift, because the files are hostile and the usual C library can't be
/// resumed. As in browsers the canvas is the logical screen, transparent where nothing was drawn; the background
/// colour is not used, and images are cut at its edge. A still picture without transparency decodes to `rgb8`,
/// everything else to `rgba8`.
public struct GIFCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.gif] }
    public var encodableFormats: Set<ImageFormat> { [.gif] }

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedGIF(data, limits: limits)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        GIFIncrementalDecoder(options: options)
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try GIFEncoder.encode([.init(image: try image.inSRGB(), milliseconds: 0)], loopCount: nil, options: options)
    }

    /// Writes each frame as the rectangle that changes, with delays in 1/100 s, at least two.
    public func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) throws -> Data {
        try GIFEncoder.encode(try animation.inSRGB().frames, loopCount: animation.loopCount, options: options)
    }
}
