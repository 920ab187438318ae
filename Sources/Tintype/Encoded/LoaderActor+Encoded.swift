// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import TintypeCaching
import TintypeHTTP
import TintypeRequests

extension LoaderActor {
    /// Returns the image that `request` describes, encoded as a server sends it.
    ///
    /// The loader encodes it once for all callers and stores the result in memory and on disk, where later calls find
    /// it without decoding. An animation stays one if the coder writes animations in the format, unless the request has
    /// ``LoadOptions/firstFrameOnly``; the encoding may limit its frames. The request decides whether the loader stores
    /// the decoded image as well (``ImageRequest/caching``); a server that only sends encoded images does not need it.
    /// The configuration of the memory tier has a limit of its own for encoded images.
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
        if caching.query.contains(.memory), let response = self.memory.uncheckedEncoded(request, as: encoding) {
            return response
        }
        var request = request
        if self.services.hooks.changeRequests { request = try await self.services.hooks.processed(request) }
        try request.check(fetchesAnyScheme: self.services.origins.fetchesAnyScheme)
        if caching.query.contains(.memory),
            let response = self.services.encodedMemoryResponse(for: request, encoding, countsMiss: true)
        {
            self.memory.noteHit(request, .encoded)
            if response.revalidation == .inBackground {
                await self.revalidate(request, as: encoding.limited(by: request.options), caching)
            }
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
            let choice = try await encoding.choice(for: fallback, isAnimated: false, by: self.services.encoding)
            let data = try await self.encode(fallback, as: choice.format, options: choice.options)
            let metadata = EncodedResponse.metadata(of: data, fallback, as: choice.format, origin: EntryMetadata())
            let entry = EncodedEntry(key: request.key(as: encoding), data: data, metadata: metadata)
            return EncodedResponse(entry, source: .fallback)
        }
    }

    /// Returns the encoded image at once if it is in memory and needs no revalidation.
    ///
    /// A hit neither suspends nor allocates, so an event loop can answer with it. The call counts as a use if there is a
    /// hit. Otherwise call ``encoded(_:as:caching:)``. The result is `nil` also for a stale image that HTTP permits to
    /// serve, and if the loader changes requests before it loads them.
    ///
    /// ```swift
    /// if let response = loader.cachedEncoded(request, as: .webp(quality: 75)) {
    ///     print(response.etag, response.data.count)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: The image.
    ///   - encoding: The format and the options of its coder; create it once for frequent calls.
    /// - Returns: The bytes, with their media type, tag and metadata; `nil` if only a load can answer.
    public nonisolated func cachedEncoded(
        _ request: ImageRequest,
        as encoding: OutputEncoding
    ) -> EncodedResponse? {
        if let response = self.memory.uncheckedEncoded(request, as: encoding) { return response }
        guard !self.services.hooks.changeRequests,
            (try? request.check(fetchesAnyScheme: self.services.origins.fetchesAnyScheme)) != nil,
            // The load that follows a miss counts it.
            let response = self.services.encodedMemoryResponse(for: request, encoding, countsMiss: false),
            response.revalidation == nil
        else { return nil }
        self.memory.noteHit(request, .encoded)
        return response
    }

    /// Returns the encoded image at once if the disk has it ready and it needs no revalidation.
    ///
    /// Reads from the system's page cache on the caller's thread, and does not store the image in memory. Returns `nil`
    /// unless an earlier call has read an image of the same source from the disk since its origin last changed.
    package nonisolated func readyEncoded(_ request: ImageRequest, as encoding: OutputEncoding) -> EncodedResponse? {
        guard !self.services.hooks.changeRequests, request.alternatives.isEmpty,
            (try? request.check(fetchesAnyScheme: self.services.origins.fetchesAnyScheme)) != nil
        else { return nil }
        let encoding = encoding.limited(by: request.options)
        return ReadyEncoded(request, as: encoding, .all, services: self.services, changes: self.changes)?
            .admittedResponse(from: self)
    }

    /// Opens the file on disk with an encoded image, if ``encoded(_:as:caching:)`` would serve that without the origin.
    ///
    /// The cache reads and checks the file. The caller passes its bytes on with `sendfile`.
    ///
    /// - Returns: The file, and the response without its bytes; `nil` if only a load can answer.
    /// - Throws: `LoadError` if the request makes no sense; `CancellationError` when the task is cancelled.
    package nonisolated func encodedFile(
        for request: ImageRequest,
        as encoding: OutputEncoding
    ) async throws -> (file: CachedFile, response: EncodedResponse)? {
        let request = try await self.admitted(request)
        let (key, rules) = (request.key(as: encoding.limited(by: request.options)), self.services.rules)
        let plan = rules.plan(for: request)
        let mark = self.changes.mark(of: rules.resourceKey(of: request))
        guard plan.policy != .reload, !self.services.hasGivenImage(for: request),
            let file = try await self.cache.file(for: key),
            !plan.obeysHTTP
                || rules.decision(file.metadata.response?.freshness, of: request, under: plan.policy) == .serve,
            try await self.isCurrent(file, at: key, of: request)
        else { return nil }
        // The loader has just admitted the body, and no other one has come since.
        if let body = file.metadata.bodyDigest, self.changes.isUnchanged(since: mark) {
            self.admittedBodies.insert(body, of: request.sourceKey, since: mark)
        }
        self.services.activities.send(.hit(.disk, tier: nil), .encoded, request, of: nil)
        let entry = EncodedEntry(key: key, data: Data(), metadata: file.metadata)
        return (file, EncodedResponse(entry, source: .disk))
    }

    private nonisolated func loadEncoded(
        _ request: ImageRequest,
        as encoding: OutputEncoding,
        _ caching: CacheUse
    ) async throws -> EncodedResponse {
        do {
            try Task.checkCancellation()
            let encoding = encoding.limited(by: request.options)
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
        _ encoding: OutputEncoding,
        countsMiss: Bool
    ) -> EncodedResponse? {
        let plan = self.rules.plan(for: request)
        guard plan.policy != .reload,
            let entry = self.cache.memory.encodedEntry(
                for: request.key,
                encoding: encoding.number(for: request.options),
                countsMiss: countsMiss
            )
        else { return nil }
        guard !plan.policy.servesAnyAge else { return EncodedResponse(entry, source: .memory) }
        switch self.rules.decision(entry.metadata.response?.freshness, of: request, under: plan.policy) {
        case .serve: return EncodedResponse(entry, source: .memory)
        case .serveWhileRevalidating: return EncodedResponse(entry, source: .memory, revalidation: .inBackground)
        case .revalidate: return nil
        }
    }
}
