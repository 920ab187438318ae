// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Tintype
import TintypeConcurrency
import TintypeHTTP
import TintypeImgproxy

/// Answers requests for images, and about the server itself.
final class ImageHandler: RequestHandling {
    let loader: LoaderActor
    let configuration: ImageServer.Configuration
    let admission: Admission
    let metrics: ServerMetrics
    let purges: PurgeList
    let uploads: UploadStore?
    private let log: AccessLog?
    private let routes = RouteTable()
    private let rules: Locked<Rules>
    /// Whether the server is ending, and takes no more work from balancers.
    let isEnding = Atomic(false)
    private let now: @Sendable () -> Date
    let liveness = Liveness()
    /// The connections of the server, for their counters.
    let connections = Locked<ConnectionActor?>(nil)

    /// The rules that change without a restart.
    struct Rules: Sendable {
        let planner: RoutePlanner
        let signer: URLSigner?
    }

    init(
        configuration: ImageServer.Configuration,
        loader: LoaderActor,
        rules: Rules,
        purges: PurgeList,
        uploads: UploadStore?,
        metrics: ServerMetrics,
        log: AccessLog?,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.configuration = configuration
        self.loader = loader
        self.rules = Locked(rules)
        self.purges = purges
        self.uploads = uploads
        self.metrics = metrics
        self.log = log
        self.now = now
        let lanes = configuration.loader.laneCount
        self.admission = Admission(
            slotCount: lanes,
            countLimit: configuration.load.queueCount ?? 64 * lanes,
            waitLimit: configuration.load.queueTime
        )
    }

    /// Replaces the keys and presets.
    func setRules(_ rules: Rules) {
        self.rules.withLock { $0 = rules }
        self.routes.removeAll()
    }

    var planner: RoutePlanner { self.rules.withLock { $0.planner } }
    var signer: URLSigner? { self.rules.withLock { $0.signer } }

    /// Makes the routes anew, with new cache keys.
    func forgetRoutes() {
        self.routes.removeAll()
    }

    /// Tells balancers that the server takes no more work.
    func beginEnding() {
        self.isEnding.store(true, ordering: .relaxed)
    }

    // MARK: RequestHandling

    func readyAnswer(to request: ServerRequest) -> ServerAnswer? {
        let head = request.head
        switch head.method {
        case .get, .head: break
        case .options: return self.optionsAnswer()
        case .post: return self.isPost(head) ? nil : self.refusal(405, "This address takes no POST.")
        case .other: return self.refusal(405, "This server answers GET and HEAD.")
        }
        let target = head.target
        if let answer = self.ownAnswer(to: head) { return answer }
        if self.needsWaiting(target) { return nil }
        guard self.isPermitted(head) else { return self.forbidden }
        do throws(RoutePlanner.Refusal) {
            let route = try self.route(for: head)
            if case .encode(let image, let encoding) = route.work,
                let response = self.loader.cachedEncoded(image, as: encoding)
            {
                return self.answer(with: Representation(response), of: route, to: head)
            }
            guard !route.isResting(at: .now) else {
                return self.refusal(503, "The image took too long a moment ago.")
            }
            // Refuse at once what would be refused later.
            if route.sharedPlace == nil, let refusal = self.admission.refusal(route.origin, request.client) {
                return self.answer(refusal)
            }
            return nil
        } catch {
            return self.answer(error)
        }
    }

    func answer(to request: ServerRequest) async -> ServerAnswer {
        let head = request.head
        let path = Self.path(of: head.target)
        if head.method == .post { return await self.postAnswer(to: request, path) }
        if path == "/metrics" {
            guard self.configuration.metricsAddress == nil else {
                return self.refusal(404, "There are no metrics here.")
            }
            return await self.metricsAnswer()
        }
        if path == "/ready" { return await self.readiness() }
        if path == "/health" || path == self.configuration.healthPath { return await self.health() }
        guard self.isPermitted(head) else { return self.forbidden }
        if Self.isInformation(head.target) { return await self.informationAnswer(to: request) }
        do throws(RoutePlanner.Refusal) {
            return await self.imageAnswer(of: try self.route(for: head), to: request)
        } catch {
            return self.answer(error)
        }
    }

