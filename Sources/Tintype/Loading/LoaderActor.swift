public import FoundationEssentials
public import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading
public import TintypeImage
import TintypeRendering

/// Loads pictures: from memory, from disk, or from their origin, once however many ask.
///
/// A loader is shared: make one for the process. Loads of the same picture that overlap are
/// one load. Cancelling the task that awaits a load takes only that caller out; when the last
/// one leaves, the load ends, down to its connection.
///
/// A picture in memory is returned without suspending and without a hop. Everything else is
/// coordinated here, in short steps: bytes, pixels, files and sockets are touched on the
/// executors of their own parts.
public actor LoaderActor {
    /// The cache: a ``CacheActor``, unless the configuration has one of its own.
    public nonisolated let cache: any ImageCache
    /// The downloads.
    public nonisolated let downloads: DownloadActor

    /// The frames of all animations that this loader opened.
    nonisolated let framePool: FramePool
    nonisolated let services: LoadServices
    private nonisolated let policy: CachePolicy
    /// The requests that the memory answers without a look at the entry: none where they have to be changed first.
    nonisolated let unchecked: CachingPlan.UncheckedMemory

    /// Which loads there are, and what waits for them.
    private var table = LoadTable()
    private var flights: [LoadTable.ID: Flight] = [:]
    private var tasks: [LoadTable.ID: Task<Void, Never>] = [:]
    private var waiters: [LoadTable.ID: LoadWaiter] = [:]
    /// The waiters of revalidations, behind which there is no caller.
    private var revalidations: Set<LoadTable.ID> = []
    private var stores: Set<LoadTable.ID> = []
    /// What tells fetchers of another urgency: no caller waits until one has heard.
    private var notices: [LoadTable.ID: Task<Void, Never>] = [:]
    private var isShutDown = false

    /// Creates a loader.
    ///
    /// Threads start with the first work that needs them.
    public init(configuration: Configuration = Configuration()) {
        var configuration = configuration.negotiating
        let activities = ActivityCenter(configuration.observers)
        let handler = configuration.disk?.storeErrorHandler
        configuration.disk?.storeErrorHandler = { error in
            handler?(error)
            activities.tell(storing: error)
        }
        let cache =
            configuration.cache
            ?? CacheActor(
                memory: MemoryCache(configuration.memory),
                disk: configuration.disk.map { DiskCache($0) }
            )
        let downloads = DownloadActor(configuration: configuration.downloads, hooks: configuration.downloadHooks)
        self.framePool = FramePool(byteLimit: configuration.framePoolByteLimit)
        self.cache = cache
        self.downloads = downloads
        self.policy = configuration.cachePolicy
        let lanes = GatedLanes(
            DecodeLanes(count: configuration.laneCount),
            gate: WeightedGate(capacity: configuration.decodingMemory / 4 * 3),
            usesIdleLanes: configuration.usesIdleLanes
        )
        let services = LoadServices(
            configuration: configuration,
            cache: cache,
            downloads: downloads,
            decoding: DecodePipeline(
                registry: configuration.coders,
                lanes: lanes,
                previewGate: WeightedGate(capacity: configuration.decodingMemory / 4),
                limits: configuration.limits
            ),
            encoding: EncodePipeline(registry: configuration.coders, lanes: lanes),
            activities: activities
        )
        self.services = services
        self.unchecked =
            services.hooks.changeRequests ? [] : CachingPlan.UncheckedMemory(acceptedUnder: configuration.cachePolicy)
    }

    deinit {
        // Each caller keeps the loader: what is left is what nothing waits for.
        for task in self.tasks.values { task.cancel() }
        for notice in self.notices.values { notice.cancel() }
        self.services.activities.finish()
    }

    // MARK: Loading

    /// The picture at `url`, upright, at full size.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(for url: URL) async throws -> Image {
        // The key alone takes a third of the time of a request. Every key in memory is of a canonical URL, so that one
        // of the text as it is finds nothing that it should not; of another spelling the request's key finds it.
        if self.unchecked.contains(.ofTrustingLoaders),
            let image = self.cache.memoryImage(for: RequestKeys.verbatim(url))
        {
            if self.services.activities.isObserved { self.noteMemoryHit(ImageRequest(url: url)) }
            return image
        }
        return try await self.image(for: ImageRequest(url: url))
    }

    /// The picture that `request` describes.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(for request: ImageRequest) async throws -> Image {
        if let image = request.lookUnchecked(accepting: self.unchecked, { self.cache.memoryImage(for: $0) }) {
            if self.services.activities.isObserved { self.noteMemoryHit(request) }
            return image
        }
        guard !self.services.hooks.changeRequests else {
            return try await self.response(for: request).image
        }
        try request.check(fetchesAnyScheme: self.services.fetchesAnyScheme)
        if request.options.contains(.preloadAllFrames) { return try await self.response(forAdmitted: request).image }
        // Without the response around it, whose parts are copied on the way.
        guard let (entry, decision) = self.services.memoryEntry(for: request) else {
            return try await self.load(request, observer: nil).image
        }
        if self.services.activities.isObserved { self.noteMemoryHit(request) }
        if decision == .serveWhileRevalidating { await self.revalidate(.picture, request) }
        return entry.image
    }

    /// Tells of a picture that was found in memory, which the cache has counted.
    @inline(never)
    private nonisolated func noteMemoryHit(_ request: ImageRequest) {
        self.services.activities.tell(.hit(.memory), .picture, request)
    }

    /// The picture that `request` describes, and where it came from.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func response(for request: ImageRequest) async throws -> ImageResponse {
        try await self.response(forAdmitted: self.admitted(request))
    }

    /// The same for a request that was admitted.
    nonisolated func response(forAdmitted request: ImageRequest) async throws -> ImageResponse {
        if let response = try await self.memoryResponse(for: request) { return response }
        return try await self.load(request, observer: nil)
    }

    /// The encoded bytes that `request` names; never decoded.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func data(for request: ImageRequest) async throws -> Data {
        try await self.dataResponse(for: request).data
    }

    /// The encoded bytes that `request` names, and where they came from.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func dataResponse(for request: ImageRequest) async throws -> DataResponse {
        let request = try await self.admitted(request)
        guard !request.alternatives.isEmpty else { return try await self.dataResponse(forAdmitted: request) }
        return try await self.firstSuccess(of: request) { source, isFirst in
            isFirst ? try await self.dataResponse(forAdmitted: source) : try await self.dataResponse(for: source)
        }.value
    }

    /// The same for a request that was admitted.
    nonisolated func dataResponse(forAdmitted request: ImageRequest) async throws -> DataResponse {
        do {
            try Task.checkCancellation()
            // What is there without waiting needs no flight.
            let ready = self.services.store.readyEntry(for: request)
            if let response = try self.services.reuse(ready, for: request, mayServeStale: true) {
                self.services.activities.send(.hit(.disk), .bytes, request, of: nil)
                if response.revalidation == .inBackground { await self.revalidate(.bytes, request) }
                return response
            }
            let response = try await self.reference.bytes(
                for: request,
                mayServeStale: true,
                interest: .caller(self.services.demand(of: request))
            )
            if response.revalidation == .inBackground { await self.revalidate(.bytes, request) }
            return response.finished(for: request)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// The events of loading `request`: the cached picture under ``CachePolicy/revalidate``, progress,
    /// previews if they are asked for, then the picture.
    public nonisolated func events(for request: ImageRequest) -> LoadEvents {
        LoadEvents { report in
            let request = try await self.admitted(request)
            if let response = try await self.memoryResponse(for: request) { return response }
            return try await self.load(request, reporting: report)
        }
    }

    /// Loads what the memory does not answer, and shows what happens on the way.
    nonisolated func load(
        _ request: ImageRequest,
        reporting report: @escaping @Sendable (LoadUpdate) -> Void
    ) async throws -> ImageResponse {
        let plan = request.cachingPlan(loaderPolicy: self.policy)
        if plan.policy == .revalidate, let cached = try await self.cachedResponse(for: request) {
            report(.cached(cached))
        } else if let preview = self.services.keptPreview(for: request) {
            report(.preview(preview))
        }
        return try await self.load(request, observer: .caller(report))
    }

    /// The request to load, where it makes sense.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    nonisolated func admitted(_ request: ImageRequest) async throws -> ImageRequest {
        var request = request
        if self.services.hooks.changeRequests { request = try await self.services.hooks.processed(request) }
        try request.check(fetchesAnyScheme: self.services.fetchesAnyScheme)
        return request
    }

    /// The picture, if it is in memory and may be served; where it is stale, it is revalidated in the background.
    ///
    /// Where its bytes are wanted as well, a flight brings both.
    nonisolated func memoryResponse(for request: ImageRequest) async throws -> ImageResponse? {
        guard let response = self.services.memoryResponse(for: request), !request.options.contains(.keepData) else {
            return nil
        }
        if self.services.activities.isObserved { self.noteMemoryHit(request) }
        if response.revalidation == .inBackground { await self.revalidate(.picture, request) }
        return try await self.animated(response, for: request)
    }

    /// The response as its request wants it of an animation.
    private nonisolated func animated(
        _ response: ImageResponse,
        for request: ImageRequest
    ) async throws -> ImageResponse {
        if request.options.contains(.firstFrameOnly) { return response.still }
        if request.options.contains(.preloadAllFrames) { try await self.preloadFrames(of: response, for: request) }
        return response
    }

    /// The response with the encoded bytes where the request wants them.
    ///
    /// Its flight has brought them, unless they were not to be had, or the request joined at the very end.
    private nonisolated func completed(
        _ response: ImageResponse,
        for request: ImageRequest
    ) async throws -> ImageResponse {
        guard request.options.contains(.keepData), response.data == nil else { return response }
        let bytes = try await self.reference.bytes(
            for: request,
            mayServeStale: true,
            interest: .caller(self.services.demand(of: request))
        )
        guard bytes.metadata.bodyDigest != response.metadata.bodyDigest else { return response.with(data: bytes.data) }
        // Another body has come since the picture was made.
        let picture = try await self.services.decode(bytes, for: request)
        return ImageResponse(picture, bytes)
    }

    private nonisolated func load(_ request: ImageRequest, observer: Flight.Observer?) async throws -> ImageResponse {
        guard !request.alternatives.isEmpty || request.fallback != nil else {
            return try await self.loadAlone(request, observer: observer)
        }
        do {
            let result = try await self.firstSuccess(of: request) { source, isFirst in
                if isFirst { return try await self.loadAlone(source, observer: observer) }
                let source = try await self.admitted(source)
                if let response = try await self.memoryResponse(for: source) { return response }
                return try await self.load(source, observer: observer)
            }
            var response = result.value
            response.alternative = result.alternative
            return response
        } catch let error as LoadError {
            guard let fallback = request.fallback, error.code != .notModified else { throw error }
            var response = ImageResponse(image: fallback, source: .fallback, metadata: EntryMetadata())
            response.failure = error
            return response
        }
    }

    /// What `load` gives for the request, or for the first of its alternatives for which it gives anything.
    ///
    /// - Throws: `LoadError` with all attempts, where there are several; `CancellationError` at once.
    nonisolated func firstSuccess<Value>(
        of request: ImageRequest,
        _ load: (_ request: ImageRequest, _ isFirst: Bool) async throws -> Value
    ) async throws -> (value: Value, alternative: Int?) {
        var attempts: [LoadAttempt] = []
        do {
            return (try await load(request, true), nil)
        } catch let error as LoadError {
            guard !request.alternatives.isEmpty, !Self.isFinal(error) else { throw error }
            attempts.append(LoadAttempt(request: request, error: error))
        }
        for (index, alternative) in request.alternatives.enumerated() {
            try Task.checkCancellation()
            do {
                return (try await load(alternative, false), index)
            } catch let error as LoadError {
                guard !Self.isFinal(error) else { throw error }
                attempts.append(LoadAttempt(request: alternative, error: error))
            }
        }
        let last = attempts[attempts.count - 1].error
        var error = LoadError(
            code: last.code,
            message: "All \(attempts.count) sources failed. " + Self.summary(of: attempts),
            underlyingError: last.underlyingError
        )
        error.attempts = attempts
        throw error
    }

    /// Whether no other source is tried: the copy that the caller has is current, or none will do better.
    private static func isFinal(_ error: LoadError) -> Bool { error.code == .notModified || error.code == .shutDown }

    /// What the attempts say, each of its URL, and what all have in common once.
    private static func summary(of attempts: [LoadAttempt]) -> String {
        var isAnyRemembered = false
        var messages = attempts.map { attempt in
            var message = attempt.error.message
            if message.hasSuffix(FailureMemory.note) {
                message.removeLast(FailureMemory.note.count)
                isAnyRemembered = true
            }
            let url = attempt.request.displayURL
            return message.contains(url) ? message : "\(url): \(message)"
        }
        if isAnyRemembered { messages[messages.count - 1] += FailureMemory.note }
        return messages.joined(separator: " ")
    }

    private nonisolated func loadAlone(
        _ request: ImageRequest,
        observer: Flight.Observer?
    ) async throws -> ImageResponse {
        do {
            let response = try await self.reference.picture(
                for: request,
                mayServeStale: true,
                interest: .caller(self.services.demand(of: request)),
                observer: observer
            )
            if response.revalidation == .inBackground { await self.revalidate(.picture, request) }
            let complete = try await self.completed(response, for: request)
            return try await self.animated(complete, for: request).finished(for: request)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// What the caches hold, whatever its age.
    private nonisolated func cachedResponse(for request: ImageRequest) async throws -> ImageResponse? {
        var request = request
        request.cachePolicy = .cacheOnly
        request.alternatives = []
        request.fallback = nil
        do {
            return try await self.load(request, observer: nil)
        } catch is LoadError {
            return nil
        }
    }

    // MARK: Coordination

    /// Ends every load and revalidation; each caller gets a `CancellationError`.
    public func cancelAll() {
        self.perform(self.table.leaveAll())
    }

    /// Ends the loader: refuses new loads, ends those under way, and returns when nothing of it runs any more.
    ///
    /// Pictures and bytes that were to be stored are on disk then. What can be had without waiting is still given out;
    /// whatever takes a load fails with `LoadError.Code.shutDown`. The first bytes of downloads that were broken off are on
    /// disk, and the connections and threads of the downloads are given back. The threads of decode lanes and of the
    /// cache go with the last reference to them: what was loaded may still be encoded, and a cache may be another
    /// loader's too.
    ///
    /// - Parameter finishesLoads: Whether loads under way come to their ends; otherwise their callers get a
    ///   `CancellationError`.
    public func shutdown(finishesLoads: Bool = false) async {
        self.isShutDown = true
        if !finishesLoads { self.cancelAll() }
        // Loads that end may begin others, and stores.
        while let task = self.tasks.values.first { await task.value }
        await self.services.decoding.previews.waitForAll()
        for notice in self.notices.values { notice.cancel() }
        while let notice = self.notices.values.first { await notice.value }
        await self.cache.waitForPendingStores()
        await self.downloads.shutdown()
        self.services.activities.finish()
    }

    /// Returns when all that was to be stored before the call is on disk, or is known not to be storable.
    public func waitForPendingStores() async {
        let tasks = self.tasks.filter { self.stores.contains($0.key) }.values
        for task in tasks { await task.value }
        await self.cache.waitForPendingStores()
    }

    /// Forgets the failures that are remembered: what failed is asked for again.
    public nonisolated func forgetFailures() {
        self.services.failures.forgetAll()
        self.services.undecodable.forgetAll()
    }

    // MARK: Observing

    /// What happens in the loader from now on.
    ///
    /// - Parameter bufferSize: The activities that are kept for an observer that does not keep up; it then loses the
    ///   oldest.
    /// - Returns: A stream of its own, which ends with the loader, or with its shutdown.
    public nonisolated func activity(bufferSize: Int = 1_024) -> AsyncStream<LoadActivity> {
        self.services.activities.makeStream(limit: bufferSize)
    }

    /// What the loader has done so far, and what it holds.
    public nonisolated func statistics() async -> LoaderStatistics {
        var statistics = self.services.activities.counters.statistics
        statistics.cache = await self.cache.statistics()
        statistics.downloads = await self.downloads.counters
        return statistics
    }

    /// The number of loads of pictures in flight.
    public var loadCount: Int { self.table.flightCount(of: .picture) }

    /// The number of callers that wait for those loads.
    public var waiterCount: Int { self.table.waiterCount(of: .picture) }

    /// The number of callers and loads of pictures that wait for bytes.
    var bytesWaiterCount: Int { self.table.waiterCount(of: .bytes) }

    /// The number of callers that wait for encoded pictures.
    var encodedWaiterCount: Int { self.table.waiterCount(of: .encoded) }

    /// The number of loads of pictures that wait for a decode that they share.
    var decodeWaiterCount: Int { self.table.waiterCount(of: .decode) }

    /// The number of sources that are loaded, or whose pictures are remembered.
    var sourceCount: Int { self.table.sourceCount }

    /// The number of waits and flights so far: a wait enters the actor to join, and a flight to end, which has one task.
    var stepCount: LoadTable.ID { self.table.lastID }

    /// The number of loads of a source that wait until they may ask its origin.
    func queueCount(of request: ImageRequest) -> Int {
        self.table.queueCount(
            of: LoadTable.Product(.bytes, request, rules: self.services.rules, mayServeStale: true).origin
        )
    }

    /// Returns when the revalidations in the background that were begun before the call have ended.
    public func waitForRevalidations() async {
        let tasks = self.revalidations.compactMap { self.table.flight(of: $0) }.compactMap { self.tasks[$0] }
        for task in tasks { await task.value }
    }

    // MARK: The table

    /// What a flight does, off the actor.
    typealias Work = @Sendable (Flight) async throws -> FlightResult

    /// The loader, for those that must not keep it.
    nonisolated var reference: LoaderReference { LoaderReference(self) }

    /// Lets a caller or a flight wait for `product`, which `work` makes unless it is being made; that is noted in the
    /// flight then, where there is a `request` to tell of.
    ///
    /// - Throws: `LoadError.Code.shutDown` for a caller that is too late.
    func join(
        _ product: LoadTable.Product,
        _ interest: LoadTable.Interest,
        observer: Flight.Observer? = nil,
        noted request: ImageRequest? = nil,
        wish: DecodeWish? = nil,
        work: @escaping Work
    ) throws(LoadError) -> LoadWaiter {
        if self.isShutDown, case .caller = interest { throw .shutDown }
        let id = self.table.makeID()
        let actions = self.table.join(product, waiter: id, interest: interest)
        let joined = actions.lazy.compactMap { if case .wait(let flight) = $0 { self.flights[flight] } else { nil } }
            .first
        // Before the flight can end: its callers tell of themselves, and may be late.
        if let joined, let request {
            self.services.activities.note(.joined, LoadActivity.Product(product.kind), request, of: joined)
        }
        let waiter = LoadWaiter(id: id, joinedFlight: joined, wish: wish)
        self.waiters[waiter.id] = waiter
        var others: [LoadTable.Action] = []
        for action in actions {
            switch action {
            case .start(let id, let briefing):
                let flight = Flight(id: id, briefing)
                if let observer { flight.add(observer, for: waiter.id) }
                self.flights[id] = flight
                self.start(flight, product, work)
            case .wait(let id): if let observer { self.flights[id]?.add(observer, for: waiter.id) }
            default: others.append(action)
            }
        }
        self.perform(others)
        return waiter
    }

    /// Takes out a waiter whose task was cancelled; does nothing for one that has its result.
    func leave(_ waiter: LoadWaiter) {
        self.perform(self.table.leave(waiter.id))
    }

    private func start(_ flight: Flight, _ product: LoadTable.Product, _ work: @escaping Work) {
        let store = self.services.store
        self.tasks[flight.id] = Task(name: "load") { @concurrent [weak self] in
            let result: Result<FlightResult, any Error>
            do {
                result = .success(try await work(flight))
            } catch {
                result = .failure(error)
            }
            // What a newer body makes obsolete is gone before any caller has that body.
            guard let obsolete = await self?.conclude(flight, product, result), !obsolete.isEmpty else { return }
            await store.removePictures(obsolete)
            _ = await self?.conclude(flight, product, result, isCleared: true)
        }
    }

    /// Ends a flight whose work is done, unless something has to go from the cache before and has not (`isCleared`).
    ///
    /// - Returns: The pictures that have to go; the flight has not ended then.
    private func conclude(
        _ flight: Flight,
        _ product: LoadTable.Product,
        _ result: Result<FlightResult, any Error>,
        isCleared: Bool = false
    ) -> [CacheKey: CacheTiers] {
        let obsolete = isCleared ? [:] : self.obsolete(by: flight, product, result)
        if obsolete.isEmpty { self.finish(flight, result) }
        return obsolete
    }

    private func obsolete(
        by flight: Flight,
        _ product: LoadTable.Product,
        _ result: Result<FlightResult, any Error>
    ) -> [CacheKey: CacheTiers] {
        switch result {
        case .success(.bytes(let response)):
            guard let body = response.metadata.bodyDigest, let arrival = response.arrival else { return [:] }
            let date = response.metadata.responseDate
            let succession = self.table.accept(body, from: flight.id, arrival, date: date)
            if case .fetched = arrival, let fetched = response.fetched {
                for id in self.table.flights(of: product.origin) { self.flights[id]?.note(fetched) }
            }
            for id in succession.flights { self.flights[id]?.note(newestBody: body) }
            return succession.obsolete
        case .success(.picture(let response, isKept: true)):
            return self.obsolete(by: flight, product, madeOf: response.metadata.bodyDigest)
        case .success(.encoded(let response, isKept: true)):
            return self.obsolete(by: flight, product, madeOf: response.metadata.bodyDigest)
        case .success(.stored(let key, madeOf: let body?)):
            return flight.admits(body) ? [:] : [key: .all]
        case .success, .failure: return [:]
        }
    }

    /// What a flight has kept of a body that is not the newest.
    private func obsolete(
        by flight: Flight,
        _ product: LoadTable.Product,
        madeOf body: UInt64?
    ) -> [CacheKey: CacheTiers] {
        guard let body, !self.table.keep(product.key, madeOf: body, by: flight.id) else { return [:] }
        return [product.key: LoadTable.tiers(of: product.key, source: product.source)]
    }

    private func finish(_ flight: Flight, _ result: Result<FlightResult, any Error>) {
        var (result, parts) = (result, [LoadTable.ID: DecodeSharing.Part]())
        if case .success(.bytes(var response)) = result {
            response.flightID = flight.id
            result = .success(.bytes(response))
            parts = self.parts(in: response, of: flight.id)
        }
        self.tasks[flight.id] = nil
        self.stores.remove(flight.id)
        self.flights[flight.id] = nil
        self.perform(self.table.finish(flight.id), result, parts)
    }

    /// The parts of the waiters that are going to decode the bytes of a flight, if there are several.
    private func parts(
        in response: DataResponse,
        of flight: LoadTable.ID
    ) -> [LoadTable.ID: DecodeSharing.Part] {
        let waiters = self.table.waiters(of: flight)
        guard waiters.count > 1, !response.data.isEmpty else { return [:] }
        let body = response.metadata.bodyDigest
        let requests = waiters.reduce(into: [LoadTable.ID: RenderingRequest]()) { requests, waiter in
            guard let wish = self.waiters[waiter]?.wish, body.map({ !wish.bodies.contains($0) }) ?? true else { return }
            requests[waiter] = wish.request.rendering
        }
        return DecodeSharing.parts(of: response.data, for: requests)
    }

    /// Lets a flight wait until it may ask the origin; `nil` where it may at once.
    ///
    /// - Throws: `CancellationError` for a flight that was abandoned.
    func requestTurn(of flight: Flight) throws -> LoadWaiter? {
        guard self.table.demand(of: flight.id) != nil else { throw CancellationError() }
        let waiter = LoadWaiter(id: self.table.makeID())
        guard let actions = self.table.requestTurn(of: flight.id, waiter: waiter.id) else { return nil }
        self.waiters[waiter.id] = waiter
        self.perform(actions)
        return waiter
    }

    private func perform(
        _ actions: [LoadTable.Action],
        _ result: Result<FlightResult, any Error> = .failure(CancellationError()),
        _ parts: [LoadTable.ID: DecodeSharing.Part] = [:]
    ) {
        for action in actions {
            switch action {
            case .start, .wait: break
            case .change(let id, let demand):
                guard let flight = self.flights[id], let fetch = flight.change(demand) else { continue }
                self.tell(fetch, of: flight)
            case .cancel(let id):
                let keepsNothing = self.flights[id]?.abandon() ?? false
                // It takes itself out when it has ended.
                self.tasks[id]?.cancel()
                if keepsNothing { self.perform(self.table.passTurn(of: id)) }
            case .grant(let waiter): self.waiters.removeValue(forKey: waiter)?.end(with: .success(.turn))
            case .resume(let waiter):
                self.revalidations.remove(waiter)
                let own = parts[waiter].map { part in result.map { $0.shared(part) } }
                self.waiters.removeValue(forKey: waiter)?.end(with: own ?? result)
            case .dismiss(let waiter, let id):
                self.revalidations.remove(waiter)
                if let id { self.flights[id]?.removeObserver(of: waiter) }
                self.waiters.removeValue(forKey: waiter)?.end(with: .failure(CancellationError()))
            }
        }
    }

    /// Makes a fetch as urgent as it is then: asked for there, since two changes may arrive out of order.
    private func tell(_ fetch: Fetch, of flight: Flight) {
        let id = self.table.makeID()
        self.notices[id] = Task(name: "urgency") { @concurrent [weak self] in
            await fetch.fetcher.priorityDidChange(of: fetch.request) { flight.demand.priority }
            await self?.forgetNotice(id)
        }
    }

    private func forgetNotice(_ id: LoadTable.ID) {
        self.notices[id] = nil
    }

    // MARK: What nothing waits for

    /// Finds out in the background whether what is cached is current, unless a load does that already.
    func revalidate(_ kind: LoadTable.Product.Kind, _ request: ImageRequest) {
        let product = LoadTable.Product(kind, request, rules: self.services.rules, mayServeStale: false)
        let reference = self.reference
        self.revalidate(product, self.services.demand(of: request)) { flight in
            try await reference.make(kind, request, mayServeStale: false, flight)
        }
    }

    /// The same for an encoded picture.
    func revalidate(_ request: ImageRequest, as encoding: PictureEncoding, _ caching: CacheUse) {
        let rules = self.services.rules
        let product = LoadTable.Product(encoding, of: request, caching, rules: rules, mayServeStale: false)
        let reference = self.reference
        self.revalidate(product, self.services.demand(of: request, caching)) { flight in
            try await reference.makeEncoded(request, encoding, caching, mayServeStale: false, flight)
        }
    }

    private func revalidate(_ product: LoadTable.Product, _ demand: LoadTable.Demand, work: @escaping Work) {
        guard !self.table.makes(product) else { return }
        // What asks next finds what came of it; an error leaves what is stale as it was.
        if let joined = try? self.join(product, .caller(demand), work: work) { self.revalidations.insert(joined.id) }
    }

    /// Stores a picture of `source` in the background.
    func store(_ key: CacheKey, of source: CacheKey, _ work: @escaping Work) {
        let product = LoadTable.Product(kind: .store(self.table.makeID()), key: key, source: source, origin: source)
        // Of a loader that has been shut down too: what was made is not lost.
        let joined = try? self.join(product, .background, work: work)
        if let joined, let id = self.table.flight(of: joined.id) { self.stores.insert(id) }
    }
}
