import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeHTTP
import TintypeRendering

/// How the parts of a load reach the loader, without keeping it alive: what nothing waits for ends with it.
struct LoaderReference: Sendable {
    private weak let loader: LoaderActor?
    private let services: LoadServices

    init(_ loader: LoaderActor) {
        self.loader = loader
        self.services = loader.services
    }

    /// The picture that `request` describes, from a load that equal requests share.
    ///
    /// A flight that begins with this call makes it of the bytes that are offered, which have just come.
    func picture(
        for request: ImageRequest,
        offered offer: BytesOffer? = nil,
        mayServeStale: Bool,
        interest: LoadTable.Interest,
        observer: Flight.Observer? = nil
    ) async throws -> ImageResponse {
        let product = LoadTable.Product(.picture, request, rules: self.services.rules, mayServeStale: mayServeStale)
        let result = try await self.called(product, request, interest, observer, offered: offer) { flight in
            try await self.make(.picture, request, offered: offer, mayServeStale: mayServeStale, flight)
        }
        guard case .picture(let response, _) = result else { preconditionFailure("a flight made another product") }
        return response
    }

    /// The bytes that `request` names, from a load that all pictures of them share.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - held: Metadata of an image that is there: if the origin confirms it, there may be no bytes.
    ///   - bodies: The bodies whose image is there; by default the one of `held`.
    ///   - mayServeStale: Whether stale bytes are of use.
    ///   - interest: The waiter; a flight that waits decodes the bytes, and shares that with others.
    ///   - observer: Sees the updates.
    /// - Returns: The bytes.
    /// - Throws: What the load throws.
    func bytes(
        for request: ImageRequest,
        held: EntryMetadata? = nil,
        imagesOf bodies: Set<UInt64>? = nil,
        mayServeStale: Bool,
        interest: LoadTable.Interest,
        observer: Flight.Observer? = nil
    ) async throws -> DataResponse {
        var product = LoadTable.Product(.bytes, request, rules: self.services.rules, mayServeStale: mayServeStale)
        product.held = held?.bodyDigest
        var wish: DecodeWish?
        if case .flight = interest {
            wish = DecodeWish(request: request, bodies: bodies ?? Set([held?.bodyDigest].compactMap(\.self)))
        }
        let result = try await self.called(product, request, interest, observer, wish: wish) { flight in
            try await self.make(.bytes, request, held: held, mayServeStale: mayServeStale, flight)
        }
        guard case .bytes(let response) = result else { preconditionFailure("a flight made another product") }
        return response
    }

    /// Takes up bytes that a caller has as if the origin had sent them now.
    func bytes(given body: Data, _ headers: HeaderFields, for request: ImageRequest) async throws -> DataResponse {
        var product = LoadTable.Product(.bytes, request, rules: self.services.rules, mayServeStale: false)
        let fields = headers.map { "\($0.name): \($0.value)\n" }.joined()
        product.given = BodyDigest.value(of: body) ^ BodyDigest.value(of: Data(fields.utf8))
        let interest = LoadTable.Interest.caller(self.services.demand(of: request))
        let result = try await self.result(product, interest) { flight in
            if !flight.hasTurn { try await self.waitForTurn(of: flight) }
            try Task.checkCancellation()
            let exchange = OriginExchange(services: self.services, request: request, flight: flight, isLoad: false)
            let response = DownloadResponse(body: body, url: request.url, headers: headers)
            do {
                return .bytes(try await exchange.keep(response, replacing: nil))
            } catch {
                throw flight.failure(of: error, request)
            }
        }
        guard case .bytes(let response) = result else { preconditionFailure("a flight made another product") }
        return response
    }

    /// A part of a flight's work, done once for all images of the same bytes that want the same.
    func shared(
        _ key: CacheKey,
        of source: CacheKey,
        for flight: Flight,
        _ work: @escaping @Sendable (LoadRecord) async throws -> DecodePipeline.SharedStep
    ) async throws -> DecodePipeline.SharedStep {
        let product = LoadTable.Product(kind: .decode, key: key, source: source, origin: source)
        let result = try await self.result(product, .flight(flight.id)) { .decoded(try await work($0.record)) }
        guard case .decoded(let decoded) = result else { preconditionFailure("a flight made another product") }
        return decoded
    }

    /// Stores a picture of `source` in the background.
    func store(_ key: CacheKey, of source: CacheKey, _ work: @escaping LoaderActor.Work) async {
        await self.loader?.store(key, of: source, work)
    }

    /// Returns when a flight may ask the origin.
    func waitForTurn(of flight: Flight) async throws {
        _ = try await self.loader?.requestTurn(of: flight)?.result()
    }

