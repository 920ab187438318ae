// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCaching
public import TintypeDownloading
public import TintypeHTTP
public import TintypeImage
public import TintypeTransforms

/// The description of a load: the source, the image to make of it, and the rules for caches and downloads.
///
/// A request is a small value: copying is free, and it derives its cache keys once, when they are first needed. Create it
/// once for an image that you load often.
///
/// A property that is `nil` takes its value from the loader's configuration. The properties stand in four parts. The part
/// decides what requests that differ in a property have in common:
///
/// * ``source``: nothing. Each has bytes and images of its own in the cache;
/// * ``rendering``: the bytes. Each has an image of its own;
/// * ``caching`` and ``transport``: the cached response. Loads that run at the same time share no flight, so that no load
///   gets bytes that were fetched under a laxer rule. Only the priority joins.
///
/// The properties that most programs set are reachable on the request itself as well, such as ``thumbnail``:
///
/// ```swift
/// var request = ImageRequest(url: url, thumbnail: .fit(width: 400, height: 400))
/// request.source.credentials = .bearer(token)
/// request.transport.timeouts.total = .seconds(20)
/// ```
public struct ImageRequest: Sendable, Hashable, CustomStringConvertible {
    @usableFromInline private(set) var storage: Storage

    /// Creates a request of its parts.
    ///
    /// ```swift
    /// let request = ImageRequest(
    ///     source: .init(url: url, credentials: .bearer(token)),
    ///     rendering: .init(thumbnail: .fit(width: 400, height: 400))
    /// )
    /// ```
    public init(
        source: Source,
        rendering: Rendering = Rendering(),
        caching: Caching = Caching(),
        transport: Transport = Transport(),
        options: LoadOptions = []
    ) {
        self.storage = Storage(source, rendering, caching, StoredTransport(transport), options: options)
    }

    /// Creates a request of the properties that most programs set.
    ///
    /// The properties of the same names describe the parameters.
    ///
    /// ```swift
    /// let request = ImageRequest(url: url, thumbnail: .fit(width: 400, height: 400), priority: .high)
    /// let thumbnail = try await loader.image(for: request)
    /// ```
    public init(
        url: URL,
        headers: HeaderFields = [:],
        cacheKey: String? = nil,
        thumbnail: Resize? = nil,
        transforms: TransformPipeline = [],
        options: LoadOptions = [],
        cachePolicy: CachePolicy? = nil,
        priority: DownloadPriority = .normal
    ) {
        self.storage = Storage(
            Source(url: url, headers: headers, cacheKey: cacheKey),
            Rendering(thumbnail: thumbnail, transforms: transforms),
            Caching(policy: cachePolicy),
            .priority(priority),
            options: options
        )
    }

    // MARK: Parts

    /// The origin of the bytes: the URL, the header fields and the user.
    public var source: Source {
        get { self.storage.source }
        set { self.change(keepsKeys: false) { $0.source = newValue } }
    }

    /// The image to make of the bytes.
    public var rendering: Rendering {
        get { self.storage.rendering }
        set { self.change(keepsKeys: false) { $0.rendering = newValue } }
    }

    /// The use of the cache.
    public var caching: Caching {
        get { self.storage.caching }
        set { self.change { $0.caching = newValue } }
    }

    /// The rules and limits for getting the bytes and decoding them.
    public var transport: Transport {
        get { self.storage.transport.transport }
        set { self.change { $0.transport = StoredTransport(newValue) } }
    }

    /// The options of the load.
    ///
    /// ``LoadOptions/allowInvalidCertificates`` separates requests as the source does, and options that change pixels
    /// separate them as the rendering does. Loads that differ in other options share a flight, which satisfies all of
    /// them.
    public var options: LoadOptions {
        get { self.storage.options }
        set {
            let changed = self.options.symmetricDifference(newValue)
            self.change(keepsKeys: changed.isDisjoint(with: .identifying)) { $0.options = newValue }
        }
    }

