public import TintypeImage

/// A file whose header a coder has parsed: gives its pixels, and says what decoding them takes.
///
/// It holds the encoded bytes, and no pixels. All calls are synchronous; several lanes may make them at once, and each
/// call begins anew. Long loops count their work with a ``DecodeWork`` of the options' limits.
public protocol EncodedImage: Sendable {
    /// What the file says about its image.
    var header: ImageHeader { get }

    /// The pixels as stored: not turned, with the header's orientation on the image.
    ///
    /// The limits were checked against the header before.
    func decode(options: DecodeOptions) throws -> DecodedImage

    // MARK: What may be left out

    /// How the image lies in memory that ``decode(options:)`` gives, scaled down as far as the sufficient size allows.
    ///
    /// Left out, it is `rgba8` for an animation and where there may be alpha, and `rgb8` elsewhere, as large as stored.
    ///
    /// - Throws: `ImageError` for an image that no memory holds.
    func decodedLayout(options: DecodeOptions) throws -> PixelLayout

    /// The bytes of memory that the coder has allocated at most at once for a decode of a kind, with what it gives out.
    ///
    /// Left out, only images count, by their kind: a codec that needs memory of its own says so here.
    ///
    /// The limits were checked against the header before. Where it says less than it takes, a busy loader takes more
    /// memory than it was allowed.
    func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int

    /// What the file says of its image besides the pixels; what is broken of it is left out.
    ///
    /// Left out, it is no more than the header's orientation.
    ///
    /// - Throws: `CodingError` for a file that takes too much work, `CancellationError`.
    func metadata(limits: DecodingLimits) throws -> ImageMetadata

    /// The frames of an animation, or `nil` for a still image.
    ///
    /// The limits were checked against the header before.
    func frameReader(options: DecodeOptions) throws -> (any FrameReader)?

    /// Whether ``withRows(options:_:)`` gives the rows of the image one by one, so that it is never there whole.
    ///
    /// Where it is true and no rows come, a thumbnail takes more memory than it is weighed by.
    var givesRows: Bool { get }

    /// Lends the stored rows of a still image, decoded one by one, scaled down as far as the sufficient size allows;
    /// `nil` when the image can't be streamed (an interlaced one).
    func withRows<Result>(
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result?

    /// Returns a decode of the image that several lanes can share; `nil` if one lane is as fast.
    ///
    /// Returns `nil` by default. The loader asks for one if lanes are idle. It must not read the pixels yet.
    ///
    /// - Parameters:
    ///   - kind: The decode: of the whole image, or row by row.
    ///   - options: The options of the decode.
    /// - Returns: The decode, or `nil`.
    func parallelDecode(_ kind: DecodeKind, options: DecodeOptions) -> ParallelDecode?
}

extension EncodedImage {
    public func decodedLayout(options: DecodeOptions) throws -> PixelLayout {
        // Frames of an animation are drawn on a canvas with alpha.
        let hasAlpha = self.header.hasAlpha || !self.header.animation.durations.isEmpty
        return try self.header.layout(as: hasAlpha ? .rgba8 : .rgb8)
    }

    public func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int {
        let isAnimated = !self.header.animation.durations.isEmpty
        let pictures =
            switch kind {
            case .rows: self.givesRows ? 0 : 1
            // A frame, and the canvas.
            case .picture: isAnimated ? 2 : 1
            // The frame that was shown last stays.
            case .frame: 3
            // What has arrived, and its copy.
            case .incremental: 2
            }
        return self.decodedByteCount(options: options).saturatingMultiplied(by: pictures)
    }

    public func metadata(limits: DecodingLimits) throws -> ImageMetadata {
        ImageMetadata(orientation: self.header.orientation)
    }

    public func frameReader(options: DecodeOptions) throws -> (any FrameReader)? { nil }

    public var givesRows: Bool { false }

    public func withRows<Result>(
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? { nil }

    public func parallelDecode(_ kind: DecodeKind, options: DecodeOptions) -> ParallelDecode? { nil }

    /// The frame that the options name, drawn on its canvas, as stored.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    func composited(_ reader: any FrameReader, options: DecodeOptions) throws -> DecodedImage {
        let format = self.header.format
        guard reader.frames.indices.contains(options.frame) else {
            throw CodingError.noFrame(options.frame, of: reader.frames.count, format)
        }
        let pixels = try FrameCompositor(reader, limits: options.limits, format: format)
            .frame(at: options.frame, isLast: true)
        return DecodedImage(Image(pixels: pixels, orientation: self.header.orientation, sourceFormat: format))
    }

    /// The bytes of the pixels that a decode gives out; what no layout holds is `Int.max`.
    func decodedByteCount(options: DecodeOptions) -> Int {
        (try? self.decodedLayout(options: options).byteCount) ?? .max
    }
}

/// A decode that several lanes share: one decodes ``image``, and others call ``help`` at the same time.
///
/// The decode must succeed without help. Before it returns, it waits for the lanes that help and keeps later ones away.
public struct ParallelDecode: Sendable {
    /// The image, for one decode with the options that it was made for.
    public let image: any EncodedImage
    /// The most lanes that are of use in addition to the first one.
    public let helperCount: Int
    /// The bytes of memory that each of them takes.
    public let helperByteCount: Int
    /// Helps until there is nothing left to do, or until the closure returns `true` because other work waits for the lane.
    ///
    /// It may be called before the decode begins and after it has ended.
    public let help: @Sendable (_ isWanted: () -> Bool) -> Void

    /// Describes a decode.
    public init(
        image: any EncodedImage,
        helperCount: Int,
        helperByteCount: Int,
        help: @escaping @Sendable (_ isWanted: () -> Bool) -> Void
    ) {
        self.image = image
        self.helperCount = helperCount
        self.helperByteCount = helperByteCount
        self.help = help
    }
}

/// What a coder gives out: an image, perhaps smaller than stored, and how exactly it covers it.
public struct DecodedImage: Sendable {
    /// The pixels as stored, with the orientation that makes them upright.
    public let image: Image
    /// How many columns of the image hold content: below its width by less than one pixel where a scaled decode
    /// rounded up.
    ///
    /// A resize that knows it shifts nothing.
    public let coveredWidth: Double
    /// How many rows of the image hold content.
    public let coveredHeight: Double

    /// Wraps an image; without sizes it is covered whole.
    public init(_ image: Image, coveredWidth: Double? = nil, coveredHeight: Double? = nil) {
        self.image = image
        self.coveredWidth = coveredWidth ?? Double(image.width)
        self.coveredHeight = coveredHeight ?? Double(image.height)
    }
}
