// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeCluster
import TintypeConcurrency
import TintypeHTTP
import TintypeImgproxy

/// Answers the requests to a server.
///
/// Its parts answer requests for the page, for purges and for the status.
final class ImageHandler: RequestHandling {
    let status: StatusHandler
    private let loader: LoaderActor
    private let configuration: ImageServer.Configuration
    private let answers: ImageAnswers
    private let admission: Admission
    private let metrics: ServerMetrics
    let purges: PurgeList
    private let uploads: UploadStore?
    private let purging: PurgeHandler
    private let log: AccessLog?
    let routes = RouteTable()
    private let resting = RestingImages()
    private let currentPlanner: Locked<RoutePlanner>
    /// The host names that the listener for images accepts; `nil` accepts all.
    private let hosts: AllowedHosts?
    /// The first byte after the slash of each status path.
    private let statusInitials: [UInt8]

    init(
        configuration: ImageServer.Configuration,
        loader: LoaderActor,
        cluster: Cluster?,
        planner: RoutePlanner,
        purges: PurgeList,
        uploads: UploadStore?,
        metrics: ServerMetrics,
        log: AccessLog?
    ) {
        self.configuration = configuration
        self.loader = loader
        let answers = ImageAnswers(configuration)
        self.answers = answers
        self.metrics = metrics
        self.log = log
        self.uploads = uploads
        self.currentPlanner = Locked(planner)
        self.hosts = configuration.allowedHosts
        let lanes = configuration.loader.laneCount
        self.admission = Admission(
            slotCount: lanes,
            countLimit: configuration.load.queueCount ?? 64 * lanes,
            waitLimit: configuration.load.queueTime
        )
        self.status = StatusHandler(configuration, answers, loader, self.admission, metrics, cluster)
        let statusPaths = ["/health", "/ready", "/metrics"] + [configuration.healthPath].compactMap { $0 }
        self.statusInitials = statusPaths.compactMap { $0.utf8.dropFirst().first }
        self.purges = purges
        self.purging = PurgeHandler(
            secret: configuration.purgeSecret,
            answers: answers,
            purges: purges,
            loader: loader,
            cluster: cluster,
            routes: self.routes
        )
    }

    /// The planner with the current keys and presets, which can change without a restart.
    var planner: RoutePlanner { self.currentPlanner.withLock { $0 } }

    /// Replaces the planner; requests under way keep the old one.
    func setPlanner(_ planner: RoutePlanner) {
        self.currentPlanner.withLock { $0 = planner }
        self.routes.removeAll()
    }

    // MARK: RequestHandling

    func readyAnswer(to request: ServerRequest) -> ServerAnswer? {
        self.misdirection(of: request.head) ?? self.readyAnswer(underAnyHost: request)
    }

    /// Returns the same as ``readyAnswer(to:)``, without a check of the `Host` field.
    func readyAnswer(underAnyHost request: ServerRequest) -> ServerAnswer? {
        let head = request.head
        switch head.method {
        case .get, .head: break
        case .options: return self.answers.answerToOptions(self.methods(of: head))
        case .post where self.takesPost(head): return nil
        case .post, .other: return self.answers.wrongMethod(self.methods(of: head))
        }
        // A health path may be one of the server's own addresses, such as `/.well-known/health`.
        if self.needsWaiting(head.target) { return nil }
        if let answer = self.ownAnswer(to: head) { return answer }
        guard self.isPermitted(head) else { return self.answers.forbidden }
        do throws(RoutePlanner.Refusal) {
            let route = try self.route(for: head)
            if let response = self.readyResponse(of: route, onDisk: false) {
                return self.answers.answer(with: response, of: route, to: head)
            }
            let refusal = route.sharedPlace == nil ? self.admission.refusal(route.origin, request.client) : nil
            // A result from disk must enter the memory tier, unless the server is full.
            if self.keepsResultsOnDisk || refusal != nil, let response = self.readyResponse(of: route, onDisk: true) {
                return self.answers.answer(with: response, of: route, to: head)
            }
            if let rest = self.resting.rest(of: route.address, at: .now) {
                let seconds = Int((rest / .seconds(1)).rounded(.up))
                return self.answers.refusal(503, "The image took too long a moment ago.", retrySeconds: seconds)
            }
            // Refuse at once, because a task would be refused as well.
            if let refusal { return self.answer(to: refusal, of: request.client) }
            return nil
        } catch {
            return self.answers.answer(error)
        }
    }

    func answer(to request: ServerRequest) async -> ServerAnswer {
        // Name the client, because work without a client takes precedence over the work of all clients.
        await WorkClient.$current.withValue(WorkClient(request.client)) { await self.clientAnswer(to: request) }
    }

