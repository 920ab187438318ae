// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCaching
import TintypeHTTP
import TintypeImage
import TintypeRequests

/// An encoded image, and the fields with which a server sends it.
public struct EncodedResponse: Sendable {
    /// The bytes and their metadata.
    let entry: EncodedEntry
    /// The tier or origin of the bytes; for bytes that this load has encoded, that of the image.
    public package(set) var source: LoadSource
    /// The reason why the bytes are not on disk, if the request waited for the store.
    public internal(set) var storeError: LoadError?
    /// The result of the revalidation; `nil` if the cached bytes were fresh, or if there were none.
    public let revalidation: Revalidation?
    /// The durations of the load and of the call; `nil` if the bytes were found without a load.
    var call: CallRecord?

    init(
        _ entry: EncodedEntry,
        source: LoadSource,
        revalidation: Revalidation? = nil,
        storeError: LoadError? = nil
    ) {
        self.entry = entry
        self.source = source
        self.revalidation = revalidation
        self.storeError = storeError
    }

    /// The encoded bytes.
    public var data: Data { self.entry.data }

    /// The media type, for `Content-Type`.
    ///
    /// It is `application/octet-stream` if the entry names SVG, or a type that is not an image.
    public var mediaType: String {
        // An entry of a tier that others can write to must not turn into a document.
        let type = self.entry.metadata.extra[Self.mediaTypeName] ?? ""
        let subtype = String(type.dropFirst("image/".count))
        let isImage = type.hasPrefix("image/") && FieldText.isToken(subtype) && !subtype.lowercased().hasPrefix("svg")
        return isImage ? type : "application/octet-stream"
    }

    /// A strong tag of these very bytes with its quotes, for `ETag` (RFC 9110, 8.8.3).
    public var etag: String { "\"\(self.entry.metadata.extra[Self.tagName] ?? "")\"" }

    /// The columns of the image.
    public var width: Int { self.entry.metadata.extra[Self.widthName].flatMap { Int($0) } ?? 0 }

    /// The rows of the image.
    public var height: Int { self.entry.metadata.extra[Self.heightName].flatMap { Int($0) } ?? 0 }

    /// The metadata of the original bytes: dates, validators, response.
    public var metadata: EntryMetadata { self.entry.metadata }

    /// The durations of the parts of the load.
    public var metrics: LoadMetrics { self.call?.metrics ?? LoadMetrics() }

    // MARK: Additional fields of the metadata

    private static let mediaTypeName = "encoded-type"
    private static let tagName = "encoded-tag"
    private static let widthName = "encoded-width"
    private static let heightName = "encoded-height"

    /// Returns the metadata of an image of `origin` that was encoded as `data`.
    static func metadata(
        of data: Data,
        _ image: Image,
        as format: ImageFormat,
        origin: EntryMetadata
    ) -> EntryMetadata {
        var metadata = origin
        metadata.formatName = format.name
        metadata.extra[Self.mediaTypeName] = format.mediaType
        metadata.extra[Self.tagName] = BodyDigest.tag(of: data)
        metadata.extra[Self.widthName] = "\(image.width)"
        metadata.extra[Self.heightName] = "\(image.height)"
        return metadata
    }

    /// Returns the entry with new metadata of the original bytes.
    static func metadata(_ old: EntryMetadata, renewedBy origin: EntryMetadata) -> EntryMetadata {
        var metadata = origin
        metadata.formatName = old.formatName
        for name in [Self.mediaTypeName, Self.tagName, Self.widthName, Self.heightName] {
            metadata.extra[name] = old.extra[name]
        }
        return metadata
    }
}

/// The lifetime and age of the origin's response, for a server that hands them on.
///
/// ```swift
/// "max-age=\(max(0, Int((response.freshnessLifetime - response.age()) / .seconds(1))))"
/// ```
extension EntryMetadata {
    /// The lifetime of the origin's response (RFC 9111, 4.2.1) within the loader's bounds; zero without one, or if
    /// there is no response.
    public var freshnessLifetime: Duration {
        // A century is for ever; a longer time would not fit.
        .seconds(min(max(0, self.response?.freshness.lifetime ?? 0), 3_155_760_000))
    }

    /// Returns the age of the origin's response at a time, including its age on arrival (RFC 9111, 4.2.3); zero if
    /// there is no response.
    ///
    /// ```swift
    /// let age = response.metadata.age()
    /// ```
    public func age(at date: Date = Date()) -> Duration {
        .seconds(min(max(0, self.response?.freshness.age(at: date) ?? 0), 3_155_760_000))
    }
}

extension EncodedResponse {
    /// The lifetime of the origin's response; see ``EntryMetadata/freshnessLifetime``.
    public var freshnessLifetime: Duration { self.metadata.freshnessLifetime }

    /// Returns the age of the origin's response; see ``EntryMetadata/age(at:)``.
    ///
    /// ```swift
    /// let response = try await loader.encoded(request, as: .webp())
    /// let seconds = Int(response.age() / .seconds(1))  // for the field Age
    /// ```
    public func age(at date: Date = Date()) -> Duration { self.metadata.age(at: date) }
}
