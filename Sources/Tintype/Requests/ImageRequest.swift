public import FoundationEssentials
import Synchronization
public import TintypeCaching
public import TintypeCoding
public import TintypeDownloading
public import TintypeHTTP
public import TintypeImage
public import TintypeTransforms

/// The description of a load: the source, the image to make of it, and the rules for caches and downloads.
///
/// A request is a small value: copying is free, and it derives its cache keys once, when they are first needed. Create it once
/// for an image that you load often.
///
/// A field that is `nil` takes its value from the loader's configuration. Each field is a part of one of these:
///
/// * the **source's key**: requests that differ in it have bytes and images of their own in the cache;
/// * the **image's key**: requests that differ in it have images of their own, made of the same bytes;
/// * the **flight**: loads that differ in it share neither a flight nor a transfer, so that no load gets bytes that were
///   fetched under a laxer rule. A cached response may answer all of them;
/// * **nothing**: loads share a flight, which satisfies all of them.
public struct ImageRequest: Sendable, Hashable, CustomStringConvertible {
    private var storage: Storage

    /// The fields of the request.
    var fields: Fields { self.storage.fields }

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - url: An `http:`, `https:`, `file:` or `data:` URL, or one that the fetcher knows.
    ///   - headers: Header fields to send in addition to the loader's own; a part of the source's key. Under policies that
    ///     follow HTTP's freshness, a field that states a preference, such as `Accept-Language`, separates the bytes on disk
    ///     only if the response's `Vary` names it. Other fields always separate them.
    ///   - cacheKey: The text that replaces the URL in cache keys; `nil` uses the URL.
    ///   - thumbnail: The size to bring the image to; `nil` keeps the full size.
    ///   - transforms: The transforms to apply after that.
    ///   - scaleDownLimit: The bytes of pixels, four for each pixel, that an image without a thumbnail may have. The decode
    ///     scales a larger image down to that. `nil` is no limit.
    ///   - coder: The coder that decodes the image; `nil` chooses one of the registered coders.
    ///   - fetcher: The fetcher of the bytes; `nil` uses the loader's.
    ///   - options: The options of the load.
    ///   - originalCaching: The tiers for the original: its bytes on disk, its full-size image in memory.
    ///   - variantCaching: The tiers for images made of the original, such as a thumbnail.
    ///   - cachePolicy: When the loader asks the origin whether a cached response is current; `nil` uses the loader's policy.
    ///   - priority: The priority of the download for this caller.
    public init(
        url: URL,
        headers: HeaderFields = [:],
        cacheKey: String? = nil,
        thumbnail: Resize? = nil,
        transforms: TransformPipeline = [],
        scaleDownLimit: Int? = nil,
        coder: Named<any ImageCoder>? = nil,
        fetcher: Named<any ImageFetching>? = nil,
        options: LoadOptions = [],
        originalCaching: CacheUse = CacheUse(),
        variantCaching: CacheUse = CacheUse(query: .all, store: .memory),
        cachePolicy: CachePolicy? = nil,
        priority: DownloadPriority = .normal
    ) {
        self.storage = Storage(
            Fields(
                url: url,
                headers: headers,
                cacheKey: cacheKey,
                thumbnail: thumbnail,
                scaleDownLimit: scaleDownLimit,
                coder: coder,
                fetcher: fetcher,
                options: options,
                originalCaching: originalCaching,
                variantCaching: variantCaching,
                cachePolicy: cachePolicy,
                priority: priority,
                boxedDetails: transforms.isEmpty ? nil : BoxedDetails(Details(transforms: transforms))
            )
        )
    }

    /// The usual limit for ``scaleDownLimit``: 60 MiB, which is 15.7 megapixels.
    public static let defaultScaleDownLimit = 60 << 20

    // MARK: Source

    /// The URL of the image; a part of the source's key, unless there is a ``cacheKey``.
    public var url: URL {
        get { self.storage.fields.url }
        set { self.changeKeys { $0.url = newValue } }
    }

