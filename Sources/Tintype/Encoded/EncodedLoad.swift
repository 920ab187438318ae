// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeFlights
import TintypeHTTP
import TintypeImage
import TintypeRendering
import TintypeRequests

/// Loads an encoded image once for all of its callers: from memory or disk without decoding, or from the image.
///
/// It follows when ``ReadyEncoded`` has no answer.
struct EncodedLoad: Sendable {
    let services: LoadServices
    let loader: LoaderReference
    let request: ImageRequest
    let encoding: OutputEncoding
    let caching: CacheUse
    /// Whether the load may serve a stale entry if HTTP permits it; the caller must revalidate it then.
    let mayServeStale: Bool
    let flight: FlightState

    private var cache: CacheActor { self.services.cache }
    private var plan: CachingPlan { self.services.rules.plan(for: self.request) }
    private var key: CacheKey { self.request.key(as: self.encoding) }

    func run() async throws -> Kept<EncodedResponse> {
        let query = self.plan.policy == .reload ? CacheTiers.none : self.caching.query
        var candidate: (entry: EncodedEntry, source: LoadSource)?
        if query.contains(.memory), let entry = self.peek() {
            let decision = self.decision(entry.metadata)
            if self.flight.admits(entry.metadata.bodyDigest), self.serves(decision) {
                self.tell(.hit(.memory, tier: nil))
                let revalidation: Revalidation? = decision == .serve ? nil : .inBackground
                return Kept(EncodedResponse(entry, source: .memory, revalidation: revalidation), isKept: false)
            }
            candidate = (entry, .memory)
        }
        if query.contains(.disk), !self.services.hasGivenImage(for: self.request),
            let (entry, tier) = try await self.stored()
        {
            if try await self.mayServeStored(entry.metadata) {
                self.flight.record.note(tier: tier)
                self.tell(.hit(.disk, tier: tier))
                self.keepInMemory(entry, self.flight.demand)
                return Kept(EncodedResponse(entry, source: .disk), isKept: true)
            }
            candidate = candidate ?? (entry, .disk)
        }
        let news = BytesOffer()
        if let candidate,
            let confirmed = try await self.confirmed(candidate.entry, from: candidate.source, orOffering: news)
        {
            return confirmed
        }
        let (image, choice) = try await self.image(of: news)
        return try await self.keep(self.encode(image, as: choice), image)
    }

    // MARK: Candidates

    private func peek() -> EncodedEntry? {
        self.cache.memory.encodedEntry(for: self.request.key, encoding: self.encoding.number, countsMiss: false)
    }

    private func stored() async throws -> (entry: EncodedEntry, tier: String?)? {
        let key = self.key
        let entry = try await self.flight.record.timing(\.disk) { try await self.cache.entry(for: key) }
        guard let entry else { return nil }
        return (EncodedEntry(key: key, data: entry.data, metadata: entry.metadata), entry.tier)
    }

    private func decision(_ metadata: EntryMetadata) -> ReuseDecision {
        self.services.rules.decision(metadata.response?.freshness, of: self.request, under: self.plan.policy)
    }

    private func serves(_ decision: ReuseDecision) -> Bool {
        decision == .serve || decision == .serveWhileRevalidating && self.mayServeStale
    }

    /// Returns whether an entry on disk is fresh, and was made of the bytes that the disk has now.
    private func mayServeStored(_ metadata: EntryMetadata) async throws -> Bool {
        guard self.flight.admits(metadata.bodyDigest) else { return false }
        if self.plan.obeysHTTP, self.decision(metadata) != .serve { return false }
        // Its bytes may have been replaced before this loader was created, or by another process.
        return try await self.flight.record.timing(\.disk) {
            try await self.services.sources.isCurrent(metadata.bodyDigest, of: self.request)
        }
    }

    /// Returns the candidate with new metadata if the origin confirms its bytes; otherwise the image is made of the
    /// bytes that came.
    private func confirmed(
        _ candidate: EncodedEntry,
        from source: LoadSource,
        orOffering news: BytesOffer
    ) async throws -> Kept<EncodedResponse>? {
        guard self.plan.obeysHTTP, let body = candidate.metadata.bodyDigest else { return nil }
        let bytes = try await self.loader.bytes(
            for: self.request,
            held: candidate.metadata,
            mayServeStale: self.mayServeStale,
            interest: .flight(self.flight.id)
        )
        self.flight.record.add(bytes.call?.load)
        guard bytes.metadata.bodyDigest == body else {
            news.make(bytes)
            return nil
        }
        let origin = self.request.noting(bytes.metadata, at: self.services.rules.now())
        let metadata = EncodedResponse.metadata(candidate.metadata, renewedBy: origin)
        let entry = EncodedEntry(key: candidate.key, data: candidate.data, metadata: metadata)
        guard bytes.mayBeKept else {
            // If the cache cannot remove it, the next load finds it stale again.
            _ = try? await self.cache.remove(candidate.key, from: .all)
            return Kept(EncodedResponse(entry, source: source, revalidation: bytes.revalidation), isKept: false)
        }
        let (isKept, error) = await self.keep(entry, self.flight.demand)
        return Kept(
            EncodedResponse(entry, source: source, revalidation: bytes.revalidation, storeError: error),
            isKept: isKept
        )
    }

