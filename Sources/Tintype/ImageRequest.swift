public import FoundationEssentials
public import TintypeCaching
public import TintypeDownloading
public import TintypeHTTP
public import TintypeTransforms

/// What to load and what to make of it.
///
/// A small value: copying is free, and the keys that caches use are derived once, when a
/// request is made or changed. Build it once where a picture is asked for often.
public struct ImageRequest: Sendable, Hashable {
    private struct Fields: Sendable, Hashable {
        var url: URL
        var headers: HeaderFields
        var thumbnail: Resize?
        var scaleDownLimit: Int?
        var coder: CustomCoder?
        var options: LoadOptions
        var originalCaching: CacheUse
        var variantCaching: CacheUse
        var priority = DownloadPriority.normal
        var cachePolicy: CachePolicy?
    }

    private final class Storage: Sendable {
        let fields: Fields
        let sourceKey: CacheKey
        let key: CacheKey
        let resourceKey: CacheKey
        /// Worked out once, for the hits.
        let memoryUse: MemoryUse

        init(_ fields: Fields) {
            self.fields = fields
            self.sourceKey = RequestKeys.source(url: fields.url, headers: fields.headers, options: fields.options)
            self.key = RequestKeys.picture(
                source: self.sourceKey,
                thumbnail: fields.thumbnail,
                scaleDownLimit: fields.scaleDownLimit,
                coder: fields.coder,
                options: fields.options
            )
            self.resourceKey =
                fields.headers.isEmpty
                ? self.sourceKey
                : RequestKeys.resource(url: fields.url, headers: fields.headers, options: fields.options)
            let caching = self.key == self.sourceKey ? fields.originalCaching : fields.variantCaching
            self.memoryUse = Self.memoryUse(fields, caching)
        }

        private static func memoryUse(_ fields: Fields, _ caching: CacheUse) -> MemoryUse {
            guard caching.query.contains(.memory),
                fields.options.isDisjoint(with: [.refresh, .skipMemory, .keepData])
            else { return [] }
            if fields.options.contains(.cacheOnly) { return .trusted }
            if fields.options.contains(.refreshCached) { return .checked }
            return switch fields.cachePolicy {
            case nil: .byDefault
            case .neverRevalidate: .trusted
            case .honorFreshness, .alwaysRevalidate: .checked
            }
        }
    }

    private var storage: Storage

    /// Describes a load.
    ///
    /// - Parameters:
    ///   - url: An `http:`, `https:`, `file:` or `data:` URL.
    ///   - headers: Header fields to send besides the loader's own; they are a part of the key. Where HTTP's
    ///     freshness counts, those that only say what is wanted, such as `Accept-Language`, tell the bytes on disk
    ///     apart where the response's `Vary` names them, and the others always.
    ///   - thumbnail: The size to bring the picture to; `nil` keeps it full size.
    ///   - scaleDownLimit: The bytes of pixels, four for each, that a picture without a thumbnail
    ///     may have; a larger one is scaled down to it as it is decoded. `nil` is no limit.
    ///   - coder: Decodes the picture; `nil` asks the registered coders.
    ///   - options: How the load uses the caches and what it tolerates.
    ///   - originalCaching: The tiers for the original: its bytes on disk, its full-size picture in memory.
    ///   - variantCaching: The tiers for what is made of the original, such as a thumbnail.
    ///   - cachePolicy: When the origin is asked whether what is cached is current; `nil` leaves it to the loader.
    public init(
        url: URL,
        headers: HeaderFields = [:],
        thumbnail: Resize? = nil,
        scaleDownLimit: Int? = nil,
        coder: CustomCoder? = nil,
        options: LoadOptions = [],
        originalCaching: CacheUse = CacheUse(),
        variantCaching: CacheUse = CacheUse(query: .all, store: .memory),
        cachePolicy: CachePolicy? = nil
    ) {
        self.storage = Storage(
            Fields(
                url: url,
                headers: headers,
                thumbnail: thumbnail,
                scaleDownLimit: scaleDownLimit,
                coder: coder,
                options: options,
                originalCaching: originalCaching,
                variantCaching: variantCaching,
                cachePolicy: cachePolicy
            )
        )
    }