    private func clientAnswer(to request: ServerRequest) async -> ServerAnswer {
        let head = request.head
        if head.method == .post { return await self.postAnswer(to: request) }
        let path = head.path
        if path == "/metrics", self.configuration.metricsAddress != nil {
            return self.refusal(404, "There are no metrics here.")
        }
        if let answer = await self.status.answer(for: path) { return answer }
        guard self.isPermitted(head) else { return self.answers.forbidden }
        return await self.loadedAnswer(to: request)
    }

    func refusal(ofBodyOf head: RequestHead) -> ServerAnswer? {
        if let refusal = self.misdirection(of: head) { return refusal }
        switch head.method {
        case .get, .head, .options: return nil
        case .post where self.takesPagePost(head): return self.page?.refusal(ofPost: head)
        case .post where self.purging.takesPost(head.path): return self.purging.refusal(of: head)
        case .post, .other: return self.answers.wrongMethod(self.methods(of: head))
        }
    }

    func bodyLimit(of request: RequestHead) -> Int {
        guard request.method == .post, self.takesPost(request) else { return 0 }
        return request.path == "/upload" ? UploadStore.byteLimit : 16 << 10
    }

    func refusal(_ status: Int, _ reason: String) -> ServerAnswer { self.answers.refusal(status, reason) }

    func didEnd(_ exchange: ExchangeRecord) {
        self.metrics.record(exchange)
        guard let log, ImageServer.LogLevel(status: exchange.status).isLogged(at: self.configuration.logLevel) else {
            return
        }
        // Probes and scrapes would fill the log.
        if exchange.status == 200, let target = exchange.head?.target, self.isStatus(target) { return }
        let trace = exchange.head.flatMap { TraceContext($0) }
        log.append(exchange, traceID: trace?.traceID)
    }

    func didEndTurn() {
        self.log?.flush()
    }

    // MARK: Addresses

    /// Returns the refusal of a request whose `Host` field names another server, or `nil`.
    ///
    /// Requests about the state of the server may name any host.
    private func misdirection(of head: RequestHead) -> ServerAnswer? {
        guard let hosts, !hosts.contains(head.host), !self.status.answers(head.path) else { return nil }
        return self.refusal(421, "The Host field names another server. --host permits more names.")
    }

    /// The page to try the server, if the server shows it.
    private var page: PageHandler? {
        self.uploads.map { uploads in
            PageHandler(
                configuration: self.configuration,
                answers: self.answers,
                uploads: uploads,
                signer: self.planner.signer
            )
        }
    }

    /// Whether a target is not an image, and its answer needs a task.
    private func needsWaiting(_ target: String) -> Bool { Self.isInformation(target) || self.isStatus(target) }

    /// Whether a target asks for the status of the server, such as `/health`.
    private func isStatus(_ target: String) -> Bool {
        // The targets of most images differ in this byte.
        guard let initial = target.utf8.dropFirst().first, self.statusInitials.contains(initial) else { return false }
        // Longer paths name images, except for the health path of the configuration.
        let longest = max(64, self.configuration.healthPath?.utf8.count ?? 0)
        let isShort =
            target.utf8.count <= longest || target.utf8.prefix(longest + 1).contains(UInt8(ascii: "?"))
        return isShort && self.status.answers(RequestHead.path(of: target))
    }

    private static func isInformation(_ target: String) -> Bool { target.hasPrefix("/info/") }

    /// Returns the answer to a target that is not an image and needs no task, such as `/`.
    private func ownAnswer(to head: RequestHead) -> ServerAnswer? {
        let target = head.target
        // The target of an image has at least two segments.
        guard
            target.utf8.count < 2 || !target.utf8.dropFirst().prefix(64).contains(UInt8(ascii: "/"))
                || target.hasPrefix("/.")
                || target.utf8.dropFirst().first == UInt8(ascii: "?")
        else { return nil }
        let path = head.path
        switch path {
        case "/": return self.page?.answer(to: head) ?? PageHandler.name
        case _ where self.takesPost(head): return self.answers.wrongMethod(self.methods(of: head))
        case "/favicon.ico": return self.refusal(404, "There is no icon.")
        case _ where path.hasPrefix("/.well-known"): return self.refusal(404, "There is nothing here.")
        default: return nil
        }
    }

    /// Whether a request has the server's secret, if there is one.
    private func isPermitted(_ head: RequestHead) -> Bool {
        self.configuration.secret.map { head.bears($0) } ?? true
    }

    /// The methods that the address of a request answers, as in `Allow`.
    private func methods(of head: RequestHead) -> String {
        self.takesPost(head) ? "POST, OPTIONS" : "GET, HEAD, OPTIONS"
    }

    private func takesPost(_ head: RequestHead) -> Bool {
        self.takesPagePost(head) || self.purging.takesPost(head.path)
    }

    private func takesPagePost(_ head: RequestHead) -> Bool {
        self.uploads != nil && PageHandler.takesPost(head.path)
    }