    // MARK: Making

    /// Loads the image and chooses its encoding.
    ///
    /// The image has its bytes if it is an animation that stays one.
    private func image(of offer: BytesOffer) async throws -> (ImageResponse, OutputEncoding.Choice) {
        var offer = offer
        while true {
            var image = try await self.loader.image(
                for: self.request,
                offered: offer,
                mayServeStale: self.mayServeStale,
                interest: .flight(self.flight.id)
            )
            self.flight.record.add(image.call?.load)
            let isAnimated = image.isAnimated && self.encoding.frameLimit != 1
            let choice = try await self.encoding.choice(
                for: image.image,
                isAnimated: isAnimated,
                by: self.services.encoding
            )
            guard isAnimated, self.services.encoding.writesAnimations(as: choice.format) else {
                image.data = nil
                return (image, choice)
            }
            guard image.data == nil else { return (image, choice) }
            // The image was in the cache, or another load has decoded it.
            let bytes = try await self.loader.bytes(
                for: self.request,
                imagesOf: Set([image.metadata.bodyDigest].compactMap(\.self)),
                mayServeStale: self.mayServeStale,
                interest: .flight(self.flight.id)
            )
            self.flight.record.add(bytes.call?.load)
            if bytes.metadata.bodyDigest == image.metadata.bodyDigest {
                image.data = bytes.data
                image.mayBeKept = image.mayBeKept && bytes.mayBeKept
                return (image, choice)
            }
            // The origin has sent a newer body, of which the image is made again.
            offer = BytesOffer()
            offer.make(bytes)
        }
    }

    private func encode(_ image: ImageResponse, as choice: OutputEncoding.Choice) async throws -> EncodedEntry {
        let data = try await self.data(of: image, as: choice)
        return EncodedEntry(
            key: self.key,
            data: data,
            metadata: EncodedResponse.metadata(
                of: data,
                image.image,
                as: choice.format,
                origin: self.request.noting(image.metadata, at: self.services.rules.now())
            )
        )
    }

    private func data(of image: ImageResponse, as choice: OutputEncoding.Choice) async throws -> Data {
        let (record, encoding) = (self.flight.record, self.services.encoding)
        guard let data = image.data else {
            return try await encoding.encode(
                image.image,
                as: choice.format,
                options: choice.options,
                maximumSide: nil,
                record
            )
        }
        // The frames are of use only here: they must not take the place of shown ones in the loader's pool.
        let frames = try await self.services.decoding.frames(
            of: data,
            named: nil,
            for: self.request.renderingRequest,
            pool: FramePool()
        )
        return try await encoding.encode(
            frames,
            as: choice.format,
            options: choice.options,
            frameLimit: self.encoding.frameLimit,
            record
        )
    }

    private func keep(_ entry: EncodedEntry, _ image: ImageResponse) async -> Kept<EncodedResponse> {
        guard entry.metadata.bodyDigest != nil else {
            await self.keepWhileGiven(entry, image.image)
            return Kept(EncodedResponse(entry, source: image.source), isKept: false)
        }
        // Read the demand once: callers may leave meanwhile, but the entry is in these tiers all the same.
        let demand = self.flight.demand
        let (isKept, error) = image.mayBeKept ? await self.keep(entry, demand) : (false, nil)
        if self.plan.policy == .reload {
            let tiers = isKept ? CacheTiers.all.subtracting(demand.encodedTiers) : .all
            // An entry that cannot be removed is as old as before.
            if !tiers.isEmpty { _ = try? await self.cache.remove(entry.key, from: tiers) }
        }
        let response = EncodedResponse(
            entry,
            source: image.source,
            revalidation: image.revalidation,
            storeError: error ?? image.storeError
        )
        return Kept(response, isKept: isKept)
    }

