// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeFlights
import TintypeHTTP
import TintypeImage
import TintypeRendering
import TintypeRequests

/// Loads an image once for all of its callers: from an earlier image of the same bytes, or from the bytes.
struct ImageLoad: Sendable {
    let services: LoadServices
    let loader: LoaderReference
    let request: ImageRequest
    /// Bytes that another flight has just loaded, if any.
    let offer: BytesOffer?
    /// Whether the load may serve a stale image if HTTP permits it; the caller must revalidate it then.
    let mayServeStale: Bool
    let flight: FlightState

    private var cache: CacheActor { self.services.cache }
    private var rules: FreshnessRules { self.services.rules }
    private var variants: VariantPipeline { self.services.variants }
    private var plan: CachingPlan { self.rules.plan(for: self.request) }
    private var record: LoadRecord { self.flight.record }

    func run() async throws -> Kept<ImageResponse> {
        var result = try await self.image()
        guard result.response.data == nil, self.flight.demand.keepsData,
            // Follow the flight that loads the bytes instead of depending on it: the image is valid even if that flight
            // fails. A caller that gets no bytes here loads them itself, and receives the error.
            let bytes = try? await self.loader.bytes(
                for: self.request,
                mayServeStale: self.mayServeStale,
                interest: .follower(Demand(self.request, self.rules))
            ), bytes.metadata.bodyDigest == result.response.metadata.bodyDigest
        else { return result }
        result.response.data = bytes.data
        return result
    }

    private func image() async throws -> Kept<ImageResponse> {
        var candidates: [Candidate] = []
        for place in Candidate.Place.allCases {
            guard let candidate = try await self.candidate(in: place) else { continue }
            if try await self.mayServe(candidate) {
                self.offer?.endSharing()
                if let image = try await self.image(from: candidate) { return image }
            }
            candidates.append(candidate)
        }
        let undecodable = self.services.undecodable
        // A remembered failure does not count for files, which may have changed, or for loads that ask only the cache.
        if candidates.isEmpty, !self.request.isLocal, self.plan.policy != .cacheOnly,
            let failure = undecodable.failure(
                of: self.request.key,
                for: self.request,
                retriesFailed: self.flight.demand.retriesFailed,
                under: self.plan.policy
            ),
            try await self.services.sources.known(of: self.request) == nil
        {
            self.services.activities.counters.count(\.rememberedFailures)
            throw failure
        }
        // An origin that confirms a candidate sends no body.
        var bytes = try await self.bytes(
            held: self.flight.demand.keepsData ? nil : candidates.first?.metadata,
            imagesOf: self.bodies(of: candidates)
        )
        if let image = try await self.image(confirmedBy: bytes, candidates) { return image }
        // The candidates are gone or damaged after all, and the confirmation came without bytes.
        if bytes.source == .memory { bytes = try await self.bytes() }
        let response: ImageResponse
        do {
            response = try await self.makeImageOrRemove(bytes)
        } catch let error as CodingError where self.isAboutContent(error) {
            // The bytes may have been damaged on disk, so ask the origin once more.
            guard bytes.source == .disk, self.plan.policy != .cacheOnly else {
                await undecodable.remember(error, of: self.request.key, for: self.request) {
                    await self.services.hooks.mayRemember($0, of: self.request)
                }
                throw error
            }
            // A load that holds bytes must not wait for room for more.
            bytes.claim?.giveBack()
            bytes = try await self.bytes()
            response = try await self.makeImageOrRemove(bytes)
        }
        undecodable.forget(self.request.key, for: self.request)
        // Release the bytes before the store, because the variant encoder may load other images.
        bytes.claim = nil
        guard bytes.mayBeKept else {
            await self.removeReplaced(from: .all)
            return Kept(response, isKept: false)
        }
        var result = await self.keep(response)
        await self.removeReplaced(from: CacheTiers.all.subtracting(self.flight.demand.imageTiers))
        if let error = await self.storeForLatecomers(bytes) { result.response.storeError = error }
        return result
    }

    /// Makes the image.
    ///
    /// Removes the bytes from the cache if they are not an image.
    private func makeImageOrRemove(_ bytes: Body) async throws -> ImageResponse {
        do {
            return try await self.makeImage(of: bytes)
        } catch let error as CodingError where self.isAboutContent(error) {
            // Bytes that are not stored must not remove an older, good copy.
            if bytes.source == .disk || self.rules.isStorable(bytes.data, for: self.request) {
                await self.services.store.remove(self.request)
            }
            throw error
        }
    }

    /// Returns whether the bytes are at fault.
    ///
    /// If a request's own coder fails, other coders may still read them.
    private func isAboutContent(_ error: CodingError) -> Bool {
        error.isAboutContent && self.request.rendering.coder == nil
    }

    // MARK: Candidates

    /// A cached image of the source, from which the load can make its image without the bytes.
    private enum Candidate {
        /// The places of candidates, the cheapest first.
        enum Place: CaseIterable {
            case memory, disk, decodedOriginal
        }

