public import FoundationEssentials
import Synchronization
public import TintypeCaching
public import TintypeCoding
public import TintypeDownloading
public import TintypeHTTP
public import TintypeImage
public import TintypeTransforms

/// What to load and what to make of it.
///
/// A small value: copying is free, and the keys that caches use are derived once, when they are first asked for. Build it
/// once where an image is asked for often.
///
/// What a field is `nil` for is as the loader's configuration says. Each field says what it is a part of:
///
/// * of the **source's key**: what differs in it is cached apart, bytes and images;
/// * of the **image's key**: images that differ in it are cached apart, and made of the same bytes;
/// * of the **flight**: loads that differ in it never share one, nor a transfer, so that none gets what the laxer rule of
///   another fetched; what is in the cache may answer all of them;
/// * of **nothing**: loads share a flight, which does what any of them wants.
public struct ImageRequest: Sendable, Hashable, CustomStringConvertible {
    private var storage: Storage

    /// What the request says.
    var fields: Fields { self.storage.fields }

    /// Describes a load.
    ///
    /// - Parameters:
    ///   - url: An `http:`, `https:`, `file:` or `data:` URL, or one that the fetcher knows.
    ///   - headers: Header fields to send besides the loader's own; they are a part of the key. Where HTTP's
    ///     freshness counts, those that only say what is wanted, such as `Accept-Language`, tell the bytes on disk
    ///     apart where the response's `Vary` names them, and the others always.
    ///   - cacheKey: What stands for the URL in the caches; `nil` is the URL itself.
    ///   - thumbnail: The size to bring the image to; `nil` keeps it full size.
    ///   - transforms: What is made of the image after that.
    ///   - scaleDownLimit: The bytes of pixels, four for each, that an image without a thumbnail
    ///     may have; a larger one is scaled down to it as it is decoded. `nil` is no limit.
    ///   - coder: Decodes the image; `nil` asks the registered coders.
    ///   - fetcher: Brings the bytes; `nil` leaves it to the loader.
    ///   - options: What the load tolerates, hands out and waits for.
    ///   - originalCaching: The tiers for the original: its bytes on disk, its full-size image in memory.
    ///   - variantCaching: The tiers for what is made of the original, such as a thumbnail.
    ///   - cachePolicy: When the origin is asked whether what is cached is current; `nil` leaves it to the loader.
    ///   - priority: How urgent the download is to this caller.
    public init(
        url: URL,
        headers: HeaderFields = [:],
        cacheKey: String? = nil,
        thumbnail: Resize? = nil,
        transforms: TransformPipeline = [],
        scaleDownLimit: Int? = nil,
        coder: CustomCoder? = nil,
        fetcher: CustomFetcher? = nil,
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

    // MARK: What is loaded

    /// Where the image is; a part of the source's key, unless ``cacheKey`` stands for it.
    public var url: URL {
        get { self.storage.fields.url }
        set { self.changeKeys { $0.url = newValue } }
    }

    /// What stands for the URL in the caches, or `nil` for the URL itself, or for what
    /// ``LoaderActor/Configuration/keyFilter`` makes of it; a part of the source's key.
    ///
    /// URLs that are signed, or expire, are one image by it: loads of them share a flight, which asks at the URL of the
    /// first of them. The other parts of the source's key stay parts of it, credentials first of all.
    public var cacheKey: String? {
        get { self.storage.fields.cacheKey }
        set { self.changeKeys { $0.cacheKey = newValue } }
    }

    /// Header fields to send besides the loader's own; a part of the source's key.
    public var headers: HeaderFields {
        get { self.storage.fields.headers }
        set { self.changeKeys { $0.headers = newValue } }
    }

    /// What brings the bytes, or `nil` for what the loader uses; a part of the source's key, by its name.
    public var fetcher: CustomFetcher? {
        get { self.storage.fields.fetcher }
        set { self.changeKeys { $0.fetcher = newValue } }
    }

    // MARK: What is made of it

    /// The size to bring the image to, or `nil` for full size; a part of the image's key.
    public var thumbnail: Resize? {
        get { self.storage.fields.thumbnail }
        set { self.changeKeys { $0.thumbnail = newValue } }
    }

    /// What is made of the image, at its full size or brought to ``thumbnail`` before; a part of the image's key.
    ///
    /// Those at the start that crop, resize, flip or turn it are a part of the decode, with the thumbnail. Previews and
    /// the frames of an animation are transformed like the image.
    public var transforms: TransformPipeline {
        get { self.storage.fields.details?.transforms ?? [] }
        set { self.changeDetails(changesKeys: true) { $0.transforms = newValue } }
    }

    /// The bytes of pixels that an image without a thumbnail may have, or `nil` for no limit; a part of the image's key.
    ///
    /// It is brought to that before it is transformed.
    public var scaleDownLimit: Int? {
        get { self.storage.fields.scaleDownLimit }
        set { self.changeKeys { $0.scaleDownLimit = newValue } }
    }

    /// The coder that decodes the image, or `nil` for the registered ones; a part of the image's key, by its name.
    public var coder: CustomCoder? {
        get { self.storage.fields.coder }
        set { self.changeKeys { $0.coder = newValue } }
    }

    /// The scale of the image, or `nil` to read it from `@2x` or `@3x` at the end of the URL's name; a part of the
    /// image's key where it is another than that.
    ///
    /// The image has it as `Image.scale`, whichever tier it comes from; its pixels are the same.
    public var scale: Double? {
        get { self.storage.fields.details?.scale }
        set { self.changeDetails(changesKeys: true) { $0.scale = newValue } }
    }

    /// What the load tolerates, hands out and waits for.
    ///
    /// ``LoadOptions/allowInvalidCertificates`` is a part of the source's key, what changes pixels a part of the
    /// image's, and the others of nothing.
    public var options: LoadOptions {
        get { self.storage.fields.options }
        set {
            let changed = self.options.symmetricDifference(newValue)
            self.change(changesKeys: !changed.isDisjoint(with: .identifying)) { $0.options = newValue }
        }
    }

    // MARK: How it is cached

    /// The tiers for the original: its bytes on disk, its full-size image in memory; the ones that are asked are a part
    /// of the flight.
    ///
    /// Default both. A thumbnail is made from the full-size image where that is in memory; a load
    /// of a thumbnail never decodes the full size only to keep it.
    public var originalCaching: CacheUse {
        get { self.storage.fields.originalCaching }
        set { self.change { $0.originalCaching = newValue } }
    }

    /// The tiers for what is made of the original: a thumbnail, or an image scaled down; the ones that are asked are a
    /// part of the flight.
    ///
    /// Default: both are asked, and the memory keeps it. A variant that the disk keeps as well is
    /// encoded for it: as PNG where it has transparency, else as JPEG of quality 90, unless ``variantEncoder`` or
    /// ``LoaderActor/Configuration/variantEncoder`` says otherwise.
    public var variantCaching: CacheUse {
        get { self.storage.fields.variantCaching }
        set { self.change { $0.variantCaching = newValue } }
    }

    /// When the origin is asked whether what is cached is current, or `nil` to leave it to the loader; a part of the
    /// flight.
    public var cachePolicy: CachePolicy? {
        get { self.storage.fields.cachePolicy }
        set { self.change { $0.cachePolicy = newValue } }
    }

    /// How long the cache has what this load puts there, or `nil` for as long as its limits let it; a part of the flight.
    ///
    /// It counts from when the bytes came, or the image was made. What is cached already keeps its end.
    public var lifetime: Duration? {
        get { self.storage.fields.details?.lifetime }
        set { self.changeDetails { $0.lifetime = newValue } }
    }

    /// What the cache keeps with what this load puts there, as `EntryMetadata.extra`; a part of the flight.
    public var extra: [String: String] {
        get { self.storage.fields.details?.extra ?? [:] }
        set { self.changeDetails { $0.extra = newValue } }
    }

    /// Makes the bytes that the disk keeps of the original, or `nil` for the loader's way; a part of the flight, by its
    /// name.
    public var originalSerializer: CustomFunction<OriginalSerializer>? {
        get { self.storage.fields.details?.originalSerializer }
        set { self.changeDetails { $0.originalSerializer = newValue } }
    }

    /// Makes the bytes that the disk keeps of a variant, or `nil` for the loader's way; a part of the flight, by its name.
    public var variantEncoder: CustomFunction<LoaderActor.Configuration.VariantEncoder>? {
        get { self.storage.fields.details?.variantEncoder }
        set { self.changeDetails { $0.variantEncoder = newValue } }
    }

    // MARK: How it is brought

    /// How urgent the download is to this caller; default normal, a part of nothing.
    ///
    /// A download that several wait for is as urgent as the most urgent of them.
    public var priority: DownloadPriority {
        get { self.storage.fields.priority }
        set { self.change { $0.priority = newValue } }
    }

    /// What proves the user's identity, or `nil` for what the loader has; a part of the source's key, by a digest.
    public var credentials: Credentials? {
        get { self.storage.fields.details?.credentials }
        set { self.changeDetails(changesKeys: true) { $0.credentials = newValue } }
    }

    /// Where cookies come from and go to, if anywhere, or `nil` for the loader's jar; a part of the source's key, by the
    /// jar's name.
    public var cookies: CookiePolicy? {
        get { self.storage.fields.details?.cookies }
        set { self.changeDetails(changesKeys: true) { $0.cookies = newValue } }
    }

    /// What the load may be led to, or `nil` for the loader's policy; a part of the flight.
    ///
    /// What is cached is served without asking it.
    public var networkPolicy: NetworkPolicy? {
        get { self.storage.fields.details?.networkPolicy }
        set { self.changeDetails { $0.networkPolicy = newValue } }
    }

    /// The bytes that the body may have, or `nil` for the loader's limit; a part of the flight.
    public var bodyLimit: Int? {
        get { self.storage.fields.details?.bodyLimit }
        set { self.changeDetails { $0.bodyLimit = newValue } }
    }

    /// How long the download may take, where that is other than the loader says; a part of the flight.
    public var timeouts: LoadTimeouts {
        get { self.storage.fields.details?.timeouts ?? LoadTimeouts() }
        set { self.changeDetails { $0.timeouts = newValue } }
    }

    /// What is tried again after a failure, or `nil` for the loader's policy; a part of the flight.
    public var retryPolicy: RetryPolicy? {
        get { self.storage.fields.details?.retryPolicy }
        set { self.changeDetails { $0.retryPolicy = newValue } }
    }

    /// What the image may cost to decode, or `nil` for the loader's limits; a part of the flight.
    public var decodingLimits: DecodingLimits? {
        get { self.storage.fields.details?.decodingLimits }
        set { self.changeDetails { $0.decodingLimits = newValue } }
    }

    /// Changes what is asked of the origin, in place of the loader's; a part of the source's key, by its name.
    public var requestModifier: CustomFunction<RequestModifier>? {
        get { self.storage.fields.details?.requestModifier }
        set { self.changeDetails(changesKeys: true) { $0.requestModifier = newValue } }
    }

    /// Changes what came of it, in place of the loader's; a part of the source's key, by its name.
    public var responseModifier: CustomFunction<ResponseModifier>? {
        get { self.storage.fields.details?.responseModifier }
        set { self.changeDetails(changesKeys: true) { $0.responseModifier = newValue } }
    }

    /// Turns the body that came into the one that is wanted, in place of the loader's; a part of the source's key, by its
    /// name.
    public var decryptor: CustomFunction<Decryptor>? {
        get { self.storage.fields.details?.decryptor }
        set { self.changeDetails(changesKeys: true) { $0.decryptor = newValue } }
    }

    // MARK: When it fails

    /// The requests to try in this order where this one fails; default none, a part of nothing.
    ///
    /// Each is a request of its own, with its own size, tiers and policy. A cancellation tries none of them. The response says
    /// which of them it is of, and where all fail ``LoadError/attempts`` lists why.
    public var alternatives: [ImageRequest] {
        get { self.storage.fields.details?.alternatives ?? [] }
        set { self.changeDetails { $0.alternatives = newValue } }
    }

    /// The image to give where the request and all its alternatives fail, or `nil` for an error; a part of nothing.
    ///
    /// It is given as it is, and not cached. Bytes have no fallback.
    public var fallback: Image? {
        get { self.storage.fields.details?.fallback?.image }
        set { self.changeDetails { $0.fallback = newValue.map { FallbackPicture(image: $0) } } }
    }

    // MARK: Keys

    /// Names the image: the source and everything that is made of it.
    public var key: CacheKey { self.storage.derived { $0.picture } }

    /// Names the encoded bytes: URL, headers, credentials, and whether certificates are verified.
    public var sourceKey: CacheKey { self.storage.derived { $0.source } }

    /// Names the encoded bytes as HTTP does, where its freshness counts: by the URL and what may identify the user.
    ///
    /// What responses vary on besides is told apart by their `Vary`.
    var resourceKey: CacheKey { self.storage.derived { $0.resource } }

    /// The same where these fields, in lower case, choose no representation.
    func resourceKey(neutral: Set<String>) -> CacheKey {
        neutral.isEmpty ? self.resourceKey : RequestKeys.resource(self.storage.fields, neutral: neutral)
    }

    /// Names the decoded original that a thumbnail or a transformed image may be made from.
    var decodedOriginalKey: CacheKey {
        var fields = self.storage.fields
        fields.thumbnail = nil
        fields.scaleDownLimit = nil
        fields.boxedDetails = nil
        return RequestKeys.picture(source: self.sourceKey, fields)
    }

    /// What loads must have in common to share a flight for the image, or its bytes, beside their keys and plans.
    func terms(ofPicture isPicture: Bool) -> BoxedDetails? {
        guard var terms = self.storage.fields.details else { return nil }
        terms.alternatives = []
        terms.fallback = nil
        guard !isPicture else { return BoxedDetails(terms) }
        // What bounds the encoded bytes is a limit of the download, too.
        terms.decodingLimits = terms.decodingLimits.map { DecodingLimits(maximumEncodedBytes: $0.maximumEncodedBytes) }
        terms.variantEncoder = nil
        terms.scale = nil
        terms.transforms = []
        return BoxedDetails(terms)
    }

    // MARK: Caching

    /// How a loader of this policy uses the caches for the request.
    func cachingPlan(loaderPolicy: CachePolicy) -> CachingPlan {
        self.storage.derived { $0.verdict.wishes.plan($0.subject, loaderPolicy: loaderPolicy) }
    }

    /// The loaders whose memory answers the request unchecked.
    var uncheckedMemory: CachingPlan.UncheckedMemory { self.storage.derived { $0.verdict.uncheckedMemory } }

    /// What `look` finds by the image's key, which is lent: on a hit in memory, to count a reference to it would take a
    /// fifth of the time.
    @inline(__always)
    func lookInMemory<Found>(_ look: (CacheKey) -> Found?) -> Found? {
        self.storage.derived { look($0.picture) }
    }

    /// The same, where the memory of these loaders answers the request unchecked.
    @inline(__always)
    func lookUnchecked<Found>(accepting loaders: CachingPlan.UncheckedMemory, _ look: (CacheKey) -> Found?) -> Found? {
        self.storage.derived { derived in
            derived.verdict.uncheckedMemory.isDisjoint(with: loaders) ? nil : look(derived.picture)
        }
    }

    /// Whether the image is something else than the original at full size.
    var isVariant: Bool { self.storage.derived { $0.subject }.contains(.variant) }

    /// Whether the bytes need no network: a `file:` or `data:` URL.
    var isLocal: Bool { self.storage.derived { $0.subject }.contains(.local) }

    /// The scale that the image is given.
    var pictureScale: Double { self.scale ?? ScaleName.scale(in: self.url) }

    /// The URL for messages: without credentials, and cut where it is long.
    var displayURL: String {
        let text = self.url.withoutCredentials.text
        return text.utf8.count > 200 ? "\(text.prefix(200))..." : text
    }

    /// The URL without credentials, cut where it is long, and what is made of the image, such as
    /// `https://example.org/a.jpg, fit 400x300`.
    public var description: String {
        let size = self.thumbnail.map { ", \($0.mode.rawValue) \($0.size)" } ?? ""
        let transforms = self.transforms.transforms.map { ", \($0)" }.joined()
        return self.displayURL + size + (transforms.utf8.count > 200 ? "\(transforms.prefix(200))..." : transforms)
    }

    /// Throws where the request makes no sense for a loader that has a fetcher for any scheme, or none.
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

    /// Changes fields; the keys are derived anew only where they are a part of them.
    private mutating func change(changesKeys: Bool = false, _ change: (inout Fields) -> Void) {
        if !isKnownUniquelyReferenced(&self.storage) { self.storage = Storage(copying: self.storage) }
        self.storage.change(changesKeys: changesKeys, change)
    }
}

// MARK: - Fields

extension ImageRequest {
    /// What a request says.
    struct Fields: Sendable, Hashable {
        var url: URL
        var headers: HeaderFields
        var cacheKey: String?
        var thumbnail: Resize?
        var scaleDownLimit: Int?
        var coder: CustomCoder?
        var fetcher: CustomFetcher?
        var options: LoadOptions
        var originalCaching: CacheUse
        var variantCaching: CacheUse
        var cachePolicy: CachePolicy?
        var priority: DownloadPriority
        var boxedDetails: BoxedDetails?