    private func postAnswer(to request: ServerRequest) async -> ServerAnswer {
        if let page, PageHandler.takesPost(request.head.path) { return page.answer(toPost: request) }
        return await self.purging.answer(to: request)
    }

    // MARK: Images

    /// The trace of the request for which a load began; requests to origins carry it on.
    @TaskLocal static var trace: TraceContext?

    /// Returns the route of a request.
    private func route(for head: RequestHead) throws(RoutePlanner.Refusal) -> ImageRoute {
        let acceptsWebP = self.planner.readsAccept && AcceptedTypes(head.values(for: "Accept")).names("image/webp")
        let key = RouteTable.Key(target: head.target, acceptsWebP: acceptsWebP)
        let now = Int(Date().timeIntervalSince1970)
        if let route = self.routes[key], route.address.options.expires.map({ $0 >= now }) ?? true { return route }
        // Read the count before the planner and the purges, which may change meanwhile.
        let removalCount = self.routes.removalCount
        let route = try self.planner.route(for: head.target, acceptsWebP: acceptsWebP, now: now, purges: self.purges)
        self.routes.insert(route, for: key, madeAfter: removalCount)
        return route
    }

    /// Whether the server stores results only on disk.
    private var keepsResultsOnDisk: Bool { self.configuration.loader.memory.encodedCostLimit == 0 }

    /// Returns the encoded image of a route if the memory, or the disk, can supply it without a wait.
    private func readyResponse(of route: ImageRoute, onDisk isOnDisk: Bool) -> EncodedResponse? {
        guard case .encode(let image, let encoding) = route.work else { return nil }
        return isOnDisk
            ? self.loader.readyEncoded(image, as: encoding) : self.loader.cachedEncoded(image, as: encoding)
    }

    /// Returns the image or the information that a request asks for, or an error.
    private func loadedAnswer(to request: ServerRequest) async -> ServerAnswer {
        let head = request.head
        let isInformation = Self.isInformation(head.target)
        let route: ImageRoute
        do throws(RoutePlanner.Refusal) {
            route = try isInformation ? self.informationRoute(for: head) : self.route(for: head)
        } catch {
            return self.answers.answer(error)
        }
        do {
            let place = try self.place(for: route, request.client)
            defer { withExtendedLifetime(place) {} }
            return try await isInformation
                ? self.informationAnswer(of: route, to: head) : self.imageAnswer(of: route, place, to: head)
        } catch let refusal as Admission.Refusal {
            return self.answer(to: refusal, of: request.client)
        } catch is CancellationError {
            return self.refusal(503, "The request was cancelled.")
        } catch let error as LoadError {
            return self.answers.answer(error, source: route.address.source)
        } catch {
            return self.refusal(500, "The image could not be \(isInformation ? "read" : "made").")
        }
    }

    private func answer(to refusal: Admission.Refusal, of client: ClientAddress) -> ServerAnswer {
        self.answers.answer(refusal, retrySeconds: self.admission.retrySeconds(after: refusal, client, at: .now))
    }

    /// Takes a place for a request, or shares the place of another request for the same image.
    private func place(
        for route: ImageRoute,
        _ client: ClientAddress
    ) throws(Admission.Refusal) -> Admission.Place {
        if let shared = route.sharedPlace { return shared }
        let place = try self.admission.enter(route.origin, client, at: .now)
        route.sharedPlace = place
        return place
    }

    /// Loads the image of a route.
    private func imageAnswer(
        of route: ImageRoute,
        _ place: Admission.Place,
        to head: RequestHead
    ) async throws -> ServerAnswer {
        let start = ContinuousClock.now
        let trace = TraceContext(head)
        do {
            return try await Self.$trace.withValue(trace) {
                try await LaneUse.$current.withValue(place.laneUse) { try await self.load(route, place, head) }
            }
        } catch let error as LoadError {
            guard let answer = await self.fallbackAnswer(for: route, after: error) else { throw error }
            return answer
        } catch let error as CancellationError {
            // Refuse the image for a while if each further attempt would occupy a lane, at least to read its header.
            if place.laneUse.hasBegun,
                start.duration(to: .now) >= self.configuration.load.answerTime - .milliseconds(50)
            {
                self.resting.insert(route.address, at: .now)
            }
            throw error
        }
    }

