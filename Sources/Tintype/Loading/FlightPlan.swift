// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeFlights
import TintypeRequests

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
            terms: FlightTerms(request, ofImage: isImage).map { .rules($0) },
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
        self = Self(.image, request, rules: rules, mayServeStale: mayServeStale)
            .encoded(as: request.key(as: encoding), querying: caching.query)
    }
}

/// A product to make, and the work that makes it.
struct FlightPlan<Output: FlightOutput>: Sendable {
    let product: FlightTable.Product
    /// The request that activities name; `nil` if the flight reports none.
    var request: ImageRequest?
    let work: @Sendable (FlightState) async throws -> Output
}

extension FlightPlan {
    /// Runs the work of a flight, and reports its start and its end.
    func result(in flight: FlightState, of loader: LoaderReference) async -> Result<Output, any Error> {
        guard let request else {
            do { return .success(try await self.work(flight)) } catch { return .failure(error) }
        }
        let (activities, product) = (loader.services.activities, LoadActivity.Product(self.product.kind))
        activities.send(.started, product, request, of: flight)
        let start = ContinuousClock.now
        do {
            var output = try await loader.services.cache.takingTurns { try await self.work(flight) }
            let call = CallRecord(load: flight.record, total: start.duration(to: .now), isJoined: false)
            activities.send(.finished(output.source, call.metrics), product, request, of: flight)
            output.call = call
            return .success(output)
        } catch {
            // The flights of a loader end with it.
            let failure = loader.isGone ? error : flight.failure(of: error, request)
            activities.sendEnd(of: product, request, of: flight, failure)
            return .failure(failure)
        }
    }
}

extension Demand {
    /// Creates the demand of a load.
    init(_ request: ImageRequest, plan: CachingPlan) {
        self.init()
        self.priority = request.priority
        self.showsPreviews = request.options.contains(.previews)
        self.keepsPreviews = request.options.isSuperset(of: [.previews, .keepPreviews])
        self.keepsData = request.options.contains(.keepData)
        self.waitsForStore = request.options.contains(.waitForStore)
        self.retriesFailed = request.options.contains(.retryFailed)
        self.finishesDownload = request.options.contains(.finishDownload)
        self.storesBytes = plan.bytes.store.contains(.disk)
        self.imageTiers = plan.image.store
    }

    /// Creates the demand of a load under the rules of its loader.
    init(_ request: ImageRequest, _ rules: FreshnessRules) {
        self.init(request, plan: rules.plan(for: request))
    }

    /// Creates the demand of a load of an encoded image, which needs neither the bytes nor previews of that image.
    init(_ request: ImageRequest, plan: CachingPlan, encoded caching: CacheUse) {
        self.init(request, plan: plan)
        self.keepsData = false
        self.showsPreviews = false
        self.encodedTiers = caching.store
    }
}

/// The rules in which loads must agree to share a flight, in addition to keys, policies and queried tiers.
private struct FlightTerms: Equatable, Sendable {
    private var caching: ImageRequest.Caching
    private var transport: ImageRequest.Transport
    private let cookies: CookiePolicy?

    /// Takes the rules for a flight of the image, or of its bytes, from a request; `nil` if the loader has them all.
    init?(_ request: ImageRequest, ofImage isImage: Bool) {
        guard !request.leavesRulesToLoader else { return nil }
        (self.caching, self.transport) = (request.caching, request.transport)
        let defaults = ImageRequest.Caching()
        // The flight's plan has the policy and the queried tiers. A flight takes the union of the tiers to fill, and the
        // highest priority.
        self.caching.originals = defaults.originals
        self.caching.variants = defaults.variants
        self.caching.policy = nil
        self.transport.priority = .normal
        if !isImage {
            self.caching.variantEncoder = nil
            // The limit of encoded bytes is a limit of the download, too.
            self.transport.decodingLimits = self.transport.decodingLimits.map {
                DecodingLimits(maximumEncodedBytes: $0.maximumEncodedBytes)
            }
        }
        // Keys have the name of a cookie jar; two jars of one name are still different jars.
        self.cookies = request.source.cookies
        guard self.caching != defaults || self.transport != .init() || self.cookies != nil else { return nil }
    }
}
