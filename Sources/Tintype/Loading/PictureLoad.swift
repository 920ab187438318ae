import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading
import TintypeHTTP
import TintypeImage

/// Request to picture, once for all that ask: from memory, from a stored variant, or from its bytes.
struct PictureLoad: Sendable {
    let services: LoadServices
    let loader: LoaderReference
    let request: ImageRequest
    /// Whether stale pictures may be served where that is permitted; they must then be revalidated.
    let mayServeStale: Bool
    let flight: Flight

    private var cache: any ImageCache { self.services.cache }
    private var rules: FreshnessRules { self.services.rules }
    private var ledger: SourceLedger { self.services.ledger }
    private var plan: CachingPlan { self.rules.plan(for: self.request) }
    private var variants: VariantPipeline {
        VariantPipeline(
            cache: self.services.cache,
            decoding: self.services.decoding,
            rules: self.rules,
            encoder: self.services.variantEncoder
        )
    }

    func run() async throws -> ImageResponse {
        // Loads of this source that overlap are put in order until the picture is stored.
        let hold = self.ledger.begin(self.request.sourceKey)
        defer { self.ledger.end(hold) }
        // The picture may have come between the caller's look and this load's start.
        if let response = self.services.memoryResponse(for: self.request, mayServeStale: self.mayServeStale) {
            return response
        }
        let variant = try await self.variants.entry(for: self.request)
        if let variant, let response = try await self.picture(from: variant) { return response }
        let original = self.variants.decodedOriginal(for: self.request)
        if let original, try await self.mayServe(original.metadata) {
            return try await self.keep(self.variants.thumbnail(of: original, for: self.request), read: nil)
        }
        let known = KnownPictures(held: self.heldEntry, variant: variant, original: original)
        // An origin that confirms a picture sends no bytes.
        var bytes = try await self.bytes(held: self.flight.demand.keepsData ? nil : known.metadata)
        if let response = try await self.picture(confirmedBy: bytes, known) { return response }
        // What was known is gone or of no use after all, and its bytes are not there.
        if bytes.source == .memory { bytes = try await self.bytes() }
        do {
            return try await self.makeImage(from: bytes)
        } catch let error as CodingError where error.isAboutContent && self.request.coder == nil {
            // A request's own coder that fails says nothing of the bytes: others may read them.
            // What is no picture must not stay in the cache; what was on disk may have been
            // damaged there, so the origin is asked once more. Bytes that are not stored leave an
            // older, good copy.
            if bytes.source == .disk || self.rules.isStorable(bytes.data, for: self.request) {
                await self.services.store.remove(self.request)
            }
            guard bytes.source == .disk, self.plan.policy != .cacheOnly else { throw error }
            // Loads that hold bytes must not wait for room for others.
            bytes.claim?.giveBack()
            return try await self.makeImage(from: self.bytes())
        }
    }

    // MARK: What is there

    /// The picture in its own entry on disk, where that is good as it is.
    private func picture(from variant: DiskEntry) async throws -> ImageResponse? {
        guard try await self.mayServe(variant.metadata),
            let response = try await self.variants.response(from: variant, for: self.request)
        else { return nil }
        await self.keepInMemory(response, read: nil)
        return response
    }

    /// Whether a picture that was made before is fresh, and of the bytes that the disk has now.
    private func mayServe(_ metadata: EntryMetadata?) async throws -> Bool {
        guard !self.ledger.isObsolete(metadata?.bodyDigest, source: self.request.sourceKey) else { return false }
        guard self.usesHTTP else { return true }
        guard let metadata, self.rules.decision(for: metadata, of: self.request, under: self.plan.policy) == .serve
        else { return false }
        let source = try await self.services.store.entry(for: self.request)
        return source.map { $0.metadata.bodyDigest == metadata.bodyDigest } ?? true
    }

    /// The picture in memory that may turn out to be current.
    private var heldEntry: MemoryEntry? {
        guard self.plan.obeysHTTP, self.plan.picture.query.contains(.memory) else { return nil }
        return self.cache.memoryEntry(for: self.request.key)
    }

    private var usesHTTP: Bool { self.plan.obeysHTTP }

