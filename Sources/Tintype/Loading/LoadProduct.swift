import TintypeCaching
import TintypeRendering

extension LoadTable {
    /// What a flight makes.
    ///
    /// Loads that may be answered from the same places share it.
    struct Product: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case bytes
            case picture
            /// A picture as a server sends it.
            case encoded
            /// What a codec gives for several pictures of the same bytes.
            case decode
            /// An entry on disk, which nothing waits for; each has a number of its own.
            case store(ID)
        }

        let kind: Kind
        let key: CacheKey
        /// Whose bytes it is made of.
        let source: CacheKey
        /// What is asked for the bytes: sources that may select the same response have one.
        let origin: CacheKey
        /// The tiers that may answer: those for the bytes, and those for the picture.
        var queries: [CacheTiers] = []
        /// What else makes that a load must not get what another one is given.
        var terms: ImageRequest.BoxedDetails?
        var policy = CachePolicy.neverRevalidate
        var usesHTTPKeys = false
        var mayServeStale = true
        /// The bytes of which a picture is there already.
        var held: UInt64?
        /// The bytes that a caller gives, instead of any that could be found.
        var given: UInt64?

        /// Whether it is made of a body, and kept in the cache.
        var isOfBody: Bool { self.kind == .picture || self.kind == .encoded }

        /// Returns whether `reload` replaces its response on disk: a response to a request without header fields has the name
        /// under which loads by HTTP's rules find responses to requests with any.
        func isReplaced(by reload: Product) -> Bool { reload.policy == .reload && self.source == self.origin }

        /// Products that differ in anything else seldom have the same key.
        func hash(into hasher: inout Hasher) {
            hasher.combine(self.key)
            hasher.combine(self.kind)
        }
    }
}

extension LoadTable.Product {
    init(_ kind: Kind, _ request: ImageRequest, rules: FreshnessRules, mayServeStale: Bool) {
        let plan = rules.plan(for: request)
        let isPicture = kind == .picture
        self.init(
            kind: kind,
            key: isPicture ? request.key : request.sourceKey,
            source: request.sourceKey,
            origin: rules.resourceKey(of: request),
            queries: isPicture ? [plan.bytes.query, plan.picture.query] : [plan.bytes.query],
            terms: request.terms(ofPicture: isPicture),
            policy: plan.policy,
            usesHTTPKeys: plan.usesHTTPKeys,
            mayServeStale: mayServeStale
        )
    }

    init(
        _ encoding: PictureEncoding,
        of request: ImageRequest,
        _ caching: CacheUse,
        rules: FreshnessRules,
        mayServeStale: Bool
    ) {
        let picture = LoadTable.Product(.picture, request, rules: rules, mayServeStale: mayServeStale)
        self.init(
            kind: .encoded,
            key: encoding.key(of: request.key),
            source: picture.source,
            origin: picture.origin,
            queries: picture.queries + [caching.query],
            terms: picture.terms,
            policy: picture.policy,
            usesHTTPKeys: picture.usesHTTPKeys,
            mayServeStale: mayServeStale
        )
    }
}

/// What a wait ends with: what a flight made, or the right to ask the origin.
enum FlightResult: Sendable {
    case bytes(DataResponse)
    /// A picture, and whether the cache has it now.
    case picture(ImageResponse, isKept: Bool)
    /// A picture as a server sends it, and whether the cache has it now.
    case encoded(EncodedResponse, isKept: Bool)
    case decoded(DecodePipeline.SharedStep)
    /// An entry on disk of a picture that was made of such bytes.
    case stored(CacheKey, madeOf: UInt64?)
    case turn

    /// Where the product came from.
    var source: LoadSource? {
        switch self {
        case .bytes(let response): response.source
        case .picture(let response, _): response.source
        case .encoded(let response, _): response.source
        case .decoded, .stored, .turn: nil
        }
    }

    /// What the load took, and the call that got the product.
    var call: CallRecord? {
        switch self {
        case .bytes(let response): response.call
        case .picture(let response, _): response.call
        case .encoded(let response, _): response.call
        case .decoded, .stored, .turn: nil
        }
    }

    /// The same bytes, as a load gets them that shares decodes.
    func shared(_ part: DecodeSharing.Part) -> FlightResult {
        guard case .bytes(var response) = self else { return self }
        response.sharing = part
        return .bytes(response)
    }

    /// The same, as one call gets it.
    func called(_ call: CallRecord) -> FlightResult {
        switch self {
        case .bytes(var response):
            response.call = call
            return .bytes(response)
        case .picture(var response, let isKept):
            response.call = call
            return .picture(response, isKept: isKept)
        case .encoded(var response, let isKept):
            response.call = call
            return .encoded(response, isKept: isKept)
        case .decoded, .stored, .turn: return self
        }
    }
}

extension LoadActivity.Product {
    /// What is told of a flight that a caller may wait for.
    init(_ kind: LoadTable.Product.Kind) {
        self =
            switch kind {
            case .bytes: .bytes
            case .encoded: .encoded
            case .picture, .decode, .store: .picture
            }
    }
}