    /// The requests to try in order if this one fails; none by default.
    ///
    /// Each has a size, tiers and a policy of its own. A cancelled load tries none of them. If one succeeds,
    /// `ImageResponse.alternative` is its index. If all fail, ``LoadError/attempts`` has their errors.
    public var alternatives: [ImageRequest] {
        get { self.storage.alternatives }
        set { self.change { $0.alternatives = newValue } }
    }

    /// The image to return if the request and all its alternatives fail, or `nil` to throw the error.
    ///
    /// The loader returns it unchanged, and does not cache it. Loads of bytes have no fallback.
    public var fallback: Image? {
        get { self.storage.fallback }
        set { self.change { $0.fallback = newValue } }
    }

    /// Changes the storage, after a copy if another request shares it.
    private mutating func change(keepsKeys: Bool = true, _ change: (Storage) -> Void) {
        if !isKnownUniquelyReferenced(&self.storage) { self.storage = Storage(copying: self.storage) }
        self.storage.change(keepsKeys: keepsKeys, change)
    }

    // MARK: Properties that most programs set

    /// The URL of the image; see ``Source/url``.
    public var url: URL {
        get { self.storage.source.url }
        set { self.source.url = newValue }
    }

    /// The header fields to send in addition to the loader's own; see ``Source/headers``.
    public var headers: HeaderFields {
        get { self.storage.source.headers }
        set { self.source.headers = newValue }
    }

    /// The text that replaces the URL in cache keys; see ``Source/cacheKey``.
    public var cacheKey: String? {
        get { self.storage.source.cacheKey }
        set { self.source.cacheKey = newValue }
    }

    /// The size to bring the image to, or `nil` for full size; see ``Rendering/thumbnail``.
    public var thumbnail: Resize? {
        get { self.storage.rendering.thumbnail }
        set { self.rendering.thumbnail = newValue }
    }

    /// The transforms to apply to the image; see ``Rendering/transforms``.
    public var transforms: TransformPipeline {
        get { self.storage.rendering.transforms }
        set { self.rendering.transforms = newValue }
    }

    /// The priority of the download for this caller; see ``Transport/priority``.
    public var priority: DownloadPriority {
        get { self.storage.transport.priority }
        set { self.transport.priority = newValue }
    }

    /// When the loader asks the origin, or `nil` for the loader's policy; see ``Caching/policy``.
    public var cachePolicy: CachePolicy? {
        get { self.storage.caching.policy }
        set { self.caching.policy = newValue }
    }

    // MARK: Keys

    /// The key of the image: the source, and all that is applied to it.
    public var key: CacheKey { self.storage.derived { $0.keys.image } }

    /// Returns the key of the image in an encoding.
    package func key(as encoding: OutputEncoding) -> CacheKey { self.storage.derived { $0.key(as: encoding) } }

    /// The key of the encoded bytes: the source, and whether certificates are verified.
    public var sourceKey: CacheKey { self.storage.derived { $0.keys.source } }

    /// The key of the encoded bytes under policies that follow HTTP's freshness: the URL, and the fields that may identify
    /// the user.
    ///
    /// The `Vary` of responses tells further representations apart.
    package var resourceKey: CacheKey { self.storage.derived { $0.keys.resource } }

    /// Returns the resource key if these fields, in lower case, choose no representation.
    package func resourceKey(neutral: Set<String>) -> CacheKey {
        guard !neutral.isEmpty else { return self.resourceKey }
        return RequestKeys.resource(self.storage.source, self.storage.options, neutral: neutral)
    }

    /// The key of the decoded original, from which the loader may make a thumbnail or a transformed image.
    package var decodedOriginalKey: CacheKey {
        let original = Rendering(coder: self.storage.rendering.coder)
        return RequestKeys.image(of: self.storage.source, self.sourceKey, original, self.storage.options)
    }

    // MARK: Caching

    /// Whether the request leaves all rules to the loader, so that flights need not copy and compare its rules.
    package var leavesRulesToLoader: Bool {
        guard case .priority = self.storage.transport else { return false }
        return self.storage.source.cookies == nil && self.storage.caching.lifetime == nil
            && self.storage.caching.memoryLifetime == nil && self.storage.caching.extra.isEmpty
            && self.storage.caching.originalSerializer == nil && self.storage.caching.variantEncoder == nil
    }