    /// The text that replaces the URL in cache keys; a part of the source's key.
    ///
    /// `nil` uses the result of ``LoaderActor/Configuration/keyFilter``, or the URL. With a key, URLs that are signed or that
    /// expire name one image: their loads share a flight, which uses the URL of the first one. The other parts of the
    /// source's key, such as the credentials, stay parts of it.
    public var cacheKey: String? {
        get { self.storage.fields.cacheKey }
        set { self.changeKeys { $0.cacheKey = newValue } }
    }

    /// The header fields to send in addition to the loader's own; a part of the source's key.
    public var headers: HeaderFields {
        get { self.storage.fields.headers }
        set { self.changeKeys { $0.headers = newValue } }
    }

    /// The fetcher of the bytes, or `nil` for the loader's; its name is a part of the source's key.
    public var fetcher: Named<any ImageFetching>? {
        get { self.storage.fields.fetcher }
        set { self.changeKeys { $0.fetcher = newValue } }
    }

    // MARK: Image

    /// The size to bring the image to, or `nil` for full size; a part of the image's key.
    public var thumbnail: Resize? {
        get { self.storage.fields.thumbnail }
        set { self.changeKeys { $0.thumbnail = newValue } }
    }

    /// The transforms to apply to the image, after ``thumbnail``; a part of the image's key.
    ///
    /// The decode includes the first transforms if they crop, resize, flip or turn the image. The loader applies the
    /// transforms to previews and to the frames of an animation, too.
    public var transforms: TransformPipeline {
        get { self.storage.fields.details?.transforms ?? [] }
        set { self.changeDetails(changesKeys: true) { $0.transforms = newValue } }
    }

    /// The bytes of pixels that an image without a thumbnail may have, or `nil` for no limit; a part of the image's key.
    ///
    /// The loader scales it down before it applies transforms.
    public var scaleDownLimit: Int? {
        get { self.storage.fields.scaleDownLimit }
        set { self.changeKeys { $0.scaleDownLimit = newValue } }
    }

    /// The coder that decodes the image, or `nil` for the registered ones; its name is a part of the image's key.
    public var coder: Named<any ImageCoder>? {
        get { self.storage.fields.coder }
        set { self.changeKeys { $0.coder = newValue } }
    }

    /// The scale of the image, or `nil` to read it from `@2x` or `@3x` at the end of the URL's name; a part of the
    /// image's key if it differs from that.
    ///
    /// It becomes `Image.scale`, whichever tier the image comes from. The pixels are the same.
    public var scale: Double? {
        get { self.storage.fields.details?.scale }
        set { self.changeDetails(changesKeys: true) { $0.scale = newValue } }
    }

    /// The options of the load.
    ///
    /// ``LoadOptions/allowInvalidCertificates`` is a part of the source's key, and options that change pixels are a part of
    /// the image's key. The other options are a part of nothing.
    public var options: LoadOptions {
        get { self.storage.fields.options }
        set {
            let changed = self.options.symmetricDifference(newValue)
            self.change(changesKeys: !changed.isDisjoint(with: .identifying)) { $0.options = newValue }
        }
    }

    // MARK: Caching

    /// The tiers for the original: its bytes on disk, its full-size image in memory; the queried tiers are a part of the
    /// flight.
    ///
    /// Both by default. The loader makes a thumbnail from the full-size image if that is in memory. It never decodes the full
    /// size only to store it.
    public var originalCaching: CacheUse {
        get { self.storage.fields.originalCaching }
        set { self.change { $0.originalCaching = newValue } }
    }

    /// The tiers for variants: images made of the original, such as a thumbnail; the queried tiers are a part of the flight.
    ///
    /// By default a load queries both tiers, and stores the variant in memory. To store it on disk, the loader encodes it: as
    /// PNG if it has transparency, otherwise as JPEG of quality 90. ``variantEncoder`` and
    /// ``LoaderActor/Configuration/variantEncoder`` change that.
    public var variantCaching: CacheUse {
        get { self.storage.fields.variantCaching }
        set { self.change { $0.variantCaching = newValue } }
    }

