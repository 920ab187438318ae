public import FoundationEssentials
public import TintypeCaching
public import TintypeImage

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

/// What became of a cached image whose freshness was in question.
public enum Revalidation: Sendable, Hashable {
    /// The origin said that it is current, or sent the same bytes again: it was served, and lives on.
    case notModified
    /// The origin sent another one, which was served and took its place.
    case modified
    /// It was served stale, and the origin is asked in the background: `stale-while-revalidate`.
    case inBackground
    /// The origin failed, and it was served stale: `stale-if-error`.
    case failed
}

/// A loaded image and what is known about it.
public struct ImageResponse: Sendable {
    /// The image, upright, at the size that was asked for.
    public let image: Image
    /// Where it came from.
    public let source: LoadSource
    /// What is known of the encoded bytes: format, size, validators, dates.
    ///
    /// With an image from memory come only those fields of the response that decide about its reuse.
    public private(set) var metadata: EntryMetadata
    /// The encoded bytes, where the request has ``LoadOptions/keepData``.
    public private(set) var data: Data?
    /// Why the bytes are not on disk, where the request waited for the store.
    public private(set) var storeError: LoadError?
    /// What became of the cached image, where its freshness was in question; `nil` where it was not,
    /// or nothing was cached.
    public let revalidation: Revalidation?
    /// The place among ``ImageRequest/alternatives`` of the request that gave the image, from 0; `nil` where the request
    /// itself did, or its fallback.
    public internal(set) var alternative: Int?
    /// Why all sources failed, where the image is the request's fallback.
    public internal(set) var failure: LoadError?
    /// Whether HTTP permits to keep what is made of the image.
    var mayBeKept = true
    /// What the load took, and the call that got the response; `nil` for what was found without a load.
    var call: CallRecord?

    /// Where the time went.
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

    /// The format of the encoded image; `nil` where a cache was given the image without one.
    public var format: ImageFormat? { self.image.sourceFormat }

    /// The damage in the encoded bytes that the decoder found and continued after; empty for an intact file.
    public var damage: ImageDamage { self.image.damage }

    /// Whether the image is the first frame of an animation, whose frames ``LoaderActor/frames(for:)`` gives.
    public var isAnimated: Bool { self.frameCount > 1 }

    /// The number of frames of the animation that the image stands for; 1 for a still image.
    public var frameCount: Int { self.metadata.animation?.frameCount ?? 1 }

    /// How often the frames are shown, as stored: 0 is forever, 1 for a still image.
    public var loopCount: Int { self.metadata.animation?.loopCount ?? 1 }

    /// How long all frames are shown once; zero for a still image.
    public var duration: Duration { .milliseconds(self.metadata.animation?.milliseconds ?? 0) }

    /// The same, of an animation that is taken for a still image.
    var still: ImageResponse {
        var copy = self
        copy.metadata.animation = nil
        return copy
    }

    func with(data: Data?) -> ImageResponse {
        var copy = self
        copy.data = data
        return copy
    }

    /// The same, as the caller gets it that asked with `request`: others wanted more of the load that they shared.
    func finished(for request: ImageRequest) -> ImageResponse {
        let (dropsData, dropsError) = (!request.options.contains(.keepData), !request.options.contains(.waitForStore))
        guard dropsData && self.data != nil || dropsError && self.storeError != nil else { return self }
        var copy = self
        if dropsData { copy.data = nil }
        if dropsError { copy.storeError = nil }
        return copy
    }

    func withStoreError(_ error: LoadError) -> ImageResponse {
        var copy = self
        copy.storeError = error
        return copy
    }
}
