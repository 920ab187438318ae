public import FoundationEssentials
public import TintypeImage

/// Opens the files of some formats, and turns images into bytes.
///
/// All calls are synchronous; the loader makes them on a decode lane. A coder is asked from
/// several lanes at once, and keeps no state between calls. Long loops count their work with a
/// ``DecodeWork``, which throws when the limits allow no more, and `CancellationError`.
public protocol ImageCoder: Sendable {
    /// The formats that ``open(_:limits:)`` understands: known ones, or some of the coder's own.
    ///
    /// A registry asks once, when the coder is registered.
    var decodableFormats: Set<ImageFormat> { get }
    /// The formats that ``encode(_:as:options:)`` writes; asked once as well.
    var encodableFormats: Set<ImageFormat> { get }

    /// Parses what the file says about its image. Reads no pixels and allocates none.
    ///
    /// Frames and work stay within the limits: a flood of frames or of padding ends early. The size is checked by the
    /// caller.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage

    /// The bytes of `image` in `format`.
    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data

    // MARK: What a coder may leave out

    /// A decoder that is fed as bytes arrive, or `nil` when the coder has none for the format.
    func makeIncrementalDecoder(for format: ImageFormat, options: DecodeOptions) throws -> (any IncrementalDecoder)?

    /// The bytes of an animation in `format`.
    ///
    /// - Throws: `CodingError.Code.unsupportedFeature` when the format or the coder has no animations.
    func encode(_ animation: AnimationContent, as format: ImageFormat, options: EncodeOptions) throws -> Data

    /// Returns the bytes of memory that the coder has allocated at most at once for an encode, with its result.
    ///
    /// The loader begins an encode when there is room for that many bytes. A coder that says less than it takes lets a
    /// busy loader take more memory than it was allowed. By default four copies of the pixels in `rgba8`, and all frames
    /// of an animation.
    ///
    /// - Parameters:
    ///   - layout: The size and format of the pixels, which are upright, in sRGB, and not counted. All frames of an
    ///     animation have this size, and none has a richer format.
    ///   - frameCount: The number of frames of an animation; `nil` for a still image.
    ///   - format: The format that is written.
    ///   - options: The options of the encode.
    /// - Returns: The bytes for the worst image of that size.
    func encodingByteCount(
        of layout: PixelLayout,
        frameCount: Int?,
        as format: ImageFormat,
        options: EncodeOptions
    ) -> Int
}

/// What a decode gives out, and with it which memory it takes.
public enum DecodeKind: Sendable, Hashable {
    /// An image: a still one, or the frame of an animation that the options name.
    case picture
    /// The frames of an animation one after the other, drawn on a canvas that stays.
    case frame
    /// The rows of a still image one by one.
    case rows
    /// An image and its previews while its bytes arrive.
    case incremental
}

extension ImageCoder {
    /// Parses what the file says about its image, within the default limits.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    public func open(_ data: Data) throws -> any EncodedImage {
        try self.open(data, limits: DecodingLimits())
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? { nil }

    public func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) throws -> Data {
        throw CodingError(
            code: .unsupportedFeature,
            message: "This coder writes no animations as \(format); choose GIF, WebP or PNG.",
            format: format
        )
    }

    public func encodingByteCount(
        of layout: PixelLayout,
        frameCount: Int?,
        as format: ImageFormat,
        options: EncodeOptions
    ) -> Int {
        layout.pixelCount.saturatingMultiplied(by: 4).saturatingMultiplied(by: 4 + (frameCount ?? 0))
    }
}

extension PixelLayout {
    /// The number of pixels.
    package var pixelCount: Int { self.width.saturatingMultiplied(by: self.height) }
}