    /// The picture that was made of the same bytes before, so that it need not be made again.
    private func picture(
        confirmedBy bytes: DataResponse,
        _ known: KnownPictures
    ) async throws -> ImageResponse? {
        guard self.usesHTTP, let body = bytes.metadata.bodyDigest else { return nil }
        let read = self.read(bytes)
        if let held = known.held, held.metadata?.bodyDigest == body {
            let response = ImageResponse(held.image, source: .memory, bytes)
            guard bytes.mayBeKept else {
                _ = try await self.cache.remove(self.request.key, from: .memory)
                return response
            }
            await self.keepInMemory(response, read: read)
            return response
        }
        if bytes.mayBeKept, let variant = known.variant, variant.metadata.bodyDigest == body,
            let stored = try await self.variants.response(from: variant, for: self.request)
        {
            let response = ImageResponse(stored.image, source: .disk, bytes)
            if await self.keepInMemory(response, read: read), self.flight.demand.pictureTiers.contains(.disk) {
                await self.variants.renew(variant, metadata: bytes.metadata, for: self.request)
            }
            return response
        }
        guard bytes.source == .memory, let original = known.original, original.metadata?.bodyDigest == body
        else { return nil }
        let thumbnail = try await self.variants.thumbnail(of: original, for: self.request)
        let response = ImageResponse(thumbnail.image, source: .memory, bytes)
        return bytes.mayBeKept ? try await self.keep(response, read: read) : response
    }

    // MARK: Bytes

    /// The bytes of the picture, which loads of other sizes share; unfinished pictures are shown on the way.
    private func bytes(held: EntryMetadata? = nil) async throws -> DataResponse {
        guard self.flight.demand.showsPreviews else { return try await self.bytes(held: held) { _ in } }
        let mailbox = ByteMailbox()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await self.services.decoding.showPreviews(of: mailbox, for: self.request) {
                    self.flight.report(.preview($0))
                }
            }
            // The previews end with the bytes, however those end.
            defer { mailbox.finish() }
            return try await self.bytes(held: held) { mailbox.put($0) }
        }
    }

    private func bytes(
        held: EntryMetadata?,
        show: @escaping @Sendable (Data) -> Void
    ) async throws -> DataResponse {
        let flight = self.flight
        return try await self.loader.bytes(
            for: self.request,
            held: held,
            mayServeStale: self.mayServeStale,
            interest: .flight(flight.id)
        ) { update in
            if case .bytes(let bytes) = update { show(bytes) } else { flight.report(update) }
        }
    }

    // MARK: Keeping

    private func makeImage(from bytes: DataResponse) async throws -> ImageResponse {
        let image = try await self.services.decode(bytes, for: self.request)
        try Task.checkCancellation()
        let response = ImageResponse(image, source: bytes.source, bytes)
        guard bytes.mayBeKept else { return response }
        return try await self.keep(response, read: self.read(bytes))
    }

    /// The load that read bytes from the disk; `nil` for what the origin sent or confirmed.
    private func read(_ bytes: DataResponse) -> SourceLedger.Ticket? {
        bytes.source == .disk && bytes.revalidation != .notModified ? bytes.ticket : nil
    }

    /// Stores a picture that was made, in the tiers that `request` names.
    private func keep(
        _ response: ImageResponse,
        read: SourceLedger.Ticket?
    ) async throws -> ImageResponse {
        guard await self.keepInMemory(response, read: read), self.request.isVariant else { return response }
        let demand = self.flight.demand
        guard demand.pictureTiers.contains(.disk) else { return response }
        let (variants, request) = (self.variants, self.request)
        guard demand.waitsForStore else {
            // Without its entry the variant is made anew from the original.
            await self.loader.storing(request.key) { _ = try? await variants.store(response, for: request) }
            return response
        }
        guard let error = try await variants.store(response, for: request) else { return response }
        return response.withStoreError(error)
    }

    /// - Returns: Whether the picture is one that may be kept: made of no older bytes than others.
    @discardableResult
    private func keepInMemory(
        _ response: ImageResponse,
        read: SourceLedger.Ticket?
    ) async -> Bool {
        let body = response.metadata.bodyDigest
        func isAdmitted() -> Bool {
            guard let body else { return true }
            return self.ledger.admits(self.request.key, madeOf: body, source: self.request.sourceKey, read: read)
        }
        guard isAdmitted() else { return false }
        guard self.flight.demand.pictureTiers.contains(.memory) else { return true }
        var metadata = response.metadata
        metadata.response = metadata.response?.reduced
        await self.cache.store(
            response.image,
            data: nil,
            metadata: metadata,
            for: self.request.key,
            in: .memory
        )
        guard isAdmitted() else {
            // A newer body came in between, and may have looked for this picture too early.
            _ = try? await self.cache.remove(self.request.key, from: .memory)
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
    init(_ image: Image, source: LoadSource, _ bytes: DataResponse) {
        self.init(
            image: image,
            source: source,
            metadata: bytes.metadata,
            data: bytes.data.isEmpty ? nil : bytes.data,
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
