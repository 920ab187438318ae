import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeDownloading
import TintypeHTTP
import TintypeImage

/// What is there already for a request.
struct StoredSource: Sendable {
    let key: CacheKey
    let metadata: EntryMetadata
    /// The encoded bytes; `nil` where only a picture in memory is left of them.
    let data: Data?
    /// What counts the bytes, where they were read to be used.
    var claim: ByteClaim?
}

/// Finds and keeps encoded bytes on disk, by the key that a request's policy asks for.
///
/// Without revalidation that is URL and headers. Where HTTP's freshness counts, it is the URL with the headers
/// that may say who asks, and those that the response's `Vary` names select among its representations (RFC 9111,
/// 4.1). The names have an entry of their own beside those of the representations.
struct SourceStore: Sendable {
    let cache: any ImageCache
    let rules: FreshnessRules

    /// The entry that a request selects, whatever its age.
    func entry(for request: ImageRequest) async throws -> StoredSource? {
        guard request.bytesUse.query.contains(.disk) else { return nil }
        guard self.usesHTTPKeys(request) else { return try await self.entry(request.sourceKey) }
        guard !Precondition.bypassesCache(request.headers),
            let stored = try await self.selected(by: request), self.mayBeHere(stored, request)
        else { return nil }
        return stored
    }

    /// The same for a load that goes on with the bytes, which count in `budget`: it waits for its turn where too many
    /// bytes are in memory already.
    func entry(for request: ImageRequest, countedIn budget: ByteBudget) async throws -> StoredSource? {
        guard request.bytesUse.query.contains(.disk) else { return nil }
        // Others may take their time, and have limits of their own.
        let isLocal = self.cache is CacheActor || self.cache is CacheGroup
        if isLocal { try await budget.beginRead() }
        defer { if isLocal { budget.endRead() } }
        guard var stored = try await self.entry(for: request) else { return nil }
        let claim = ByteClaim(budget)
        claim.set(stored.data?.count ?? 0)
        claim.hold()
        stored.claim = claim
        return stored
    }

    private func selected(by request: ImageRequest) async throws -> StoredSource? {
        let resource = self.rules.resourceKey(of: request)
        if let stored = try await self.entry(resource),
            stored.metadata.response?.isSelected(by: self.rules.headers(of: request)) ?? true
        {
            return stored
        }
        guard resource != request.sourceKey,
            let names = try await self.entry(RequestKeys.selectors(of: resource)),
            let digest = RequestSelection.digest(
                of: String(decoding: names.data ?? Data(), as: UTF8.self).split(separator: "\n").map(String.init),
                in: self.rules.headers(of: request)
            )
        else { return nil }
        let stored = try await self.entry(RequestKeys.representation(of: resource, digest: digest))
        guard let stored, stored.metadata.response?.selectionDigest == digest else { return nil }
        return stored
    }

    /// Keeps bytes for a request, in the background unless it says to wait.
    ///
    /// - Returns: Why they are not on disk, where the request waits.
    func keep(_ body: Data, metadata: EntryMetadata, for request: ImageRequest) async -> LoadError? {
        guard request.bytesUse.store.contains(.disk) else { return nil }
        let key = await self.key(for: metadata, of: request)
        guard request.options.contains(.waitForStore) else {
            await self.cache.store(nil, data: body, metadata: metadata, for: key, in: .disk)
            return nil
        }
        do {
            try await self.cache.storeAndWait(nil, data: body, metadata: metadata, for: key, in: .disk)
            return nil
        } catch {
            return LoadError(storing: error)
        }
    }

    /// Whether the disk has what a request selects.
    func contains(_ request: ImageRequest) async -> Bool {
        // Without revalidation this is the key, and it costs no read.
        if await self.cache.contains(request.sourceKey, in: .disk) { return true }
        var request = request
        request.options.remove(.refresh)
        return (try? await self.entry(for: request)) != nil
    }

    /// Removes what a request selects.
    func remove(_ request: ImageRequest) async {
        guard !request.options.contains(.skipDisk), !request.isLocal else { return }
        var request = request
        request.options.remove(.refresh)
        let stored = try? await self.entry(for: request)
        // An entry that can't be removed is found unusable again next time; nothing is lost.
        _ = try? await self.cache.remove(stored?.key ?? request.sourceKey, from: .disk)
    }

    /// Removes pictures that were made of bytes of `source` that have been replaced.
    func removePictures(_ keys: [CacheKey], of source: CacheKey) async {
        // Under the source's own key the disk has the new bytes.
        for key in keys { _ = try? await self.cache.remove(key, from: key == source ? .memory : .all) }
    }

    /// Whether HTTP permits that the response is stored: loads without its freshness store any, and a
    /// shared cache may have been a private one.
    private func mayBeHere(_ stored: StoredSource, _ request: ImageRequest) -> Bool {
        guard let record = stored.metadata.response else { return true }
        var headers = HeaderFields()
        headers["Authorization"] = request.headers["Authorization"]
        return Storability.allows(record, requestHeaders: headers, isShared: self.rules.isShared)
    }

    private func usesHTTPKeys(_ request: ImageRequest) -> Bool {
        // A load that asks nobody takes what the policy of others has stored.
        let policy = request.cachePolicy ?? self.rules.defaultPolicy
        return policy != .neverRevalidate || request.options.contains(.refreshCached)
    }

    private func entry(_ key: CacheKey) async throws -> StoredSource? {
        guard case .disk(let entry) = try await self.cache.lookUp(key, in: .disk) else { return nil }
        return StoredSource(key: key, metadata: entry.metadata, data: entry.data)
    }

    /// The key for a response; where others select otherwise, the names that they select by are kept.
    private func key(for metadata: EntryMetadata, of request: ImageRequest) async -> CacheKey {
        guard self.usesHTTPKeys(request) else { return request.sourceKey }
        let resource = self.rules.resourceKey(of: request)
        guard resource != request.sourceKey, let record = metadata.response,
            let digest = record.selectionDigest, let names = RequestSelection.names(in: record.values(for: "Vary"))
        else { return resource }
        let selectors = RequestKeys.selectors(of: resource)
        let list = Data(names.joined(separator: "\n").utf8)
        if (try? await self.entry(selectors))?.data != list {
            await self.cache.store(nil, data: list, metadata: EntryMetadata(), for: selectors, in: .disk)
        }
        return RequestKeys.representation(of: resource, digest: digest)
    }
}