    /// Returns how a loader of this policy uses the caches for the request.
    package func cachingPlan(loaderPolicy: CachePolicy, variantTiers: CacheTiers = .memory) -> CachingPlan {
        self.storage.cachingPlan(
            self.storage.derived { $0.keys.subject },
            loaderPolicy: loaderPolicy,
            variantTiers: variantTiers
        )
    }

    /// The loaders whose memory answers the request unchecked.
    var uncheckedMemory: CachingPlan.UncheckedMemory { self.storage.derived { $0.verdict.uncheckedMemory } }

    /// Returns the result of `look` for the image's key, which is lent: counting a reference to the key would take a fifth
    /// of the time of a hit in memory.
    @inlinable
    @inline(__always)
    package func lookInMemory<Found>(_ look: (CacheKey) -> Found?) -> Found? {
        self.storage.derived { look($0.keys.image) }
    }

    /// Returns the result of `look` if the memory of these loaders answers the request unchecked.
    @inlinable
    @inline(__always)
    package func lookUnchecked<Found>(
        accepting loaders: CachingPlan.UncheckedMemory,
        _ look: (CacheKey) -> Found?
    ) -> Found? {
        self.storage.derived { derived in
            derived.verdict.uncheckedMemory.isDisjoint(with: loaders) ? nil : look(derived.keys.image)
        }
    }

    /// Whether the image differs from the original at full size.
    package var isVariant: Bool { self.storage.derived { $0.keys.subject }.contains(.variant) }

    /// Whether the bytes need no network: a `file:` or `data:` URL.
    package var isLocal: Bool { self.storage.derived { $0.keys.subject }.contains(.local) }

    /// The scale of the image.
    package var imageScale: Double { self.storage.rendering.scale ?? ScaleName.scale(in: self.url) }

    // MARK: Text and equality

    /// The URL for messages, without credentials, and cut if it is long.
    package var displayURL: String {
        let text = self.url.withoutCredentials.text
        return text.utf8.count > 200 ? "\(text.prefix(200))..." : text
    }

    /// The URL without credentials, cut if it is long, with the thumbnail and the transforms, such as
    /// `https://example.org/a.jpg, fit 400x300`.
    public var description: String {
        let size = self.thumbnail.map { ", \($0.mode.rawValue) \($0.size)" } ?? ""
        let transforms = self.transforms.transforms.map { ", \($0)" }.joined()
        return self.displayURL + size + (transforms.utf8.count > 200 ? "\(transforms.prefix(200))..." : transforms)
    }

    public static func == (left: ImageRequest, right: ImageRequest) -> Bool {
        left.storage === right.storage
            || left.source == right.source && left.rendering == right.rendering
                && left.caching == right.caching && left.storage.transport == right.storage.transport
                && left.options == right.options
                && left.alternatives == right.alternatives && left.fallback?.pixels === right.fallback?.pixels
    }

    /// Hashes the source and the rendering: requests that differ in anything else seldom agree in both.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.source)
        hasher.combine(self.rendering)
    }

    /// Throws if the request makes no sense for a loader with, or without, a fetcher for any scheme.
    ///
    /// - Throws: `LoadError` with the code `invalidURL`, `unsupportedScheme`, `invalidSize` or `invalidRequest`.
    @inlinable
    @inline(__always)
    package func check(fetchesAnyScheme: Bool) throws(LoadError) {
        guard !self.storage.derived({ $0.verdict.isSound }) else { return }
        try self.checkParts(fetchesAnyScheme: fetchesAnyScheme)
    }

    @usableFromInline
    func checkParts(fetchesAnyScheme: Bool) throws(LoadError) {
        let fetchesAnyScheme = fetchesAnyScheme || self.source.fetcher != nil
        try self.storage.check(self.storage.derived { $0.keys.scheme }, fetchesAnyScheme: fetchesAnyScheme)
    }
}
