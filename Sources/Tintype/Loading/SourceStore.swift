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
    /// The encoded bytes, where they were read.
    var data: Data?
    /// Whether the disk has the bytes; elsewhere only a picture in memory is left of them.
    var isOnDisk = true
    /// What counts the bytes, where they were read to be used.
    var claim: ByteClaim?
}

/// Finds and keeps encoded bytes on disk, by the key that a request's policy asks for.
///
/// Without revalidation that is URL and headers. Where HTTP's freshness counts, it is the URL with the headers
/// that may identify the user, and those that the response's `Vary` names select among its representations (RFC 9111,
/// 4.1). The names have an entry of their own beside those of the representations.
struct SourceStore: Sendable {
    let cache: any ImageCache
    let rules: FreshnessRules

    /// What is known of the entry that a request selects, whatever its age; its bytes are not read.
    func known(of request: ImageRequest) async throws -> StoredSource? {
        let plan = self.rules.plan(for: request)
        return plan.bytes.query.contains(.disk) ? try await self.find(.metadata, of: request, plan) : nil
    }

    /// The entry that a request selects, whether or not its load asks the disk.
    private func find(_ part: Part, of request: ImageRequest, _ plan: CachingPlan) async throws -> StoredSource? {
        if !plan.usesHTTPKeys {
            if let stored = try await self.look(for: part, of: request.sourceKey) { return stored }
            // What a request of another policy has stored is in the cache as well.
            guard plan.policy == .cacheOnly, !request.headers.isEmpty else { return nil }
        }
        return try await self.findByHTTP(part, of: request)
    }

    private func findByHTTP(_ part: Part, of request: ImageRequest) async throws -> StoredSource? {
        guard !Precondition.bypassesCache(request.headers),
            let stored = try await self.selected(part, by: request), self.mayBeHere(stored, request)
        else { return nil }
        return stored
    }

    /// The entry that a request selects, whatever its age, with its bytes, which count in `budget`: waits for its turn
    /// where too many bytes are in memory already.
    func entry(for request: ImageRequest, countedIn budget: ByteBudget) async throws -> StoredSource? {
        let plan = self.rules.plan(for: request)
        guard plan.bytes.query.contains(.disk) else { return nil }
        // Others may take their time, and have limits of their own.
        let isLocal = self.cache.isLocal
        if isLocal { try await budget.beginRead() }
        defer { if isLocal { budget.endRead() } }
        guard var stored = try await self.find(.bytes, of: request, plan) else { return nil }
        let claim = ByteClaim(budget)
        claim.set(stored.data?.count ?? 0)
        claim.hold()
        stored.claim = claim
        return stored
    }

    /// What is known of an entry, with its bytes; `nil` where the disk has them no more.
    func completed(
        _ known: StoredSource,
        for request: ImageRequest,
        countedIn budget: ByteBudget
    ) async throws -> StoredSource? {
        guard known.isOnDisk else { return known }
        let stored = try await self.entry(for: request, countedIn: budget)
        return stored?.metadata.bodyDigest == known.metadata.bodyDigest ? stored : nil
    }

    /// The entry that a request selects, where that can be told without waiting; it counts in no budget.
    ///
    /// What is asked for at the origin first is read when that has answered.
    func readyEntry(for request: ImageRequest) -> StoredSource? {
        let plan = self.rules.plan(for: request)
        guard plan.bytes.query.contains(.disk), plan.policy != .revalidate else { return nil }
        guard plan.usesHTTPKeys else { return self.readyEntry(request.sourceKey) }
        guard !Precondition.bypassesCache(request.headers),
            let stored = self.readyEntry(self.rules.resourceKey(of: request)),
            stored.metadata.response?.isSelected(by: self.rules.headers(of: request)) ?? true,
            self.mayBeHere(stored, request)
        else { return nil }
        return stored
    }

    private func readyEntry(_ key: CacheKey) -> StoredSource? {
        self.cache.readyEntry(for: key).map { StoredSource(key: key, metadata: $0.metadata, data: $0.data) }
    }

