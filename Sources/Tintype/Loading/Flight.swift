// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading

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

        private(set) var kind: Kind
        private(set) var key: CacheKey
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
        self.init(.image, request, rules: rules, mayServeStale: mayServeStale)
        (self.kind, self.key) = (.encoded, encoding.key(of: request.key))
        self.queries.append(caching.query)
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

/// The result of a flight.
protocol FlightOutput: Sendable {
    /// Where the product came from.
    var source: LoadSource { get }
    /// The durations of the load, and of the call that got the product.
    var call: CallRecord? { get set }
    /// The consequences for other flights.
    var effect: FlightEffect { get }
    /// Returns the product for waiters that make images of it together; other waiters get the product itself.
    func divided(among wishes: [FlightTable.ID: DecodeWish]) -> [FlightTable.ID: Self]
}

extension FlightOutput {
    var source: LoadSource { .memory }
    var call: CallRecord? {
        get { nil }
        set {}
    }
    var effect: FlightEffect { .none }
    func divided(among wishes: [FlightTable.ID: DecodeWish]) -> [FlightTable.ID: Self] { [:] }
}

/// The consequences of a product for other flights.
enum FlightEffect: Sendable {
    case none
    /// A body has come, which may be the newest of its source.
    case brought(UInt64, BodyOrder.Arrival, Date?, FetchedResponse?)
    /// The cache has a product that was made of a body.
    case kept(madeOf: UInt64)
    /// The disk has an entry that was made of a body.
    case stored(CacheKey, madeOf: UInt64)
}

/// A product that may be in the cache.
struct Kept<Response: LoadResponse>: FlightOutput {
    var response: Response
    /// Whether the cache has it now.
    var isKept: Bool

    init(_ response: Response, isKept: Bool) {
        self.response = response
        self.isKept = isKept
    }

    var source: LoadSource { self.response.source }
    var call: CallRecord? {
        get { self.response.call }
        set { self.response.call = newValue }
    }
    var effect: FlightEffect {
        guard self.isKept, let body = self.response.metadata.bodyDigest else { return .none }
        return .kept(madeOf: body)
    }
}

/// A response that callers get.
protocol LoadResponse: Sendable {
    var source: LoadSource { get }
    var metadata: EntryMetadata { get }
    var call: CallRecord? { get set }
}

/// An entry on disk that a flight has stored in the background.
struct StoredEntry: FlightOutput {
    let key: CacheKey
    let body: UInt64?

    var effect: FlightEffect { self.body.map { .stored(self.key, madeOf: $0) } ?? .none }
}

/// The making of one product for all of its waiters.
final class Flight<Output: FlightOutput>: AnyFlight {
    let state: FlightState
    private let waiters = Locked<[FlightTable.ID: FlightWaiter<Output>]>([:])

    init(_ state: FlightState) {
        self.state = state
    }

    func add(_ waiter: FlightWaiter<Output>, observer: FlightState.Observer?) {
        self.waiters.withLock { $0[waiter.id] = waiter }
        if let observer { self.state.add(observer, for: waiter.id) }
    }

    func dismiss(_ waiter: FlightTable.ID) {
        self.state.removeObserver(of: waiter)
        self.waiters.withLock { $0.removeValue(forKey: waiter) }?.end(with: .failure(CancellationError()))
    }

    /// Ends the waits of `ids`; waiters that make images of one body together share decodes.
    func resume(_ ids: [FlightTable.ID], with result: Result<Output, any Error>) {
        let waiters = self.waiters.withLock { waiters in ids.compactMap { waiters.removeValue(forKey: $0) } }
        guard case .success(let output) = result, waiters.count > 1 else {
            for waiter in waiters { waiter.end(with: result) }
            return
        }
        let wishes = waiters.reduce(into: [FlightTable.ID: DecodeWish]()) { $0[$1.id] = $1.wish }
        let parts = wishes.isEmpty ? [:] : output.divided(among: wishes)
        for waiter in waiters { waiter.end(with: parts[waiter.id].map { .success($0) } ?? result) }
    }
}

/// A flight, whatever its product.
protocol AnyFlight: AnyObject, Sendable {
    var state: FlightState { get }
    /// Ends the wait of a waiter that has left.
    func dismiss(_ waiter: FlightTable.ID)
}

/// The wait of a caller or of a flight.
///
/// It ends once: with the result, or as soon as the waiting task is cancelled.
final class FlightWaiter<Output: Sendable>: Sendable {
    private enum State {
        case pending
        case waiting(CheckedContinuation<Output, any Error>)
        case ended(Result<Output, any Error>)
        case over
    }

    let id: FlightTable.ID
    /// The flight, if it was under way when the wait began.
    let joinedFlight: FlightState?
    /// The image that the waiter makes of the bytes for which it waits.
    let wish: DecodeWish?
    private let state = Locked(State.pending)

    init(id: FlightTable.ID, joinedFlight: FlightState? = nil, wish: DecodeWish? = nil) {
        self.id = id
        self.joinedFlight = joinedFlight
        self.wish = wish
    }

    /// Returns the result to the one task that waits.
    ///
    /// - Throws: The error of the flight; `CancellationError` as soon as the task is cancelled.
    func result() async throws -> Output {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = self.state.withLock { state -> Result<Output, any Error>? in
                    guard case .ended(let result) = state else {
                        state = .waiting(continuation)
                        return nil
                    }
                    state = .over
                    return result
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            self.end(with: .failure(CancellationError()))
        }
    }

    /// Ends the wait; later calls do nothing.
    func end(with result: Result<Output, any Error>) {
        let continuation = self.state.withLock { state -> CheckedContinuation<Output, any Error>? in
            switch state {
            case .pending: state = .ended(result)
            case .waiting(let continuation):
                state = .over
                return continuation
            case .ended, .over: break
            }
            return nil
        }
        continuation?.resume(with: result)
    }
}

extension ImageRequest {
    /// The rules in which loads must agree to share a flight, in addition to keys, policies and queried tiers.
    ///
    /// The rules are boxed, because most requests leave all of them to the loader.
    indirect enum FlightTerms: Sendable, Hashable {
        case rules(Caching, Transport, CookiePolicy?)

        /// Takes the rules for a flight of the image, or of its bytes, from a request; `nil` if the loader has them all.
        init?(_ request: ImageRequest, ofImage isImage: Bool) {
            guard !request.leavesRulesToLoader else { return nil }
            var (caching, transport) = (request.caching, request.transport)
            let defaults = Caching()
            // The flight's plan has the policy and the queried tiers. A flight takes the union of the tiers to fill, and
            // the highest priority.
            (caching.originals, caching.variants, caching.policy) = (defaults.originals, defaults.variants, nil)
            transport.priority = .normal
            if !isImage {
                caching.variantEncoder = nil
                // The limit of encoded bytes is a limit of the download, too.
                transport.decodingLimits = transport.decodingLimits.map {
                    DecodingLimits(maximumEncodedBytes: $0.maximumEncodedBytes)
                }
            }
            // Keys have the name of a cookie jar; two jars of one name are still different jars.
            let cookies = request.source.cookies
            guard caching != defaults || transport != Transport() || cookies != nil else { return nil }
            self = .rules(caching, transport, cookies)
        }
    }
}