    /// The picture that `request` describes as a server sends it, from a load that equal requests share.
    func encoded(
        _ request: ImageRequest,
        as encoding: PictureEncoding,
        _ caching: CacheUse
    ) async throws -> EncodedResponse {
        let rules = self.services.rules
        let product = LoadTable.Product(encoding, of: request, caching, rules: rules, mayServeStale: true)
        let interest = LoadTable.Interest.caller(self.services.demand(of: request, caching))
        let result = try await self.called(product, request, interest) { flight in
            try await self.makeEncoded(request, encoding, caching, mayServeStale: true, flight)
        }
        guard case .encoded(let response, _) = result else { preconditionFailure("a flight made another product") }
        return response
    }

    /// Does the work of a flight for an encoded picture.
    func makeEncoded(
        _ request: ImageRequest,
        _ encoding: PictureEncoding,
        _ caching: CacheUse,
        mayServeStale: Bool,
        _ flight: Flight
    ) async throws -> FlightResult {
        let load = EncodedLoad(
            services: self.services,
            loader: self,
            request: request,
            encoding: encoding,
            caching: caching,
            mayServeStale: mayServeStale,
            flight: flight
        )
        return try await self.telling(.encoded, request, flight) { try await load.run() }
    }

    /// Does the work of a flight, and tells of its beginning and its end.
    func make(
        _ kind: LoadTable.Product.Kind,
        _ request: ImageRequest,
        held: EntryMetadata? = nil,
        offered offer: BytesOffer? = nil,
        mayServeStale: Bool,
        _ flight: Flight
    ) async throws -> FlightResult {
        try await self.telling(LoadActivity.Product(kind), request, flight) {
            try await self.work(kind, request, held: held, offered: offer, mayServeStale: mayServeStale, flight)
        }
    }

    private func telling(
        _ product: LoadActivity.Product,
        _ request: ImageRequest,
        _ flight: Flight,
        _ work: () async throws -> FlightResult
    ) async throws -> FlightResult {
        let activities = self.services.activities
        activities.send(.started, product, request, of: flight)
        let start = ContinuousClock.now
        do {
            let result = try await work()
            let call = CallRecord(load: flight.record, total: start.duration(to: .now), isJoined: false)
            activities.send(.finished(result.source ?? .memory, call.metrics), product, request, of: flight)
            return result.called(call)
        } catch {
            // With the loader its loads end as well.
            let failure = self.loader == nil ? error : flight.failure(of: error, request)
            activities.sendEnd(of: product, request, of: flight, failure)
            throw failure
        }
    }

    private func work(
        _ kind: LoadTable.Product.Kind,
        _ request: ImageRequest,
        held: EntryMetadata?,
        offered offer: BytesOffer?,
        mayServeStale: Bool,
        _ flight: Flight
    ) async throws -> FlightResult {
        switch kind {
        case .picture:
            let load = PictureLoad(
                services: self.services,
                loader: self,
                request: request,
                offer: offer,
                mayServeStale: mayServeStale,
                flight: flight
            )
            return try await load.run()
        case .bytes:
            let load = BytesLoad(
                services: self.services,
                loader: self,
                request: request,
                held: held,
                mayServeStale: mayServeStale,
                flight: flight
            )
            return .bytes(try await load.run())
        case .encoded, .decode, .store: preconditionFailure("a flight of another kind brings its own work")
        }
    }

    /// The result of a flight as one call gets it.
    private func called(
        _ product: LoadTable.Product,
        _ request: ImageRequest,
        _ interest: LoadTable.Interest,
        _ observer: Flight.Observer? = nil,
        offered offer: BytesOffer? = nil,
        wish: DecodeWish? = nil,
        work: @escaping LoaderActor.Work
    ) async throws -> FlightResult {
        let start = ContinuousClock.now
        var isJoined = false
        let noteJoin = {
            isJoined = true
            // A flight under way gets its own, and must find room for them.
            _ = offer?.take()
            self.services.activities.tellNoted(of: $0)
        }
        let result = try await self.result(
            product,
            interest,
            observer,
            noted: request,
            wish: wish,
            noteJoin: noteJoin,
            work: work
        )
        let total = start.duration(to: .now)
        return result.called(CallRecord(load: result.call?.load, total: total, isJoined: isJoined))
    }

    private func result(
        _ product: LoadTable.Product,
        _ interest: LoadTable.Interest,
        _ observer: Flight.Observer? = nil,
        noted request: ImageRequest? = nil,
        wish: DecodeWish? = nil,
        noteJoin: (Flight) -> Void = { _ in },
        work: @escaping LoaderActor.Work
    ) async throws -> FlightResult {
        try Task.checkCancellation()
        let waiter = try await self.loader?.join(
            product,
            interest,
            observer: observer,
            noted: request,
            wish: wish,
            work: work
        )
        guard let waiter else { throw CancellationError() }
        if let flight = waiter.joinedFlight { noteJoin(flight) }
        do {
            return try await waiter.result()
        } catch is CancellationError {
            await self.loader?.leave(waiter)
            throw CancellationError()
        }
    }
}
