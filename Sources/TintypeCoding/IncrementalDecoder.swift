// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// Decodes an image while its bytes arrive.
///
/// It parses each byte once. Use it on one lane at a time, from one thread.
///
/// ```swift
/// if let decoder = try JPEGCoder().makeIncrementalDecoder(for: .jpeg, options: DecodeOptions()) {
///     try decoder.append(data)
///     if let preview = try decoder.preview() { show(preview) }
/// }
/// ```
public protocol IncrementalDecoder: AnyObject {
    /// The header of the file, or `nil` until enough bytes have arrived.
    var header: ImageHeader? { get }

    /// The work so far for bytes and previews, as ``DecodeWork`` counts it; 0 by default, if it is not counted.
    var workDone: Int { get }

    /// The work that the next preview will count; 0 by default, if it is not known in advance.
    var previewUnits: Int { get }

    /// The work that remains after all bytes, such as producing the rows of an image that consists of several scans.
    ///
    /// 0 by default, if rows are decoded as their bytes arrive.
    var outputUnits: Int { get }

    /// Takes the bytes that have arrived since the last call, and decodes as far as they go.
    ///
    /// - Throws: `CodingError` for bytes that break the format, and for a header over the limits before any pixel
    ///   memory is allocated; `CancellationError`.
    func append(_ bytes: Data) throws

    /// Returns the image as far as it is decoded, as stored (not turned), or `nil` if nothing is new since the last
    /// call.
    ///
    /// The missing part is black, or transparent. A call costs at most one conversion of the decoded part.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    func preview() throws -> Image?

    /// Returns the complete image.
    ///
    /// Call it after the last byte.
    ///
    /// - Throws: `CodingError.Code.truncated` if the end is missing and the options do not allow that, other
    ///   `CodingError`s for damage, `ImageError` when memory runs out, `CancellationError`.
    func finish() throws -> DecodedImage
}

extension IncrementalDecoder {
    public var workDone: Int { 0 }
    public var previewUnits: Int { 0 }
    public var outputUnits: Int { 0 }
}
