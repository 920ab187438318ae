// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCaching
public import TintypeImage
import TintypeRendering
import TintypeRequests

/// Where an image or its bytes came from.
public enum LoadSource: String, Sendable, Hashable {
    /// The memory tier: already decoded.
    case memory
    /// The disk tier.
    case disk
    /// The origin, over the network.
    case network
    /// A `file:` or `data:` URL.
    case file
    /// The request itself, as its fallback.
    case fallback
}

/// The result of a revalidation of a cached image.
public enum Revalidation: Sendable, Hashable {
    /// The origin confirmed the image, or sent the same bytes again. The load returned the cached image.
    case notModified
    /// The origin sent another image. The load returned that one, and the cache has replaced the older one.
    case modified
    /// The load returned a stale image (`stale-while-revalidate`, RFC 5861, 3).
    ///
    /// The loader asks the origin in the background, unless it does so already for 64 images of the domain or 256 in all.
    case inBackground
    /// The origin failed, and the load returned a stale image (`stale-if-error`, RFC 5861, 4).
    case failed
}

/// A loaded image with its source and metadata.
public struct ImageResponse: Sendable {
    /// The image, upright, at the requested size.
    public let image: Image
    /// The tier or origin that the image came from.
    public let source: LoadSource
    /// The metadata of the encoded bytes: format, size, validators, dates.
    ///
    /// An image from memory has only the response fields that decide whether it may be reused.
    public internal(set) var metadata: EntryMetadata
    /// The encoded bytes, if the request has ``LoadOptions/keepData``.
    public internal(set) var data: Data?
    /// The reason why the bytes are not on disk, if the request waited for the store.
    public internal(set) var storeError: LoadError?
    /// The result of the revalidation; `nil` if the cached image was fresh or missing.
    public let revalidation: Revalidation?
    /// The index in ``ImageRequest/alternatives`` of the request that gave the image; `nil` if the request itself or its
    /// fallback did.
    public internal(set) var alternative: Int?
    /// The reason why all sources failed, if the image is the request's fallback.
    public internal(set) var failure: LoadError?
    /// Whether HTTP permits to store the image.
    var mayBeKept = true
    /// The durations of the load and of the call; `nil` if the image was found without a load.
    var call: CallRecord?

    /// The durations of the parts of the load.
    public var metrics: LoadMetrics { self.call?.metrics ?? LoadMetrics() }

    init(
        image: Image,
        source: LoadSource,
        metadata: EntryMetadata,
        data: Data? = nil,
        storeError: LoadError? = nil,
        revalidation: Revalidation? = nil
    ) {
        self.image = image
        self.source = source
        self.metadata = metadata
        self.data = data
        self.storeError = storeError
        self.revalidation = revalidation
    }

    /// The format of the encoded image; `nil` if the image was stored in a cache without one.
    public var format: ImageFormat? { self.image.sourceFormat }

    /// The damage in the encoded bytes that the decoder found and continued after; empty for an intact file.
    public var damage: ImageDamage { self.image.damage }

    /// Whether the image is the first frame of an animation; ``LoaderActor/frames(for:)`` returns all frames.
    public var isAnimated: Bool { self.frameCount > 1 }

    /// The number of frames of the animation that the image stands for; 1 for a still image.
    public var frameCount: Int { self.metadata.animation?.frameCount ?? 1 }

    /// The number of times that the animation plays, as stored: 0 for forever, 1 for a still image.
    public var loopCount: Int { self.metadata.animation?.loopCount ?? 1 }

    /// The duration of one pass over all frames; zero for a still image.
    public var duration: Duration { .milliseconds(self.metadata.animation?.milliseconds ?? 0) }

    /// The response of an animation that is treated as a still image.
    var still: ImageResponse {
        var copy = self
        copy.metadata.animation = nil
        return copy
    }

    /// Returns the response for a caller with `request`, without the parts that only other callers of the load requested.
    func finished(for request: ImageRequest) -> ImageResponse {
        let (dropsData, dropsError) = (!request.options.contains(.keepData), !request.options.contains(.waitForStore))
        guard dropsData && self.data != nil || dropsError && self.storeError != nil else { return self }
        var copy = self
        if dropsData { copy.data = nil }
        if dropsError { copy.storeError = nil }
        return copy
    }
}

extension ImageResponse: LoadResponse {}

extension ImageResponse {
    /// Creates the response for an image that was decoded from `bytes`.
    init(_ image: DecodePipeline.MadeImage, _ bytes: Body) {
        let animation = image.animation.map { timing in
            EntryMetadata.Animation(
                frameCount: timing.frameCount,
                loopCount: timing.loopCount,
                milliseconds: timing.totalDuration
            )
        }
        self.init(image.image, source: bytes.source, bytes, animation)
    }

    /// Creates the response for an image of `bytes`, decoded now or before, with the animation of which it is the first frame.
    init(_ image: Image, source: LoadSource, _ bytes: Body, _ animation: EntryMetadata.Animation?) {
        var metadata = bytes.metadata
        metadata.animation = animation
        self.init(
            image: image,
            source: source,
            metadata: metadata,
            data: bytes.data.isEmpty ? nil : bytes.data,
            storeError: bytes.storeError,
            revalidation: bytes.revalidation
        )
        self.mayBeKept = bytes.mayBeKept
    }
}
