// SPDX-License-Identifier: Apache-2.0

/// The options of a load: what it tolerates, returns and waits for.
///
/// ``CachePolicy`` decides when a load asks the origin, and ``CacheUse`` decides which tiers it uses.
public struct LoadOptions: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Accepts an image that is truncated or damaged, as far as it can be decoded, instead of throwing an error.
    public static let allowTruncated = LoadOptions(rawValue: 1 << 0)
    /// Reports unfinished images as events while the bytes arrive, if the format allows it.
    ///
    /// All previews together take at most one and a half times the work of the image's decode. At full size each costs
    /// about as much as the image, so there are few, and often none for a JPEG. Previews of a thumbnail cost less, so
    /// there are more.
    public static let previews = LoadOptions(rawValue: 1 << 1)
    /// Returns the encoded bytes with the image, as `ImageResponse.data`.
    public static let keepData = LoadOptions(rawValue: 1 << 2)
    /// Keeps the stored samples and returns their colour profile with the image, instead of converting to sRGB.
    public static let keepColorProfile = LoadOptions(rawValue: 1 << 3)
    /// Waits until the bytes are on disk.
    ///
    /// If the store fails, `ImageResponse.storeError` has the reason.
    public static let waitForStore = LoadOptions(rawValue: 1 << 4)
    /// Accepts TLS certificates that cannot be verified.
    ///
    /// Use it only to test your own servers. The cache keeps such images apart from images that were loaded with
    /// verified certificates.
    public static let allowInvalidCertificates = LoadOptions(rawValue: 1 << 5)
    /// Treats an animation as a still image, its first frame: the response says so, and `LoaderActor.frames(for:)`
    /// returns one frame.
    public static let firstFrameOnly = LoadOptions(rawValue: 1 << 6)
    /// Waits until the frames of an animation are decoded, as many as the loader keeps
    /// (`LoaderActor.Configuration.framePoolByteLimit`).
    ///
    /// A damaged frame does not fail the load. It throws when it is requested.
    public static let preloadAllFrames = LoadOptions(rawValue: 1 << 7)
    /// Stores the newest preview in memory until the image is there; needs ``previews``.
    ///
    /// A later load reports it first, as `LoadEvent.preview(_:)`, and continues. It never counts as the image, and is
    /// never on disk.
    public static let keepPreviews = LoadOptions(rawValue: 1 << 8)

    /// Asks the origin even if the loader remembers a failure of the source.
    ///
    /// A success clears the failure.
    public static let retryFailed = LoadOptions(rawValue: 1 << 9)
    /// Completes the download for the cache after its last caller has left, with the lowest priority.
    ///
    /// A shutdown of the loader and `LoaderActor.cancelAll()` cancel it.
    public static let finishDownload = LoadOptions(rawValue: 1 << 10)

    /// The options that change pixels, and separate images in the cache.
    static let decoding: LoadOptions = [.allowTruncated, .keepColorProfile]
    /// The options that separate entries in the cache.
    static let identifying = Self.decoding.union(.allowInvalidCertificates)
}
