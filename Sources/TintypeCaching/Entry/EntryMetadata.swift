// SPDX-License-Identifier: Apache-2.0

import CTintypeXXHash
public import FoundationEssentials
public import TintypeHTTP
public import TintypeImage

/// The metadata of a cache entry, in both tiers.
public struct EntryMetadata: Sendable, Hashable {
    /// The name of the encoded format, such as `jpeg`.
    public var formatName: String?
    /// The URL of the bytes.
    public var sourceURL: String?
    /// The media type that the origin declared.
    public var mediaType: String?
    /// The `ETag` of the response with its quotes, for revalidation.
    public var etag: String?
    /// The `Last-Modified` of the response, verbatim.
    public var lastModified: String?
    /// The date when the response was made or received.
    public var responseDate: Date?
    /// The size of the encoded image in bytes.
    public var byteCount: Int?
    /// The date from which the entry is a miss in both tiers, whatever the age limit.
    ///
    /// This is the end of the entry's life. It is not the freshness of the response: a stale
    /// image must stay in the cache to be revalidated.
    public var expiry: Date?
    /// The record of the HTTP response, if there was one; entries of older versions have none.
    public var response: ResponseRecord?
    /// The digest (64-bit XXH3) of the body from which the entry was made, as hooks left it, and before the serializer.
    public var bodyDigest: UInt64?
    /// The frames, if the image was made of an animation; `nil` for a still image.
    ///
    /// Images in memory and variants on disk have it. Encoded originals contain it themselves.
    public var animation: Animation?
    /// The damage in the bytes of an encoded variant on disk; empty for originals, whose decode finds it.
    public var damage: ImageDamage
    /// The values that the owner of the cache stores with the entry.
    public var extra: [String: String]

    /// The frames of an animation.
    public struct Animation: Sendable, Hashable {
        /// The number of frames.
        public var frameCount: Int
        /// The number of times that the animation plays, as stored: 0 for forever.
        public var loopCount: Int
        /// The duration of one pass over all frames in milliseconds.
        public var milliseconds: Int

        /// Creates a description of an animation.
        ///
        /// ```swift
        /// let animation = EntryMetadata.Animation(frameCount: 12, loopCount: 0, milliseconds: 1_200)
        /// ```
        public init(frameCount: Int, loopCount: Int, milliseconds: Int) {
            self.frameCount = frameCount
            self.loopCount = loopCount
            self.milliseconds = milliseconds
        }
    }

    /// Creates metadata; `nil` means unknown.
    ///
    /// ```swift
    /// let metadata = EntryMetadata(mediaType: "image/jpeg", expiry: Date(timeIntervalSinceNow: 3_600))
    /// ```
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

    /// The number of bytes of the texts and the response fields in memory, without the fixed size of the value.
    ///
    /// The memory tier counts them with the image. If entries share a text, it counts for each of them.
    public var memoryByteCount: Int {
        let texts = [self.formatName, self.sourceURL, self.mediaType, self.etag, self.lastModified]
        let own = texts.reduce(0) { $0 + ($1.map { Self.memoryByteCount(of: $0) } ?? 0) }
        let extra = self.extra.reduce(0) { $0 + Self.memoryByteCount(of: $1.key) + Self.memoryByteCount(of: $1.value) }
        return own + extra + (self.response?.memoryByteCount ?? 0)
    }

    /// Returns the bytes of a text that does not fit into its value, with its heap object; 0 for a short text.
    fileprivate static func memoryByteCount(of text: String) -> Int {
        let count = text.utf8.count
        return count <= 15 ? 0 : count + 32
    }
}

extension ResponseRecord {
    /// The number of bytes of the fields in memory.
    fileprivate var memoryByteCount: Int {
        let digest = self.selectionDigest.map { EntryMetadata.memoryByteCount(of: $0) } ?? 0
        return self.fields.reduce(digest) { sum, field in
            sum + MemoryLayout<HeaderField>.stride + EntryMetadata.memoryByteCount(of: field.name)
                + EntryMetadata.memoryByteCount(of: field.value)
        }
    }
}

/// The digest of a body, for comparing the bytes of two images.
package enum BodyDigest {
    /// Returns the 64-bit XXH3 of `body`, which detects changes but can be forged.
    package static func value(of body: Data) -> UInt64 {
        body.withUnsafeBytes { cxxhash_64bits($0.baseAddress, $0.count) }
    }

    /// Returns the first 128 bits of the SHA-256 of `body` as hexadecimal digits, which cannot be forged.
    package static func tag(of body: Data) -> String {
        body.withUnsafeBytes { String(KeyDigest(of: $0).fileName.prefix(32)) }
    }
}
