public import FoundationEssentials
public import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading
public import TintypeImage

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
    nonisolated let decoding: DecodePipeline
    nonisolated let pictures: PicturePipeline
    private nonisolated let policy: CachePolicy
    /// The requests that the memory answers without a look at the entry.
    private nonisolated let unchecked: CachingPlan.UncheckedMemory

    /// Creates a loader.
    ///
    /// Threads start with the first work that needs them.
    public init(configuration: Configuration = Configuration()) {
        let configuration = configuration.negotiating
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
        self.unchecked = CachingPlan.UncheckedMemory(acceptedUnder: configuration.cachePolicy)
        self.decoding = DecodePipeline(
            registry: configuration.coders,
            lanes: DecodeLanes(count: configuration.laneCount),
            gate: WeightedGate(capacity: configuration.decodingMemory / 4 * 3),
            previewGate: WeightedGate(capacity: configuration.decodingMemory / 4),
            limits: configuration.limits
        )
        self.pictures = PicturePipeline(
            configuration: configuration,
            cache: cache,
            downloads: downloads,
            decoding: self.decoding
        )
    }

    deinit {
        self.pictures.endBackground()
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
            return image
        }
        return try await self.image(for: ImageRequest(url: url))
    }

    /// The picture that `request` describes.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(for request: ImageRequest) async throws -> Image {
        if !request.uncheckedMemory.isDisjoint(with: self.unchecked),
            let image = self.cache.memoryImage(for: request.key)
        {
            return image
        }
        return try await self.response(for: request).image
    }

    /// The picture that `request` describes, and where it came from.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func response(for request: ImageRequest) async throws -> ImageResponse {
        if let response = self.pictures.memoryResponse(for: request) { return response }
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
        do {
            let response = try await self.pictures.data(for: request)
            // From here on the bytes are the caller's.
            response.claim?.giveBack()
            return response
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// The events of loading `request`: the cached picture under ``CachePolicy/revalidate``, progress,
    /// previews if they are asked for, then the picture.
    public nonisolated func events(for request: ImageRequest) -> LoadEvents {
        LoadEvents { report in
            if let response = self.pictures.memoryResponse(for: request) { return response }
            let plan = request.cachingPlan(loaderPolicy: self.policy)
            if plan.policy == .revalidate, let cached = try await self.cachedResponse(for: request) {
                report(.cached(cached))
            }
            return try await self.load(request, observer: report)
        }
    }

    // MARK: Coordination

    /// Ends every load and revalidation; each caller gets a `CancellationError`.
    public func cancelAll() {
        self.pictures.cancelAll()
    }

    /// The number of loads of pictures in flight.
    public var loadCount: Int { self.pictures.imageLoads.count }

    /// The number of callers that wait for those loads.
    public var waiterCount: Int { self.pictures.imageLoads.waiterCount }

    /// Returns when the revalidations in the background that were begun before the call have ended.
    public nonisolated func waitForRevalidations() async {
        await self.pictures.revalidations.waitForAll()
    }

    private func load(
        _ request: ImageRequest,
        observer: (@Sendable (LoadUpdate) -> Void)?
    ) async throws -> ImageResponse {
        do {
            return try await self.pictures.response(for: request, observer: observer)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// What the caches hold, whatever its age.
    private func cachedResponse(for request: ImageRequest) async throws -> ImageResponse? {
        var request = request
        request.cachePolicy = .cacheOnly
        do {
            return try await self.response(for: request)
        } catch is LoadError {
            return nil
        }
    }
}
