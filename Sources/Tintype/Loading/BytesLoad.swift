// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeDownloading
import TintypeFlights
import TintypeHTTP
import TintypeRequests

/// Loads encoded bytes from disk, or from the origin, and stores these on disk.
struct BytesLoad: Sendable {
    let services: LoadServices
    let loader: LoaderReference
    let request: ImageRequest
    /// The metadata of an image that the caller has.
    ///
    /// If the disk has no bytes, the load asks the origin whether that image is current. If it is, the result has no bytes.
    let held: EntryMetadata?
    /// Whether the load may serve stale bytes if HTTP permits it; the caller must revalidate them then.
    let mayServeStale: Bool
    let flight: FlightState

    /// Returns the bytes from the nearest place that has them and may answer.
    ///
    /// - Throws: `LoadError.Code.notInCache`, `.notModified`, `DownloadError`, `CancellationError`.
    func run() async throws -> Body {
        var (answer, known) = try await self.look()
        if let answer { return self.hit(answer) }
        guard self.mayAskOrigin else {
            throw LoadError(
                code: .notInCache,
                message: "\(self.request.displayURL) is not in the cache; "
                    + "allow the load to ask the origin."
            )
        }
        if known == nil, let failure = self.rememberedFailure() { throw failure }
        if !self.flight.hasTurn {
            try await self.flight.record.timing(\.queue) { try await self.loader.waitForTurn(of: self.flight) }
            (answer, known) = try await self.look()
            if let answer { return self.hit(answer) }
        }
        try await self.services.hooks.checkDownload(of: self.request)
        try Task.checkCancellation()
        if known == nil, let held, held.bodyDigest != nil, self.flight.admits(held.bodyDigest), self.plan.obeysHTTP {
            known = StoredSource(key: self.request.key, metadata: held, isOnDisk: false)
        }
        let exchange = OriginExchange(services: self.services, request: self.request, flight: self.flight)
        let remembered = self.rememberedFailure()
        do {
            if let remembered { throw remembered }
            let response = try await exchange.response(validating: known)
            self.services.failures.forget(self.request.sourceKey, for: self.request)
            return response
        } catch let error as DownloadError {
            if remembered == nil {
                let (failures, hooks) = (self.services.failures, self.services.hooks)
                await failures.remember(error, of: self.request.sourceKey, for: self.request) {
                    await hooks.mayRemember($0, of: self.request)
                }
            }
            guard let known, self.mayStandIn(known, for: error),
                let stored = try await self.services.sources.completed(known, for: self.request, countedIn: self.budget)
            else { throw error }
            return self.services.sources.body(of: stored, .failed)
        }
    }

    // MARK: Parts

    private var plan: CachingPlan { self.services.rules.plan(for: self.request) }

    /// Returns the remembered failure of the source, if there is one, and counts it.
    private func rememberedFailure() -> (any Error)? {
        let failure = self.services.failures.failure(
            of: self.request.sourceKey,
            for: self.request,
            retriesFailed: self.flight.demand.retriesFailed,
            under: self.plan.policy
        )
        if failure != nil { self.services.activities.counters.count(\.rememberedFailures) }
        return failure
    }

    private var budget: ByteBudget { self.services.downloads.bodyBudget }

    /// Returns the stored bytes if they may answer, or else their metadata: a load that waits for its turn or for the origin
    /// holds no bytes.
    private func look() async throws -> (answer: Body?, known: StoredSource?) {
        try await self.flight.record.timing(\.disk) {
            let sources = self.services.sources
            if self.plan.policy.revalidates, let known = try await sources.known(of: self.request),
                try self.reuse(known) == nil
            {
                return (nil, known)
            }
            return (try await self.reuse(sources.entry(for: self.request, countedIn: self.budget)), nil)
        }
    }

    private func hit(_ answer: Body) -> Body {
        self.flight.record.note(byteCount: answer.data.count)
        self.flight.record.note(tier: answer.tier)
        self.services.activities.send(.hit(.disk, tier: answer.tier), .bytes, self.request, of: self.flight)
        return answer
    }

    private func reuse(_ stored: StoredSource?) throws(LoadError) -> Body? {
        try self.services.sources.reuse(stored, for: self.request, mayServeStale: self.mayServeStale)
    }

    private var mayAskOrigin: Bool {
        guard self.plan.policy != .cacheOnly else { return false }
        guard self.plan.obeysHTTP else { return true }
        return !CacheControl(self.request.headers.values(for: "Cache-Control")).has("only-if-cached")
    }

