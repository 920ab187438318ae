import CXXHash
public import FoundationEssentials
public import TintypeHTTP
public import TintypeImage

/// What is known about an entry beside its bytes or pixels; it rides along in both tiers.
public struct EntryMetadata: Sendable, Hashable {
    /// The name of the encoded format, such as `jpeg`.
    public var formatName: String?
    /// The URL that the bytes came from.
    public var sourceURL: String?
    /// The media type that the origin declared.
    public var mediaType: String?
    /// The `ETag` of the response, with its quotes, to ask "has it changed?".
    public var etag: String?
    /// The `Last-Modified` of the response, as it was written.
    public var lastModified: String?
    /// When the response was made or received.
    public var responseDate: Date?
    /// The size of the encoded image in bytes.
    public var byteCount: Int?
    /// From when on the entry is a miss in both tiers, whatever the age limit says.
    ///
    /// This is the end of the entry's life. It is not the freshness of the response: a stale
    /// image must stay in the cache to be revalidated.
    public var expiry: Date?
    /// What the HTTP response said, where one brought the bytes; entries of older versions have none.
    public var response: ResponseRecord?
    /// Names the encoded bytes that the entry is, or was made of; see ``BodyDigest``.
    public var bodyDigest: UInt64?
    /// What was found out about the frames, where an image was made of an animation; `nil` for a still one.
    ///
    /// Kept with images in memory and with variants on disk. Encoded originals say it themselves.
    public var animation: Animation?
    /// The damage in the bytes that an encoded variant on disk was made of; empty for originals, whose decode finds it.
    public var damage: ImageDamage
    /// Whatever else the owner of the cache wants to keep with the entry.
    public var extra: [String: String]

    /// The frames of an animation.
    public struct Animation: Sendable, Hashable {
        /// The number of frames.
        public var frameCount: Int
        /// How often they are shown, as stored: 0 is forever.
        public var loopCount: Int
        /// How long all of them are shown once, in milliseconds.
        public var milliseconds: Int

        /// Describes an animation.
        public init(frameCount: Int, loopCount: Int, milliseconds: Int) {
            self.frameCount = frameCount
            self.loopCount = loopCount
            self.milliseconds = milliseconds
        }
    }

    /// Creates metadata; what is not given is not known.
    public init(
        formatName: String? = nil,
        sourceURL: String? = nil,
        mediaType: String? = nil,
        etag: String? = nil,
        lastModified: String? = nil,
        responseDate: Date? = nil,
        byteCount: Int? = nil,
        expiry: Date? = nil,
        response: ResponseRecord? = nil,
        bodyDigest: UInt64? = nil,
        animation: Animation? = nil,
        damage: ImageDamage = [],
        extra: [String: String] = [:]
    ) {
        self.formatName = formatName
        self.sourceURL = sourceURL
        self.mediaType = mediaType
        self.etag = etag
        self.lastModified = lastModified
        self.responseDate = responseDate
        self.byteCount = byteCount
        self.expiry = expiry
        self.response = response
        self.bodyDigest = bodyDigest
        self.animation = animation
        self.damage = damage
        self.extra = extra
    }

    /// The bytes that the metadata takes in memory beside its own fixed size: its texts, and the fields of the
    /// response.
    ///
    /// The memory tier counts them with the image. Texts that several entries share are counted for each.
    public var memoryByteCount: Int {
        let texts = [self.formatName, self.sourceURL, self.mediaType, self.etag, self.lastModified]
        let own = texts.reduce(0) { $0 + ($1.map { Self.memoryByteCount(of: $0) } ?? 0) }
        let extra = self.extra.reduce(0) { $0 + Self.memoryByteCount(of: $1.key) + Self.memoryByteCount(of: $1.value) }
        return own + extra + (self.response?.memoryByteCount ?? 0)
    }

    /// The bytes of a text, and of the object around those that do not fit into the value itself.
    fileprivate static func memoryByteCount(of text: String) -> Int {
        let count = text.utf8.count
        return count <= 15 ? 0 : count + 32
    }
}

extension ResponseRecord {
    /// The bytes that the fields take in memory.
    fileprivate var memoryByteCount: Int {
        let digest = self.selectionDigest.map { EntryMetadata.memoryByteCount(of: $0) } ?? 0
        return self.fields.reduce(digest) { sum, field in
            sum + MemoryLayout<HeaderField>.stride + EntryMetadata.memoryByteCount(of: field.name)
                + EntryMetadata.memoryByteCount(of: field.value)
        }
    }
}

/// Names the bytes of a body, to tell whether two images were made of the same ones.
///
/// XXH3 of 64 bits: it tells a changed image from an unchanged one, and proves nothing to an adversary.
public enum BodyDigest {
    /// The digest of `body`.
    public static func value(of body: Data) -> UInt64 {
        body.withUnsafeBytes { cxxhash_64bits($0.baseAddress, $0.count) }
    }

    /// The first 128 bits of the SHA-256 of `body` as hexadecimal digits: no two bodies have the same, even where one was made to have it.
    public static func tag(of body: Data) -> String {
        body.withUnsafeBytes { String(KeyDigest(of: $0).fileName.prefix(32)) }
    }
}
