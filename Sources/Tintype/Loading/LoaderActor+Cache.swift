public import FoundationEssentials
public import TintypeCaching
import TintypeCoding
import TintypeHTTP
public import TintypeImage
import TintypeRendering
public import TintypeTransforms

extension LoaderActor {
    // MARK: Bytes that are here

    /// The image in bytes that are here already, such as an upload: decoded on a lane, within the gate and the limits.
    ///
    /// Nothing is cached.
    ///
    /// - Parameters:
    ///   - data: The encoded bytes.
    ///   - thumbnail: The size to bring the image to; `nil` keeps it full size.
    ///   - transforms: What is made of the image after that.
    ///   - scaleDownLimit: The bytes of pixels that an image without a thumbnail may have; `nil` is no limit.
    ///   - coder: Decodes the image; `nil` asks the registered coders.
    ///   - options: Those that are about decoding count.
    /// - Returns: The image, upright.
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func image(
        from data: Data,
        thumbnail: Resize? = nil,
        transforms: TransformPipeline = [],
        scaleDownLimit: Int? = nil,
        coder: CustomCoder? = nil,
        options: LoadOptions = []
    ) async throws -> Image {
        let request = ImageRequest(
            url: Self.noURL,
            thumbnail: thumbnail,
            transforms: transforms,
            scaleDownLimit: scaleDownLimit,
            coder: coder,
            options: options
        )
        try request.check(fetchesAnyScheme: false)
        do {
            return try await self.services.decoding.picture(from: data, for: request.rendering).image
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// Stands in the requests of bytes that have none.
    private static let noURL = URL(filePath: "/")

    // MARK: Storing

    /// Stores the encoded bytes of `request` as if its origin had just sent them, and returns when the disk has them.
    ///
    /// It takes its turn among the loads of the source, and what was made of other bytes leaves the cache.
    ///
    /// - Parameters:
    ///   - data: The encoded bytes; they must begin like an image, or as the configuration's `isStorable` says.
    ///   - request: Names the source; what it makes of the bytes does not matter.
    ///   - headers: The fields of the response, which say how long it is fresh and how it is revalidated where the cache
    ///     policy asks for that; default none.
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
                message: "The bytes for \(request.displayURL) do not begin like a picture, so they were not stored."
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

    /// Keeps an image in memory as what `request` describes.
    ///
    /// A load of the request finds it there, as far as its cache policy trusts an image of which no response is known. The
    /// request says how long it stays, what is kept with it, and its scale. It stays whatever bytes come for other requests, and
    /// what ``encoded(_:as:caching:)`` makes of it stays in memory beside it.
    ///
    /// - Returns: Whether it is in memory, or why not; `nil` where the request keeps nothing there.
    /// - Throws: `LoadError` where the request makes no sense.
    @discardableResult
    public nonisolated func store(_ image: Image, for request: ImageRequest) async throws -> InsertOutcome? {
        let request = try await self.admitted(request)
        guard self.services.rules.plan(for: request).picture.store.contains(.memory) else { return nil }
        let metadata = request.noting(
            EntryMetadata(formatName: image.sourceFormat?.name),
            at: self.services.rules.now()
        )
        let image = image.replacingScale(request.pictureScale)
        return await self.cache.store(image, data: nil, metadata: metadata, for: request.key, in: .memory)
    }

    // MARK: Asking and removing

    /// The tiers that have what `request` describes: its image in memory, and on disk the bytes that it can be made of.
    ///
    /// Says nothing of freshness, and does not count as a use.
    public nonisolated func tiers(holding request: ImageRequest) async -> CacheTiers {
        // What can't be loaded is not there.
        guard let request = try? await self.admitted(request) else { return .none }
        var tiers = await self.cache.tiers(holding: request.key, in: request.isVariant ? .all : .memory)
        if await self.services.store.contains(request) { tiers.insert(.disk) }
        return tiers
    }

    /// Whether a load with ``CachePolicy/cacheOnly`` that asks all tiers would find what `request` describes: itself, the
    /// bytes that it can be made of, or the decoded original of a thumbnail.
    public nonisolated func contains(_ request: ImageRequest) async -> Bool {
        guard await self.tiers(holding: request).isEmpty else { return true }
        guard let request = try? await self.admitted(request) else { return false }
        return self.services.variants.decodedOriginal(for: request) != nil
    }

    /// Removes the original of `request` and all that was made of it from both tiers, and forgets its failures.
    ///
    /// A load that is under way may store what it brings after that.
    ///
    /// - Returns: Whether there was anything.
    /// - Throws: `LoadError` when a file can't be removed.
    @discardableResult
    public nonisolated func remove(_ request: ImageRequest) async throws -> Bool {
        let request = try await self.admitted(request)
        self.forgetFailures(of: request)
        // In this order: an image that was read from disk before is not put into memory after.
        let fromDisk = await self.removeFamilies(of: request, from: .disk)
        self.changes.note(self.services.rules.resourceKey(of: request))
        let fromMemory = await self.removeFamilies(of: request, from: .memory)
        let results = [try fromDisk.get(), try fromMemory.get()]
        return results.contains(true)
    }

    /// Removes what has one of the names of `request`: policies differ in how they name images with header fields.
    private nonisolated func removeFamilies(
        of request: ImageRequest,
        from tiers: CacheTiers
    ) async -> Result<Bool, any Error> {
        var isRemoved = false
        do {
            for key in Set([request.sourceKey, self.services.rules.resourceKey(of: request)]) {
                if try await self.cache.removeFamily(of: key, from: tiers) { isRemoved = true }
            }
            return .success(isRemoved)
        } catch is CancellationError {
            return .failure(CancellationError())
        } catch {
            return .failure(LoadError(storing: error))
        }
    }

    /// The file on disk that has the encoded bytes of `request`, opened, to serve them from there.
    ///
    /// A request for a variant gets the variant's own file, in the encoding that the cache chose for it: the metadata
    /// names that format, its media type and its size. Nothing is loaded, and freshness is not looked at.
    ///
    /// - Returns: The file; `nil` where the disk has none.
    /// - Throws: `LoadError` where the request makes no sense; `CancellationError` when the task is cancelled.
    public nonisolated func cachedFile(for request: ImageRequest) async throws -> CachedFile? {
        let request = try await self.admitted(request)
        guard !request.isVariant else {
            guard let file = try await self.cache.file(for: request.key) else { return nil }
            guard let body = file.metadata.bodyDigest else { return file }
            // A store that ends now may have written a variant of an older body, and removes it before the loader forgets
            // that there is a newer one.
            guard await self.admits(body, of: request.sourceKey) else { return nil }
            return try await self.cache.diskMetadata(for: request.key)?.bodyDigest == body ? file : nil
        }
        return try await self.services.store.file(selectedBy: request)
    }

    /// Forgets the failures of a source: of its bytes, and of all images of them.
    private nonisolated func forgetFailures(of request: ImageRequest) {
        for failures in [self.services.failures, self.services.undecodable] {
            failures.forgetFamily(of: request.sourceKey)
        }
    }
}