    func refusal(ofBodyOf head: RequestHead) -> ServerAnswer? {
        guard head.method == .post, self.isPost(head) else { return nil }
        return self.postRefusal(head, Self.path(of: head.target))
    }

    func bodyLimit(of request: RequestHead) -> Int {
        guard request.method == .post, self.isPost(request) else { return 0 }
        return Self.path(of: request.target) == "/upload" ? UploadStore.byteLimit : 16 << 10
    }

    func refusal(_ status: Int, _ reason: String) -> ServerAnswer {
        var fields: HeaderFields = ["Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"]
        if status == 405 { fields.append("GET, HEAD, OPTIONS", for: "Allow") }
        if status == 503 { fields.append("1", for: "Retry-After") }
        return .text(status, reason + "\n", fields: fields, note: AnswerNote(errorCode: "\(status)", message: reason))
    }

    func didEnd(_ exchange: ExchangeRecord) {
        self.metrics.record(exchange)
        // Probes and scrapes would fill the log.
        if exchange.status == 200, let target = exchange.head?.target, self.isAboutServer(target) { return }
        guard let log, ImageServer.LogLevel(status: exchange.status).isLogged(at: self.configuration.logLevel) else {
            return
        }
        let trace = exchange.head.flatMap { TraceContext($0) }
        log.append(exchange, traceID: trace?.traceID)
    }

    func didEndTurn() {
        self.log?.flush()
    }

    // MARK: Images

    /// How long the server does not try an image again that took too long.
    private static let restTime: Duration = .seconds(10)

    /// The trace of the request for which a load began; requests to origins carry it on.
    @TaskLocal static var trace: TraceContext?

    /// Returns the route of a request.
    private func route(for head: RequestHead) throws(RoutePlanner.Refusal) -> ImageRoute {
        let acceptsWebP = self.planner.readsAccept && AcceptedTypes(head.values(for: "Accept")).names("image/webp")
        let key = RouteTable.Key(target: head.target, acceptsWebP: acceptsWebP)
        let now = Int(self.now().timeIntervalSince1970)
        if let route = self.routes[key], route.address.options.expires.map({ $0 >= now }) ?? true { return route }
        // Read before the rules and the purges, which may change meanwhile.
        let removalCount = self.routes.removalCount
        let route = try self.planner.route(for: head.target, acceptsWebP: acceptsWebP, now: now, purges: self.purges)
        self.routes.insert(route, for: key, madeAfter: removalCount)
        return route
    }

    /// Loads the image of a route.
    private func imageAnswer(of route: ImageRoute, to request: ServerRequest) async -> ServerAnswer {
        let place: Admission.Place
        do throws(Admission.Refusal) {
            if let shared = route.sharedPlace {
                place = shared
            } else {
                place = try self.admission.enter(route.origin, request.client, at: .now)
                route.sharedPlace = place
            }
        } catch {
            return self.answer(error)
        }
        defer { withExtendedLifetime(place) {} }
        let start = ContinuousClock.now
        let trace = TraceContext(request.head)
        do {
            return try await WorkClient.$current.withValue(WorkClient(request.client)) {
                try await Self.$trace.withValue(trace) { try await self.load(route, place, request.head) }
            }
        } catch is CancellationError {
            // An image that takes too long would take a lane again and again.
            if start.duration(to: .now) >= self.configuration.load.answerTime - .milliseconds(500) {
                route.rest(until: .now + Self.restTime)
            }
            return self.refusal(503, "The request was cancelled.")
        } catch let error as LoadError {
            if let answer = await self.fallbackAnswer(for: route, after: error, request.head) { return answer }
            return self.answer(error, source: route.address.source)
        } catch {
            return self.refusal(500, "The image could not be made.")
        }
    }