    private func selected(_ part: Part, by request: ImageRequest) async throws -> StoredSource? {
        let resource = self.rules.resourceKey(of: request)
        if let stored = try await self.look(for: part, of: resource),
            stored.metadata.response?.isSelected(by: self.rules.headers(of: request)) ?? true
        {
            return stored
        }
        return try await self.representation(part, of: resource, selectedBy: request)
    }

    /// The response that varies and that a request selects, whether or not one that does not is found before it.
    private func representation(
        _ part: Part,
        of resource: CacheKey,
        selectedBy request: ImageRequest
    ) async throws -> StoredSource? {
        guard resource != request.sourceKey,
            let names = try await self.look(for: .bytes, of: RequestKeys.selectors(of: resource)),
            let digest = RequestSelection.digest(
                of: String(decoding: names.data ?? Data(), as: UTF8.self).split(separator: "\n").map(String.init),
                in: self.rules.headers(of: request)
            )
        else { return nil }
        let stored = try await self.look(
            for: part,
            of: RequestKeys.representation(of: resource, digest: digest)
        )
        guard let stored, stored.metadata.response?.selectionDigest == digest else { return nil }
        return stored
    }

    /// Keeps bytes for a request, where any load wants that, in the background unless one waits; where none does, older
    /// ones that the request selects are removed.
    ///
    /// - Returns: Why they are not on disk, where a load waits.
    func keep(
        _ body: Data,
        metadata: EntryMetadata,
        for request: ImageRequest,
        _ demand: LoadTable.Demand
    ) async -> LoadError? {
        guard demand.storesBytes else {
            await self.removeOther(than: metadata, of: request)
            return nil
        }
        do {
            let key = try await self.key(for: metadata, of: request, waits: demand.waitsForStore)
            await self.removeOtherNames(of: request, than: key)
            try await self.store(body, metadata, for: key, waits: demand.waitsForStore)
            return nil
        } catch {
            return LoadError(storing: error)
        }
    }

    private func store(_ data: Data, _ metadata: EntryMetadata, for key: CacheKey, waits: Bool) async throws {
        if waits {
            try await self.cache.storeAndWait(nil, data: data, metadata: metadata, for: key, in: .disk)
        } else {
            await self.cache.store(nil, data: data, metadata: metadata, for: key, in: .disk)
        }
    }

    /// Removes what the response that is about to be stored replaces under another name: one that did not vary yet, or
    /// what a request of another policy has stored, where it was reloaded if HTTP's freshness does not count.
    private func removeOtherNames(of request: ImageRequest, than key: CacheKey) async {
        let plan = self.rules.plan(for: request)
        // Without fields there is one name.
        guard !request.headers.isEmpty, plan.usesHTTPKeys || plan.policy == .reload else { return }
        var others: [StoredSource?] = []
        if plan.usesHTTPKeys {
            let resource = self.rules.resourceKey(of: request)
            if key != request.sourceKey { others.append(try? await self.look(for: .metadata, of: request.sourceKey)) }
            if key != resource {
                // It would be found first, whatever is stored beside it.
                let other = try? await self.look(for: .metadata, of: resource)
                let headers = self.rules.headers(of: request)
                if other?.metadata.response?.isSelected(by: headers) ?? true { others.append(other) }
            } else {
                // It would be found again where the new one is lost.
                others.append(try? await self.representation(.metadata, of: resource, selectedBy: request))
            }
        } else {
            others.append(try? await self.findByHTTP(.metadata, of: request))
        }
        for case let other? in others where other.key != key { await self.remove(other) }
    }

    /// Removes what the disk has of another body than the one of `metadata`, which is the newest and is not stored.
    private func removeOther(than metadata: EntryMetadata, of request: ImageRequest) async {
        // The disk has nothing of what is here already.
        guard !request.isLocal,
            let other = try? await self.find(.metadata, of: request, self.rules.plan(for: request)),
            other.metadata.bodyDigest != metadata.bodyDigest
        else { return }
        await self.remove(other)
    }

