/// How one load uses the caches and what it tolerates.
public struct LoadOptions: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Loads from the origin whatever is cached, and replaces what is cached.
    public static let refresh = LoadOptions(rawValue: 1 << 0)
    /// Never asks the origin: a miss is `LoadError.Code.notInCache`.
    public static let cacheOnly = LoadOptions(rawValue: 1 << 1)
    /// Keeps the picture out of the memory tier, and does not look there.
    public static let skipMemory = LoadOptions(rawValue: 1 << 2)
    /// Keeps the bytes out of the disk tier, and does not look there.
    public static let skipDisk = LoadOptions(rawValue: 1 << 3)
    /// Ends the load only when the bytes are on disk, or when ``ImageResponse/storeError`` says why not.
    public static let waitForStore = LoadOptions(rawValue: 1 << 4)
    /// Takes a picture whose end is missing as far as it goes, instead of an error.
    public static let allowTruncated = LoadOptions(rawValue: 1 << 5)
    /// Accepts TLS certificates that can't be verified.
    ///
    /// For tests of one's own servers. What such a request loads is cached apart from what is
    /// loaded with verified certificates.
    public static let allowInvalidCertificates = LoadOptions(rawValue: 1 << 6)
    /// Hands out the encoded bytes with the picture, as ``ImageResponse/data``.
    public static let keepData = LoadOptions(rawValue: 1 << 7)

    /// Keeps the stored samples and hands out their profile with the picture, instead of converting to sRGB.
    public static let keepColorProfile = LoadOptions(rawValue: 1 << 8)

    /// Shows unfinished pictures among the events while the bytes arrive, where the format allows it.
    public static let previews = LoadOptions(rawValue: 1 << 9)

    /// Asks the origin whether the cached picture is current, and loads it again if not.
    ///
    /// What is fresh by HTTP's rules is asked for as well, unless it is `immutable`.
    /// ``LoaderActor/events(for:)`` shows the cached picture first, as ``LoadEvent/cached(_:)``, and
    /// ends with the fresh one, or with the cached one if the origin says that it is not modified.
    public static let refreshCached = LoadOptions(rawValue: 1 << 10)

    /// The options that change what the pixels are: a part of the picture's key.
    static let decoding: LoadOptions = [.allowTruncated, .keepColorProfile]
    /// The options that change how the bytes are got and kept: loads that agree in them share their bytes.
    static let fetching: LoadOptions = [
        .refresh, .cacheOnly, .skipDisk, .waitForStore,
        .allowInvalidCertificates, .previews, .refreshCached,
    ]
}