    /// When the loader asks the origin whether a cached response is current, or `nil` for the loader's policy; a part of the
    /// flight.
    public var cachePolicy: CachePolicy? {
        get { self.storage.fields.cachePolicy }
        set { self.change { $0.cachePolicy = newValue } }
    }

    /// The lifetime of the cache entries that this load stores, or `nil` for no limit of their own; a part of the flight.
    ///
    /// It begins when the bytes arrive or the image is made. Entries that are in the cache already keep their lifetimes.
    public var lifetime: Duration? {
        get { self.storage.fields.details?.lifetime }
        set { self.changeDetails { $0.lifetime = newValue } }
    }

    /// The values to store with the cache entries of this load, as `EntryMetadata.extra`; a part of the flight.
    public var extra: [String: String] {
        get { self.storage.fields.details?.extra ?? [:] }
        set { self.changeDetails { $0.extra = newValue } }
    }

    /// Changes the bytes of the original before they are stored on disk, or `nil` for the loader's serializer; its name is a
    /// part of the flight.
    public var originalSerializer: Named<OriginalSerializer>? {
        get { self.storage.fields.details?.originalSerializer }
        set { self.changeDetails { $0.originalSerializer = newValue } }
    }

    /// Encodes a variant for the disk, or `nil` for the loader's encoder; its name is a part of the flight.
    public var variantEncoder: Named<LoaderActor.Configuration.VariantEncoder>? {
        get { self.storage.fields.details?.variantEncoder }
        set { self.changeDetails { $0.variantEncoder = newValue } }
    }

    // MARK: Transport

    /// The priority of the download for this caller; default normal, a part of nothing.
    ///
    /// A download has the highest priority of its callers.
    public var priority: DownloadPriority {
        get { self.storage.fields.priority }
        set { self.change { $0.priority = newValue } }
    }

    /// The credentials of the user, or `nil` for the loader's; their digest is a part of the source's key.
    public var credentials: Credentials? {
        get { self.storage.fields.details?.credentials }
        set { self.changeDetails(changesKeys: true) { $0.credentials = newValue } }
    }

    /// The cookie jar to use, if any, or `nil` for the loader's; its name is a part of the source's key.
    public var cookies: CookiePolicy? {
        get { self.storage.fields.details?.cookies }
        set { self.changeDetails(changesKeys: true) { $0.cookies = newValue } }
    }

    /// The addresses that the load may connect to, or `nil` for the loader's policy; a part of the flight.
    ///
    /// The loader serves cached images without consulting it.
    public var networkPolicy: NetworkPolicy? {
        get { self.storage.fields.details?.networkPolicy }
        set { self.changeDetails { $0.networkPolicy = newValue } }
    }

    /// The most bytes that the body may have, or `nil` for the loader's limit; a part of the flight.
    public var bodyLimit: Int? {
        get { self.storage.fields.details?.bodyLimit }
        set { self.changeDetails { $0.bodyLimit = newValue } }
    }

    /// The time limits of the download, if they differ from the loader's; a part of the flight.
    public var timeouts: LoadTimeouts {
        get { self.storage.fields.details?.timeouts ?? LoadTimeouts() }
        set { self.changeDetails { $0.timeouts = newValue } }
    }

    /// The rules for retries after a failure, or `nil` for the loader's policy; a part of the flight.
    public var retryPolicy: RetryPolicy? {
        get { self.storage.fields.details?.retryPolicy }
        set { self.changeDetails { $0.retryPolicy = newValue } }
    }

    /// The limits of the decode, or `nil` for the loader's; a part of the flight.
    public var decodingLimits: DecodingLimits? {
        get { self.storage.fields.details?.decodingLimits }
        set { self.changeDetails { $0.decodingLimits = newValue } }
    }

