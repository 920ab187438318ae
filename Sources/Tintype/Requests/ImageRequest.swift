public import FoundationEssentials
public import TintypeCaching
public import TintypeCoding
public import TintypeDownloading
public import TintypeHTTP
import TintypeImage
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
        var fetcher: CustomFetcher?
        var options: LoadOptions
        var originalCaching: CacheUse
        var variantCaching: CacheUse
        var priority = DownloadPriority.normal
        var cachePolicy: CachePolicy?
    }

    /// What the caches call a request's source and picture.
    private struct Keys: Sendable {
        let source: CacheKey
        let picture: CacheKey
        let resource: CacheKey
        let subject: CachingPlan.Subject

        init(_ fields: Fields) {
            self.source = RequestKeys.source(
                url: fields.url,
                headers: fields.headers,
                fetcher: fields.fetcher,
                options: fields.options
            )
            self.picture = RequestKeys.picture(
                source: self.source,
                thumbnail: fields.thumbnail,
                scaleDownLimit: fields.scaleDownLimit,
                coder: fields.coder,
                options: fields.options
            )
            self.resource =
                fields.headers.isEmpty
                ? self.source
                : RequestKeys.resource(
                    url: fields.url,
                    headers: fields.headers,
                    fetcher: fields.fetcher,
                    options: fields.options
                )
            var subject = RequestKeys.subject(of: self.source)
            if self.picture != self.source { subject.insert(.variant) }
            if fields.thumbnail != nil { subject.insert(.thumbnail) }
            self.subject = subject
        }
    }

    private final class Storage: Sendable {
        let fields: Fields
        let keys: Keys
        /// Worked out once, for the hits.
        let uncheckedMemory: CachingPlan.UncheckedMemory

        init(_ fields: Fields, _ keys: Keys) {
            self.fields = fields
            self.keys = keys
            self.uncheckedMemory = CachingPlan.UncheckedMemory { Self.plan(fields, keys, loaderPolicy: $0) }
        }

        static func plan(_ fields: Fields, _ keys: Keys, loaderPolicy: CachePolicy) -> CachingPlan {
            CachingPlan(
                policy: fields.cachePolicy,
                originals: fields.originalCaching,
                variants: fields.variantCaching,
                options: fields.options,
                subject: keys.subject,
                loaderPolicy: loaderPolicy
            )
        }
    }

    private var storage: Storage

    /// Describes a load.
    ///
    /// - Parameters:
    ///   - url: An `http:`, `https:`, `file:` or `data:` URL, or one that the fetcher knows.
    ///   - headers: Header fields to send besides the loader's own; they are a part of the key. Where HTTP's
    ///     freshness counts, those that only say what is wanted, such as `Accept-Language`, tell the bytes on disk
    ///     apart where the response's `Vary` names them, and the others always.
    ///   - thumbnail: The size to bring the picture to; `nil` keeps it full size.
    ///   - scaleDownLimit: The bytes of pixels, four for each, that a picture without a thumbnail
    ///     may have; a larger one is scaled down to it as it is decoded. `nil` is no limit.
    ///   - coder: Decodes the picture; `nil` asks the registered coders.
    ///   - fetcher: Brings the bytes; `nil` leaves it to the loader.
    ///   - options: What the load tolerates, hands out and waits for.
    ///   - originalCaching: The tiers for the original: its bytes on disk, its full-size picture in memory.
    ///   - variantCaching: The tiers for what is made of the original, such as a thumbnail.
    ///   - cachePolicy: When the origin is asked whether what is cached is current; `nil` leaves it to the loader.
    public init(
        url: URL,
        headers: HeaderFields = [:],
        thumbnail: Resize? = nil,
        scaleDownLimit: Int? = nil,
        coder: CustomCoder? = nil,
        fetcher: CustomFetcher? = nil,
        options: LoadOptions = [],
        originalCaching: CacheUse = CacheUse(),
        variantCaching: CacheUse = CacheUse(query: .all, store: .memory),
        cachePolicy: CachePolicy? = nil
    ) {
        let fields = Fields(
            url: url,
            headers: headers,
            thumbnail: thumbnail,
            scaleDownLimit: scaleDownLimit,
            coder: coder,
            fetcher: fetcher,
            options: options,
            originalCaching: originalCaching,
            variantCaching: variantCaching,
            cachePolicy: cachePolicy
        )
        self.storage = Storage(fields, Keys(fields))
    }

    /// The usual limit for ``scaleDownLimit``: 60 MiB, which is 15.7 megapixels.
    public static let defaultScaleDownLimit = 60 << 20

    /// Where the picture is.
    public var url: URL {
        get { self.storage.fields.url }
        set { self.set(\.url, newValue, changesKeys: true) }
    }

    /// Header fields to send besides the loader's own.
    public var headers: HeaderFields {
        get { self.storage.fields.headers }
        set { self.set(\.headers, newValue, changesKeys: true) }
    }

    /// The size to bring the picture to, or `nil` for full size.
    public var thumbnail: Resize? {
        get { self.storage.fields.thumbnail }
        set { self.set(\.thumbnail, newValue, changesKeys: true) }
    }

    /// The bytes of pixels that a picture without a thumbnail may have, or `nil` for no limit.
    public var scaleDownLimit: Int? {
        get { self.storage.fields.scaleDownLimit }
        set { self.set(\.scaleDownLimit, newValue, changesKeys: true) }
    }

    /// The coder that decodes the picture, or `nil` for the registered ones.
    public var coder: CustomCoder? {
        get { self.storage.fields.coder }
        set { self.set(\.coder, newValue, changesKeys: true) }
    }

    /// What brings the bytes, or `nil` for what the loader uses.
    public var fetcher: CustomFetcher? {
        get { self.storage.fields.fetcher }
        set { self.set(\.fetcher, newValue, changesKeys: true) }
    }

    /// What the load tolerates, hands out and waits for.
    public var options: LoadOptions {
        get { self.storage.fields.options }
        set {
            let changed = self.options.symmetricDifference(newValue)
            self.set(\.options, newValue, changesKeys: !changed.isDisjoint(with: .identifying))
        }
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

    // MARK: Keys

    /// Names the picture: the source and everything that is made of it.
    public var key: CacheKey { self.storage.keys.picture }

    /// Names the encoded bytes: URL, headers, and whether certificates are verified.
    public var sourceKey: CacheKey { self.storage.keys.source }

    /// Names the encoded bytes as HTTP does, where its freshness counts: by the URL and what may identify the user.
    ///
    /// What responses vary on besides is told apart by their `Vary`.
    var resourceKey: CacheKey { self.storage.keys.resource }

    /// Names the decoded original that a thumbnail may be made from.
    var decodedOriginalKey: CacheKey {
        RequestKeys.picture(
            source: self.sourceKey,
            thumbnail: nil,
            scaleDownLimit: nil,
            coder: self.coder,
            options: self.options
        )
    }

    // MARK: Caching

    /// How a loader of this policy uses the caches for the request.
    func cachingPlan(loaderPolicy: CachePolicy) -> CachingPlan {
        Storage.plan(self.storage.fields, self.storage.keys, loaderPolicy: loaderPolicy)
    }

    /// The loaders whose memory answers the request unchecked.
    var uncheckedMemory: CachingPlan.UncheckedMemory { self.storage.uncheckedMemory }

    /// Whether the picture is something else than the original at full size.
    var isVariant: Bool { self.storage.keys.subject.contains(.variant) }

    /// Whether the bytes need no network: a `file:` or `data:` URL.
    var isLocal: Bool { self.storage.keys.subject.contains(.local) }

    /// The URL for messages: without credentials, and cut where it is long.
    var displayURL: String {
        let text = self.url.withoutCredentials.text
        return text.utf8.count > 200 ? "\(text.prefix(200))..." : text
    }

    public static func == (left: ImageRequest, right: ImageRequest) -> Bool {
        left.storage === right.storage || left.storage.fields == right.storage.fields
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.storage.fields)
    }

    /// Changes a field; the keys are derived anew only where it is a part of them.
    private mutating func set<Value>(
        _ path: WritableKeyPath<Fields, Value>,
        _ value: Value,
        changesKeys: Bool = false
    ) {
        var fields = self.storage.fields
        fields[keyPath: path] = value
        self.storage = Storage(fields, changesKeys ? Keys(fields) : self.storage.keys)
    }
}

