// SPDX-License-Identifier: Apache-2.0

import TintypeCaching

extension FlightTable {
    /// The product of a flight.
    ///
    /// Loads that may be answered from the same places share it.
    struct Product: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case bytes
            case image
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
        /// The other rules of requests that must be equal for their loads to share a flight.
        var terms: ImageRequest.FlightTerms?
        var policy = CachePolicy.neverRevalidate
        var usesHTTPKeys = false
        var mayServeStale = true
        /// The body of which the load has an image already.
        var held: UInt64?
        /// The body that a caller gives, instead of any that could be found.
        var given: UInt64?

        /// Whether the product is made of a body and stored in the cache.
        var isOfBody: Bool { self.kind == .image || self.kind == .encoded }

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
        let isImage = kind == .image
        self.init(
            kind: kind,
            key: isImage ? request.key : request.sourceKey,
            source: request.sourceKey,
            origin: rules.resourceKey(of: request),
            queries: isImage ? [plan.bytes.query, plan.image.query] : [plan.bytes.query],
            terms: .init(request, ofImage: isImage),
            policy: plan.policy,
            usesHTTPKeys: plan.usesHTTPKeys,
            mayServeStale: mayServeStale
        )
    }

    init(
        _ encoding: OutputEncoding,
        of request: ImageRequest,
        _ caching: CacheUse,
        rules: FreshnessRules,
        mayServeStale: Bool
    ) {
        let image = FlightTable.Product(.image, request, rules: rules, mayServeStale: mayServeStale)
        self.init(
            kind: .encoded,
            key: encoding.key(of: request.key),
            source: image.source,
            origin: image.origin,
            queries: image.queries + [caching.query],
            terms: image.terms,
            policy: image.policy,
            usesHTTPKeys: image.usesHTTPKeys,
            mayServeStale: mayServeStale
        )
    }
}

extension LoadActivity.Product {
    /// The product of a flight as activities name it.
    init(_ kind: FlightTable.Product.Kind) {
        self =
            switch kind {
            case .bytes: .bytes
            case .encoded: .encoded
            case .image, .decode, .store: .image
            }
    }
}
