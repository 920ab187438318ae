import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading
import TintypeHTTP
import TintypeImage
import TintypeRendering

/// The load of an image, once for all of its callers: from an image that was made of its bytes before, or from its bytes.
struct ImageLoad: Sendable {
    let services: LoadServices
    let loader: LoaderReference
    let request: ImageRequest
    /// Bytes that have just come, if any.
    let offer: BytesOffer?
    /// Whether stale images may be served where that is permitted; they must then be revalidated.
    let mayServeStale: Bool
    let flight: FlightState

    private var cache: any ImageCache { self.services.cache }
    private var rules: FreshnessRules { self.services.rules }
    private var variants: VariantPipeline { self.services.variants }
    private var plan: CachingPlan { self.rules.plan(for: self.request) }
    private var record: LoadRecord { self.flight.record }

    func run() async throws -> Kept<ImageResponse> {
        var result = try await self.picture()
        guard result.response.data == nil, self.flight.demand.keepsData,
            // Not as a flight that needs them: its image is made and kept, and is obsolete where others come. Loads that
            // want them and find none here ask for them by themselves, and hear the error.
            let bytes = try? await self.loader.bytes(
                for: self.request,
                mayServeStale: self.mayServeStale,
                interest: .follower(self.rules.demand(of: self.request))
            ), bytes.metadata.bodyDigest == result.response.metadata.bodyDigest
        else { return result }
        result.response = result.response.with(data: bytes.data)
        return result
    }

    private func picture() async throws -> Kept<ImageResponse> {
        var candidates: [Candidate] = []
        for place in Candidate.Place.allCases {
            guard let candidate = try await self.candidate(in: place) else { continue }
            if try await self.mayServe(candidate) {
                self.offer?.endSharing()
                if let picture = try await self.picture(from: candidate) { return picture }
            }
            candidates.append(candidate)
        }
        let undecodable = self.services.undecodable
        // A file is looked at again, and a load of the cache alone says what is there.
        if candidates.isEmpty, !self.request.isLocal, self.plan.policy != .cacheOnly,
            let failure = undecodable.failure(
                of: self.request.key,
                for: self.request,
                self.flight.demand,
                under: self.plan.policy
            ),
            try await self.services.store.known(of: self.request) == nil
        {
            self.services.activities.counters.countRememberedFailure()
            throw failure
        }
        // An origin that confirms a candidate sends no bytes.
        var bytes = try await self.bytes(
            held: self.flight.demand.keepsData ? nil : candidates.first?.metadata,
            imagesOf: self.bodies(of: candidates)
        )
        if let picture = try await self.picture(confirmedBy: bytes, candidates) { return picture }
        // The candidates are gone or of no use after all, and the bytes are not there.
        if bytes.source == .memory { bytes = try await self.bytes() }
        let response: ImageResponse
        do {
            response = try await self.makePictureOrRemove(bytes)
        } catch let error as CodingError where self.isAboutContent(error) {
            // What was on disk may have been damaged there, so the origin is asked once more.
            guard bytes.source == .disk, self.plan.policy != .cacheOnly else {
                await undecodable.remember(error, of: self.request.key, for: self.request, self.services.hooks)
                throw error
            }
            // Loads that hold bytes must not wait for room for others.
            bytes.claim?.giveBack()
            bytes = try await self.bytes()
            response = try await self.makePictureOrRemove(bytes)
        }
        undecodable.forget(self.request.key, for: self.request)
        // Nor while the image is kept: its encoder may load others.
        bytes.claim = nil
        guard bytes.mayBeKept else {
            await self.removeReplaced(from: .all)
            return Kept(response, isKept: false)
        }
        var result = await self.keep(response)
        await self.removeReplaced(from: CacheTiers.all.subtracting(self.flight.demand.pictureTiers))
        if let error = await self.storeForLatecomers(bytes) { result.response = result.response.withStoreError(error) }
        return result
    }

    /// Makes the image; what is none must not stay in the cache.
    private func makePictureOrRemove(_ bytes: Body) async throws -> ImageResponse {
        do {
            return try await self.makePicture(of: bytes)
        } catch let error as CodingError where self.isAboutContent(error) {
            // Bytes that are not stored leave an older, good copy.
            if bytes.source == .disk || self.rules.isStorable(bytes.data, for: self.request) {
                await self.services.store.remove(self.request)
            }
            throw error
        }
    }

    /// Whether the bytes are at fault: a request's own coder that fails says nothing of them, others may read them.
    private func isAboutContent(_ error: CodingError) -> Bool {
        error.isAboutContent && self.request.coder == nil
    }