/// A coder that one request uses instead of those that are registered.
///
/// It may read a format of its own: bytes that begin as that says are kept on disk like any picture's.
///
/// Its name stands for it in keys: two coders that make different pictures need different names.
public struct CustomCoder: Sendable, Hashable {
    /// What the coder is called.
    public let name: String
    /// The coder.
    public let coder: any ImageCoder
    /// The formats that it brings, by which bytes are known as a picture's and kept on disk.
    let ownFormats: [ImageFormat]

    /// Names a coder.
    public init(name: String, coder: any ImageCoder) {
        self.name = name
        self.coder = coder
        self.ownFormats = coder.decodableFormats.filter { !$0.isKnown }.sorted { $0.name < $1.name }
    }

    public static func == (left: CustomCoder, right: CustomCoder) -> Bool {
        left.name == right.name
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
    }
}

extension CoderRegistry {
    /// The formats that the coder of a request and those that are registered bring.
    func formats(for request: ImageRequest) -> [ImageFormat] {
        (request.coder?.ownFormats ?? []) + self.ownFormats
    }
}

/// A fetcher that one request uses instead of its loader's.
///
/// Its name stands for it in keys: what two fetchers bring for one URL is kept apart by their names.
public struct CustomFetcher: Sendable, Hashable {
    /// What the fetcher is called.
    public let name: String
    /// The fetcher.
    public let fetcher: any ImageFetching

    /// Names a fetcher.
    public init(name: String, fetcher: any ImageFetching) {
        self.name = name
        self.fetcher = fetcher
    }

    public static func == (left: CustomFetcher, right: CustomFetcher) -> Bool {
        left.name == right.name
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
    }
}
