import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeDownloading
import TintypeHTTP
import TintypeImage
import TintypeRendering

/// What all loads of one loader work with.
struct LoadServices: Sendable {
    let cache: any ImageCache
    let downloads: DownloadActor
    /// Brings what a request has no fetcher of its own for.
    let fetcher: any ImageFetching
    let decoding: DecodePipeline
    let encoding: EncodePipeline
    let rules: FreshnessRules
    let store: SourceStore
    let variants: VariantPipeline
    let hooks: LoadHooks
    let activities: ActivityCenter
    /// The sources whose bytes can't be had.
    let failures: FailureMemory
    /// The pictures that can't be made of their bytes, which may be had all the same.
    let undecodable: FailureMemory
    private let limits: DecodingLimits
    private let maximumBodySize: Int
    /// Whether there may be other schemes than the downloader knows.
    let fetchesAnyScheme: Bool
    /// The statuses that the loader takes for success.
    let acceptableStatusCodes: StatusCodes

    init(
        configuration: LoaderActor.Configuration,
        cache: any ImageCache,
        downloads: DownloadActor,
        decoding: DecodePipeline,
        encoding: EncodePipeline,
        activities: ActivityCenter
    ) {
        self.cache = cache
        self.downloads = downloads
        self.fetcher = configuration.fetcher ?? downloads
        self.decoding = decoding
        self.encoding = encoding
        self.rules = FreshnessRules(configuration)
        self.store = SourceStore(cache: cache, rules: self.rules, activities: activities)
        self.variants = VariantPipeline(
            cache: cache,
            decoding: decoding,
            encoding: encoding,
            rules: self.rules,
            encoder: configuration.variantEncoder,
            activities: activities
        )
        self.hooks = LoadHooks(configuration)
        self.activities = activities
        self.failures = FailureMemory(configuration.failureLifetimes, now: configuration.now)
        self.undecodable = FailureMemory(configuration.failureLifetimes, now: configuration.now)
        self.limits = configuration.limits
        self.maximumBodySize = configuration.downloads.maximumBodySize
        self.fetchesAnyScheme = configuration.fetcher.map { !($0 is DownloadActor) } ?? false
        self.acceptableStatusCodes = configuration.downloads.acceptableStatusCodes
    }

    /// The bytes that the body of a request may have.
    func maximumBodySize(of request: ImageRequest) -> Int {
        let limits = request.decodingLimits ?? self.limits
        return min(limits.maximumEncodedBytes, request.bodyLimit ?? self.maximumBodySize)
    }

    /// The picture, if it is in memory and may be served.
    func memoryResponse(for request: ImageRequest) -> ImageResponse? {
        self.memoryEntry(for: request).map { self.response(of: $0.entry, $0.decision) }
    }

    /// The entry in memory, if it may be served; of the looks that a load takes, this one counts.
    @inline(__always)
    func memoryEntry(for request: ImageRequest) -> (entry: MemoryEntry, decision: ReuseDecision)? {
        let plan = self.rules.plan(for: request)
        guard plan.picture.query.contains(.memory),
            let entry = request.lookInMemory({ self.cache.memoryEntry(for: $0) })
        else { return nil }
        let freshness = entry.metadata?.response?.freshness
        let decision = self.rules.decision(freshness, of: request, under: plan.policy)
        return decision == .revalidate ? nil : (entry, decision)
    }

    /// The preview in memory that a load of `request` shows first.
    func keptPreview(for request: ImageRequest) -> Image? {
        guard request.options.contains(.previews), self.rules.plan(for: request).picture.query.contains(.memory) else {
            return nil
        }
        return self.cache.peekMemoryEntry(for: RequestKeys.preview(of: request.key))?.image
    }

    /// A picture in memory as a response.
    func response(of entry: MemoryEntry, _ decision: ReuseDecision) -> ImageResponse {
        ImageResponse(
            image: entry.image,
            source: .memory,
            metadata: entry.metadata ?? EntryMetadata(),
            revalidation: decision == .serve ? nil : .inBackground
        )
    }

    /// Stored bytes, where they may answer without the origin.
    ///
    /// - Throws: `LoadError.Code.notModified`.
    func reuse(
        _ stored: StoredSource?,
        for request: ImageRequest,
        mayServeStale: Bool
    ) throws(LoadError) -> DataResponse? {
        guard let stored else { return nil }
        let plan = self.rules.plan(for: request)
        let decision = self.rules.decision(for: stored.metadata, of: request, under: plan.policy)
        guard decision == .serve || decision == .serveWhileRevalidating && mayServeStale else { return nil }
        if plan.obeysHTTP,
            Precondition.isNotModified(request.headers, stored: stored.metadata, now: self.rules.now())
        {
            let record = stored.metadata.response
            throw LoadError.notModified(request, record?.servedFields(reusedAt: self.rules.now()) ?? [:])
        }
        return self.response(of: stored, decision == .serve ? nil : .inBackground)
    }

    /// Stored bytes as a response.
    func response(of stored: StoredSource, _ revalidation: Revalidation?) -> DataResponse {
        DataResponse(
            data: stored.data ?? Data(),
            source: stored.data == nil ? .memory : .disk,
            metadata: stored.metadata,
            headers: stored.metadata.response?.servedFields(reusedAt: self.rules.now()) ?? [:],
            revalidation: revalidation,
            // A picture in memory is not what the disk has.
            arrival: stored.data == nil ? nil : .read(as: stored.name),
            claim: stored.claim
        )
    }