    /// Changes the request to the origin, instead of the loader's modifier; its name is a part of the source's key.
    public var requestModifier: Named<RequestModifier>? {
        get { self.storage.fields.details?.requestModifier }
        set { self.changeDetails(changesKeys: true) { $0.requestModifier = newValue } }
    }

    /// Changes the response of the origin, instead of the loader's modifier; its name is a part of the source's key.
    public var responseModifier: Named<ResponseModifier>? {
        get { self.storage.fields.details?.responseModifier }
        set { self.changeDetails(changesKeys: true) { $0.responseModifier = newValue } }
    }

    /// Decrypts the body, instead of the loader's decryptor; its name is a part of the source's key.
    public var decryptor: Named<Decryptor>? {
        get { self.storage.fields.details?.decryptor }
        set { self.changeDetails(changesKeys: true) { $0.decryptor = newValue } }
    }

    // MARK: Failure

    /// The requests to try in order if this one fails; none by default, a part of nothing.
    ///
    /// Each has a size, tiers and a policy of its own. A cancelled load tries none of them. If one succeeds,
    /// ``ImageResponse/alternative`` is its index. If all fail, ``LoadError/attempts`` has their errors.
    public var alternatives: [ImageRequest] {
        get { self.storage.fields.details?.alternatives ?? [] }
        set { self.changeDetails { $0.alternatives = newValue } }
    }

    /// The image to return if the request and all its alternatives fail, or `nil` to throw the error; a part of nothing.
    ///
    /// The loader returns it unchanged, and does not cache it. Loads of bytes have no fallback.
    public var fallback: Image? {
        get { self.storage.fields.details?.fallback?.image }
        set { self.changeDetails { $0.fallback = newValue.map { FallbackImage(image: $0) } } }
    }

    // MARK: Keys

    /// The key of the image: the source, and all that is applied to it.
    public var key: CacheKey { self.storage.derived { $0.image } }

    /// The key of the encoded bytes: URL, headers, credentials, and whether certificates are verified.
    public var sourceKey: CacheKey { self.storage.derived { $0.source } }

    /// The key of the encoded bytes under policies that follow HTTP's freshness: the URL, and the fields that may identify
    /// the user.
    ///
    /// The `Vary` of responses tells further representations apart.
    var resourceKey: CacheKey { self.storage.derived { $0.resource } }

    /// Returns the resource key if these fields, in lower case, choose no representation.
    func resourceKey(neutral: Set<String>) -> CacheKey {
        neutral.isEmpty ? self.resourceKey : RequestKeys.resource(self.storage.fields, neutral: neutral)
    }

    /// The key of the decoded original, from which the loader may make a thumbnail or a transformed image.
    var decodedOriginalKey: CacheKey {
        var fields = self.storage.fields
        fields.thumbnail = nil
        fields.scaleDownLimit = nil
        fields.boxedDetails = nil
        return RequestKeys.image(source: self.sourceKey, fields)
    }

    /// Returns the fields that loads must have in common to share a flight for the image or its bytes, besides keys and plans.
    func terms(ofImage isImage: Bool) -> BoxedDetails? {
        guard var terms = self.storage.fields.details else { return nil }
        terms.alternatives = []
        terms.fallback = nil
        guard !isImage else { return BoxedDetails(terms) }
        // The limit of encoded bytes is a limit of the download, too.
        terms.decodingLimits = terms.decodingLimits.map { DecodingLimits(maximumEncodedBytes: $0.maximumEncodedBytes) }
        terms.variantEncoder = nil
        terms.scale = nil
        terms.transforms = []
        return BoxedDetails(terms)
    }

    // MARK: Caching

    /// Returns how a loader of this policy uses the caches for the request.
    func cachingPlan(loaderPolicy: CachePolicy) -> CachingPlan {
        self.storage.derived { $0.verdict.wishes.plan($0.subject, loaderPolicy: loaderPolicy) }
    }

    /// The loaders whose memory answers the request unchecked.
    var uncheckedMemory: CachingPlan.UncheckedMemory { self.storage.derived { $0.verdict.uncheckedMemory } }

