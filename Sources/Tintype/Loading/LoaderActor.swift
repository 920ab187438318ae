// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCaching
import TintypeConcurrency
import TintypeDownloading
import TintypeFlights
public import TintypeImage
import TintypeRendering
import TintypeRequests

/// Loads images from memory, from disk, or from their origin, once for all callers.
///
/// Create one loader for the process and share it. Overlapping loads of the same image are one load. Cancelling the task that
/// awaits a load ends only that caller's wait. When the last caller leaves, the load is cancelled, down to its connection.
///
/// The loader returns an image in memory without suspending and without a hop. The actor coordinates everything else in
/// short steps. Bytes, pixels, files and sockets belong to executors of their own.
public actor LoaderActor {
    /// The cache: the memory tier and the byte tiers.
    public nonisolated let cache: CacheActor
    /// The downloader.
    public nonisolated let downloads: DownloadActor

    /// The frames of all animations that this loader opened.
    nonisolated let framePool: FramePool
    nonisolated let services: LoadServices
    nonisolated let memory: MemoryFastPath
    /// Tells a read without a flight whether an origin has sent a body since the read began.
    nonisolated let changes = KeyChanges()
    /// Lets a read without a flight answer without entering the actor.
    nonisolated let admittedBodies = AdmittedBodies()

    private var flights: Flights
    private var isShutDown = false

    /// Creates a loader.
    ///
    /// Threads start with the first work that needs them.
    ///
    /// ```swift
    /// let loader = LoaderActor()
    /// let image = try await loader.image(for: url)
    /// ```
    public init(configuration: Configuration = Configuration()) {
        var configuration = configuration.negotiating
        let activities = ActivityCenter(configuration.observers)
        let handler = configuration.disk?.storeErrorHandler
        configuration.disk?.storeErrorHandler = { error in
            handler?(error)
            activities.tell(storing: error)
        }
        let disks: [any ByteTier] = configuration.disk.map { [DiskCache($0)] } ?? []
        let cache =
            configuration.cache
            ?? CacheActor(
                memory: MemoryCache(configuration.memory),
                tiers: disks + configuration.tiers,
                storeErrorHandler: { activities.tell(storing: $0) }
            )
        let downloads = DownloadActor(
            configuration: configuration.downloads,
            hooks: DownloadHooks(checkRedirect: configuration.checkRedirect)
        )
        self.framePool = FramePool(byteLimit: configuration.framePoolByteLimit)
        self.cache = cache
        self.downloads = downloads
        let services = LoadServices(
            configuration: configuration,
            cache: cache,
            downloads: downloads,
            activities: activities
        )
        self.services = services
        self.memory = MemoryFastPath(
            memory: cache.memory,
            rules: services.rules,
            hooks: services.hooks,
            activities: activities
        )
        self.flights = Flights(activities, self.changes)
    }

    deinit {
        // Each caller keeps the loader, so no caller waits for the flights that are left.
        for task in self.flights.allTasks { task.cancel() }
        self.services.activities.finish()
    }

    // MARK: Loading

    /// Returns the image at `url`, upright, at full size.
    ///
    /// ```swift
    /// let image = try await loader.image(for: url)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(for url: URL) async throws -> Image {
        if let image = self.memory.uncheckedImage(at: url) { return image }
        return try await self.image(for: ImageRequest(url: url))
    }

    /// Returns the image that `request` describes.
    ///
    /// ```swift
    /// let request = ImageRequest(url: url, thumbnail: .fit(width: 400, height: 400))
    /// let thumbnail = try await loader.image(for: request)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(for request: ImageRequest) async throws -> Image {
        if let image = self.memory.uncheckedImage(for: request) { return image }
        guard !self.services.hooks.changeRequests else {
            return try await self.response(for: request).image
        }
        try request.check(fetchesAnyScheme: self.services.origins.fetchesAnyScheme)
        if request.options.contains(.preloadAllFrames) { return try await self.response(forAdmitted: request).image }
        // Without a response around the image, because copying its parts takes time.
        guard let (entry, decision) = self.memory.entry(for: request) else {
            return try await ImageCall(loader: self, request: request).response().image
        }
        self.memory.noteHit(request)
        if decision == .serveWhileRevalidating { await self.revalidateImage(of: request) }
        return entry.image
    }

    /// Returns the image that `request` describes, with its source and metadata.
    ///
    /// ```swift
    /// let response = try await loader.response(for: request)
    /// print(response.image.width, response.source)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func response(for request: ImageRequest) async throws -> ImageResponse {
        try await self.response(forAdmitted: self.admitted(request))
    }

    /// Returns the response for a request from ``admitted(_:)``.
    nonisolated func response(forAdmitted request: ImageRequest) async throws -> ImageResponse {
        if let response = try await self.memoryResponse(for: request) { return response }
        return try await ImageCall(loader: self, request: request).response()
    }

    /// Returns the encoded bytes that `request` names, without decoding them.
    ///
    /// ```swift
    /// let data = try await loader.data(for: request)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func data(for request: ImageRequest) async throws -> Data {
        try await self.dataResponse(for: request).data
    }

    /// Returns the encoded bytes that `request` names, with their source and metadata.
    ///
    /// ```swift
    /// let response = try await loader.dataResponse(for: request)
    /// print(response.data.count, response.source)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func dataResponse(for request: ImageRequest) async throws -> DataResponse {
        let request = try await self.admitted(request)
        guard !request.alternatives.isEmpty else { return try await self.dataResponse(forAdmitted: request) }
        return try await AlternativeLoad.first(of: request) { source, isFirst in
            isFirst ? try await self.dataResponse(forAdmitted: source) : try await self.dataResponse(for: source)
        }.value
    }

    /// Returns the bytes for a request from ``admitted(_:)``.
    nonisolated func dataResponse(forAdmitted request: ImageRequest) async throws -> DataResponse {
        do {
            try Task.checkCancellation()
            // Bytes that the disk has ready need no flight.
            let ready = self.services.sources.readyEntry(for: request)
            if let body = try self.services.sources.reuse(ready, for: request, mayServeStale: true) {
                self.services.activities.send(.hit(.disk, tier: body.tier), .bytes, request, of: nil)
                if body.revalidation == .inBackground { await self.revalidateBytes(of: request) }
                return DataResponse(body, for: request)
            }
            let body = try await self.reference.bytes(
                for: request,
                mayServeStale: true,
                interest: .caller(Demand(request, self.services.rules))
            )
            if body.revalidation == .inBackground { await self.revalidateBytes(of: request) }
            return DataResponse(body, for: request)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// Returns the events of loading `request`: the cached image under ``CachePolicy/revalidate``, progress, previews if the
    /// request asks for them, then the image.
    ///
    /// ```swift
    /// for try await event in loader.events(for: request) {
    ///     switch event {
    ///     case .progress(let progress): print(progress.fractionCompleted ?? 0)
    ///     case .preview(let image): show(image)
    ///     case .cached(let response), .finished(let response): show(response.image)
    ///     }
    /// }
    /// ```
    public nonisolated func events(for request: ImageRequest) -> LoadEvents {
        LoadEvents { report in
            let request = try await self.admitted(request)
            if let response = try await self.memoryResponse(for: request) { return response }
            return try await ImageCall(loader: self, request: request).response(reporting: report)
        }
    }

    /// The events of a load that the memory could not answer, of a request from ``admitted(_:)``.
    package nonisolated func events(forMissed request: ImageRequest) -> LoadEvents {
        LoadEvents { try await ImageCall(loader: self, request: request).response(reporting: $0) }
    }

    /// Returns the request as the loader's hooks change it.
    ///
    /// - Throws: `LoadError` if the request makes no sense; `CancellationError` when the task is cancelled.
    package nonisolated func admitted(_ request: ImageRequest) async throws -> ImageRequest {
        var request = request
        if self.services.hooks.changeRequests { request = try await self.services.hooks.processed(request) }
        try request.check(fetchesAnyScheme: self.services.origins.fetchesAnyScheme)
        return request
    }

    /// Returns the image if it is in memory and may be served.
    ///
    /// The loader revalidates a stale one in the background. Returns `nil` for a request that asks for the bytes as well,
    /// because a flight loads both.
    package nonisolated func memoryResponse(for request: ImageRequest) async throws -> ImageResponse? {
        guard let (entry, decision) = self.memory.entry(for: request), !request.options.contains(.keepData) else {
            return nil
        }
        self.memory.noteHit(request)
        let response = ImageResponse(entry, decision)
        if response.revalidation == .inBackground { await self.revalidateImage(of: request) }
        return try await self.withFrames(response, for: request)
    }

    /// Asks the origin in the background whether the image in memory is current.
    nonisolated func revalidateImage(of request: ImageRequest) async {
        let plan = self.reference.imagePlan(for: request, mayServeStale: false)
        await self.revalidate(plan, Demand(request, self.services.rules))
    }

    private nonisolated func revalidateBytes(of request: ImageRequest) async {
        let plan = self.reference.bytesPlan(for: request, mayServeStale: false)
        await self.revalidate(plan, Demand(request, self.services.rules))
    }

    // MARK: Coordination

    /// Cancels every load and revalidation.
    ///
    /// Each caller gets a `CancellationError`.
    ///
    /// ```swift
    /// await loader.cancelAll()
    /// ```
    public func cancelAll() {
        self.flights.leaveAll()
    }

    /// Ends the loader: refuses new loads, ends the loads under way, and returns when none of its tasks runs any more.
    ///
    /// By then all pending stores are on disk, and so are the first bytes of unfinished downloads. The downloader has closed
    /// its connections and ended its threads. Afterwards the loader still returns images in memory and bytes that the disk
    /// has ready; all other loads fail with `LoadError.Code.shutDown`. The threads of decode lanes and of the cache end with
    /// the last reference to them, because images may still be encoded, and loaders may share a cache.
    ///
    /// ```swift
    /// await loader.shutdown(finishesLoads: true)
    /// ```
    ///
    /// - Parameter finishesLoads: Whether loads under way run to their ends; otherwise their callers get a
    ///   `CancellationError`.
    public func shutdown(finishesLoads: Bool = false) async {
        self.isShutDown = true
        if !finishesLoads { self.cancelAll() }
        // A load that ends may begin other loads, and stores.
        while let task = self.flights.allTasks.first { await task.value }
        await self.services.decoding.previews.waitForAll()
        self.flights.notices.cancelAll()
        await self.flights.notices.waitForAll()
        await self.cache.waitForPendingStores()
        await self.downloads.shutdown()
        self.services.activities.finish()
    }

    /// Returns when all stores that were pending at the time of the call have ended.
    ///
    /// ```swift
    /// let image = try await loader.image(for: request)
    /// await loader.waitForPendingStores()
    /// ```
    public func waitForPendingStores() async {
        for task in self.flights.storeTasks { await task.value }
        await self.cache.waitForPendingStores()
    }

    /// Forgets the remembered failures, so that later loads ask these origins again.
    ///
    /// ```swift
    /// loader.forgetFailures()
    /// ```
    public nonisolated func forgetFailures() {
        self.services.failures.forgetAll()
        self.services.undecodable.forgetAll()
    }

    // MARK: Observing

    /// Returns a stream of the activity in the loader from now on.
    ///
    /// ```swift
    /// for await activity in loader.activity() { print(activity.loadID, activity.product, activity.kind) }
    /// ```
    ///
    /// - Parameter bufferSize: The number of activities to buffer for a slow observer, which loses the oldest beyond that.
    /// - Returns: A stream of its own, which ends with the loader, or with its shutdown.
    public nonisolated func activity(bufferSize: Int = 1_024) -> AsyncStream<LoadActivity> {
        self.services.activities.makeStream(limit: bufferSize)
    }

    /// Returns the counters of the loader, its cache and its downloads.
    ///
    /// ```swift
    /// let statistics = await loader.statistics()
    /// print(statistics.images.started, statistics.cache.memory.hits, statistics.downloads.receivedBytes)
    /// ```
    public nonisolated func statistics() async -> LoaderStatistics {
        var statistics = self.services.activities.counters.statistics
        statistics.cache = await self.cache.statistics()
        statistics.downloads = await self.downloads.counters
        return statistics
    }

    /// Returns how long the oldest waiting decode or encode has waited: for memory, or for a lane if it has a client.
    package nonisolated func oldestWait(at time: ContinuousClock.Instant) -> Duration {
        self.services.decoding.lanes.oldestWait(at: time)
    }

    /// The number of jobs of clients that run or wait, and the number of jobs that have ended, even if they failed.
    package nonisolated var laneProgress: (active: Int, ended: Int) { self.services.decoding.lanes.progress }

    /// The number of loads of images under way.
    public var loadCount: Int { self.table.flights.flightCount(of: .image) }

    /// The number of callers that wait for those loads.
    public var waiterCount: Int { self.table.flights.waiterCount(of: .image) }

    /// The flights, their turns and their bodies.
    var table: LoadTable { self.flights.table }

    /// Returns false if another body than `body` is known to be the newest of a source.
    func admits(_ body: UInt64, of source: CacheKey) -> Bool { self.table.admits(body, of: source) }

    /// Returns when the background revalidations that began before the call have ended.
    ///
    /// ```swift
    /// await loader.waitForRevalidations()
    /// ```
    public func waitForRevalidations() async {
        for task in self.flights.revalidationTasks { await task.value }
    }

    // MARK: Flights

    /// The loader, for flights that must not keep it alive.
    nonisolated var reference: LoaderReference { LoaderReference(self) }

    /// Lets a caller or a flight wait for a product, and starts the flight that makes it unless it is under way.
    ///
    /// - Throws: `LoadError.Code.shutDown` for a caller after the shutdown.
    func join<Output>(
        _ plan: FlightPlan<Output>,
        _ interest: FlightTable.Interest,
        observer: FlightState.Observer?,
        wish: DecodeWish?
    ) throws(LoadError) -> FlightWaiter<Output> {
        if self.isShutDown, case .caller = interest { throw .shutDown }
        return self.flights.join(plan, interest, observer: observer, wish: wish) { self.task(of: $0, plan) }
    }

    /// Removes a waiter whose task was cancelled; does nothing for one that has its result.
    func leave(_ waiter: FlightTable.ID) {
        self.flights.leave(waiter)
    }

    /// Lets a flight wait for its turn to ask the origin; returns `nil` if it has its turn.
    ///
    /// - Throws: `CancellationError` if the flight was abandoned.
    func requestTurn(of flight: FlightTable.ID) throws(CancellationError) -> FlightWaiter<Void>? {
        try self.flights.requestTurn(of: flight)
    }

    /// Stores an image of `source` in the background, also after a shutdown: no image that was made is lost.
    func store(
        _ key: CacheKey,
        of source: CacheKey,
        _ work: @escaping @Sendable (FlightState) async -> StoredEntry
    ) {
        // Other machines wait for the image until it is stored.
        self.flights.store(key, of: source, self.cache.holdingTurns(work)) { self.task(of: $1, $0) }
    }

    /// Asks the origin in the background whether a product is current, unless a load does that already.
    ///
    /// An error leaves the stale product in the cache.
    func revalidate<Output>(_ plan: FlightPlan<Output>, _ demand: Demand) {
        guard !self.isShutDown else { return }
        self.flights.revalidate(plan, demand) { self.task(of: $0, plan) }
    }

    /// Asks the origin in the background whether an encoded image is current.
    func revalidate(_ request: ImageRequest, as encoding: OutputEncoding, _ caching: CacheUse) {
        let plan = self.reference.encodedPlan(for: request, encoding, caching, mayServeStale: false)
        self.revalidate(plan, self.reference.demand(of: request, caching))
    }

    /// Decides about an image that was read without a flight, and runs `keep` if the cache may have it.
    func admit(
        _ product: FlightTable.Product,
        madeOf body: UInt64,
        since mark: KeyChanges.Mark,
        keep: () -> Void
    ) -> ReadyEncoded.Admission {
        self.isShutDown ? .refused : self.flights.admit(product, madeOf: body, since: mark, keep: keep)
    }

    private func task<Output>(of flight: Flight<Output>, _ plan: FlightPlan<Output>) -> Task<Void, Never> {
        let (store, reference) = (self.services.store, self.reference)
        return Task(name: "load") { @concurrent [weak self] in
            let result = await plan.result(in: flight.state, of: reference)
            // Images that a newer body makes obsolete leave the cache before any caller has that body.
            guard let obsolete = await self?.conclude(flight, plan.product, result), !obsolete.isEmpty else { return }
            await store.removeImages(obsolete, in: flight.state)
            _ = await self?.conclude(flight, plan.product, result, isCleared: true)
        }
    }

    private func conclude<Output>(
        _ flight: Flight<Output>,
        _ product: FlightTable.Product,
        _ result: Result<Output, any Error>,
        isCleared: Bool = false
    ) -> [CacheKey: CacheTiers] {
        self.flights.conclude(flight, product, result, isCleared: isCleared)
    }
}