    // MARK: Candidates

    /// What was made of the source before, from which the image can be had without bytes.
    private enum Candidate {
        /// Where it is looked for, the cheapest first.
        enum Place: CaseIterable {
            case memory, disk, decodedOriginal
        }

        /// The image itself, in memory, and whether it may be served.
        case held(MemoryEntry, ReuseDecision)
        /// The image itself, in its own entry on disk.
        case variant(DiskEntry)
        /// The full size in memory, of which the image can be made.
        case original(MemoryEntry)

        var metadata: EntryMetadata? {
            switch self {
            case .held(let entry, _), .original(let entry): entry.metadata
            case .variant(let entry): entry.metadata.describingOriginal
            }
        }
    }

    private func candidate(in place: Candidate.Place) async throws -> Candidate? {
        switch place {
        // The image may have come between the caller's look and this load's start.
        case .memory:
            guard self.plan.picture.query.contains(.memory) else { return nil }
            return self.cache.peekMemoryEntry(for: self.request.key).map { .held($0, self.decision($0.metadata)) }
        case .disk:
            return try await self.record.timing(\.disk) { try await self.variants.entry(for: self.request) }.map {
                .variant($0)
            }
        case .decodedOriginal: return self.variants.decodedOriginal(for: self.request).map { .original($0) }
        }
    }

    /// Whether a candidate is fresh, and of the bytes that the disk has now.
    private func mayServe(_ candidate: Candidate) async throws -> Bool {
        let body = candidate.metadata?.bodyDigest
        guard self.flight.admits(body) else { return false }
        if case .held(_, let decision) = candidate {
            return decision == .serve || decision == .serveWhileRevalidating && self.mayServeStale
        }
        if self.plan.obeysHTTP {
            guard candidate.metadata != nil, self.decision(candidate.metadata) == .serve else { return false }
        } else if case .original = candidate {
            return true
        }
        // A variant may be of bytes that were replaced before this loader began, or by another process.
        return try await self.record.timing(\.disk) {
            try await self.services.store.isCurrent(body, of: self.request)
        }
    }

    private func decision(_ metadata: EntryMetadata?) -> ReuseDecision {
        self.rules.decision(for: metadata ?? EntryMetadata(), of: self.request, under: self.plan.policy)
    }

    /// The image that a candidate is or becomes, which is a hit; `nil` where it is damaged.
    private func picture(from candidate: Candidate) async throws -> Kept<ImageResponse>? {
        switch candidate {
        case .held(let entry, let decision):
            self.tell(.hit(.memory))
            return Kept(ImageResponse(entry, decision), isKept: false)
        case .variant(let entry):
            guard let response = try await self.variants.response(from: entry, for: self.request, self.record) else {
                return nil
            }
            self.tell(.hit(.disk))
            _ = await self.keepInMemory(response)
            return Kept(response, isKept: true)
        case .original(let entry):
            self.tell(.hit(.memory))
            return await self.keep(try await self.picture(of: entry))
        }
    }

    private func picture(of original: MemoryEntry) async throws -> ImageResponse {
        self.services.activities.counters.countThumbnailOfOriginal()
        return try await self.variants.picture(of: original, for: self.request, self.record)
    }

    /// The bodies of which an origin that sends or confirms them has nothing decoded: their image is a candidate.
    private func bodies(of candidates: [Candidate]) -> Set<UInt64> {
        guard self.plan.obeysHTTP else { return [] }
        return candidates.reduce(into: []) { bodies, candidate in
            if case .original = candidate { return }
            if let body = candidate.metadata?.bodyDigest { bodies.insert(body) }
        }
    }

    /// The candidate that was made of the same bytes, so that the image need not be made again.
    private func picture(confirmedBy bytes: Body, _ candidates: [Candidate]) async throws -> Kept<ImageResponse>? {
        guard self.plan.obeysHTTP, let body = bytes.metadata.bodyDigest else { return nil }
        for candidate in candidates where candidate.metadata?.bodyDigest == body {
            // To read or make an image may wait for memory, so the load ends its part in shared decodes before.
            switch candidate {
            case .held(let entry, _):
                bytes.sharing?.end()
                let response = ImageResponse(entry.image, source: .memory, bytes, entry.metadata?.animation)
                if bytes.mayBeKept { return Kept(response, isKept: await self.keepInMemory(response)) }
                _ = try await self.cache.remove(self.request.key, from: .memory)
                return Kept(response, isKept: false)
            case .variant(let entry):
                bytes.sharing?.end()
                guard bytes.mayBeKept,
                    let stored = try await self.variants.response(from: entry, for: self.request, self.record)
                else { continue }
                let response = ImageResponse(stored.image, source: .disk, bytes, stored.metadata.animation)
                let kept = await self.keepInMemory(response)
                if kept, self.flight.demand.pictureTiers.contains(.disk) {
                    await self.variants.renew(entry, metadata: response.metadata, for: self.request)
                }
                return Kept(response, isKept: kept)
            case .original(let entry):
                // Of bytes that are there the codec makes it at the right size.
                guard bytes.source == .memory else { continue }
                bytes.sharing?.end()
                let made = try await self.picture(of: entry)
                let response = ImageResponse(made.image, source: .memory, bytes, made.metadata.animation)
                return bytes.mayBeKept ? await self.keep(response) : Kept(response, isKept: false)
            }
        }
        return nil
    }