    /// Returns the result of `look` for the image's key, which is lent: counting a reference to the key would take a fifth of
    /// the time of a hit in memory.
    @inline(__always)
    func lookInMemory<Found>(_ look: (CacheKey) -> Found?) -> Found? {
        self.storage.derived { look($0.image) }
    }

    /// Returns the result of `look` if the memory of these loaders answers the request unchecked.
    @inline(__always)
    func lookUnchecked<Found>(accepting loaders: CachingPlan.UncheckedMemory, _ look: (CacheKey) -> Found?) -> Found? {
        self.storage.derived { derived in
            derived.verdict.uncheckedMemory.isDisjoint(with: loaders) ? nil : look(derived.image)
        }
    }

    /// Whether the image differs from the original at full size.
    var isVariant: Bool { self.storage.derived { $0.subject }.contains(.variant) }

    /// Whether the bytes need no network: a `file:` or `data:` URL.
    var isLocal: Bool { self.storage.derived { $0.subject }.contains(.local) }

    /// The scale of the image.
    var imageScale: Double { self.scale ?? ScaleName.scale(in: self.url) }

    /// The URL for messages, without credentials, and cut if it is long.
    var displayURL: String {
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

    /// Throws if the request makes no sense for a loader with, or without, a fetcher for any scheme.
    ///
    /// - Throws: `LoadError` with the code `invalidURL`, `unsupportedScheme`, `invalidSize` or `invalidRequest`.
    @inline(__always)
    func check(fetchesAnyScheme: Bool) throws(LoadError) {
        if !self.storage.derived({ $0.verdict.isSound }) { try self.checkClosely(fetchesAnyScheme: fetchesAnyScheme) }
    }

    @inline(never)
    private func checkClosely(fetchesAnyScheme: Bool) throws(LoadError) {
        try self.storage.fields.check(
            self.storage.derived { $0.scheme },
            fetchesAnyScheme: fetchesAnyScheme || self.fetcher != nil
        )
    }

    public static func == (left: ImageRequest, right: ImageRequest) -> Bool {
        left.storage === right.storage || left.storage.fields == right.storage.fields
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.storage.fields)
    }

    // MARK: Changes

    private mutating func changeKeys(_ change: (inout Fields) -> Void) {
        self.change(changesKeys: true, change)
    }

    private mutating func changeDetails(changesKeys: Bool = false, _ change: (inout Details) -> Void) {
        var details = self.storage.fields.details ?? Details()
        change(&details)
        self.change(changesKeys: changesKeys) { $0.boxedDetails = BoxedDetails(details) }
    }

    /// Changes fields; the keys are derived anew only if the fields are a part of them.
    private mutating func change(changesKeys: Bool = false, _ change: (inout Fields) -> Void) {
        if !isKnownUniquelyReferenced(&self.storage) { self.storage = Storage(copying: self.storage) }
        self.storage.change(changesKeys: changesKeys, change)
    }
}

// MARK: - Fields

extension ImageRequest {
    /// The fields of a request.
    struct Fields: Sendable, Hashable {
        var url: URL
        var headers: HeaderFields
        var cacheKey: String?
        var thumbnail: Resize?
        var scaleDownLimit: Int?
        var coder: Named<any ImageCoder>?
        var fetcher: Named<any ImageFetching>?
        var options: LoadOptions
        var originalCaching: CacheUse
        var variantCaching: CacheUse
        var cachePolicy: CachePolicy?
        var priority: DownloadPriority
        var boxedDetails: BoxedDetails?

        /// The fields that few requests set, if this one does.
        var details: Details? { self.boxedDetails?.details }

        /// The scale, if it differs from the one in the name.
        var ownScale: Double? {
            // A key of the user has no name with a scale.
            guard self.cacheKey == nil else {
                let scale = self.details?.scale ?? ScaleName.scale(in: self.url)
                return scale == 1 ? nil : scale
            }
            return self.details?.scale.flatMap { $0 == ScaleName.scale(in: self.url) ? nil : $0 }
        }