    private func remove(_ stored: StoredSource) async {
        // One that can't be removed is as old as it was; nothing more can be done.
        _ = try? await self.cache.remove(stored.key, from: .disk)
    }

    /// Whether the disk has the response of `metadata` under the name that the request's policy gives it.
    func contains(_ metadata: EntryMetadata, of request: ImageRequest) async -> Bool {
        await self.cache.contains(self.name(of: metadata, for: request).key, in: .disk)
    }

    /// Whether the disk has bytes that a request selects, whether or not its load asks the disk.
    func contains(_ request: ImageRequest) async -> Bool {
        // The disk fails no load; a caller that leaves does not look at the answer.
        ((try? await self.key(selectedBy: request)) ?? nil) != nil
    }

    /// The key of the bytes on disk that a request selects, whether or not its load asks the disk.
    func key(selectedBy request: ImageRequest) async throws -> CacheKey? {
        try await self.find(.metadata, of: request, self.rules.plan(for: request))?.key
    }

    /// Removes what a request selects.
    func remove(_ request: ImageRequest) async {
        let plan = self.rules.plan(for: request)
        guard plan.touchesDisk else { return }
        let stored = try? await self.find(.metadata, of: request, plan)
        // An entry that can't be removed is found unusable again next time; nothing is lost.
        _ = try? await self.cache.remove(stored?.key ?? request.sourceKey, from: .disk)
    }

    /// Removes pictures that were made of bytes that have been replaced, from the tiers that may have them.
    func removePictures(_ obsolete: [CacheKey: CacheTiers]) async {
        for (key, tiers) in obsolete { _ = try? await self.cache.remove(key, from: tiers) }
    }

    /// Whether HTTP permits that the response is stored: loads without its freshness store any, and a
    /// shared cache may have been a private one.
    private func mayBeHere(_ stored: StoredSource, _ request: ImageRequest) -> Bool {
        guard let record = stored.metadata.response else { return true }
        var headers = HeaderFields()
        headers["Authorization"] = request.authorization
        return Storability.allows(record, requestHeaders: headers, isShared: self.rules.isShared)
    }

    private enum Part {
        case metadata, bytes
    }

    private func look(for part: Part, of key: CacheKey) async throws -> StoredSource? {
        if part == .metadata {
            return try await self.cache.diskMetadata(for: key).map { StoredSource(key: key, metadata: $0) }
        }
        guard case .disk(let entry) = try await self.cache.lookUp(key, in: .disk) else { return nil }
        return StoredSource(key: key, metadata: entry.metadata, data: entry.data)
    }

    /// The key for a response; where others select otherwise, the names that they select by are kept.
    private func key(for metadata: EntryMetadata, of request: ImageRequest, waits: Bool) async throws -> CacheKey {
        let name = self.name(of: metadata, for: request)
        guard let fields = name.fields else { return name.key }
        let selectors = RequestKeys.selectors(of: self.rules.resourceKey(of: request))
        let list = Data(fields.joined(separator: "\n").utf8)
        if (try? await self.look(for: .bytes, of: selectors))?.data != list {
            try await self.store(list, EntryMetadata(), for: selectors, waits: waits)
        }
        return name.key
    }

    /// The key for a response, and the request fields that select it, where any do.
    func name(of metadata: EntryMetadata, for request: ImageRequest) -> (key: CacheKey, fields: [String]?) {
        guard self.rules.plan(for: request).usesHTTPKeys else { return (request.sourceKey, nil) }
        let resource = self.rules.resourceKey(of: request)
        guard resource != request.sourceKey, let record = metadata.response,
            let digest = record.selectionDigest, let fields = RequestSelection.names(in: record.values(for: "Vary"))
        else { return (resource, nil) }
        return (RequestKeys.representation(of: resource, digest: digest), fields)
    }
}