        /// What few requests say, where this one does.
        var details: Details? { self.boxedDetails?.details }

        /// The scale that is not the one of the name.
        var ownScale: Double? {
            // The user's own key has no name that a scale could be read from.
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

    /// What few requests say, in an object of its own, so that the others stay small.
    indirect enum BoxedDetails: Sendable, Hashable {
        case details(Details)

        /// Boxes what is said; `nil` where that is nothing.
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

    /// What few requests say.
    struct Details: Sendable, Hashable {
        var transforms: TransformPipeline = []
        var scale: Double?
        var lifetime: Duration?
        var extra: [String: String] = [:]
        var originalSerializer: CustomFunction<OriginalSerializer>?
        var variantEncoder: CustomFunction<LoaderActor.Configuration.VariantEncoder>?
        var credentials: Credentials?
        var cookies: CookiePolicy?
        var networkPolicy: NetworkPolicy?
        var bodyLimit: Int?
        var timeouts = LoadTimeouts()
        var retryPolicy: RetryPolicy?
        var decodingLimits: DecodingLimits?
        var requestModifier: CustomFunction<RequestModifier>?
        var responseModifier: CustomFunction<ResponseModifier>?
        var decryptor: CustomFunction<Decryptor>?
        var alternatives: [ImageRequest] = []
        var fallback: FallbackPicture?
    }

    /// An image that is equal to itself.
    struct FallbackPicture: Sendable, Hashable {
        let image: Image

        static func == (left: FallbackPicture, right: FallbackPicture) -> Bool {
            left.image.pixels === right.image.pixels
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(ObjectIdentifier(self.image.pixels))
        }
    }

    /// What a request says of caches, without all else that it says: each hit that looks closer makes a plan of it.
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

    /// What follows from the fields, and takes longer than to make a request: keys above all.
    fileprivate final class Derived: Sendable {
        let source: CacheKey
        let picture: CacheKey
        let resource: CacheKey
        let scheme: URLScheme
        let subject: CachingPlan.Subject
        let verdict: Verdict

        /// What fields decide that are in no key.
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
                // What makes no sense is told so by the way that looks closer, and of an animation that is to be there
                // whole the frames are looked for as well.
                let isSimple = !fields.options.contains(.preloadAllFrames)
                self.uncheckedMemory =
                    isSimple && (self.isSound || isSound(forFetchers: true))
                    ? CachingPlan.UncheckedMemory { wishes.plan(subject, loaderPolicy: $0) } : []
            }
        }

        init(_ fields: Fields) {
            self.source = RequestKeys.source(fields, headers: fields.headers)
            self.picture = RequestKeys.picture(source: self.source, fields)
            self.resource = fields.headers.isEmpty ? self.source : RequestKeys.resource(fields, neutral: [])
            self.scheme = URLScheme(of: fields.url)
            self.subject = fields.subject(of: self.scheme)
            self.verdict = Verdict(fields, self.scheme, self.subject)
        }

        private init(_ other: Derived, _ verdict: Verdict) {
            self.source = other.source
            self.picture = other.picture
            self.resource = other.resource
            self.scheme = other.scheme
            self.subject = other.subject
            self.verdict = verdict
        }

        /// The same for fields of which none is changed that is in a key.
        func judged(_ fields: Fields) -> Derived {
            let verdict = Verdict(fields, self.scheme, self.subject)
            return verdict == self.verdict ? self : Derived(self, verdict)
        }
    }

    /// The fields, and what was derived of them.
    ///
    /// Sendable although unchecked: the fields change only while one request has the storage for itself, whose `mutating`
    /// methods alone change it, as the elements of an array do. What is derived is immutable, and published once by the
    /// first thread that asks; only such a change, or the end of the storage, lets it go.
    fileprivate final class Storage: @unchecked Sendable {
        private(set) var fields: Fields
        /// Counted by hand: on a hit in memory a reference costs more than the look itself.
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

        /// A part of what follows from the fields.
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
            // Of a copy, so that nothing is called while the fields are accessed: then no access to them has to be checked.
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

/// How long one download may take; what is `nil` is as the loader's configuration says.
public struct LoadTimeouts: Sendable, Hashable {
    /// The longest time without a byte received.
    public var idle: Duration?
    /// The longest time for everything, redirects and retries included.
    public var total: Duration?

    /// Describes the limits.
    public init(idle: Duration? = nil, total: Duration? = nil) {
        self.idle = idle
        self.total = total
    }
}
