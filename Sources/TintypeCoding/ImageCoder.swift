public import FoundationEssentials
public import TintypeImage

/// Turns the bytes of some formats into pictures, and pictures into bytes.
///
/// All calls are synchronous; the loader makes them on a decode lane. A coder is asked from
/// several lanes at once, and keeps no state between calls. Long loops look at
/// `Task.isCancelled` between rows and throw `CancellationError`.
public protocol ImageCoder: Sendable {
    /// The formats that ``header(of:)`` and ``decode(_:header:options:)`` understand.
    var decodableFormats: Set<ImageFormat> { get }
    /// The formats that ``encode(_:as:options:)`` writes.
    var encodableFormats: Set<ImageFormat> { get }

    /// What the file says about its picture. Reads no pixels and allocates none.
    func header(of data: Data) throws(CodingError) -> ImageHeader

    /// The pixels as stored: not turned, with `header.orientation` on the image.
    ///
    /// The limits were checked against `header` before.
    func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage

    /// The bytes of `image` in `format`.
    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data
}
