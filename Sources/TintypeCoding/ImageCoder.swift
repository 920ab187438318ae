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
    /// The coders of this package keep frames and work within the default ``DecodingLimits``.
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

    /// The size of what ``decode(_:header:options:)`` gives for the sufficient size of the options.
    func decodedSize(of header: ImageHeader, options: DecodeOptions) -> PixelSize

    /// The bytes of memory that the coder has allocated at most at once for a decode of a kind, with what it gives out.
    ///
    /// Left out, the codec's own memory counts as the header gives it, and pictures by their kind.
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

/// What a decode gives out, and with it which memory it takes.
public enum DecodeKind: Sendable, Hashable {
    /// A picture: a still one, or the frame of an animation that the options name.
    case picture
    /// The frames of an animation one after the other, drawn on a canvas that stays.
    case frame
    /// The rows of a still picture one by one.
    case rows
    /// A picture and its previews while its bytes arrive.
    case incremental
}

extension ImageCoder {
    public func header(of data: Data, limits: DecodingLimits) throws -> ImageHeader {
        try self.header(of: data)
    }

    public func decodedSize(of header: ImageHeader, options: DecodeOptions) -> PixelSize {
        PixelSize(width: header.pixelWidth, height: header.pixelHeight)
    }

    public func byteCount(for kind: DecodeKind, header: ImageHeader, options: DecodeOptions) -> Int {
        let picture = self.decodedByteCount(of: header, options: options)
        let codec = header.codecByteCount
        let frames = header.codecByteCountForFrames ?? picture.saturatingAdded(to: codec)
        switch kind {
        case .rows where header.givesRows: return header.codecByteCountForRows ?? codec
        case .picture where header.animation.durations.isEmpty, .rows: return picture.saturatingAdded(to: codec)
        case .picture: return picture.saturatingAdded(to: frames)
        // The frame that was shown last stays.
        case .frame: return picture.saturatingMultiplied(by: 2).saturatingAdded(to: frames)
        // What has arrived, and its copy.
        case .incremental: return picture.saturatingMultiplied(by: 2).saturatingAdded(to: codec)
        }
    }

    /// The bytes of the pixels that a decode gives out.
    func decodedByteCount(of header: ImageHeader, options: DecodeOptions) -> Int {
        let size = self.decodedSize(of: header, options: options)
        let withHoles = options.allowsTruncated ? header.pixelFormatWithHoles : nil
        return header.byteCount(of: size, as: withHoles ?? header.decodedFormat)
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