    // MARK: Bytes

    /// The bytes of the image, which loads of other sizes share; unfinished images are shown on the way.
    private func bytes(held: EntryMetadata? = nil, imagesOf bodies: Set<UInt64> = []) async throws -> Body {
        if let offered = self.offer?.take(), self.flight.admits(offered.metadata.bodyDigest) { return offered }
        guard self.flight.demand.showsPreviews else {
            return try await self.bytes(held: held, imagesOf: bodies, previews: nil)
        }
        let mailbox = ByteMailbox()
        let (decoding, request, flight) = (self.services.decoding, self.request.rendering, self.flight)
        let previews = decoding.previews.run("previews") {
            await decoding.showPreviews(of: mailbox, for: request) {
                await self.keepPreview($0)
                flight.report(.preview($0))
            }
        }
        // The previews end with the bytes, however those end. The image waits for none: the lane of one that is yet to
        // be made may be busy with others.
        defer {
            mailbox.finish()
            previews.cancel()
        }
        return try await self.bytes(held: held, imagesOf: bodies, previews: mailbox)
    }

    private func bytes(
        held: EntryMetadata?,
        imagesOf bodies: Set<UInt64>,
        previews: ByteMailbox?
    ) async throws -> Body {
        let bytes = try await self.loader.bytes(
            for: self.request,
            held: held,
            imagesOf: bodies,
            mayServeStale: self.mayServeStale,
            interest: .flight(self.flight.id),
            observer: .flight(self.flight, previews: previews)
        )
        self.record.add(bytes.call?.load)
        return bytes
    }

    private func tell(_ kind: LoadActivity.Kind) {
        self.services.activities.send(kind, .picture, self.request, of: self.flight)
    }

    // MARK: Making

    private func makePicture(of bytes: Body) async throws -> ImageResponse {
        let rendering = ImageRendering(
            decoding: self.services.decoding,
            loader: self.loader,
            request: self.request,
            flight: self.flight
        )
        let picture = try await rendering.image(of: bytes)
        self.tell(.decoded(PixelSize(width: picture.image.width, height: picture.image.height)))
        try Task.checkCancellation()
        return ImageResponse(picture, bytes)
    }

    // MARK: Keeping

    /// Keeps a preview in memory where a load wants that, under a name of its own, until the image is kept.
    private func keepPreview(_ preview: Image) async {
        let demand = self.flight.demand
        guard demand.keepsPreviews, demand.pictureTiers.contains(.memory) else { return }
        let (key, flight) = (RequestKeys.preview(of: self.request.key), self.flight)
        await self.cache.keepInMemory(preview, metadata: EntryMetadata(), for: key) { flight.hasPicture }
    }

    /// Stores an image that was made, in the tiers that `request` names.
    private func keep(_ response: ImageResponse) async -> Kept<ImageResponse> {
        let kept = await self.keepInMemory(response)
        guard kept, self.request.isVariant, self.flight.demand.pictureTiers.contains(.disk) else {
            return Kept(response, isKept: kept)
        }
        let (variants, request) = (self.variants, self.request)
        guard self.flight.demand.waitsForStore else {
            // Without its entry the variant is made anew from the original.
            await self.loader.store(request.key, of: request.sourceKey) { flight in
                _ = await variants.store(response, for: request, by: flight)
                return StoredEntry(key: request.key, body: response.metadata.bodyDigest)
            }
            return Kept(response, isKept: true)
        }
        let error = await variants.store(response, for: request, by: self.flight)
        return Kept(error.map { response.withStoreError($0) } ?? response, isKept: true)
    }

    /// Removes what a reload replaces from the tiers that do not store its image.
    private func removeReplaced(from tiers: CacheTiers) async {
        guard self.plan.policy == .reload else { return }
        // Under the key of a full-size image the disk has the bytes.
        let tiers = self.request.isVariant ? tiers : tiers.subtracting(.disk)
        // An image that can't be removed is as old as it was.
        if !tiers.isEmpty { _ = try? await self.cache.remove(self.request.key, from: tiers) }
    }

