import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading
import TintypeImage

/// Request to picture, once for all who ask: from memory, from a stored variant, or from its bytes.
///
/// It holds everything that a load needs, but not the loader: what goes on in the background must
/// not keep that alive.
struct PicturePipeline: Sendable {
    let imageLoads = Coalescer<FlightKey, ImageResponse, LoadUpdate>()
    /// Owns the revalidations that nobody waits for.
    let revalidations = TaskOwner()

    private let cache: any ImageCache
    private let decoding: DecodePipeline
    private let rules: FreshnessRules
    let sources: SourcePipeline
    private let variants: VariantPipeline
    private let priorities: LoadPriorities
    private let ledger = SourceLedger()
    let dataLoads = Coalescer<FlightKey, DataResponse, SourceUpdate>()
    /// Owns the stores that nobody waits for.
    private let background = TaskOwner()
    private let revalidated = KeySet()

    /// Loads that differ in an option that matters to them must not share a flight.
    struct FlightKey: Hashable, Sendable {
        let key: CacheKey
        let options: LoadOptions
        /// The tiers for the bytes, and those for the picture where the flight makes one.
        let uses: [CacheUse]
        let policy: CachePolicy
        let mayServeStale: Bool
        /// The bytes that the caller has a picture of.
        var held: UInt64?
    }

    init(
        configuration: LoaderActor.Configuration,
        cache: any ImageCache,
        downloads: DownloadActor,
        decoding: DecodePipeline
    ) {
        self.cache = cache
        self.priorities = LoadPriorities(downloads: downloads)
        self.decoding = decoding
        self.rules = FreshnessRules(configuration)
        self.sources = SourcePipeline(
            store: SourceStore(cache: cache, rules: self.rules),
            downloads: downloads,
            priorities: self.priorities,
            maximumBodySize: min(configuration.limits.maximumEncodedBytes, configuration.downloads.maximumBodySize),
            acceptableStatusCodes: configuration.downloads.acceptableStatusCodes,
            rules: self.rules,
            ledger: self.ledger
        )
        self.variants = VariantPipeline(
            cache: cache,
            decoding: decoding,
            encoder: configuration.variantEncoder,
            stores: self.background
        )
    }

    /// The number of sources whose order is known.
    var ledgerCount: Int { self.ledger.count }

    // MARK: Asking

    /// The picture, if it is in memory and may be served.
    func memoryResponse(for request: ImageRequest, mayServeStale: Bool = true) -> ImageResponse? {
        guard request.readsMemory, let entry = self.cache.memoryEntry(for: request.key) else { return nil }
        let metadata = entry.metadata ?? EntryMetadata()
        let decision = self.rules.decision(for: metadata, of: request)
        guard decision == .serve || decision == .serveWhileRevalidating && mayServeStale else { return nil }
        if decision == .serveWhileRevalidating { self.revalidatePicture(request) }
        return ImageResponse(
            image: entry.image,
            source: .memory,
            metadata: metadata,
            revalidation: decision == .serve ? nil : .inBackground
        )
    }

    /// The picture that `request` describes, from a load that equal requests share.
    func response(
        for request: ImageRequest,
        mayServeStale: Bool = true,
        observer: (@Sendable (LoadUpdate) -> Void)? = nil
    ) async throws -> ImageResponse {
        let key = FlightKey(
            key: request.key,
            options: request.options,
            uses: [request.bytesUse, request.pictureUse],
            policy: self.rules.policy(for: request),
            mayServeStale: mayServeStale
        )
        let response = try await self.priorities.waiting(for: request.sourceKey, priority: request.priority) {
            try await self.imageLoads.value(for: key, observer: observer) { report in
                try await self.run(request, mayServeStale: mayServeStale, report: report)
            }
        }
        if response.revalidation == .inBackground { self.revalidatePicture(request) }
        return response
    }

    /// The bytes that `request` names, from a load that equal requests share.
    func data(for request: ImageRequest) async throws -> DataResponse {
        let response = try await self.priorities.waiting(for: request.sourceKey, priority: request.priority) {
            try await self.fetch(request, mayServeStale: true) { _ in }
        }
        if response.revalidation == .inBackground {
            self.revalidate("\(request.sourceKey.text)\n|bytes") {
                _ = try? await self.fetch(request, mayServeStale: false) { _ in }
            }
        }
        return response
    }

    /// Ends every load and revalidation.
    func cancelAll() {
        self.revalidations.cancelAll()
        self.imageLoads.cancelAll()
        self.dataLoads.cancelAll()
    }

    /// Ends what nobody waits for.
    func endBackground() {
        self.revalidations.cancelAll()
        self.background.cancelAll()
    }

    // MARK: Revalidating

    private func revalidatePicture(_ request: ImageRequest) {
        self.revalidate(request.key.text) {
            // Whoever asks next finds what came of it; an error leaves the picture as stale as it was.
            _ = try? await self.response(for: request, mayServeStale: false)
        }
    }