    /// Stores the encoding of an image that the program has stored, in memory beside that image, which no body
    /// replaces.
    private func keepWhileGiven(_ entry: EncodedEntry, _ image: Image) async {
        self.keepInMemory(entry, self.flight.demand)
        let current = self.cache.memory.peek(self.request.key)?.image
        // The program may have replaced or removed the image meanwhile.
        if current?.pixels !== image.pixels { _ = try? await self.cache.remove(entry.key, from: .memory) }
    }

    /// Stores an entry if a caller wants that, unless newer bytes have come.
    ///
    /// - Returns: Whether the cache may have it, and the reason why it is not on disk, if a caller waits for the store.
    private func keep(_ entry: EncodedEntry, _ demand: Demand) async -> (isKept: Bool, error: LoadError?) {
        guard self.keepInMemory(entry, demand) else { return (false, nil) }
        guard demand.encodedTiers.contains(.disk) else { return (!demand.encodedTiers.isEmpty, nil) }
        self.tell(.stored(.disk))
        guard demand.waitsForStore else {
            await self.cache.store(nil, data: entry.data, metadata: entry.metadata, for: entry.key, in: .disk)
            return (true, nil)
        }
        do {
            _ = try await self.flight.record.timing(\.store) {
                try await self.cache.storeAndWait(
                    nil,
                    data: entry.data,
                    metadata: entry.metadata,
                    for: entry.key,
                    in: .disk
                )
            }
            return (true, nil)
        } catch is CancellationError {
            // The callers have left; the store goes on.
            return (true, nil)
        } catch {
            return (true, self.services.activities.tell(storing: error))
        }
    }

    /// - Returns: False if newer bytes have come.
    @discardableResult
    private func keepInMemory(_ entry: EncodedEntry, _ demand: Demand) -> Bool {
        let (flight, body) = (self.flight, entry.metadata.bodyDigest)
        guard flight.admits(body) else { return false }
        guard demand.encodedTiers.contains(.memory) else { return true }
        self.tell(.stored(.memory))
        self.services.keepEncoded(entry, of: self.request, as: self.encoding) { !flight.admits(body) }
        return true
    }

    private func tell(_ kind: LoadActivity.Kind) {
        self.services.activities.send(kind, .encoded, self.request, of: self.flight)
    }
}

extension LoaderReference {
    /// Returns the image that `request` describes in an encoding, from a flight that equal requests share.
    func encoded(
        _ request: ImageRequest,
        as encoding: OutputEncoding,
        _ caching: CacheUse
    ) async throws -> EncodedResponse {
        let plan = self.encodedPlan(for: request, encoding, caching, mayServeStale: true)
        return try await self.result(of: plan, interest: .caller(self.demand(of: request, caching))).response
    }

    func demand(of request: ImageRequest, _ caching: CacheUse) -> Demand {
        Demand(request, plan: self.services.rules.plan(for: request), encoded: caching)
    }

    func encodedPlan(
        for request: ImageRequest,
        _ encoding: OutputEncoding,
        _ caching: CacheUse,
        mayServeStale: Bool
    ) -> FlightPlan<Kept<EncodedResponse>> {
        let product = FlightTable.Product(
            encoding,
            of: request,
            caching,
            rules: self.services.rules,
            mayServeStale: mayServeStale
        )
        return FlightPlan(product: product, request: request) { flight in
            let load = EncodedLoad(
                services: self.services,
                loader: self,
                request: request,
                encoding: encoding,
                caching: caching,
                mayServeStale: mayServeStale,
                flight: flight
            )
            return try await load.run()
        }
    }
}

extension EncodedResponse: LoadResponse {}

extension OutputEncoding {
    /// Returns the format and the options for an image, as ``automatic(among:frameLimit:)`` describes.
    ///
    /// - Parameters:
    ///   - image: The image, or the first frame of an animation.
    ///   - isAnimated: Whether several frames are to be encoded if the format holds them.
    ///   - pipeline: The coders, and the lanes on which pixels are read if they decide.
    /// - Returns: The choice.
    /// - Throws: `CancellationError`.
    func choice(for image: Image, isAnimated: Bool, by pipeline: EncodePipeline) async throws -> Choice {
        let choices = self.choices
        guard choices.count > 1 else { return choices[0] }
        if let own = choices.first(where: { $0.format == image.sourceFormat }) { return own }
        let animated = isAnimated ? choices.filter { pipeline.writesAnimations(as: $0.format) } : []
        if let choice = animated.first(where: { $0.format != .png }) ?? animated.first { return choice }
        // All other formats that are written hold transparency.
        guard choices[0].format == .jpeg, try await pipeline.hasTransparency(image) else { return choices[0] }
        return choices.first { $0.format != .jpeg } ?? choices[0]
    }
}