    /// Stores the bytes for loads that joined when those had come already, where they want more than the ones before: to
    /// have them stored, or to wait for that.
    ///
    /// - Returns: Why they are not on disk, where a load waits.
    private func storeForLatecomers(_ bytes: Body) async -> LoadError? {
        let demand = self.flight.demand
        guard let before = bytes.keptFor, let fetched = bytes.fetched, demand.storesBytes,
            !before.storesBytes || demand.waitsForStore && !before.waitsForStore
        else { return nil }
        // Unless all have left meanwhile, or another response has replaced this one, also one of another source.
        guard (try? await self.loader.waitForTurn(of: self.flight)) != nil, self.flight.isLatest(fetched),
            self.flight.admits(bytes.metadata.bodyDigest), (try? self.flight.beginKeeping()) != nil
        else { return nil }
        return await self.services.store.keepSerialized(bytes.data, bytes.metadata, for: self.request, demand)
    }

    /// Stores an image in memory where a load wants that, unless it is made of older bytes than others.
    ///
    /// - Returns: Whether it may be in the cache, this one or another tier's.
    private func keepInMemory(_ response: ImageResponse) async -> Bool {
        guard self.flight.admits(response.metadata.bodyDigest) else { return false }
        // Asked for once: the callers that want it may leave meanwhile, and it is in the cache all the same.
        let tiers = self.flight.demand.pictureTiers
        if tiers.contains(.memory) {
            var metadata = self.request.noting(response.metadata, at: self.rules.now())
            metadata.response = metadata.response?.reduced
            let (flight, body) = (self.flight, response.metadata.bodyDigest)
            // A newer body may come meanwhile: its callers must not find this image.
            await self.cache.keepInMemory(response.image, metadata: metadata, for: self.request.key) {
                !flight.admits(body)
            }
            if self.flight.demand.showsPreviews {
                self.flight.notePicture()
                _ = try? await self.cache.remove(RequestKeys.preview(of: self.request.key), from: .memory)
            }
        }
        if !tiers.isEmpty { self.tell(.stored(tiers)) }
        return !tiers.isEmpty
    }
}

extension LoaderReference {
    /// Returns the image that `request` describes, from a flight that equal requests share.
    ///
    /// A flight that begins with this call makes the image of the bytes that are offered, which have just come.
    func picture(
        for request: ImageRequest,
        offered offer: BytesOffer? = nil,
        mayServeStale: Bool,
        interest: FlightTable.Interest,
        observer: FlightState.Observer? = nil
    ) async throws -> ImageResponse {
        let plan = self.imagePlan(for: request, offered: offer, mayServeStale: mayServeStale)
        return try await self.result(of: plan, interest: interest, observer: observer) {
            // The flight under way loads bytes of its own, and must find room for them.
            _ = offer?.take()
        }.response
    }

    func imagePlan(
        for request: ImageRequest,
        offered offer: BytesOffer? = nil,
        mayServeStale: Bool
    ) -> FlightPlan<Kept<ImageResponse>> {
        let product = FlightTable.Product(.picture, request, rules: self.services.rules, mayServeStale: mayServeStale)
        return FlightPlan(product: product, request: request) { flight in
            let load = ImageLoad(
                services: self.services,
                loader: self,
                request: request,
                offer: offer,
                mayServeStale: mayServeStale,
                flight: flight
            )
            return try await load.run()
        }
    }
}

extension ImageResponse: LoadResponse {}

extension ImageResponse {
    /// An image that was decoded from `bytes`.
    init(_ picture: DecodePipeline.MadePicture, _ bytes: Body) {
        let animation = picture.animation.map { timing in
            EntryMetadata.Animation(
                frameCount: timing.frameCount,
                loopCount: timing.loopCount,
                milliseconds: timing.totalDuration
            )
        }
        self.init(picture.image, source: bytes.source, bytes, animation)
    }

    /// An image that was made of `bytes`, now or before, and the animation that it stands for.
    init(_ image: Image, source: LoadSource, _ bytes: Body, _ animation: EntryMetadata.Animation?) {
        var metadata = bytes.metadata
        metadata.animation = animation
        self.init(
            image: image,
            source: source,
            metadata: metadata,
            data: bytes.data.isEmpty ? nil : bytes.data,
            storeError: bytes.storeError,
            revalidation: bytes.revalidation
        )
        self.mayBeKept = bytes.mayBeKept
    }
}