    /// Runs `operation` in the background, unless it runs for this name already.
    private func revalidate(_ name: String, _ operation: @escaping @Sendable () async -> Void) {
        guard self.revalidated.insert(name) else { return }
        self.revalidations.run("revalidation") { [revalidated = self.revalidated] in
            await operation()
            revalidated.remove(name)
        }
    }

    // MARK: One load

    /// One load, step by step; runs once for all callers that wait for it.
    private func run(
        _ request: ImageRequest,
        mayServeStale: Bool,
        report: @escaping @Sendable (LoadUpdate) -> Void
    ) async throws -> ImageResponse {
        // Loads of this source that overlap are put in order until the picture is stored.
        let hold = self.ledger.begin(request.sourceKey)
        defer { self.ledger.end(hold) }
        // The picture may have come between the caller's look and this load's start.
        if let response = self.memoryResponse(for: request, mayServeStale: mayServeStale) { return response }
        let variant = try await self.variants.entry(for: request)
        if let variant, let response = try await self.picture(from: variant, for: request) { return response }
        let original = self.variants.decodedOriginal(for: request)
        if let original, try await self.mayServe(original.metadata, for: request) {
            let response = try await self.variants.thumbnail(of: original, for: request)
            return try await self.keep(response, for: request, read: nil)
        }
        let known = KnownPictures(held: self.heldEntry(for: request), variant: variant, original: original)
        var bytes = try await self.loadData(
            request,
            held: known.metadata,
            mayServeStale: mayServeStale,
            report: report
        )
        if let response = try await self.picture(confirmedBy: bytes, known, for: request) { return response }
        if bytes.source == .memory {
            // What was known is gone or of no use after all, and its bytes are not there.
            bytes = try await self.loadData(request, mayServeStale: mayServeStale, report: report)
        }
        do {
            return try await self.makeImage(from: bytes, for: request)
        } catch let error as CodingError where error.isAboutContent {
            // What is no picture must not stay in the cache; what was on disk may have been
            // damaged there, so the origin is asked once more. Bytes that are not stored leave an
            // older, good copy.
            if bytes.source == .disk || self.sources.isStorable(bytes.data, for: request) {
                await self.sources.discard(request)
            }
            guard bytes.source == .disk, !request.options.contains(.cacheOnly) else { throw error }
            // Loads that hold bytes must not wait for room for others.
            bytes.claim?.giveBack()
            let fresh = try await self.loadData(request, mayServeStale: mayServeStale, report: report)
            return try await self.makeImage(from: fresh, for: request)
        }
    }

    /// The picture in its own entry on disk, where that is good as it is.
    private func picture(from variant: DiskEntry, for request: ImageRequest) async throws -> ImageResponse? {
        guard try await self.mayServe(variant.metadata, for: request),
            let response = try await self.variants.response(from: variant, for: request)
        else { return nil }
        await self.keepInMemory(response, for: request, read: nil)
        return response
    }

    /// Whether a picture that was made before is fresh, and of the bytes that the disk has now.
    private func mayServe(_ metadata: EntryMetadata?, for request: ImageRequest) async throws -> Bool {
        guard !self.ledger.isObsolete(metadata?.bodyDigest, source: request.sourceKey) else { return false }
        guard self.usesHTTP(request) else { return true }
        guard let metadata, self.rules.decision(for: metadata, of: request) == .serve else { return false }
        let source = try await self.sources.store.entry(for: request)
        return source.map { $0.metadata.bodyDigest == metadata.bodyDigest } ?? true
    }

    /// The picture in memory that may turn out to be current.
    private func heldEntry(for request: ImageRequest) -> MemoryEntry? {
        request.readsMemory && self.usesHTTP(request) ? self.cache.memoryEntry(for: request.key) : nil
    }

    private func usesHTTP(_ request: ImageRequest) -> Bool {
        self.rules.policy(for: request) != .neverRevalidate
    }

    /// The picture that was made of the same bytes before, so that it need not be made again.
    private func picture(
        confirmedBy bytes: DataResponse,
        _ known: KnownPictures,
        for request: ImageRequest
    ) async throws -> ImageResponse? {
        guard self.usesHTTP(request), !request.options.contains(.keepData), let body = bytes.metadata.bodyDigest
        else { return nil }
        let read = self.read(bytes)
        if let held = known.held, held.metadata?.bodyDigest == body {
            let response = ImageResponse(held.image, source: .memory, bytes)
            guard bytes.mayBeKept else {
                _ = try await self.cache.remove(request.key, from: .memory)
                return response
            }
            await self.keepInMemory(response, for: request, read: read)
            return response
        }
        if bytes.mayBeKept, let variant = known.variant, variant.metadata.bodyDigest == body,
            let stored = try await self.variants.response(from: variant, for: request)
        {
            let response = ImageResponse(stored.image, source: .disk, bytes)
            if await self.keepInMemory(response, for: request, read: read) {
                await self.variants.renew(variant, metadata: bytes.metadata, for: request)
            }
            return response
        }
        guard bytes.source == .memory, let original = known.original, original.metadata?.bodyDigest == body
        else { return nil }
        let thumbnail = try await self.variants.thumbnail(of: original, for: request)
        let response = ImageResponse(thumbnail.image, source: .memory, bytes)
        return bytes.mayBeKept ? try await self.keep(response, for: request, read: read) : response
    }