        fileprivate func subject(of scheme: URLScheme) -> CachingPlan.Subject {
            var subject: CachingPlan.Subject =
                switch scheme {
                case .data: [.local, .inline]
                case .file: .local
                case .http, .other, .none: []
                }
            let isTransformed = self.details.map { !$0.transforms.isEmpty } ?? false
            if self.thumbnail != nil || isTransformed { subject.formUnion([.variant, .derived]) }
            let isDecodedOtherwise = self.coder != nil || !self.options.isDisjoint(with: .decoding)
            if self.scaleDownLimit != nil || isDecodedOtherwise { subject.insert(.variant) }
            return subject
        }
    }

    /// The fields that few requests set, in an object, so that other requests stay small.
    indirect enum BoxedDetails: Sendable, Hashable {
        case details(Details)

        /// Boxes the fields; `nil` if all have their defaults.
        init?(_ details: Details) {
            guard details != Details() else { return nil }
            self = .details(details)
        }

        var details: Details {
            switch self {
            case .details(let details): details
            }
        }
    }

    /// The fields that few requests set.
    struct Details: Sendable, Hashable {
        var transforms: TransformPipeline = []
        var scale: Double?
        var lifetime: Duration?
        var extra: [String: String] = [:]
        var originalSerializer: Named<OriginalSerializer>?
        var variantEncoder: Named<LoaderActor.Configuration.VariantEncoder>?
        var credentials: Credentials?
        var cookies: CookiePolicy?
        var networkPolicy: NetworkPolicy?
        var bodyLimit: Int?
        var timeouts = LoadTimeouts()
        var retryPolicy: RetryPolicy?
        var decodingLimits: DecodingLimits?
        var requestModifier: Named<RequestModifier>?
        var responseModifier: Named<ResponseModifier>?
        var decryptor: Named<Decryptor>?
        var alternatives: [ImageRequest] = []
        var fallback: FallbackImage?
    }

    /// An image that is equal to itself.
    struct FallbackImage: Sendable, Hashable {
        let image: Image

        static func == (left: FallbackImage, right: FallbackImage) -> Bool {
            left.image.pixels === right.image.pixels
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(ObjectIdentifier(self.image.pixels))
        }
    }

    /// The fields of a request about caching.
    ///
    /// A hit under a policy of its own makes a plan of them.
    struct CachingWishes: Sendable, Equatable {
        private let policy: CachePolicy?
        private let originals: CacheUse
        private let variants: CacheUse
        private let options: LoadOptions

        init(_ fields: Fields) {
            self.policy = fields.cachePolicy
            self.originals = fields.originalCaching
            self.variants = fields.variantCaching
            self.options = fields.options
        }

        func plan(_ subject: CachingPlan.Subject, loaderPolicy: CachePolicy) -> CachingPlan {
            CachingPlan(
                policy: self.policy,
                originals: self.originals,
                variants: self.variants,
                options: self.options,
                subject: subject,
                loaderPolicy: loaderPolicy
            )
        }
    }