    private func load(_ route: ImageRoute, _ place: Admission.Place, _ head: RequestHead) async throws -> ServerAnswer {
        switch route.work {
        case .raw(let request):
            // A file that is not an image could be a script that runs with the rights of the server's pages.
            let formats: Set<ImageFormat> = [.jpeg, .png, .gif, .webp]
            let (header, bytes) = try await self.source(of: request)
            guard formats.contains(header.format) else {
                throw LoadError(code: .notAnImage, message: "The source is not an image that the server reads.")
            }
            return try await self.original(bytes, header.format, request, route, head)
        case .skip(let formats, let request, let encoding):
            var source = request
            source.transforms = []
            let (header, bytes) = try await self.source(of: source)
            if formats.contains(header.format) {
                return try await self.original(bytes, header.format, source, route, head)
            }
            // The second load finds the bytes on disk, although the first one loaded them from the origin.
            return try await self.encoded(request, encoding, route, place, head, isNew: bytes.source == .network)
        case .encode(let request, let encoding):
            return try await self.encoded(request, encoding, route, place, head)
        }
    }

    /// Returns the answer with the bytes of a source.
    ///
    /// Sends the file on disk if there is one. Otherwise a slow client would hold a large source in memory.
    private func original(
        _ bytes: DataResponse,
        _ format: ImageFormat,
        _ request: ImageRequest,
        _ route: ImageRoute,
        _ head: RequestHead
    ) async throws -> ServerAnswer {
        var (body, metadata) = (ServerAnswer.Body.data(bytes.data), bytes.metadata)
        if self.configuration.loader.disk != nil, let file = try await self.loader.cachedFile(for: request) {
            (body, metadata) = (.file(file, offset: file.offset, count: file.byteCount), file.metadata)
        }
        return self.answers.answer(with: body, metadata, source: bytes.source, format, of: route, to: head)
    }

    /// Returns the header and the bytes of a source, and checks the limits.
    private func source(of request: ImageRequest) async throws -> (header: ImageHeader, bytes: DataResponse) {
        let response = try await self.loader.dataResponse(for: request)
        self.metrics.record(response.metrics)
        return (try await self.loader.header(of: response.data, for: request), response)
    }

    private func encoded(
        _ request: ImageRequest,
        _ encoding: OutputEncoding,
        _ route: ImageRoute,
        _ place: Admission.Place,
        _ head: RequestHead,
        isNew: Bool = false
    ) async throws -> ServerAnswer {
        // A server that stores results only on disk sends the file, without a copy in its own memory.
        if self.keepsResultsOnDisk,
            case (let file, var response)? = try await self.loader.encodedFile(for: request, as: encoding)
        {
            if isNew { response.source = .network }
            return self.answers.answer(with: response, in: file, of: route, to: head)
        }
        var response = try await self.loader.encoded(request, as: encoding)
        if response.source != .memory {
            self.metrics.record(response.metrics)
            let metrics = response.metrics
            // A load that many requests share has occupied a lane only once.
            if !metrics.isJoined, metrics.encode > .zero {
                place.didMakeImage(in: metrics.decode + metrics.transform + metrics.encode)
            }
        }
        if isNew { response.source = .network }
        return self.answers.answer(with: response, of: route, to: head)
    }

    /// Returns the fallback image instead of an error, if there is one.
    private func fallbackAnswer(for route: ImageRoute, after error: LoadError) async -> ServerAnswer? {
        guard let url = self.configuration.images.fallback, error.code.category != .busy,
            let encoding = route.work.encoding
        else { return nil }
        var request = route.request
        // The configuration names this URL, which may be a file or lead to an internal network.
        request.source = ImageRequest.Source(url: url)
        request.transport.networkPolicy = .unrestricted
        guard let response = try? await self.loader.encoded(request, as: encoding) else { return nil }
        return self.answers.fallbackAnswer(response, for: route, after: error)
    }

    // MARK: Information

    /// Returns the route of the source that an `/info` request names.
    private func informationRoute(for head: RequestHead) throws(RoutePlanner.Refusal) -> ImageRoute {
        let target = String(head.target.dropFirst("/info".utf8.count))
        let now = Int(Date().timeIntervalSince1970)
        return try self.planner.route(for: target, acceptsWebP: false, now: now, purges: self.purges)
    }

    /// Returns the size and the format of a source as JSON.
    private func informationAnswer(of route: ImageRoute, to head: RequestHead) async throws -> ServerAnswer {
        var source = route.request
        source.transforms = []
        let (header, bytes) = try await Self.$trace.withValue(TraceContext(head)) {
            try await self.source(of: source)
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let data = try encoder.encode(ImageInformation(header, byteCount: bytes.data.count))
        return self.answers.answer(withInformation: data, of: route)
    }
}

extension RequestHead {
    /// The target without its query.
    var path: String { Self.path(of: self.target) }

    /// Returns a target without its query, and does not copy a target that has none.
    static func path(of target: String) -> String {
        guard let end = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return target }
        return String(target[..<end])
    }

    /// Whether the request has a secret.
    func bears(_ secret: String) -> Bool {
        ConstantTime.isEqual((self.onlyValue(for: "Authorization") ?? "").utf8, "Bearer \(secret)".utf8)
    }
}
