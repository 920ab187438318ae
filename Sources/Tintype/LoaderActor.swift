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
    private nonisolated let sources: SourcePipeline
    nonisolated let decoding: DecodePipeline
    private nonisolated let variants: VariantPipeline
    /// Owns what goes on after a load has ended.
    private nonisolated let background = TaskOwner()
    private nonisolated let imageLoads = Coalescer<FlightKey, ImageResponse, LoadUpdate>()
    private nonisolated let dataLoads = Coalescer<FlightKey, DataResponse, SourceUpdate>()

    /// Loads that differ in an option that matters to them must not share a flight.
    private struct FlightKey: Hashable, Sendable {
        let key: CacheKey
        let options: LoadOptions
        /// The tiers for the bytes, and those for the picture where the flight makes one.
        let uses: [CacheUse]
    }

    /// Creates a loader.
    ///
    /// Threads start with the first work that needs them.
    public init(configuration: Configuration = Configuration()) {
        let cache =
            configuration.cache
            ?? CacheActor(
                memory: MemoryCache(configuration.memory),
                disk: configuration.disk.map { DiskCache($0) }
            )
        let downloads = DownloadActor(configuration: configuration.downloads)
        self.framePool = FramePool(byteLimit: configuration.framePoolByteLimit)
        self.cache = cache
        self.downloads = downloads
        self.sources = SourcePipeline(
            cache: cache,
            downloads: downloads,
            maximumBodySize: min(configuration.limits.maximumEncodedBytes, configuration.downloads.maximumBodySize)
        )
        self.decoding = DecodePipeline(
            registry: configuration.coders,
            lanes: DecodeLanes(count: configuration.laneCount),
            gate: WeightedGate(capacity: configuration.decodingMemory),
            limits: configuration.limits
        )
        self.variants = VariantPipeline(
            cache: cache,
            decoding: self.decoding,
            encoder: configuration.variantEncoder,
            stores: self.background
        )
    }

    // MARK: Loading

    /// The picture at `url`, upright, at full size.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(for url: URL) async throws -> Image {
        try await self.image(for: ImageRequest(url: url))
    }

    /// The picture that `request` describes.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(for request: ImageRequest) async throws -> Image {
        if request.readsMemory, let image = self.cache.memoryImage(for: request.key) { return image }
        return try await self.load(request, observer: nil).image
    }

    /// The picture that `request` describes, and where it came from.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func response(for request: ImageRequest) async throws -> ImageResponse {
        if let response = self.memoryResponse(for: request) { return response }
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
            return try await self.fetch(request) { _ in }
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// The events of loading `request`: progress, previews if they are asked for, then the picture.
    public nonisolated func events(for request: ImageRequest) -> LoadEvents {
        LoadEvents { report in
            if let response = self.memoryResponse(for: request) { return response }
            return try await self.load(request, observer: report)
        }
    }

    // MARK: Coordination

    /// Ends every load; each caller gets a `CancellationError`.
    public func cancelAll() {
        self.imageLoads.cancelAll()
        self.dataLoads.cancelAll()
    }

    /// The number of loads of pictures in flight.
    public var loadCount: Int { self.imageLoads.count }

    /// The number of callers that wait for those loads.
    public var waiterCount: Int { self.imageLoads.waiterCount }

    private nonisolated func memoryResponse(for request: ImageRequest) -> ImageResponse? {
        guard request.readsMemory, let entry = self.cache.memoryEntry(for: request.key) else { return nil }
        return ImageResponse(image: entry.image, source: .memory, metadata: entry.metadata ?? EntryMetadata())
    }

    private func load(
        _ request: ImageRequest,
        observer: (@Sendable (LoadUpdate) -> Void)?
    ) async throws -> ImageResponse {
        let uses = [request.bytesUse, request.pictureUse]
        let key = FlightKey(key: request.key, options: request.options, uses: uses)
        do {
            return try await self.imageLoads.value(for: key, observer: observer) { report in
                try await self.run(request, report: report)
            }
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// One load, step by step; runs once for all callers that wait for it.
    private nonisolated func run(
        _ request: ImageRequest,
        report: @escaping @Sendable (LoadUpdate) -> Void
    ) async throws -> ImageResponse {
        // The picture may have come between the caller's look and this load's start.
        if let response = self.memoryResponse(for: request) { return response }
        if let response = try await self.variants.stored(request) {
            await self.keepInMemory(response, for: request)
            return response
        }
        if let response = try await self.variants.madeFromMemory(request) {
            return try await self.keep(response, for: request)
        }
        let bytes = try await self.loadData(request, report: report)
        do {
            return try await self.makeImage(from: bytes, for: request)
        } catch let error as CodingError where error.isAboutContent {
            // What is no picture must not stay in the cache; what was on disk may have been
            // damaged there, so the origin is asked once more. Bytes without a format were not
            // stored: what is cached then is an older, good copy.
            if bytes.source == .disk || bytes.metadata.formatName != nil { await self.sources.discard(request) }
            guard bytes.source == .disk, !request.options.contains(.cacheOnly) else { throw error }
            let fresh = try await self.loadData(request, report: report)
            return try await self.makeImage(from: fresh, for: request)
        }
    }

    /// The bytes of a picture; unfinished pictures are shown on the way, where they are wanted.
    private nonisolated func loadData(
        _ request: ImageRequest,
        report: @escaping @Sendable (LoadUpdate) -> Void
    ) async throws -> DataResponse {
        let mailbox = ByteMailbox()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            if request.options.contains(.previews) {
                group.addTask {
                    await self.decoding.showPreviews(of: mailbox) { report(.preview($0)) }
                }
            }
            // The previews end with the bytes, however those end.
            defer { mailbox.finish() }
            return try await self.fetch(request) { update in
                switch update {
                case .progress(let progress): report(.progress(progress))
                case .bytes(let bytes): mailbox.put(bytes)
                }
            }
        }
    }

    private nonisolated func fetch(
        _ request: ImageRequest,
        report: @escaping @Sendable (SourceUpdate) -> Void
    ) async throws -> DataResponse {
        let options = request.options.intersection(.fetching)
        let key = FlightKey(key: request.sourceKey, options: options, uses: [request.bytesUse])
        return try await self.dataLoads.value(for: key, observer: report) { [sources = self.sources] report in
            try await sources.data(for: request, report: report)
        }
    }

    private nonisolated func makeImage(
        from bytes: DataResponse,
        for request: ImageRequest
    ) async throws -> ImageResponse {
        let image = try await self.decoding.image(from: bytes.data, for: request)
        try Task.checkCancellation()
        let response = ImageResponse(
            image: image,
            source: bytes.source,
            metadata: bytes.metadata,
            data: request.options.contains(.keepData) ? bytes.data : nil,
            storeError: bytes.storeError
        )
        return try await self.keep(response, for: request)
    }

    /// Stores a picture that was made, in the tiers that `request` names.
    private nonisolated func keep(_ response: ImageResponse, for request: ImageRequest) async throws -> ImageResponse {
        await self.keepInMemory(response, for: request)
        guard let error = try await self.variants.store(response, for: request) else { return response }
        return response.withStoreError(error)
    }

    private nonisolated func keepInMemory(_ response: ImageResponse, for request: ImageRequest) async {
        guard request.pictureUse.store.contains(.memory) else { return }
        await self.cache.store(
            response.image,
            data: nil,
            metadata: response.metadata,
            for: request.key,
            in: .memory
        )
    }
}

extension CodingError {
    /// Whether the bytes themselves are at fault, rather than a limit or an option.
    fileprivate var isAboutContent: Bool {
        [.notAnImage, .corrupt, .truncated].contains(self.code)
    }
}
