// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// Opens the files of some formats, and encodes images.
///
/// All calls are synchronous; the loader makes them on a decode lane. Several lanes may call a coder at once, so it
/// keeps no state between calls. Long loops count their work with a ``DecodeWork``, which throws when the work exceeds
/// the limits, and throws `CancellationError` when the task is cancelled.
///
/// ```swift
/// struct ProgressiveJPEG: ImageCoder {
///     let base = JPEGCoder()
///     var decodableFormats: Set<ImageFormat> { self.base.decodableFormats }
///     var encodableFormats: Set<ImageFormat> { self.base.encodableFormats }
///
///     func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
///         try self.base.open(data, limits: limits)
///     }
///
///     func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
///         var options = options
///         options.isProgressive = true
///         return try self.base.encode(image, as: format, options: options)
///     }
/// }
/// ```
public protocol ImageCoder: Sendable {
    /// The formats that ``open(_:limits:)`` understands: known ones, or the coder's own.
    ///
    /// The registry reads this property once, when the coder is registered.
    var decodableFormats: Set<ImageFormat> { get }
    /// The formats that this coder writes, which the registry also reads once.
    var encodableFormats: Set<ImageFormat> { get }

    /// Parses the header of a file.
    ///
    /// Reads no pixels and allocates no pixel memory.
    ///
    /// The coder keeps the number of frames and the work within the limits, so that a flood of frames or of padding
    /// ends early. The caller checks the size.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage

    /// Encodes `image` in `format`.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data

    // MARK: Requirements with defaults

    /// The formats in which this coder writes animations; none by default.
    ///
    /// A loader that encodes an animation in another format encodes its first frame.
    var animatedFormats: Set<ImageFormat> { get }

    /// Returns a decoder that takes bytes as they arrive, or `nil` if the coder does not support that for the format.
    ///
    /// Returns `nil` by default.
    func makeIncrementalDecoder(for format: ImageFormat, options: DecodeOptions) throws -> (any IncrementalDecoder)?

    /// Encodes an animation in `format`.
    ///
    /// - Throws: `CodingError.Code.unsupportedFeature` by default, and if the format or the coder has no animations.
    func encode(_ animation: AnimationContent, as format: ImageFormat, options: EncodeOptions) throws -> Data

    /// Returns the most memory in bytes that the coder has allocated at once during an encode, including its result.
    ///
    /// The loader begins an encode when that many bytes are free. If the value is too low, a busy loader can exceed its
    /// memory limit. By default the value is four copies of the pixels in `rgba8`, and one more for each frame of an
    /// animation.
    ///
    /// - Parameters:
    ///   - layout: The size and format of the pixels, which are upright, in sRGB, and not counted. All frames of an
    ///     animation have this size, and no frame has a richer format.
    ///   - frameCount: The number of frames of an animation; `nil` for a still image.
    ///   - format: The format to write.
    ///   - options: The options of the encode.
    /// - Returns: The bytes for the worst image of that size.
    func encodingByteCount(
        of layout: PixelLayout,
        frameCount: Int?,
        as format: ImageFormat,
        options: EncodeOptions
    ) -> Int
}

/// The kind of result that a decode returns, which decides how much memory it takes.
public enum DecodeKind: Sendable, Hashable {
    /// An image: a still one, or the frame of an animation that the options name.
    case image
    /// The frames of an animation one after the other, drawn on a canvas that the decoder keeps.
    case frame
    /// The rows of a still image one by one.
    case rows
    /// An image and its previews while its bytes arrive.
    case incremental
}

extension ImageCoder {
    /// Parses the header of a file within the default limits.
    ///
    /// ```swift
    /// let header = try JPEGCoder().open(data).header
    /// ```
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    public func open(_ data: Data) throws -> any EncodedImage {
        try self.open(data, limits: DecodingLimits())
    }

    public var animatedFormats: Set<ImageFormat> { [] }

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
