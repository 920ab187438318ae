public import FoundationEssentials
public import TintypeCaching
import TintypeHTTP
import TintypeImage

/// An image as a server sends it, and what is to be said of it.
public struct EncodedResponse: Sendable {
    /// The bytes, and what is known of them.
    let entry: EncodedEntry
    /// Where they came from; what was encoded for this load came from where its image did.
    public let source: LoadSource
    /// Why the bytes are not on disk, where the request waited for the store.
    public internal(set) var storeError: LoadError?
    /// What became of cached bytes whose freshness was in question; `nil` where it was not, or nothing was cached.
    public let revalidation: Revalidation?
    /// What the load took, and the call that got the response; `nil` for what was found without a load.
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
    public var mediaType: String { self.entry.metadata.extra[Self.mediaTypeName] ?? "application/octet-stream" }

    /// A strong tag of these very bytes with its quotes, for `ETag` (RFC 9110, 8.8.3).
    public var etag: String { "\"\(self.entry.metadata.extra[Self.tagName] ?? "")\"" }

    /// The columns of the image.
    public var width: Int { self.entry.metadata.extra[Self.widthName].flatMap { Int($0) } ?? 0 }

    /// The rows of the image.
    public var height: Int { self.entry.metadata.extra[Self.heightName].flatMap { Int($0) } ?? 0 }

    /// What is known of the bytes that the image was made of: dates, validators, response.
    public var metadata: EntryMetadata { self.entry.metadata }

    /// Where the time went.
    public var metrics: LoadMetrics { self.call?.metrics ?? LoadMetrics() }

    // MARK: What the metadata of an entry says besides

    private static let mediaTypeName = "encoded-type"
    private static let tagName = "encoded-tag"
    private static let widthName = "encoded-width"
    private static let heightName = "encoded-height"

    /// What is kept of an image of `origin` that was encoded as `data`.
    static func metadata(
        of data: Data,
        _ image: Image,
        as encoding: PictureEncoding,
        origin: EntryMetadata
    ) -> EntryMetadata {
        var metadata = origin
        metadata.formatName = encoding.format.name
        metadata.extra[Self.mediaTypeName] = encoding.format.mediaType
        metadata.extra[Self.tagName] = BodyDigest.tag(of: data)
        metadata.extra[Self.widthName] = "\(image.width)"
        metadata.extra[Self.heightName] = "\(image.height)"
        return metadata
    }

    /// The same bytes with what is known now of those that they were made of.
    static func metadata(_ old: EntryMetadata, renewedBy origin: EntryMetadata) -> EntryMetadata {
        var metadata = origin
        metadata.formatName = old.formatName
        for name in [Self.mediaTypeName, Self.tagName, Self.widthName, Self.heightName] {
            metadata.extra[name] = old.extra[name]
        }
        return metadata
    }
}

/// How long what an origin sent is fresh, so that a server can hand that on.
///
/// ```swift
/// "max-age=\(max(0, Int((response.freshnessLifetime - response.age()) / .seconds(1))))"
/// ```
extension EntryMetadata {
    /// How long the origin's response is fresh from its birth (RFC 9111, 4.2.1), within the loader's bounds; zero where
    /// nothing was said, or none is known.
    public var freshnessLifetime: Duration {
        // A century is for ever; more would not fit.
        .seconds(min(max(0, self.response?.freshness.lifetime ?? 0), 3_155_760_000))
    }

    /// How old the origin's response is at a time, with the age that it came with (RFC 9111, 4.2.3); zero where none is
    /// known.
    public func age(at date: Date = Date()) -> Duration {
        .seconds(min(max(0, self.response?.freshness.age(at: date) ?? 0), 3_155_760_000))
    }
}

extension EncodedResponse {
    /// How long the origin's response is fresh; see ``EntryMetadata/freshnessLifetime``.
    public var freshnessLifetime: Duration { self.metadata.freshnessLifetime }

    /// How old the origin's response is; see ``EntryMetadata/age(at:)``.
    public func age(at date: Date = Date()) -> Duration { self.metadata.age(at: date) }
}

extension ImageResponse {
    /// How long the origin's response is fresh; see ``EntryMetadata/freshnessLifetime``.
    public var freshnessLifetime: Duration { self.metadata.freshnessLifetime }

    /// How old the origin's response is; see ``EntryMetadata/age(at:)``.
    public func age(at date: Date = Date()) -> Duration { self.metadata.age(at: date) }
}

extension DataResponse {
    /// How long the origin's response is fresh; see ``EntryMetadata/freshnessLifetime``.
    public var freshnessLifetime: Duration { self.metadata.freshnessLifetime }

    /// How old the origin's response is; see ``EntryMetadata/age(at:)``.
    public func age(at date: Date = Date()) -> Duration { self.metadata.age(at: date) }
}
