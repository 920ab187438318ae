import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeImage

/// Request to encoded bytes: from disk, else from the origin, and then onto the disk.
struct SourcePipeline: Sendable {
    let cache: any ImageCache
    let downloads: DownloadActor
    let maximumBodySize: Int

    /// The bytes that `request` names, from the nearest place that has them.
    ///
    /// - Throws: `LoadError.Code.notInCache`, `DownloadError`, `CancellationError`.
    func data(
        for request: ImageRequest,
        report: @escaping @Sendable (SourceUpdate) -> Void
    ) async throws -> DataResponse {
        if let cached = try await self.cachedData(for: request) { return cached }
        guard !request.options.contains(.cacheOnly) else {
            throw LoadError(
                code: .notInCache,
                message: "\(request.displayURL) is not in the cache; load it without the cache-only option."
            )
        }
        try Task.checkCancellation()
        let showBytes: @Sendable (Data) -> Void = { report(.bytes($0)) }
        let response = try await self.downloads.response(
            for: self.downloadRequest(for: request),
            observer: { report(.progress($0)) },
            bytesObserver: request.options.contains(.previews) ? showBytes : nil
        )
        try Task.checkCancellation()
        let metadata = Self.metadata(of: response)
        let storeError = await self.store(response.body, metadata: metadata, for: request)
        return DataResponse(
            data: response.body,
            source: request.isLocal ? .file : .network,
            metadata: metadata,
            storeError: storeError
        )
    }

    /// Takes bytes that turned out to be no picture out of the disk tier.
    func discard(_ request: ImageRequest) async {
        guard !request.options.contains(.skipDisk), !request.isLocal else { return }
        // An entry that can't be removed is found undecodable again next time; nothing is lost.
        _ = try? await self.cache.remove(request.sourceKey, from: .disk)
    }

    private func cachedData(for request: ImageRequest) async throws -> DataResponse? {
        guard request.bytesUse.query.contains(.disk) else { return nil }
        guard case .disk(let entry) = try await self.cache.lookUp(request.sourceKey, in: .disk) else { return nil }
        return DataResponse(data: entry.data, source: .disk, metadata: entry.metadata)
    }

    private func store(_ body: Data, metadata: EntryMetadata, for request: ImageRequest) async -> LoadError? {
        // A page that says "try later" must not become the cached picture.
        guard request.bytesUse.store.contains(.disk), metadata.formatName != nil else { return nil }
        guard request.options.contains(.waitForStore) else {
            await self.cache.store(nil, data: body, metadata: metadata, for: request.sourceKey, in: .disk)
            return nil
        }
        do {
            try await self.cache.storeAndWait(nil, data: body, metadata: metadata, for: request.sourceKey, in: .disk)
            return nil
        } catch {
            return LoadError(storing: error)
        }
    }

    private func downloadRequest(for request: ImageRequest) -> DownloadRequest {
        DownloadRequest(
            url: request.url,
            headers: request.headers,
            maximumBodySize: self.maximumBodySize,
            allowsInvalidCertificates: request.options.contains(.allowInvalidCertificates)
        )
    }

    private static func metadata(of response: DownloadResponse) -> EntryMetadata {
        EntryMetadata(
            formatName: ImageFormat(sniffing: response.body)?.name,
            sourceURL: response.url.withoutCredentials.text,
            mediaType: response.headers["content-type"],
            etag: response.headers["etag"],
            lastModified: response.headers["last-modified"],
            responseDate: Date(),
            byteCount: response.body.count
        )
    }
}