    /// The values that are derived from the fields, above all the keys: deriving them takes longer than making a request.
    fileprivate final class Derived: Sendable {
        let source: CacheKey
        let image: CacheKey
        let resource: CacheKey
        let scheme: URLScheme
        let subject: CachingPlan.Subject
        let verdict: Verdict

        /// The decisions of fields that are in no key.
        struct Verdict: Equatable {
            let wishes: CachingWishes
            let uncheckedMemory: CachingPlan.UncheckedMemory
            /// Whether the request makes sense for any loader.
            let isSound: Bool

            init(_ fields: Fields, _ scheme: URLScheme, _ subject: CachingPlan.Subject) {
                func isSound(forFetchers: Bool) -> Bool {
                    (try? fields.check(scheme, fetchesAnyScheme: forFetchers)) != nil
                }
                let wishes = CachingWishes(fields)
                self.wishes = wishes
                self.isSound = isSound(forFetchers: false)
                // The slower path reports an error for a request that makes no sense, and looks for the frames of an
                // animation to preload.
                let isSimple = !fields.options.contains(.preloadAllFrames)
                self.uncheckedMemory =
                    isSimple && (self.isSound || isSound(forFetchers: true))
                    ? CachingPlan.UncheckedMemory { wishes.plan(subject, loaderPolicy: $0) } : []
            }
        }

        init(_ fields: Fields) {
            self.source = RequestKeys.source(fields, headers: fields.headers)
            self.image = RequestKeys.image(source: self.source, fields)
            self.resource = fields.headers.isEmpty ? self.source : RequestKeys.resource(fields, neutral: [])
            self.scheme = URLScheme(of: fields.url)
            self.subject = fields.subject(of: self.scheme)
            self.verdict = Verdict(fields, self.scheme, self.subject)
        }

        private init(_ other: Derived, _ verdict: Verdict) {
            self.source = other.source
            self.image = other.image
            self.resource = other.resource
            self.scheme = other.scheme
            self.subject = other.subject
            self.verdict = verdict
        }

        /// Returns the values after a change of fields that are in no key.
        func judged(_ fields: Fields) -> Derived {
            let verdict = Verdict(fields, self.scheme, self.subject)
            return verdict == self.verdict ? self : Derived(self, verdict)
        }
    }

    /// The fields, and the values derived from them.
    ///
    /// Sendable although unchecked: the fields change only while one request has the storage for itself, whose `mutating`
    /// methods alone change it, as the elements of an array do. The derived values are immutable. The first thread that needs
    /// them publishes them once; only such a change, or the end of the storage, releases them.
    fileprivate final class Storage: @unchecked Sendable {
        private(set) var fields: Fields
        /// Counted by hand: on a hit in memory a reference costs more than the look-up itself.
        private let known: Atomic<Unmanaged<Derived>?>

        init(_ fields: Fields) {
            self.fields = fields
            self.known = Atomic(nil)
        }

        init(copying other: Storage) {
            self.fields = other.fields
            self.known = Atomic(other.known.load(ordering: .acquiring)?.retain())
        }

        deinit {
            self.known.load(ordering: .acquiring)?.release()
        }

        /// Returns a part of the derived values.
        @inline(__always)
        func derived<Part>(_ part: (Derived) -> Part) -> Part {
            (self.known.load(ordering: .acquiring) ?? self.derive())._withUnsafeGuaranteedRef(part)
        }

        @inline(never)
        private func derive() -> Unmanaged<Derived> {
            let derived = Unmanaged.passRetained(Derived(self.fields))
            let (isFirst, first) = self.known.compareExchange(
                expected: nil,
                desired: derived,
                ordering: .acquiringAndReleasing
            )
            guard !isFirst, let first else { return derived }
            derived.release()
            return first
        }

        /// Changes the fields; only for the one request that has this storage.
        func change(changesKeys: Bool, _ change: (inout Fields) -> Void) {
            // Change a copy: if nothing is called during an access to the fields, Swift need not check the access.
            var fields = self.fields
            change(&fields)
            self.fields = fields
            guard let old = self.known.load(ordering: .acquiring) else { return }
            let new = changesKeys ? nil : old._withUnsafeGuaranteedRef { $0.judged(self.fields) }
            self.known.store(new.map { .passRetained($0) }, ordering: .releasing)
            old.release()
        }
    }
}

/// The time limits of a download; `nil` takes the limit of the loader's configuration.
public struct LoadTimeouts: Sendable, Hashable {
    /// The longest time without a byte received.
    public var idle: Duration?
    /// The longest time for the whole download, including redirects and retries.
    public var total: Duration?

    /// Creates limits.
    public init(idle: Duration? = nil, total: Duration? = nil) {
        self.idle = idle
        self.total = total
    }
}
