// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCaching
import TintypeCoding
import TintypeHTTP
public import TintypeImage
import TintypeRendering
import TintypeRequests
public import TintypeTransforms

extension LoaderActor {
    // MARK: Bytes that are here

    /// Decodes bytes that the program has, such as an upload, on a lane and within the limits of memory.
    ///
    /// The loader caches nothing of it.
    ///
    /// ```swift
    /// let avatar = try await loader.image(from: data, thumbnail: .fill(width: 128, height: 128))
    /// ```
    ///
    /// - Parameters:
    ///   - data: The encoded bytes.
    ///   - thumbnail: The size to bring the image to; `nil` keeps it full size.
    ///   - transforms: The transforms to apply after that.
    ///   - scaleDownLimit: The bytes of pixels that an image without a thumbnail may have; `nil` is no limit.
    ///   - coder: The coder; `nil` chooses one of the registered coders.
    ///   - options: The options; only the ones for decoding matter.
    /// - Returns: The image, upright.
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(
        from data: Data,
        thumbnail: Resize? = nil,
        transforms: TransformPipeline = [],
        scaleDownLimit: Int? = nil,
        coder: Named<any ImageCoder>? = nil,
        options: LoadOptions = []
    ) async throws -> Image {
        let request = ImageRequest(
            source: ImageRequest.Source(url: Self.noURL),
            rendering: ImageRequest.Rendering(
                thumbnail: thumbnail,
                transforms: transforms,
                scaleDownLimit: scaleDownLimit,
                coder: coder
            ),
            options: options
        )
        try request.check(fetchesAnyScheme: false)
        do {
            return try await self.services.decoding.image(from: data, for: request.renderingRequest).image
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// The URL in the requests of bytes without one.
    private static let noURL = URL(filePath: "/")

    // MARK: Storing

    /// Stores the encoded bytes of `request` as if its origin had just sent them, and returns when the disk has them.
    ///
    /// The call takes its turn among the loads of the source. Images of other bytes leave the cache.
    ///
    /// ```swift
    /// try await loader.store(data, for: request, headers: ["Cache-Control": "max-age=86400"])
    /// ```
    ///
    /// - Parameters:
    ///   - data: The encoded bytes; they must begin like an image, or as the configuration's `isStorable` says.
    ///   - request: The request that names the source; its thumbnail and transforms do not matter.
    ///   - headers: The fields of the response, with its lifetime and validators for policies that revalidate; default
    ///     none.
    /// - Throws: `LoadError` if the bytes are not stored, as without a disk tier, or if the header fields forbid it under the
    ///   loader's cache policy; `CancellationError` when the task is cancelled.
    public nonisolated func store(
        _ data: Data,
        for request: ImageRequest,
        headers: HeaderFields = [:]
    ) async throws {
        var request = try await self.admitted(request)
        request.cachePolicy = .reload
        request.options.insert(.waitForStore)
        guard !request.isLocal, self.services.rules.plan(for: request).bytes.store.contains(.disk) else {
            throw LoadError(
                code: .cacheFailed,
                message: "The bytes of \(request.displayURL) are not kept on disk; "
                    + "name a source of the network whose original may be stored there."
            )
        }
        let limit = self.services.origins.maximumBodySize(of: request)
        guard data.count <= limit else {
            throw LoadError(
                code: .bodyTooLarge,
                message: "\(data.count) bytes are more than the limit of \(limit); "
                    + "raise that limit to accept them."
            )
        }
        guard self.services.rules.isStorable(data, for: request) else {
            throw LoadError(
                code: .notAnImage,
                message: "The bytes for \(request.displayURL) do not begin like an image, so they were not stored."
            )
        }
        do {
            let response = try await self.reference.bytes(given: data, headers, for: request)
            if let error = response.storeError { throw error }
            try await self.services.store.checkStored(response.metadata, mayBeKept: response.mayBeKept, of: request)
            self.forgetFailures(of: request)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// Stores an image in memory as the image that `request` describes.
    ///
    /// A load of the request finds it there if its cache policy accepts an image without a response. The request
    /// decides its lifetime, its extra values and its scale. The image stays whatever bytes arrive for other requests.
    /// The results of ``encoded(_:as:caching:)`` for it stay in memory as well.
    ///
    /// ```swift
    /// try await loader.store(image, for: request)
    /// ```
    ///
    /// - Returns: Whether it is in memory, or why not; `nil` if the request stores nothing there.
    /// - Throws: `LoadError` if the request makes no sense.
    @discardableResult
    public nonisolated func store(_ image: Image, for request: ImageRequest) async throws -> InsertOutcome? {
        let request = try await self.admitted(request)
        guard self.services.rules.plan(for: request).image.store.contains(.memory) else { return nil }
        let metadata = request.noting(
            EntryMetadata(formatName: image.sourceFormat?.name),
            at: self.services.rules.now()
        )
        let image = image.replacingScale(request.imageScale)
        return await self.cache.store(image, data: nil, metadata: metadata, for: request.key, in: .memory)
    }

    // MARK: Asking and removing

    /// Returns the tiers that can answer `request`: memory if it has the image, and disk if it has bytes for it.
    ///
    /// The result says nothing about freshness, and the call does not count as a use.
    ///
    /// ```swift
    /// let tiers = await loader.tiers(holding: request)  // such as [.disk]
    /// ```
    public nonisolated func tiers(holding request: ImageRequest) async -> CacheTiers {
        // A request that makes no sense is not cached.
        guard let request = try? await self.admitted(request) else { return .none }
        var tiers = await self.cache.tiers(holding: request.key, in: request.isVariant ? .all : .memory)
        if await self.services.sources.contains(request) { tiers.insert(.disk) }
        return tiers
    }

    /// Returns whether a load with ``CachePolicy/cacheOnly`` that queries all tiers would find the image of `request`,
    /// its bytes, or the decoded original of a thumbnail.
    ///
    /// ```swift
    /// let isCached = await loader.contains(request)
    /// ```
    public nonisolated func contains(_ request: ImageRequest) async -> Bool {
        guard await self.tiers(holding: request).isEmpty else { return true }
        guard let request = try? await self.admitted(request) else { return false }
        return self.services.variants.decodedOriginal(for: request) != nil
    }

    /// Removes the original of `request` and all images of it from both tiers, and forgets its failures.
    ///
    /// A load under way may store its result afterwards.
    ///
    /// ```swift
    /// let wasCached = try await loader.remove(request)
    /// ```
    ///
    /// - Returns: Whether any tier had an entry.
    /// - Throws: `LoadError` if a file cannot be removed.
    @discardableResult
    public nonisolated func remove(_ request: ImageRequest) async throws -> Bool {
        let request = try await self.admitted(request)
        self.forgetFailures(of: request)
        // In this order: an image that was read from disk before must not be stored in memory afterwards.
        let fromDisk = await self.removeFamilies(of: request, from: .disk)
        self.changes.note(self.services.rules.resourceKey(of: request))
        let fromMemory = await self.removeFamilies(of: request, from: .memory)
        let results = [try fromDisk.get(), try fromMemory.get()]
        return results.contains(true)
    }

    /// Removes the entries of a family from all tiers.
    package nonisolated func removeFamily(of key: CacheKey) async throws {
        defer { self.forgetInMemory(familyOf: key) }
        try await self.cache.removeFamily(of: key, from: .disk)
    }

    /// Removes the entries of a family, or all entries, from memory and from the disks of this machine, because other
    /// machines have changed them.
    package nonisolated func forget(familyOf key: CacheKey?) async throws {
        defer { self.forgetInMemory(familyOf: key) }
        try await self.cache.removeLocal(familyOf: key)
    }

    /// Ends a removal: an image that was read from disk before must not be stored in memory afterwards.
    private nonisolated func forgetInMemory(familyOf key: CacheKey?) {
        self.changes.note(key)
        if let key { self.cache.memory.removeFamily(of: key) } else { self.cache.memory.removeAll() }
    }

    /// Removes the entries under all names of `request`: policies differ in how they name images with header fields.
    private nonisolated func removeFamilies(
        of request: ImageRequest,
        from tiers: CacheTiers
    ) async -> Result<Bool, any Error> {
        var (isRemoved, failure): (Bool, (any Error)?) = (false, nil)
        for key in Set([request.sourceKey, self.services.rules.resourceKey(of: request)]) {
            do {
                if try await self.cache.removeFamily(of: key, from: tiers) { isRemoved = true }
            } catch is CancellationError {
                return .failure(CancellationError())
            } catch {
                // The entries under the other name must go all the same.
                failure = failure ?? LoadError(storing: error)
            }
        }
        return failure.map { .failure($0) } ?? .success(isRemoved)
    }

    /// Opens the file on disk with the encoded bytes of `request`, to serve them from there.
    ///
    /// A request for a variant gets the variant's own file, in the encoding that the cache chose. The metadata has the
    /// format, the media type and the size of that file. The call loads nothing, and ignores freshness.
    ///
    /// ```swift
    /// if let file = try await loader.cachedFile(for: request) {
    ///     print(file.path, file.offset, file.byteCount)  // for sendfile
    /// }
    /// ```
    ///
    /// - Returns: The file; `nil` if it is not on disk.
    /// - Throws: `LoadError` if the request makes no sense; `CancellationError` when the task is cancelled.
    public nonisolated func cachedFile(for request: ImageRequest) async throws -> CachedFile? {
        let request = try await self.admitted(request)
        guard !request.isVariant else {
            guard let file = try await self.cache.file(for: request.key) else { return nil }
            return try await self.isCurrent(file, at: request.key, of: request) ? file : nil
        }
        return try await self.services.sources.file(selectedBy: request)
    }

    /// Returns whether a file that was opened under `key` is of the newest bytes of `request`.
    nonisolated func isCurrent(_ file: CachedFile, at key: CacheKey, of request: ImageRequest) async throws -> Bool {
        guard let body = file.metadata.bodyDigest else { return true }
        // A store that ends now may have written an image of an older body. It removes that image before the loader
        // forgets the newer body.
        guard await self.admits(body, of: request.sourceKey) else { return false }
        // Another process, or this one before it was started anew, may have replaced the original.
        guard try await self.services.sources.isCurrent(body, of: request) else { return false }
        return try await self.cache.metadata(for: key)?.bodyDigest == body
    }

    /// Forgets the failures of a source, of its bytes and of all images.
    private nonisolated func forgetFailures(of request: ImageRequest) {
        for failures in [self.services.failures, self.services.undecodable] {
            failures.forgetFamily(of: request.sourceKey)
        }
    }
}