    /// The usual limit for ``scaleDownLimit``: 60 MiB, which is 15.7 megapixels.
    public static let defaultScaleDownLimit = 60 << 20

    /// Where the picture is.
    public var url: URL {
        get { self.storage.fields.url }
        set { self.set(\.url, newValue) }
    }

    /// Header fields to send besides the loader's own.
    public var headers: HeaderFields {
        get { self.storage.fields.headers }
        set { self.set(\.headers, newValue) }
    }

    /// The size to bring the picture to, or `nil` for full size.
    public var thumbnail: Resize? {
        get { self.storage.fields.thumbnail }
        set { self.set(\.thumbnail, newValue) }
    }

    /// The bytes of pixels that a picture without a thumbnail may have, or `nil` for no limit.
    public var scaleDownLimit: Int? {
        get { self.storage.fields.scaleDownLimit }
        set { self.set(\.scaleDownLimit, newValue) }
    }

    /// The coder that decodes the picture, or `nil` for the registered ones.
    public var coder: CustomCoder? {
        get { self.storage.fields.coder }
        set { self.set(\.coder, newValue) }
    }

    /// How the load uses the caches and what it tolerates.
    public var options: LoadOptions {
        get { self.storage.fields.options }
        set { self.set(\.options, newValue) }
    }

    /// The tiers for the original: its bytes on disk, its full-size picture in memory.
    ///
    /// Default both. A thumbnail is made from the full-size picture where that is in memory; a load
    /// of a thumbnail never decodes the full size only to keep it.
    public var originalCaching: CacheUse {
        get { self.storage.fields.originalCaching }
        set { self.set(\.originalCaching, newValue) }
    }

    /// The tiers for what is made of the original: a thumbnail, or a picture scaled down.
    ///
    /// Default: both are asked, and the memory keeps it. A variant that the disk keeps as well is
    /// encoded for it: as PNG where it has transparency, else as JPEG of quality 90, unless
    /// ``LoaderActor/Configuration/variantEncoder`` says otherwise.
    public var variantCaching: CacheUse {
        get { self.storage.fields.variantCaching }
        set { self.set(\.variantCaching, newValue) }
    }

    /// When the origin is asked whether what is cached is current, or `nil` to leave it to the loader.
    public var cachePolicy: CachePolicy? {
        get { self.storage.fields.cachePolicy }
        set { self.set(\.cachePolicy, newValue) }
    }

    /// How urgent the download is to this caller; default normal.
    ///
    /// It is no part of the keys. A download that several wait for is as urgent as the most urgent of them.
    public var priority: DownloadPriority {
        get { self.storage.fields.priority }
        set { self.set(\.priority, newValue) }
    }

    /// Names the encoded bytes: URL, headers, and whether certificates are verified.
    public var sourceKey: CacheKey { self.storage.sourceKey }

    /// Names the encoded bytes as HTTP does, where its freshness counts: by the URL and what may say who asks.
    ///
    /// What responses vary on besides is told apart by their `Vary`.
    var resourceKey: CacheKey { self.storage.resourceKey }

    /// How the memory tier may answer; empty where it may not.
    var memoryUse: MemoryUse { self.storage.memoryUse }

    /// Whether the memory tier may answer, once its entry was found to be good.
    var readsMemory: Bool { !self.storage.memoryUse.isEmpty }

    /// Names the picture: the source and everything that is made of it.
    public var key: CacheKey { self.storage.key }

    public static func == (left: ImageRequest, right: ImageRequest) -> Bool {
        left.storage === right.storage || left.storage.fields == right.storage.fields
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.storage.fields)
    }

    private mutating func set<Value>(_ path: WritableKeyPath<Fields, Value>, _ value: Value) {
        var fields = self.storage.fields
        fields[keyPath: path] = value
        self.storage = Storage(fields)
    }
}