    private func load(_ route: ImageRoute, _ place: Admission.Place, _ head: RequestHead) async throws -> ServerAnswer {
        switch route.work {
        case .raw(let request):
            // Anything but an image could be a script that runs with the rights of the server's pages.
            let formats: Set<ImageFormat> = [.jpeg, .png, .gif, .webp]
            guard let answer = try await self.original(request, among: formats, route, head) else {
                throw LoadError(code: .notAnImage, message: "The source is not an image that the server reads.")
            }
            return answer
        case .skip(let formats, let request, let encoding):
            var source = request
            source.transforms = []
            if let answer = try await self.original(source, among: formats, route, head) { return answer }
            return try await self.encoded(request, encoding, route, place, head)
        case .encode(let request, let encoding):
            return try await self.encoded(request, encoding, route, place, head)
        }
    }

    /// Returns the bytes of a source, or `nil` if it has another format than `formats`.
    ///
    /// They come from the file on disk, if there is one, because they may be many and their client slow.
    private func original(
        _ request: ImageRequest,
        among formats: Set<ImageFormat>,
        _ route: ImageRoute,
        _ head: RequestHead
    ) async throws -> ServerAnswer? {
        let (header, response) = try await self.header(of: request)
        guard formats.contains(header.format) else { return nil }
        if response == nil, let file = try await self.loader.cachedFile(for: request) {
            let body = ServerAnswer.Body.file(file, offset: file.offset, count: file.byteCount)
            return self.answer(with: body, file.metadata, source: .disk, header.format, of: route, to: head)
        }
        let bytes = if let response { response } else { try await self.loader.dataResponse(for: request) }
        return self.answer(
            with: .data(bytes.data),
            bytes.metadata,
            source: bytes.source,
            header.format,
            of: route,
            to: head
        )
    }

    /// Returns the header of a source, which is within the limits.
    ///
    /// - Returns: The bytes as well if no disk has them, because another load would download them again.
    func header(of request: ImageRequest) async throws -> (header: ImageHeader, bytes: DataResponse?) {
        guard self.configuration.loader.disk == nil else {
            return (try await self.loader.header(for: request), nil)
        }
        let response = try await self.loader.dataResponse(for: request)
        do {
            let limits = request.transport.decodingLimits ?? self.configuration.loader.limits
            let decoder = try ImageDecoder(response.data, registry: self.configuration.loader.coders, limits: limits)
            return (decoder.header, response)
        } catch let error as CodingError {
            throw LoadError(code: error.code, message: error.message, underlyingError: error)
        }
    }

    private func encoded(
        _ request: ImageRequest,
        _ encoding: OutputEncoding,
        _ route: ImageRoute,
        _ place: Admission.Place,
        _ head: RequestHead
    ) async throws -> ServerAnswer {
        // A server that keeps results on disk alone sends the file without reading it into memory of its own.
        if self.configuration.loader.memory.encodedCostLimit == 0,
            let file = try await self.loader.encodedFile(for: request, as: encoding)
        {
            return self.answer(with: .file(file), of: route, to: head)
        }
        let response = try await self.loader.encoded(request, as: encoding)
        if response.source != .memory {
            self.metrics.record(response.metrics)
            let metrics = response.metrics
            if metrics.encode > .zero { place.didMakeImage(in: metrics.decode + metrics.transform + metrics.encode) }
        }
        return self.answer(with: Representation(response), of: route, to: head)
    }

    /// Returns the fallback image in place of an error, if there is one.
    private func fallbackAnswer(
        for route: ImageRoute,
        after error: LoadError,
        _ head: RequestHead
    ) async -> ServerAnswer? {
        guard let url = self.configuration.images.fallback, error.code.category != .busy,
            case .encode(var request, let encoding) = route.work
        else { return nil }
        // The URL is the configuration's, and may be a file or in an inner network.
        request.source = ImageRequest.Source(url: url)
        request.transport.networkPolicy = .unrestricted
        guard let response = try? await self.loader.encoded(request, as: encoding) else { return nil }
        return self.fallbackAnswer(Representation(response), for: route, after: error)
    }
}