    /// Returns whether stored bytes may answer instead of an origin that failed.
    ///
    /// A load that revalidates wants the current response. RFC 5861 (4) lets an origin permit a stale one.
    private func mayStandIn(_ known: StoredSource, for error: DownloadError) -> Bool {
        error.isOriginFailure && self.plan.policy.revalidates
            && ReuseDecision.servesAfterFailure(
                known.metadata.response?.freshness,
                headers: self.request.headers,
                now: self.services.rules.now()
            )
    }
}

extension LoaderReference {
    /// Returns the bytes that `request` names, from a flight that all images of them share.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - held: Metadata of an image that is there: if the origin confirms it, there may be no bytes.
    ///   - bodies: The bodies whose image is there; by default the one of `held`.
    ///   - mayServeStale: Whether stale bytes are of use.
    ///   - interest: The reason for the wait; a flight that waits decodes the bytes, and shares that with others.
    ///   - observer: Receives the updates of the flight.
    /// - Returns: The bytes.
    /// - Throws: The error of the load.
    func bytes(
        for request: ImageRequest,
        held: EntryMetadata? = nil,
        imagesOf bodies: Set<UInt64>? = nil,
        mayServeStale: Bool,
        interest: FlightTable.Interest,
        observer: FlightState.Observer? = nil
    ) async throws -> Body {
        var wish: DecodeWish?
        if case .flight = interest {
            wish = DecodeWish(request: request, bodies: bodies ?? Set([held?.bodyDigest].compactMap(\.self)))
        }
        let plan = self.bytesPlan(for: request, held: held, mayServeStale: mayServeStale)
        return try await self.result(of: plan, interest: interest, observer: observer, wish: wish)
    }

    func bytesPlan(
        for request: ImageRequest,
        held: EntryMetadata? = nil,
        mayServeStale: Bool
    ) -> FlightPlan<Body> {
        var product = FlightTable.Product(.bytes, request, rules: self.services.rules, mayServeStale: mayServeStale)
        product.held = held?.bodyDigest
        return FlightPlan(product: product, request: request) { flight in
            let load = BytesLoad(
                services: self.services,
                loader: self,
                request: request,
                held: held,
                mayServeStale: mayServeStale,
                flight: flight
            )
            var body = try await load.run()
            body.flightID = flight.id
            return body
        }
    }

    /// Stores bytes that a caller gives, as if the origin had just sent them.
    func bytes(given data: Data, _ headers: HeaderFields, for request: ImageRequest) async throws -> Body {
        let services = self.services
        var product = FlightTable.Product(.bytes, request, rules: services.rules, mayServeStale: false)
        let fields = headers.map { "\($0.name): \($0.value)\n" }.joined()
        product.given = BodyDigest.value(of: data) ^ BodyDigest.value(of: Data(fields.utf8))
        let plan = FlightPlan(product: product) { flight in
            if !flight.hasTurn { try await self.waitForTurn(of: flight) }
            try Task.checkCancellation()
            let exchange = OriginExchange(services: services, request: request, flight: flight, isLoad: false)
            let response = DownloadResponse(body: data, url: request.url, headers: headers)
            do {
                return try await exchange.keep(response, replacing: nil)
            } catch {
                throw flight.failure(of: error, request)
            }
        }
        return try await self.result(of: plan, interest: .caller(Demand(request, services.rules)))
    }
}

extension DownloadError {
    /// Whether the origin or the way to it is at fault: an error in the sense of RFC 5861 (4).
    fileprivate var isOriginFailure: Bool {
        if self.code == .badStatus { return [500, 502, 503, 504].contains(self.status) }
        return [
            .hostNotFound, .cannotConnect, .proxyRefused, .tlsFailed, .timedOut, .connectionLost, .bodyCutShort,
            .invalidResponse,
        ]
        .contains(self.code)
    }
}

extension LoadError {
    /// The error of a load after the shutdown.
    static let shutDown = LoadError(code: .shutDown, message: "The loader has been shut down; make another one.")

    /// Returns the error for a caller whose own condition holds: its copy is current.
    static func notModified(_ request: ImageRequest, _ headers: HeaderFields) -> LoadError {
        var error = LoadError(
            code: .notModified,
            message: "\(request.displayURL) is as the request's condition says, so no bytes were sent; "
                + "use the copy that you have, or ask without the condition."
        )
        error.headers = headers
        return error
    }
}
