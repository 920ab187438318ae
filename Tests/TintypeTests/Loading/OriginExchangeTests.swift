// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeFlights
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// The exchange with an origin by itself, without a loader and its flights.
@Suite(.waiting, .timeLimit(.minutes(5))) struct OriginExchangeTests {
    private let origin = ScriptedOrigin()
    private let tier = MemoryTier()
    private let older: Data
    private let newer: Data

    init() throws {
        self.older = Data(try makePNG(width: 10))
        self.newer = Data(try makePNG(width: 11))
    }

    private var url: URL { self.origin.url("/a") }

    private func makeExchange(
        for request: ImageRequest? = nil,
        storing tiers: CacheTiers = .disk,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> OriginExchange {
        var configuration = LoaderActor.Configuration()
        configuration.cachePolicy = .honorFreshness
        configuration.fetcher = self.origin
        change(&configuration)
        var demand = Demand(priority: .normal)
        demand.storesBytes = tiers.contains(.disk)
        demand.imageTiers = tiers.subtracting(.disk)
        demand.waitsForStore = true
        let services = LoadServices(
            configuration: configuration,
            // The default budget of a call may be too short on a busy machine.
            cache: CacheActor(tiers: [self.tier], timeBudget: .seconds(600)),
            downloads: DownloadActor(configuration: configuration.downloads),
            activities: ActivityCenter([])
        )
        let flight = FlightState(id: 1, demand: demand, hasTurn: true, newestBody: nil)
        return OriginExchange(services: services, request: request ?? ImageRequest(url: self.url), flight: flight)
    }

    /// Stores the older body, and returns it as a look-up finds it.
    private func store(
        _ fields: HeaderFields = [:],
        from path: String = "/a",
        for exchange: OriginExchange
    ) async throws -> StoredSource {
        let headers = (["ETag": "\"a\""] as HeaderFields) + fields
        let response = DownloadResponse(body: self.older, url: self.origin.url(path), headers: headers)
        // Store through another cache. A read waits, in real time, for earlier changes made through its own cache.
        let body = try await self.makeExchange(for: exchange.request).keep(response, replacing: nil)
        return StoredSource(key: exchange.request.sourceKey, metadata: body.metadata)
    }

    private func entry(of exchange: OriginExchange) async throws -> ByteEntry? {
        try await self.tier.entry(for: exchange.request.sourceKey)
    }

    @Test(
        arguments: [
            ["ETag": "\"b\"", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Content-Type": "image/png"],
            ["etag": "W/\"b\"", "content-type": "text/plain", "X-A": "1", "X-A": "2"], [:],
        ] as [HeaderFields]
    )
    func `a whole response becomes a body with the metadata of its fields`(fields: HeaderFields) async throws {
        self.origin.script("/a", .body(self.newer, headers: fields))
        let exchange = self.makeExchange()
        let body = try await exchange.response(validating: nil)
        #expect((body.data, body.source, body.headers) == (self.newer, .network, fields))
        #expect(body.revalidation == nil && body.arrival == .fetched(as: exchange.request.sourceKey))
        for metadata in try await [body.metadata, self.entry(of: exchange)?.metadata] {
            #expect((metadata?.etag, metadata?.lastModified) == (fields["ETag"], fields["Last-Modified"]))
            #expect((metadata?.formatName, metadata?.mediaType) == ("png", fields["Content-Type"]))
            #expect((metadata?.sourceURL, metadata?.byteCount) == ("https://origin.example/a", self.newer.count))
            #expect(metadata?.bodyDigest == BodyDigest.value(of: self.newer))
        }
    }

    /// The reasons to store a body or not, and the bytes that the tier has after the exchange.
    struct Decision: Sendable {
        enum Held { case older, sent, nothing }

        var tiers = CacheTiers.disk
        var policy = CachePolicy.honorFreshness
        var directive = "max-age=9"
        var isShared = false
        var isImage = true
        /// The results of the program's `isStorable` and `shouldStore`.
        var isStorable: Bool?
        var mayStore = true
        var mayBeKept = true
        let held: Held
    }

    @Test(arguments: [
        Decision(held: .sent), Decision(tiers: .memory, held: .nothing), Decision(tiers: .none, held: .older),
        Decision(tiers: .none, policy: .reload, held: .nothing), Decision(isImage: false, held: .older),
        Decision(isImage: false, isStorable: true, held: .sent), Decision(isStorable: false, held: .older),
        Decision(mayStore: false, mayBeKept: false, held: .nothing),
        Decision(directive: "no-store", mayBeKept: false, held: .nothing),
        Decision(policy: .neverRevalidate, directive: "no-store", held: .sent),
        Decision(directive: "private", held: .sent),
        Decision(directive: "private", isShared: true, mayBeKept: false, held: .nothing),
    ])
    func `an exchange stores the new body, removes the older one, or leaves it in place`(
        decision: Decision
    ) async throws {
        let request = ImageRequest(url: self.url, cachePolicy: decision.policy)
        let exchange = self.makeExchange(for: request, storing: decision.tiers) { configuration in
            configuration.isSharedCache = decision.isShared
            if let isStorable = decision.isStorable { configuration.isStorable = { _ in isStorable } }
            configuration.shouldStore = { _, _ in decision.mayStore }
        }
        let known = try await self.store(for: exchange)
        let sent = decision.isImage ? self.newer : Data("<html>try later</html>".utf8)
        let response = DownloadResponse(body: sent, url: self.url, headers: ["Cache-Control": decision.directive])
        let body = try await exchange.keep(response, replacing: known)
        #expect((body.data, body.revalidation) == (sent, .modified))
        #expect((body.mayBeKept, body.arrival == nil) == (decision.mayBeKept, decision.held == .older))
        let bytes = [Decision.Held.older: self.older, .sent: sent]
        #expect(try await self.entry(of: exchange)?.data == bytes[decision.held])
    }

    @Test(
        arguments: [
            (["Cache-Control": "public"], ["cache-control": "max-age=60"], ["Cache-Control": "max-age=60"], 60),
            (["X-A": "1", "X-A": "2"], ["X-A": "3"], ["X-A": "3"], 0), (["X-A": "1"], [:], ["X-A": "1"], 0),
            ([:], ["Connection": "X-A", "X-A": "1"], [:], 0), ([:], ["ETag": "W/\"a\""], [:], 0),
            (["Content-Length": "7"], ["Content-Length": "0"], ["Content-Length": "7"], 0),
            (["Age": "5"], [:], [:], 0), ([:], ["Cache-Control": "no-store"], ["Cache-Control": "no-store"], nil),
        ] as [(HeaderFields, HeaderFields, HeaderFields, Double?)]
    )
    func `a 304 brings the stored response up to date, or removes it`(
        stored: HeaderFields,
        sent: HeaderFields,
        result: HeaderFields,
        lifetime: Double?
    ) async throws {
        self.origin.script("/a", .body([], status: 304, headers: sent))
        let exchange = self.makeExchange()
        let body = try await exchange.response(validating: self.store(stored, for: exchange))
        #expect((body.data, body.source, body.revalidation) == (self.older, .disk, .notModified))
        #expect(body.headers.removing(["date", "etag"]) == result)
        #expect(body.headers["ETag"] == sent["ETag"] ?? "\"a\"")
        #expect((body.metadata.response?.fields, body.metadata.etag) == (body.headers, body.headers["ETag"]))
        #expect(body.mayBeKept == (lifetime != nil))
        #expect(try await self.entry(of: exchange)?.metadata.response?.freshness.lifetime == lifetime)
    }

    @Test(
        arguments: [
            ("\"a\"", "/a", nil, true), (nil, "/a", nil, true), ("\"b\"", "/a", nil, false),
            ("\"a\"", "/b", nil, false), ("\"a\"", "/b", "photo", true),
            ("\"a\"", "/b", "https://origin.example/a, small", false),
        ] as [(String?, String, String?, Bool)]
    )
    func `after a 304 for another response, the exchange repeats the request without conditions`(
        tag: String?,
        path: String,
        cacheKey: String?,
        isBelieved: Bool
    ) async throws {
        let whole = ScriptedResponse.body(self.newer)
        let confirmation = ScriptedResponse.body([], status: 304, headers: tag.map { ["ETag": $0] } ?? [:])
        self.origin.script("/a", .answer { $0.headers["If-None-Match"] == nil ? whole : confirmation })
        let exchange = self.makeExchange(for: ImageRequest(url: self.url, cacheKey: cacheKey))
        let body = try await exchange.response(validating: self.store(from: path, for: exchange))
        #expect(body.data == (isBelieved ? self.older : self.newer))
        #expect(body.revalidation == (isBelieved ? .notModified : .modified))
        #expect(try await self.entry(of: exchange)?.data == body.data)
        let tags: [String?] = isBelieved ? ["\"a\""] : ["\"a\"", nil]
        #expect(self.origin.requests(for: "/a").map { $0.headers["If-None-Match"] } == tags)
    }

    @Test(
        arguments: [
            (["If-None-Match": "\"own\""], .honorFreshness, .notModified),
            (["If-Modified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"], .honorFreshness, .notModified),
            (["If-None-Match": "\"own\""], .neverRevalidate, .badStatus), ([:], .honorFreshness, .badStatus),
        ] as [(HeaderFields, CachePolicy, LoadError.Code)]
    )
    func `callers get a 304 as an error`(own: HeaderFields, policy: CachePolicy, code: LoadError.Code) async throws {
        self.origin.script("/a", .body([], status: 304, headers: ["ETag": "\"own\""]))
        let exchange = self.makeExchange(for: ImageRequest(url: self.url, headers: own, cachePolicy: policy))
        // A stored response must not add its own conditions.
        let known = try await code == .notModified ? self.store(for: exchange) : nil
        let error = await #expect(throws: (any Error).self) { try await exchange.response(validating: known) }
        #expect((error as? LoadError)?.code ?? (error as? DownloadError)?.code == code)
        #expect(self.origin.requests(for: "/a").map(\.headers) == [own])
    }

    /// The code that a transfer calls, in its order.
    enum Place: CaseIterable { case modifyRequest, fetcher, decrypt, modifyResponse }

    private func makeExchange(throwing error: any Error, at place: Place) -> OriginExchange {
        let newer = self.newer
        @Sendable func pass<Value>(_ value: Value, _ other: Place) throws -> Value {
            guard place == other else { return value }
            throw error
        }
        return self.makeExchange { configuration in
            configuration.fetcher = ClosureFetcher(respond: { request, _ in
                try pass(DownloadResponse(body: newer, url: request.url), .fetcher)
            })
            configuration.hooks = LoadHooks(
                modifyRequest: { download, _ in try pass(download, .modifyRequest) },
                decrypt: { body, _, _ in try pass(body, .decrypt) },
                modifyResponse: { response, _ in try pass(response, .modifyResponse) }
            )
        }
    }

    @Test(arguments: Place.allCases, [false, true])
    func `a CancellationError from a hook or fetcher refuses a load that was not abandoned`(
        place: Place,
        isAbandoned: Bool
    ) async {
        let exchange = self.makeExchange(throwing: CancellationError(), at: place)
        if isAbandoned { _ = exchange.flight.abandon() }
        let error = await #expect(throws: (any Error).self) { try await exchange.response(validating: nil) }
        #expect((error is CancellationError) == isAbandoned)
        #expect(((error as? DownloadError)?.code == .refused) != isAbandoned)
    }

    @Test(arguments: [
        (Place.modifyRequest, LoadError.Code.refused), (.decrypt, .decryptionFailed), (.modifyResponse, .refused),
    ])
    func `a hook that throws refuses the load with its error`(place: Place, code: LoadError.Code) async {
        let exchange = self.makeExchange(throwing: TestSupportError("no"), at: place)
        let error = await #expect(throws: DownloadError.self) { try await exchange.response(validating: nil) }
        #expect(error?.code == code)
        #expect(error?.underlyingError is TestSupportError)
    }

    @Test(arguments: [
        (200, 9, TintypeErrorCode?.none), (404, 9, .badStatus), (200, 0, .emptyBody), (200, 10, .bodyTooLarge),
    ])
    func `a response that a hook changed is checked like one from the origin`(
        status: Int,
        count: Int,
        code: LoadError.Code?
    ) async throws {
        self.origin.script("/a", .body([1]))
        let exchange = self.makeExchange { configuration in
            configuration.downloads.maximumBodySize = 9
            configuration.hooks.modifyResponse = { response, _ in
                var response = response
                (response.status, response.body) = (status, Data(count: count))
                return response
            }
        }
        do {
            let body = try await exchange.response(validating: nil)
            #expect(code == nil)
            #expect((body.data, body.metadata.byteCount) == (Data(count: count), count))
        } catch let error as DownloadError {
            #expect(error.code == code)
        }
    }
}
