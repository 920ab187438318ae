// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// A file whose header a coder has parsed, which decodes its pixels and estimates the memory for that.
///
/// It holds the encoded bytes, and no pixels. All calls are synchronous. Several lanes may make them at once, and each
/// call starts afresh. Long loops count their work with a ``DecodeWork`` of the options' limits.
///
/// ```swift
/// let encoded = try PNGCoder().open(data)
/// let image = try encoded.decode(options: DecodeOptions()).image
/// ```
public protocol EncodedImage: Sendable {
    /// The header of the file.
    var header: ImageHeader { get }

    /// Decodes the pixels as stored: not turned, with the header's orientation on the image.
    ///
    /// The caller has checked the limits against the header.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    func decode(options: DecodeOptions) throws -> DecodedImage

    // MARK: Requirements with defaults

    /// Returns the memory layout of the image that ``decode(options:)`` returns, scaled down if the sufficient size
    /// allows it.
    ///
    /// By default the layout has the stored size, and is `rgba8` for an animation or an image with alpha, otherwise
    /// `rgb8`.
    ///
    /// - Throws: `ImageError` for an image that does not fit in memory.
    func decodedLayout(options: DecodeOptions) throws -> PixelLayout

    /// Returns the most memory in bytes that the coder has allocated at once for a decode, including its result.
    ///
    /// The default counts only images, depending on the kind of decode. Implement this method if the codec needs memory
    /// of its own. If the value is too low, a busy loader can exceed its memory limit.
    ///
    /// The caller has checked the limits against the header.
    func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int

    /// Returns the metadata of the file without its broken parts.
    ///
    /// By default it contains only the header's orientation.
    ///
    /// - Throws: `CodingError` for a file that takes too much work, `CancellationError`.
    func metadata(limits: DecodingLimits) throws -> ImageMetadata

    /// Returns a reader of the animation's frames, or `nil` for a still image.
    ///
    /// Returns `nil` by default.
    ///
    /// The caller has checked the limits against the header.
    ///
    /// - Throws: `CodingError`.
    func frameReader(options: DecodeOptions) throws -> (any FrameReader)?

    /// Whether ``withRows(options:_:)`` passes on the rows one by one, so that the whole image is never in memory.
    ///
    /// By default `false`. If it is `true` but `withRows` returns `nil`, a thumbnail takes more memory than the loader
    /// reserved.
    var givesRows: Bool { get }

    /// Passes the stored rows of a still image, decoded one by one, to `body`.
    ///
    /// The rows are scaled down if the sufficient size allows it. Returns `nil` by default, and for an image that
    /// cannot be streamed, such as an interlaced one.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`, any error of `body`.
    func withRows<Result>(
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result?

    /// Returns a decode of the image that several lanes can share; `nil` if one lane is as fast.
    ///
    /// Returns `nil` by default. The loader calls this if lanes are idle. The method must not read pixels yet.
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
        let images =
            switch kind {
            case .rows: self.givesRows ? 0 : 1
            // The frame and the canvas.
            case .image: isAnimated ? 2 : 1
            // The compositor also keeps the frame that was shown last.
            case .frame: 3
            // The rows that have arrived, and their copy.
            case .incremental: 2
            }
        return self.decodedByteCount(options: options).saturatingMultiplied(by: images)
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

    /// Returns the frame that the options name, drawn on its canvas, as stored.
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

    /// Returns the bytes of the pixels that a decode returns, or `Int.max` if they do not fit in memory.
    func decodedByteCount(options: DecodeOptions) -> Int {
        (try? self.decodedLayout(options: options).byteCount) ?? .max
    }
}

/// A decode that several lanes share: one decodes ``image``, and others call ``help`` at the same time.
///
/// The decode must succeed without help. Before it returns, it waits for the helping lanes and turns away later ones.
public struct ParallelDecode: Sendable {
    /// The image, for one decode with the options that it was made for.
    public let image: any EncodedImage
    /// The most lanes that are of use in addition to the first one.
    public let helperCount: Int
    /// The bytes of memory that each helping lane takes.
    public let helperByteCount: Int
    /// Helps until no work is left, or until the closure returns `true` because other work waits for the lane.
    ///
    /// The loader may call it before the decode begins and after it has ended.
    public let help: @Sendable (_ isWanted: () -> Bool) -> Void

    /// Creates a description of a shared decode.
    ///
    /// ```swift
    /// let encoded = try JPEGCoder().open(data)
    /// let shared = ParallelDecode(image: encoded, helperCount: 1, helperByteCount: 1 << 20) { isWanted in
    ///     while isWanted() {}
    /// }
    /// ```
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

/// The result of a decode: an image, perhaps smaller than stored, and how much of it the content covers.
public struct DecodedImage: Sendable {
    /// The pixels as stored, with the orientation that makes them upright.
    public let image: Image
    /// The number of columns that hold content: less than one pixel below the width if a scaled decode rounded up.
    ///
    /// A resize uses it to place the content exactly.
    public let coveredWidth: Double
    /// The number of rows that hold content.
    public let coveredHeight: Double

    /// Creates a result.
    ///
    /// Without sizes, the content covers the whole image.
    ///
    /// ```swift
    /// let decoded = DecodedImage(image, coveredWidth: 400, coveredHeight: 299.5)
    /// ```
    public init(_ image: Image, coveredWidth: Double? = nil, coveredHeight: Double? = nil) {
        self.image = image
        self.coveredWidth = coveredWidth ?? Double(image.width)
        self.coveredHeight = coveredHeight ?? Double(image.height)
    }
}
