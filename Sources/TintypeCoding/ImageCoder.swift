public import FoundationEssentials
public import TintypeImage

/// Turns the bytes of some formats into pictures, and pictures into bytes.
///
/// All calls are synchronous; the loader makes them on a decode lane. A coder is asked from
/// several lanes at once, and keeps no state between calls. Long loops count their work with a
/// ``DecodeWork``, which throws when the limits allow no more, and `CancellationError`.
public protocol ImageCoder: Sendable {
    /// The formats that ``header(of:)`` and ``decode(_:header:options:)`` understand.
    var decodableFormats: Set<ImageFormat> { get }
    /// The formats that ``encode(_:as:options:)`` writes.
    var encodableFormats: Set<ImageFormat> { get }

    /// What the file says about its picture. Reads no pixels and allocates none.
    ///
    /// - Throws: `CodingError`.
    func header(of data: Data) throws -> ImageHeader

    /// The pixels as stored: not turned, with `header.orientation` on the image.
    ///
    /// The limits were checked against `header` before.
    func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage

    /// The bytes of `image` in `format`.
    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data

    // MARK: What a coder may leave out

    /// What the file says about its picture, with frames and work within limits: a flood of frames or of padding
    /// ends early.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func header(of data: Data, limits: DecodingLimits) throws -> ImageHeader

    /// The bytes of memory that the coder has allocated at most at once for a decode of a kind, with what it gives out.
    ///
    /// The limits were checked against `header` before. Where it says less than it takes, a busy loader takes more
    /// memory than it was allowed.
    func byteCount(for kind: DecodeKind, header: ImageHeader, options: DecodeOptions) -> Int

    /// The frames of an animation, or `nil` for a still picture.
    ///
    /// The limits were checked against `header` before.
    func frameReader(for data: Data, header: ImageHeader, options: DecodeOptions) throws -> (any FrameReader)?

    /// A decoder that is fed as bytes arrive, or `nil` when the coder has none for the format.
    func makeIncrementalDecoder(for format: ImageFormat, options: DecodeOptions) throws -> (any IncrementalDecoder)?

    /// Lends the stored rows of a still picture, decoded one by one, scaled down as far as the
    /// sufficient size allows; `nil` when the picture can't be streamed (an interlaced one).
    func withRows<Result>(
        of data: Data,
        header: ImageHeader,
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result?

    /// The bytes of an animation in `format`.
    ///
    /// - Throws: `CodingError.Code.unsupportedFeature` when the format or the coder has no animations.
    func encode(_ animation: AnimationContent, as format: ImageFormat, options: EncodeOptions) throws -> Data
}

extension ImageCoder {
    public func header(of data: Data, limits: DecodingLimits) throws -> ImageHeader {
        try self.header(of: data)
    }

    public func byteCount(for kind: DecodeKind, header: ImageHeader, options: DecodeOptions) -> Int {
        // Frames of an animation are composited on a canvas with alpha.
        let isDrawn = kind == .frame || header.animation.frameCount > 1
        let bytesPerPixel = isDrawn || header.hasAlpha ? 4 : 3
        let pixels = header.pixelWidth.saturatingMultiplied(by: header.pixelHeight)
        let picture = pixels.saturatingMultiplied(by: bytesPerPixel)
        let pictures =
            switch kind {
            case .rows: header.givesRows ? 0 : 1
            case .picture: isDrawn ? 3 : 1
            // A frame, the canvas and its copy; what has arrived and its copy.
            case .frame: 3
            case .incremental: 2
            }
        return picture.saturatingMultiplied(by: pictures).saturatingAdded(to: header.codecByteCount)
    }

    public func frameReader(
        for data: Data,
        header: ImageHeader,
        options: DecodeOptions
    ) throws -> (any FrameReader)? { nil }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? { nil }

    public func withRows<Result>(
        of data: Data,
        header: ImageHeader,
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? { nil }

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
}
