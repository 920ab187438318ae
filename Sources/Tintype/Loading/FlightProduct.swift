import TintypeCaching

extension FlightTable {
    /// The product of a flight.
    ///
    /// Loads that may be answered from the same places share it.
    struct Product: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case bytes
            case picture
            /// An image in an encoding, as a server sends it.
            case encoded
            /// A part of a decode that several images of the same bytes share.
            case decode
            /// An entry on disk, for which no caller waits. Each has a number of its own.
            case store(ID)
        }

        let kind: Kind
        let key: CacheKey
        /// The key of the bytes of which it is made.
        let source: CacheKey
        /// The resource that is requested for the bytes, shared by sources that may select the same response.
        let origin: CacheKey
        /// The tiers that may answer: for the bytes, and for the image.
        var queries: [CacheTiers] = []
        /// The other fields of requests that must be equal for their loads to share a flight.
        var terms: ImageRequest.BoxedDetails?
        var policy = CachePolicy.neverRevalidate
        var usesHTTPKeys = false
        var mayServeStale = true
        /// The body of which the load has an image already.
        var held: UInt64?
        /// The body that a caller gives, instead of any that could be found.
        var given: UInt64?

        /// Whether the product is made of a body and stored in the cache.
        var isOfBody: Bool { self.kind == .picture || self.kind == .encoded }

        /// Hashes the key and the kind: products that differ in anything else seldom have the same key.
        func hash(into hasher: inout Hasher) {
            hasher.combine(self.key)
            hasher.combine(self.kind)
        }
    }
}

extension FlightTable.Product {
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
        let picture = FlightTable.Product(.picture, request, rules: rules, mayServeStale: mayServeStale)
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
    init(_ kind: FlightTable.Product.Kind) {
        self =
            switch kind {
            case .bytes: .bytes
            case .encoded: .encoded
            case .picture, .decode, .store: .picture
            }
    }
}
