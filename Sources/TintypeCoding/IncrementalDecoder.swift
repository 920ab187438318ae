public import FoundationEssentials
public import TintypeImage

/// Decodes an image while its bytes arrive.
///
/// Each byte is parsed once. Used on one lane at a time, from one thread.
public protocol IncrementalDecoder: AnyObject {
    /// What the file says about its image, once enough of it is there.
    var header: ImageHeader? { get }

    /// The work that was done so far, as ``DecodeWork`` counts it: for the bytes, and for previews; 0 where it is not
    /// counted.
    var workDone: Int { get }

    /// The work that the next preview takes, as it will be counted; 0 where that is not known before.
    var previewUnits: Int { get }

    /// The work of a decode that none of the bytes take: of an image that is put together from several scans, giving
    /// out its rows. 0 where rows come with their bytes.
    var outputUnits: Int { get }

    /// Takes the bytes that have arrived since the last call, and decodes as far as they go.
    ///
    /// - Throws: `CodingError` for bytes that break the format, and for a header over the limits,
    ///   before any pixel memory exists; `CancellationError`.
    func append(_ bytes: Data) throws

    /// The image as far as it is known, as stored (not turned), or `nil` when there is nothing
    /// new to show since the last call. What is not known yet is black, or transparent.
    ///
    /// Costs at most one conversion of what is known.
    func preview() throws -> Image?

    /// The complete image, after the last byte.
    ///
    /// - Throws: `CodingError.Code.truncated` when the end is missing, unless that is allowed.
    func finish() throws -> DecodedImage
}

extension IncrementalDecoder {
    public var workDone: Int { 0 }
    public var previewUnits: Int { 0 }
    public var outputUnits: Int { 0 }
}
