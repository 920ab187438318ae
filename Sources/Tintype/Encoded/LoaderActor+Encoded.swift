// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeHTTP

extension LoaderActor {
    /// Returns the image that `request` describes, encoded as a server sends it.
    ///
    /// The loader encodes it once for all callers and stores the result in memory and on disk, where later calls find
    /// it without decoding. An animation gives its first frame. The request decides whether the loader stores the
    /// decoded image as well (``ImageRequest/caching``); a server that only
    /// sends encoded images does not need it. The configuration of the memory tier has a limit of its own for encoded
    /// images.
    ///
    /// ```swift
    /// let response = try await loader.encoded(request, as: .webp(quality: 75))
    /// // Content-Type: response.mediaType, ETag: response.etag, and the bytes: response.data
    /// ```
    ///
    /// - Parameters:
    ///   - request: The image.
    ///   - encoding: The format and the options of its coder; create it once for frequent calls.
    ///   - caching: The tiers for the encoded bytes; default both.
    /// - Returns: The bytes, with their media type, tag and metadata.
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func encoded(
        _ request: ImageRequest,
        as encoding: OutputEncoding,
        caching: CacheUse = .all
    ) async throws -> EncodedResponse {
        if caching.query.contains(.memory),
            let entry = request.lookUnchecked(
                accepting: self.memory.unchecked,
                { self.cache.memory.encodedEntry(for: $0, encoding: encoding.number, countsMiss: false) }
            )
        {
            if self.services.activities.isObserved { self.noteEncodedHit(request) }
            return EncodedResponse(entry, source: .memory)
        }
        var request = request
        if self.services.hooks.changeRequests { request = try await self.services.hooks.processed(request) }
        try request.check(fetchesAnyScheme: self.services.origins.fetchesAnyScheme)
        if caching.query.contains(.memory),
            let response = self.services.encodedMemoryResponse(for: request, encoding)
        {
            if self.services.activities.isObserved { self.noteEncodedHit(request) }
            if response.revalidation == .inBackground { await self.revalidate(request, as: encoding, caching) }
            return response
        }
        guard !request.alternatives.isEmpty || request.fallback != nil else {
            return try await self.loadEncoded(request, as: encoding, caching)
        }
        do {
            return try await AlternativeLoad.first(of: request) { source, isFirst in
                isFirst
                    ? try await self.loadEncoded(source, as: encoding, caching)
                    : try await self.encoded(source, as: encoding, caching: caching)
            }.value
        } catch let error as LoadError {
            let fallback = try AlternativeLoad.fallback(of: request, after: error)
            let data = try await self.encode(fallback, as: encoding.format, options: encoding.options)
            let metadata = EncodedResponse.metadata(of: data, fallback, as: encoding, origin: EntryMetadata())
            let entry = EncodedEntry(key: encoding.key(of: request.key), data: data, metadata: metadata)
            return EncodedResponse(entry, source: .fallback)
        }
    }

    /// Reports a hit of an encoded image in memory, which the cache has counted.
    @inline(never)
    private nonisolated func noteEncodedHit(_ request: ImageRequest) {
        self.services.activities.tell(.hit(.memory, tier: nil), .encoded, request)
    }

    private nonisolated func loadEncoded(
        _ request: ImageRequest,
        as encoding: OutputEncoding,
        _ caching: CacheUse
    ) async throws -> EncodedResponse {
        do {
            try Task.checkCancellation()
            let ready = ReadyEncoded(request, as: encoding, caching, services: self.services, changes: self.changes)
            if let response = await ready?.response(from: self) { return response }
            var response = try await self.reference.encoded(request, as: encoding, caching)
            // Only other callers of the load may have waited for the store.
            if !request.options.contains(.waitForStore) { response.storeError = nil }
            if response.revalidation == .inBackground { await self.revalidate(request, as: encoding, caching) }
            return response
        } catch {
            throw LoadError.wrapping(error)
        }
    }
}

extension LoadServices {
    /// Returns whether the program has stored the image in memory; encoded images on disk belong to another image then.
    func hasGivenImage(for request: ImageRequest) -> Bool {
        guard self.rules.plan(for: request).image.query.contains(.memory),
            let entry = self.cache.memory.peek(request.key)
        else { return false }
        return entry.metadata?.bodyDigest == nil
    }

    /// Stores an encoded image in memory, unless it is obsolete at that moment.
    func keepEncoded(
        _ entry: EncodedEntry,
        of request: ImageRequest,
        as encoding: OutputEncoding,
        unless isObsolete: @Sendable () -> Bool
    ) {
        var metadata = entry.metadata
        metadata.response = metadata.response?.reduced
        let kept = EncodedEntry(key: entry.key, data: entry.data, metadata: metadata)
        self.cache.memory.keepEncoded(kept, for: request.key, encoding: encoding.number, unless: isObsolete)
    }

    /// Returns the encoded image if it is in memory and may be served.
    fileprivate func encodedMemoryResponse(
        for request: ImageRequest,
        _ encoding: OutputEncoding
    ) -> EncodedResponse? {
        let plan = self.rules.plan(for: request)
        guard plan.policy != .reload,
            let entry = self.cache.memory.encodedEntry(for: request.key, encoding: encoding.number, countsMiss: true)
        else { return nil }
        guard !plan.policy.servesAnyAge else { return EncodedResponse(entry, source: .memory) }
        switch self.rules.decision(entry.metadata.response?.freshness, of: request, under: plan.policy) {
        case .serve: return EncodedResponse(entry, source: .memory)
        case .serveWhileRevalidating: return EncodedResponse(entry, source: .memory, revalidation: .inBackground)
        case .revalidate: return nil
        }
    }
}