    /// The bytes of a picture; unfinished pictures are shown on the way, where they are wanted.
    private func loadData(
        _ request: ImageRequest,
        held: EntryMetadata? = nil,
        mayServeStale: Bool,
        report: @escaping @Sendable (LoadUpdate) -> Void
    ) async throws -> DataResponse {
        let mailbox = ByteMailbox()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            if request.options.contains(.previews) {
                group.addTask {
                    await self.decoding.showPreviews(of: mailbox, for: request) { report(.preview($0)) }
                }
            }
            // The previews end with the bytes, however those end.
            defer { mailbox.finish() }
            return try await self.fetch(request, held: held, mayServeStale: mayServeStale) { update in
                switch update {
                case .progress(let progress): report(.progress(progress))
                case .bytes(let bytes): mailbox.put(bytes)
                }
            }
        }
    }

    private func fetch(
        _ request: ImageRequest,
        held: EntryMetadata? = nil,
        mayServeStale: Bool,
        report: @escaping @Sendable (SourceUpdate) -> Void
    ) async throws -> DataResponse {
        let key = FlightKey(
            key: request.sourceKey,
            options: request.options.intersection(.fetching),
            uses: [request.bytesUse],
            policy: self.rules.policy(for: request),
            mayServeStale: mayServeStale,
            held: held?.bodyDigest
        )
        return try await self.dataLoads.value(for: key, observer: report) { [sources = self.sources] report in
            try await sources.data(for: request, held: held, mayServeStale: mayServeStale, report: report)
        }
    }

    // MARK: Keeping

    private func makeImage(from bytes: DataResponse, for request: ImageRequest) async throws -> ImageResponse {
        let image = try await self.decode(bytes, for: request)
        try Task.checkCancellation()
        let data = request.options.contains(.keepData) ? bytes.data : nil
        let response = ImageResponse(image, source: bytes.source, bytes, data: data)
        guard bytes.mayBeKept else { return response }
        return try await self.keep(response, for: request, read: self.read(bytes))
    }

    private func decode(_ bytes: DataResponse, for request: ImageRequest) async throws -> Image {
        // Nothing that a decode waits for waits for bytes.
        bytes.claim?.beginWork()
        defer { bytes.claim?.endWork() }
        return try await self.decoding.image(from: bytes.data, for: request)
    }

    /// The load that read bytes from the disk; `nil` for what the origin sent or confirmed.
    private func read(_ bytes: DataResponse) -> SourceLedger.Ticket? {
        bytes.source == .disk && bytes.revalidation != .notModified ? bytes.ticket : nil
    }

    /// Stores a picture that was made, in the tiers that `request` names.
    private func keep(
        _ response: ImageResponse,
        for request: ImageRequest,
        read: SourceLedger.Ticket?
    ) async throws -> ImageResponse {
        guard await self.keepInMemory(response, for: request, read: read),
            let error = try await self.variants.store(response, for: request)
        else { return response }
        return response.withStoreError(error)
    }

    /// - Returns: Whether the picture is one that may be kept: made of no older bytes than others.
    @discardableResult
    private func keepInMemory(
        _ response: ImageResponse,
        for request: ImageRequest,
        read: SourceLedger.Ticket?
    ) async -> Bool {
        let body = response.metadata.bodyDigest
        func isAdmitted() -> Bool {
            guard let body else { return true }
            return self.ledger.admits(request.key, madeOf: body, source: request.sourceKey, read: read)
        }
        guard isAdmitted() else { return false }
        guard request.pictureUse.store.contains(.memory) else { return true }
        var metadata = response.metadata
        metadata.response = metadata.response?.reduced
        await self.cache.store(
            response.image,
            data: nil,
            metadata: metadata,
            for: request.key,
            in: .memory
        )
        guard isAdmitted() else {
            // A newer body came in between, and may have looked for this picture too early.
            _ = try? await self.cache.remove(request.key, from: .memory)
            return false
        }
        return true
    }
}

/// What was made of a source before: it needs no bytes if it is current.
private struct KnownPictures {
    /// The picture itself, in memory.
    let held: MemoryEntry?
    /// The picture itself, on disk.
    let variant: DiskEntry?
    /// The full size that a thumbnail can be made from, in memory.
    let original: MemoryEntry?

    /// By what the origin can be asked whether it is current.
    var metadata: EntryMetadata? {
        self.held?.metadata ?? self.variant?.metadata ?? self.original?.metadata
    }
}

extension ImageResponse {
    /// A picture that was made of `bytes`, now or before.
    fileprivate init(_ image: Image, source: LoadSource, _ bytes: DataResponse, data: Data? = nil) {
        self.init(
            image: image,
            source: source,
            metadata: bytes.metadata,
            data: data,
            storeError: bytes.storeError,
            revalidation: bytes.revalidation
        )
    }
}

extension CodingError {
    /// Whether the bytes themselves are at fault, rather than a limit or an option.
    fileprivate var isAboutContent: Bool {
        [.notAnImage, .corrupt, .truncated].contains(self.code)
    }
}