    /// What a load of `request` wants beside its product.
    func demand(of request: ImageRequest) -> LoadTable.Demand {
        let plan = self.rules.plan(for: request)
        return LoadTable.Demand(
            priority: request.priority,
            showsPreviews: request.options.contains(.previews),
            keepsPreviews: request.options.isSuperset(of: [.previews, .keepPreviews]),
            keepsData: request.options.contains(.keepData),
            waitsForStore: request.options.contains(.waitForStore),
            retriesFailed: request.options.contains(.retryFailed),
            finishesDownload: request.options.contains(.finishDownload),
            storesBytes: plan.bytes.store.contains(.disk),
            pictureTiers: plan.picture.store
        )
    }

    /// The failure in `memory` that a load of `request` is not to repeat for a while.
    func failure(
        of key: CacheKey,
        in memory: FailureMemory,
        for request: ImageRequest,
        _ demand: LoadTable.Demand
    ) -> (any Error)? {
        guard !demand.retriesFailed, self.rules.plan(for: request).policy != .reload else { return nil }
        return memory.failure(of: Self.failureKey(key, of: request))
    }

    /// Remembers a failure, if it is of a kind that lasts.
    func remember(_ error: any Error, of key: CacheKey, in memory: FailureMemory, for request: ImageRequest) async {
        guard let lifetime = memory.lifetime(of: error), let told = LoadError.wrapping(error) as? LoadError,
            await self.hooks.mayRemember(told, of: request)
        else { return }
        memory.remember(error, of: Self.failureKey(key, of: request), for: lifetime)
    }

    /// Forgets what failed of a source: its bytes, and whatever was to be made of them.
    func forgetFailures(of request: ImageRequest) {
        self.failures.forgetFamily(of: request.sourceKey)
        self.undecodable.forgetFamily(of: request.sourceKey)
    }

    func forgetFailure(of key: CacheKey, in memory: FailureMemory, for request: ImageRequest) {
        memory.forget(Self.failureKey(key, of: request))
    }

    /// What a failure is remembered by: where a key stands for several URLs, another one of them may well work.
    private static func failureKey(_ key: CacheKey, of request: ImageRequest) -> CacheKey {
        request.cacheKey == nil ? key : key.derived("url(\(CacheKey(request.url.absoluteString).digest))")
    }

    /// Puts a body onto the disk, as far as loads want that, in the form that the disk is to have it in.
    ///
    /// - Returns: Why it is not there, where a load waits.
    func keep(
        _ body: Data,
        _ metadata: EntryMetadata,
        for request: ImageRequest,
        _ demand: LoadTable.Demand
    ) async -> LoadError? {
        guard demand.storesBytes else {
            return await self.store.keep(body, metadata: metadata, for: request, demand)
        }
        do {
            guard let stored = try await self.hooks.serialized(body, of: request) else {
                await self.store.remove(request)
                return nil
            }
            var metadata = metadata
            if stored != body {
                let format = self.rules.format(of: stored, for: request)
                metadata.formatName = format?.name
                metadata.mediaType = format?.mediaType
                metadata.byteCount = stored.count
            }
            return await self.store.keep(stored, metadata: metadata, for: request, demand)
        } catch {
            return LoadError(storing: error)
        }
    }

    /// Checks that a load has stored its response on disk.
    ///
    /// - Throws: `LoadError` that says why it has not.
    func checkStored(_ response: DataResponse, of request: ImageRequest) async throws(LoadError) {
        guard response.mayBeKept else {
            throw LoadError(
                code: .cacheFailed,
                message: "The response for \(request.displayURL) may not be stored: "
                    + "its header fields, such as no-store, or a hook forbid it. "
                    + "A cache policy that never revalidates stores it whatever its fields say."
            )
        }
        guard await !self.store.contains(response.metadata, of: request) else { return }
        // A removal or a newer response that came since does not undo the store.
        if self.rules.plan(for: request).bytes.store.contains(.disk), await !self.cache.statistics().disks.isEmpty {
            return
        }
        throw LoadError(
            code: .cacheFailed,
            message: "\(request.displayURL) is not on disk after its load; "
                + "give the loader a disk tier and let the request store in it."
        )
    }

    /// What a load of an encoded picture wants: of the picture that it is made of, neither bytes nor previews.
    func demand(of request: ImageRequest, _ caching: CacheUse) -> LoadTable.Demand {
        var demand = self.demand(of: request)
        demand.keepsData = false
        demand.showsPreviews = false
        demand.encodedTiers = caching.store
        return demand
    }

    /// Makes the picture of bytes that count in the budget of bodies.
    func decode(
        _ bytes: DataResponse,
        for request: ImageRequest,
        _ record: LoadRecord? = nil
    ) async throws -> DecodePipeline.MadePicture {
        try await self.working(with: bytes) {
            try await self.decoding.picture(from: bytes.data, for: request.rendering, record)
        }
    }

    /// Tells the budget of bodies that the bytes are at work: nothing that a decode waits for waits for bytes.
    func working<Result>(with bytes: DataResponse, _ work: () async throws -> Result) async rethrows -> Result {
        bytes.claim?.beginWork()
        defer { bytes.claim?.endWork() }
        return try await work()
    }
}