        /// The image in memory, and whether the load may serve it.
        case held(MemoryEntry, ReuseDecision)
        /// The variant in its own entry on disk.
        case variant(ByteEntry)
        /// The full-size image in memory, from which the load can make its image.
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
        // The image may have arrived between the caller's look-up and the start of this load.
        case .memory:
            guard self.plan.image.query.contains(.memory) else { return nil }
            return self.cache.memory.peek(self.request.key).map { .held($0, self.decision($0.metadata)) }
        case .disk:
            return try await self.record.timing(\.disk) { try await self.variants.entry(for: self.request) }.map {
                .variant($0)
            }
        case .decodedOriginal: return self.variants.decodedOriginal(for: self.request).map { .original($0) }
        }
    }

    /// Returns whether a candidate is fresh, and was made of the bytes that the disk has now.
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
        // The bytes of a variant may have been replaced before this loader was created, or by another process.
        return try await self.record.timing(\.disk) {
            try await self.services.sources.isCurrent(body, of: self.request)
        }
    }

    private func decision(_ metadata: EntryMetadata?) -> ReuseDecision {
        self.rules.decision(metadata?.response?.freshness, of: self.request, under: self.plan.policy)
    }

    /// Returns the image of a candidate, which counts as a hit; `nil` if the candidate is damaged.
    private func image(from candidate: Candidate) async throws -> Kept<ImageResponse>? {
        switch candidate {
        case .held(let entry, let decision):
            self.tell(.hit(.memory, tier: nil))
            return Kept(ImageResponse(entry, decision), isKept: false)
        case .variant(let entry):
            guard let response = try await self.variants.response(from: entry, for: self.request, self.record) else {
                return nil
            }
            self.record.note(tier: entry.tier)
            self.tell(.hit(.disk, tier: entry.tier))
            _ = await self.keepInMemory(response)
            return Kept(response, isKept: true)
        case .original(let entry):
            self.tell(.hit(.memory, tier: nil))
            return await self.keep(try await self.image(of: entry))
        }
    }

    private func image(of original: MemoryEntry) async throws -> ImageResponse {
        self.services.activities.counters.count(\.thumbnailsOfOriginals)
        return try await self.variants.image(of: original, for: self.request, self.record)
    }

    /// Returns the bodies that the load will not decode even if the origin sends or confirms them: their image is a candidate.
    private func bodies(of candidates: [Candidate]) -> Set<UInt64> {
        guard self.plan.obeysHTTP else { return [] }
        return candidates.reduce(into: []) { bodies, candidate in
            if case .original = candidate { return }
            if let body = candidate.metadata?.bodyDigest { bodies.insert(body) }
        }
    }

    /// Returns the image of a candidate that was made of the same bytes, so that the load need not decode them.
    private func image(confirmedBy bytes: Body, _ candidates: [Candidate]) async throws -> Kept<ImageResponse>? {
        guard self.plan.obeysHTTP, let body = bytes.metadata.bodyDigest else { return nil }
        for candidate in candidates where candidate.metadata?.bodyDigest == body {
            // Reading or making an image may wait for memory, so the load ends its part in shared decodes first.
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
                if kept, self.flight.demand.imageTiers.contains(.disk) {
                    await self.variants.renew(entry, metadata: response.metadata, for: self.request)
                }
                return Kept(response, isKept: kept)
            case .original(let entry):
                // If the bytes are there, the codec makes the image at the right size.
                guard bytes.source == .memory else { continue }
                bytes.sharing?.end()
                let made = try await self.image(of: entry)
                let response = ImageResponse(made.image, source: .memory, bytes, made.metadata.animation)
                return bytes.mayBeKept ? await self.keep(response) : Kept(response, isKept: false)
            }
        }
        return nil
    }

    // MARK: Bytes

    /// Returns the bytes of the image, which loads of other sizes share, and reports previews on the way.
    private func bytes(held: EntryMetadata? = nil, imagesOf bodies: Set<UInt64> = []) async throws -> Body {
        if let offered = self.offer?.take(), self.flight.admits(offered.metadata.bodyDigest) { return offered }
        let mailbox = self.flight.demand.showsPreviews ? ByteMailbox() : nil
        let previews = mailbox.map { mailbox in
            let (decoding, request, flight) = (self.services.decoding, self.request.renderingRequest, self.flight)
            return decoding.previews.run("previews") {
                await decoding.showPreviews(of: mailbox, for: request) {
                    await self.keepPreview($0)
                    flight.report(.preview($0))
                }
            }
        }
        // The previews end with the bytes. The image does not wait for a preview, whose lane may be busy with other images.
        defer {
            mailbox?.finish()
            previews?.cancel()
        }
        let bytes = try await self.loader.bytes(
            for: self.request,
            held: held,
            imagesOf: bodies,
            mayServeStale: self.mayServeStale,
            interest: .flight(self.flight.id),
            observer: .flight(self.flight, previews: mailbox)
        )
        self.record.add(bytes.call?.load)
        return bytes
    }

    private func tell(_ kind: LoadActivity.Kind) {
        self.services.activities.send(kind, .image, self.request, of: self.flight)
    }

    // MARK: Making

    private func makeImage(of bytes: Body) async throws -> ImageResponse {
        let rendering = ImageRendering(loader: self.loader, request: self.request, flight: self.flight)
        let image = try await rendering.image(of: bytes)
        self.tell(.decoded(PixelSize(width: image.image.width, height: image.image.height)))
        try Task.checkCancellation()
        return ImageResponse(image, bytes)
    }

    // MARK: Keeping

    /// Stores a preview in memory under a key of its own if a caller wants that, until the image is stored.
    private func keepPreview(_ preview: Image) async {
        let demand = self.flight.demand
        guard demand.keepsPreviews, demand.imageTiers.contains(.memory), self.flight.beginKeepingPreview() else {
            return
        }
        let (key, flight) = (RequestKeys.preview(of: self.request.key), self.flight)
        self.cache.memory.insert(preview, metadata: EntryMetadata(), for: key) { flight.keepsNoPreview }
    }

    /// Stores a new image in the tiers that `request` names.
    private func keep(_ response: ImageResponse) async -> Kept<ImageResponse> {
        let kept = await self.keepInMemory(response)
        guard kept, self.request.isVariant, self.flight.demand.imageTiers.contains(.disk) else {
            return Kept(response, isKept: kept)
        }
        let (variants, request) = (self.variants, self.request)
        guard self.flight.demand.waitsForStore else {
            // If the loader ends before the store, the variant is made again from the original.
            await self.loader.store(request.key, of: request.sourceKey) { flight in
                _ = await variants.store(response, for: request, by: flight)
                return StoredEntry(key: request.key, body: response.metadata.bodyDigest)
            }
            return Kept(response, isKept: true)
        }
        var response = response
        if let error = await variants.store(response, for: request, by: self.flight) { response.storeError = error }
        return Kept(response, isKept: true)
    }

    /// Removes the image that a reload replaces from the tiers that do not store the new one.
    private func removeReplaced(from tiers: CacheTiers) async {
        guard self.plan.policy == .reload else { return }
        // The key of a full-size image is the key of the bytes on disk.
        let tiers = self.request.isVariant ? tiers : tiers.subtracting(.disk)
        // An image that cannot be removed is as old as it was.
        if !tiers.isEmpty { _ = try? await self.cache.remove(self.request.key, from: tiers) }
    }

    /// Stores the bytes for callers that joined after they had arrived, if these callers want more than the earlier ones: the
    /// bytes on disk, or to wait for the store.
    ///
    /// - Returns: The reason why the bytes are not on disk, if a caller waits for the store.
    private func storeForLatecomers(_ bytes: Body) async -> LoadError? {
        let demand = self.flight.demand
        guard let before = bytes.keptFor, let fetched = bytes.fetched, demand.storesBytes,
            !before.storesBytes || demand.waitsForStore && !before.waitsForStore
        else { return nil }
        // Unless all callers have left meanwhile, or a response of this or another source has replaced this one.
        guard (try? await self.loader.waitForTurn(of: self.flight)) != nil, self.flight.isLatest(fetched),
            self.flight.admits(bytes.metadata.bodyDigest), (try? self.flight.beginKeeping()) != nil
        else { return nil }
        return await self.services.store.keepSerialized(bytes.data, bytes.metadata, for: self.request, demand)
    }

    /// Stores an image in memory if a caller wants that, unless newer bytes have come.
    ///
    /// - Returns: Whether any tier may have the image.
    private func keepInMemory(_ response: ImageResponse) async -> Bool {
        guard self.flight.admits(response.metadata.bodyDigest) else { return false }
        // Read the demand once: callers may leave meanwhile, but the image is in the cache all the same.
        let tiers = self.flight.demand.imageTiers
        if tiers.contains(.memory) {
            var metadata = self.request.noting(response.metadata, at: self.rules.now(), isInMemory: true)
            metadata.response = metadata.response?.reduced
            let (flight, body) = (self.flight, response.metadata.bodyDigest)
            // A newer body may come meanwhile, and its callers must not find this image.
            self.cache.memory.insert(response.image, metadata: metadata, for: self.request.key) {
                !flight.admits(body)
            }
            if self.flight.demand.showsPreviews {
                self.flight.endKeepingPreviews()
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
    /// If this call starts the flight, it makes the image of the offered bytes, which have just arrived.
    func image(
        for request: ImageRequest,
        offered offer: BytesOffer? = nil,
        mayServeStale: Bool,
        interest: FlightTable.Interest,
        observer: FlightState.Observer? = nil
    ) async throws -> ImageResponse {
        let plan = self.imagePlan(for: request, offered: offer, mayServeStale: mayServeStale)
        return try await self.result(of: plan, interest: interest, observer: observer) {
            // The flight under way loads bytes of its own and needs room for them, so release the offered ones.
            _ = offer?.take()
        }.response
    }

    func imagePlan(
        for request: ImageRequest,
        offered offer: BytesOffer? = nil,
        mayServeStale: Bool
    ) -> FlightPlan<Kept<ImageResponse>> {
        let product = FlightTable.Product(.image, request, rules: self.services.rules, mayServeStale: mayServeStale)
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
