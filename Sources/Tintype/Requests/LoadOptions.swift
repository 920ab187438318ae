/// What one load tolerates, hands out and waits for.
///
/// When the origin is asked is the choice of ``CachePolicy``; which tiers are used is that of ``CacheUse``.
public struct LoadOptions: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Takes an image whose end is missing, or that is damaged on the way, as far as it goes, instead of an error.
    public static let allowTruncated = LoadOptions(rawValue: 1 << 0)
    /// Shows unfinished images among the events while the bytes arrive, where the format allows it.
    ///
    /// Previews take at most one and a half times the work of the image's decode. At full size, where each costs about
    /// as much as the image, few come, and of many a JPEG none; of a thumbnail, which costs less, there are more.
    public static let previews = LoadOptions(rawValue: 1 << 1)
    /// Hands out the encoded bytes with the image, as ``ImageResponse/data``.
    public static let keepData = LoadOptions(rawValue: 1 << 2)
    /// Keeps the stored samples and hands out their profile with the image, instead of converting to sRGB.
    public static let keepColorProfile = LoadOptions(rawValue: 1 << 3)
    /// Ends the load only when the bytes are on disk, or when ``ImageResponse/storeError`` says why not.
    public static let waitForStore = LoadOptions(rawValue: 1 << 4)
    /// Accepts TLS certificates that can't be verified.
    ///
    /// For tests of one's own servers. What such a request loads is cached apart from what is
    /// loaded with verified certificates.
    public static let allowInvalidCertificates = LoadOptions(rawValue: 1 << 5)
    /// Takes an animation for the still image of its first frame: the response says so, and
    /// ``LoaderActor/frames(for:)`` gives one frame.
    public static let firstFrameOnly = LoadOptions(rawValue: 1 << 6)
    /// Ends the load only when the frames of an animation are decoded, as many as the loader keeps
    /// (``LoaderActor/Configuration/framePoolByteLimit``).
    ///
    /// A frame that can't be decoded fails no load: it does so when it is asked for.
    public static let preloadAllFrames = LoadOptions(rawValue: 1 << 7)
    /// Keeps the newest preview in memory until the image is there; takes ``previews``.
    ///
    /// A load that finds one shows it first, as ``LoadEvent/preview(_:)``, and goes on. No load takes it for the image,
    /// and it is never on disk.
    public static let keepPreviews = LoadOptions(rawValue: 1 << 8)

    /// Asks the origin although a failure of the source is remembered, which a success clears.
    public static let retryFailed = LoadOptions(rawValue: 1 << 9)
    /// Completes the download for the cache when its last caller has left, as little urgent as can be.
    ///
    /// A shutdown of the loader, and ``LoaderActor/cancelAll()``, end it.
    public static let finishDownload = LoadOptions(rawValue: 1 << 10)

    /// The options that change what the pixels are: a part of the image's key.
    static let decoding: LoadOptions = [.allowTruncated, .keepColorProfile]
    /// The options that are a part of any key.
    static let identifying = Self.decoding.union(.allowInvalidCertificates)
}
