import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeDownloading
import TintypeHTTP
import TintypeImage

/// A cached response for a request.
struct StoredSource: Sendable {
    let key: CacheKey
    let metadata: EntryMetadata
    /// The name of a representation of the resource, from which the key is derived.
    var representation: CacheKey?
    /// The encoded bytes, if they were read.
    var data: Data?
    /// Whether the disk has the bytes.
    ///
    /// If not, only an image in memory is left of them.
    var isOnDisk = true
    /// The claim of the bytes on the byte budget, if they were read for use.
    var claim: ByteClaim?

    /// The name of the response among the responses of its origin.
    var name: CacheKey { self.representation ?? self.key }
}

/// Finds and stores encoded bytes on disk under the key that the policy of a request demands.
///
/// Without revalidation the key is the URL with the headers. Under policies that follow HTTP's freshness, it is the URL with
/// the headers that may identify the user, and the headers that the response's `Vary` names select among the representations
/// (RFC 9111, 4.1). The list of names has an entry of its own beside the representations (``Selectors``).
struct ByteStore: Sendable {
    let cache: any ImageCache
    let rules: FreshnessRules
    let hooks: LoadHooks
    let activities: ActivityCenter

    /// Returns the metadata of the entry that a request selects, whatever its age, without its bytes.
    func known(of request: ImageRequest) async throws -> StoredSource? {
        let plan = self.rules.plan(for: request)
        return plan.bytes.query.contains(.disk) ? try await self.find(.metadata, of: request, plan) : nil
    }

    /// Returns false if the disk has other bytes than `body` for a request, whether or not its load queries the disk.
    func isCurrent(_ body: UInt64?, of request: ImageRequest) async throws -> Bool {
        guard !request.isLocal,
            let stored = try await self.find(.metadata, of: request, self.rules.plan(for: request))
        else { return true }
        return stored.metadata.bodyDigest == body
    }

    /// Returns the entry that a request selects, whether or not its load queries the disk.
    private func find(_ part: Part, of request: ImageRequest, _ plan: CachingPlan) async throws -> StoredSource? {
        if !plan.usesHTTPKeys {
            if let stored = try await self.look(for: part, of: request.sourceKey) { return stored }
            // The cache also has the entries that requests with other policies have stored.
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

    /// Returns the entry that a request selects, whatever its age, with its bytes, which count in `budget`.
    ///
    /// Waits for its turn if too many bytes are in memory.
    func entry(for request: ImageRequest, countedIn budget: ByteBudget) async throws -> StoredSource? {
        let plan = self.rules.plan(for: request)
        guard plan.bytes.query.contains(.disk) else { return nil }
        // A remote cache may take its time, and has limits of its own.
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

    /// Returns an entry with its bytes; `nil` if the disk no longer has them.
    func completed(
        _ known: StoredSource,
        for request: ImageRequest,
        countedIn budget: ByteBudget
    ) async throws -> StoredSource? {
        guard known.isOnDisk else { return known }
        let stored = try await self.entry(for: request, countedIn: budget)
        return stored?.metadata.bodyDigest == known.metadata.bodyDigest ? stored : nil
    }

    /// Returns the entry that a request selects, if it is ready without waiting.
    ///
    /// It counts in no budget.
    ///
    /// A load that asks the origin first reads its entry after the answer, so it has none here.
    func readyEntry(for request: ImageRequest) -> StoredSource? {
        let plan = self.rules.plan(for: request)
        guard plan.bytes.query.contains(.disk), plan.policy != .revalidate else { return nil }
        return self.findReady(of: request, plan) { key in
            self.cache.readyEntry(for: key).map { StoredSource(key: key, metadata: $0.metadata, data: $0.data) }
        }
    }

    /// Returns the body on disk that a request selects, if it is known without waiting, whether or not its load queries the
    /// disk.
    ///
    /// The disk may have one even if the result is `nil`.
    func readyBody(of request: ImageRequest) -> UInt64? {
        self.findReady(of: request, self.rules.plan(for: request)) { key in
            self.cache.readyMetadata(for: key).map { StoredSource(key: key, metadata: $0) }
        }?.metadata.bodyDigest
    }

    private func findReady(
        of request: ImageRequest,
        _ plan: CachingPlan,
        _ look: (CacheKey) -> StoredSource?
    ) -> StoredSource? {
        guard plan.usesHTTPKeys else { return look(request.sourceKey) }
        guard !Precondition.bypassesCache(request.headers), let stored = look(self.rules.resourceKey(of: request)),
            stored.metadata.response?.isSelected(by: self.rules.headers(of: request)) ?? true,
            self.mayBeHere(stored, request)
        else { return nil }
        return stored
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

    /// Returns the varying response that a request selects, even if another response without `Vary` would be found first.
    private func representation(
        _ part: Part,
        of resource: CacheKey,
        selectedBy request: ImageRequest
    ) async throws -> StoredSource? {
        guard resource != request.sourceKey, let selectors = try await self.selectors(of: resource),
            let digest = RequestSelection.digest(of: selectors.names, in: self.rules.headers(of: request)),
            var stored = try await self.look(for: part, of: selectors.key(of: resource, digest: digest)),
            stored.metadata.response?.selectionDigest == digest
        else { return nil }
        stored.representation = RequestKeys.representation(of: resource, digest: digest)
        return stored
    }

    private func selectors(of resource: CacheKey) async throws -> Selectors? {
        try await self.look(for: .bytes, of: RequestKeys.selectors(of: resource))?.data.flatMap { Selectors($0) }
    }

    // MARK: Reuse

    /// Returns a stored entry as bytes if it may answer a load without the origin.
    ///
    /// - Throws: `LoadError.Code.notModified`.
    func reuse(_ stored: StoredSource?, for request: ImageRequest, mayServeStale: Bool) throws(LoadError) -> Body? {
        guard let stored else { return nil }
        let plan = self.rules.plan(for: request)
        let decision = self.rules.decision(for: stored.metadata, of: request, under: plan.policy)
        guard decision == .serve || decision == .serveWhileRevalidating && mayServeStale else { return nil }
        if plan.obeysHTTP,
            Precondition.isNotModified(request.headers, stored: stored.metadata, now: self.rules.now())
        {
            let record = stored.metadata.response
            throw LoadError.notModified(request, record?.servedFields(reusedAt: self.rules.now()) ?? [:])
        }
        return self.body(of: stored, decision == .serve ? nil : .inBackground)
    }

    /// Returns a stored entry as bytes.
    func body(of stored: StoredSource, _ revalidation: Revalidation?) -> Body {
        Body(
            data: stored.data ?? Data(),
            source: stored.data == nil ? .memory : .disk,
            metadata: stored.metadata,
            headers: stored.metadata.response?.servedFields(reusedAt: self.rules.now()) ?? [:],
            revalidation: revalidation,
            // An image in memory is not made of what the disk has.
            arrival: stored.data == nil ? nil : .read(as: stored.name),
            claim: stored.claim
        )
    }

    // MARK: Storing

    /// Stores bytes in the form that the program's serializer gives them, if a load wants them on disk.
    ///
    /// - Returns: The reason why they are not on disk, if a load waits for the store.
    func keepSerialized(
        _ body: Data,
        _ metadata: EntryMetadata,
        for request: ImageRequest,
        _ demand: Demand
    ) async -> LoadError? {
        guard demand.storesBytes else {
            return await self.keep(body, metadata: metadata, for: request, demand)
        }
        do {
            guard let stored = try await self.hooks.serialized(body, of: request) else {
                await self.remove(request)
                return nil
            }
            var metadata = metadata
            if stored != body {
                let format = self.rules.format(of: stored, for: request)
                metadata.formatName = format?.name
                metadata.mediaType = format?.mediaType
                metadata.byteCount = stored.count
            }
            return await self.keep(stored, metadata: metadata, for: request, demand)
        } catch {
            return await self.fail(error, storing: metadata, for: request)
        }
    }

    /// Checks that a load has stored its response on disk.
    ///
    /// - Throws: `LoadError` with the reason if it has not.
    func checkStored(_ metadata: EntryMetadata, mayBeKept: Bool, of request: ImageRequest) async throws(LoadError) {
        guard mayBeKept else {
            throw LoadError(
                code: .cacheFailed,
                message: "The response for \(request.displayURL) may not be stored: "
                    + "its header fields, such as no-store, or a hook forbid it. "
                    + "A cache policy that never revalidates stores it whatever its fields say."
            )
        }
        guard await !self.contains(metadata, of: request) else { return }
        // A removal or a newer response that came since does not undo the store.
        if self.rules.plan(for: request).bytes.store.contains(.disk), await !self.cache.statistics().disks.isEmpty {
            return
        }
        throw LoadError(
            code: .cacheFailed,
            message: "\(request.displayURL) is not on disk after its load; "
                + "give the loader a disk tier and let the request store in it."
        )
    }

    /// Stores bytes for a request if any load wants that, in the background unless one waits, in place of all older ones
    /// that the request selects; if none does, removes those.
    ///
    /// - Returns: The reason why they are not on disk, if a load waits for the store.
    func keep(
        _ body: Data,
        metadata: EntryMetadata,
        for request: ImageRequest,
        _ demand: Demand
    ) async -> LoadError? {
        await self.uncancelled {
            guard demand.storesBytes else {
                await self.removeOlder(than: metadata, of: request)
                return nil
            }
            do {
                let key = try await self.key(for: metadata, of: request)
                await self.removeOlder(than: metadata, of: request, replacing: key)
                try await self.store(body, metadata, for: key, waits: demand.waitsForStore)
                return nil
            } catch {
                return await self.fail(error, storing: metadata, for: request)
            }
        }
    }

    /// Removes the older entries that a response would have replaced, although its store has failed, and reports the error.
    private func fail(_ error: any Error, storing metadata: EntryMetadata, for request: ImageRequest) async -> LoadError
    {
        await self.removeOlder(than: metadata, of: request)
        return self.activities.tell(storing: error)
    }

    /// Changes the disk to the end, although all callers of the load have left: half of a change could leave older entries.
    private func uncancelled<Result: Sendable>(_ change: @escaping @Sendable () async -> Result) async -> Result {
        await Task { await change() }.value
    }

    private func store(_ data: Data, _ metadata: EntryMetadata, for key: CacheKey, waits: Bool) async throws {
        if waits {
            try await self.cache.storeAndWait(nil, data: data, metadata: metadata, for: key, in: .disk)
        } else {
            await self.cache.store(nil, data: data, metadata: metadata, for: key, in: .disk)
        }
    }

    /// Removes the entries of older bodies that a new response for a request replaces, and all others than `key`.
    ///
    /// A load would find an entry that is left under another policy, or after the new one is lost. The disk may lose the new
    /// one at any time, so that nothing is left with which variants of older bodies can be compared: a reload removes these.
    private func removeOlder(
        than metadata: EntryMetadata,
        of request: ImageRequest,
        replacing key: CacheKey? = nil
    ) async {
        let entries = await self.entries(replacedBy: request)
        let current = entries.filter { $0.metadata.bodyDigest == metadata.bodyDigest }.map(\.key)
        for entry in entries where key.map({ $0 != entry.key }) ?? !current.contains(entry.key) {
            await self.remove(entry)
        }
        if current.isEmpty { await self.removeVariants(of: request) }
    }

    /// Returns the entries that a response for a request replaces: the entry of its own name, and the entries that it
    /// selects by HTTP's names.
    ///
    /// Only loads that use these names replace the latter, and reloads, which replace the
    /// entries of all policies.
    private func entries(replacedBy request: ImageRequest) async -> [StoredSource] {
        guard !request.isLocal else { return [] }
        let plan = self.rules.plan(for: request)
        var entries = [try? await self.look(for: .metadata, of: request.sourceKey)]
        // Without fields there is one name.
        if !request.headers.isEmpty, plan.usesHTTPKeys || plan.policy == .reload {
            let resource = self.rules.resourceKey(of: request)
            if resource != request.sourceKey {
                let other = try? await self.look(for: .metadata, of: resource)
                let headers = self.rules.headers(of: request)
                if other?.metadata.response?.isSelected(by: headers) ?? true { entries.append(other) }
            }
            entries.append(try? await self.representation(.metadata, of: resource, selectedBy: request))
        }
        return entries.compactMap { $0 }
    }

    /// Removes the variants of a request's source from disk, if the request is a reload.
    private func removeVariants(of request: ImageRequest) async {
        guard !request.isLocal, self.rules.plan(for: request).policy == .reload else { return }
        // An entry that cannot be removed is as old as it was.
        _ = try? await self.cache.removeFamily(of: request.sourceKey, from: .disk)
    }

    private func remove(_ stored: StoredSource) async {
        // An entry that cannot be removed is as old as before.
        _ = try? await self.cache.remove(stored.key, from: .disk)
    }

    /// Returns whether the disk has the response of `metadata` under the name that the request's policy gives it.
    func contains(_ metadata: EntryMetadata, of request: ImageRequest) async -> Bool {
        let name = self.name(of: metadata, for: request)
        guard name.fields != nil else { return await self.cache.contains(name.key, in: .disk) }
        let stored = try? await self.representation(
            .metadata,
            of: self.rules.resourceKey(of: request),
            selectedBy: request
        )
        return stored?.name == name.key
    }

    /// Returns whether the disk has bytes that a request selects, whether or not its load queries the disk.
    func contains(_ request: ImageRequest) async -> Bool {
        // An error of the disk fails no load.
        ((try? await self.key(selectedBy: request)) ?? nil) != nil
    }

    /// Returns the file with the bytes that a request selects, whether or not its load queries the disk.
    func file(selectedBy request: ImageRequest) async throws -> CachedFile? {
        guard let key = try await self.key(selectedBy: request), let file = try await self.cache.file(for: key) else {
            return nil
        }
        // A response that other requests select may have replaced it meanwhile.
        let isSelected = file.metadata.response?.isSelected(by: self.rules.headers(of: request)) ?? true
        return isSelected || key == request.sourceKey ? file : nil
    }

    private func key(selectedBy request: ImageRequest) async throws -> CacheKey? {
        try await self.find(.metadata, of: request, self.rules.plan(for: request))?.key
    }

    /// Removes the entries that a response for a request would replace.
    func remove(_ request: ImageRequest) async {
        let plan = self.rules.plan(for: request)
        guard plan.touchesDisk || plan.policy == .reload else { return }
        await self.uncancelled {
            for entry in await self.entries(replacedBy: request) { await self.remove(entry) }
            await self.removeVariants(of: request)
        }
    }

    /// Removes images that were made of bytes that have been replaced, from the tiers that may have them.
    func removePictures(_ obsolete: [CacheKey: CacheTiers]) async {
        for (key, tiers) in obsolete { _ = try? await self.cache.remove(key, from: tiers) }
    }

    /// Returns whether HTTP permits the stored response: loads under other policies store any response, and a shared cache may
    /// have been a private one before.
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

    /// Returns the key for a response, and stores the names of the fields that select it if they are new.
    private func key(for metadata: EntryMetadata, of request: ImageRequest) async throws -> CacheKey {
        let name = self.name(of: metadata, for: request)
        guard let fields = name.fields, let digest = metadata.response?.selectionDigest else { return name.key }
        let resource = self.rules.resourceKey(of: request)
        if let known = try await self.selectors(of: resource), known.names == fields {
            return known.key(of: resource, digest: digest)
        }
        let selectors = Selectors(names: fields)
        let list = selectors.data
        // An older list must not be found if this one can't be stored.
        let metadata = EntryMetadata(bodyDigest: BodyDigest.value(of: list))
        try await self.store(list, metadata, for: RequestKeys.selectors(of: resource), waits: true)
        // Another process may have stored the same names with a mark of its own.
        if let stored = try await self.selectors(of: resource), stored.names == fields {
            return stored.key(of: resource, digest: digest)
        }
        return selectors.key(of: resource, digest: digest)
    }

    /// Returns the name that the policy of `request` gives a response.
    func name(of metadata: EntryMetadata, for request: ImageRequest) -> ResponseName {
        let resource = self.rules.resourceKey(of: request)
        guard self.rules.plan(for: request).usesHTTPKeys else {
            return ResponseName(key: request.sourceKey, resource: resource)
        }
        guard resource != request.sourceKey, let record = metadata.response,
            let digest = record.selectionDigest, let fields = RequestSelection.names(in: record.values(for: "Vary"))
        else { return ResponseName(key: resource, resource: resource) }
        let key = RequestKeys.representation(of: resource, digest: digest)
        return ResponseName(key: key, resource: resource, fields: fields)
    }
}

/// The name of a response among the responses of its resource.
struct ResponseName: Hashable, Sendable {
    let key: CacheKey
    let resource: CacheKey
    /// The names of the request fields that select the response, if any do.
    var fields: [String]?

    /// Returns whether the disk can have both responses: neither takes the place of the other one, nor of the list of
    /// fields by which it is found.
    func isApart(from other: ResponseName) -> Bool {
        self.key != other.key && self.fields == other.fields && self.key != self.resource && other.key != other.resource
    }
}

/// The names of the request fields that select among the representations of a resource.
///
/// A list that replaces another one has a mark of its own, which is a part of the keys of its representations. So no load finds
/// representations that were stored under an older list, even if the same names come back.
private struct Selectors {
    let names: [String]
    private let mark: String

    init(names: [String]) {
        self.names = names
        self.mark = String(UInt64.random(in: .min ... .max), radix: 36)
    }

    /// Reads a list: its mark, then the names, a line each.
    init?(_ data: Data) {
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        guard let mark = lines.first else { return nil }
        self.mark = mark
        self.names = Array(lines.dropFirst())
    }

    var data: Data { Data(([self.mark] + self.names).joined(separator: "\n").utf8) }

    /// Returns the key of the representation that a request with this digest of its fields selects.
    func key(of resource: CacheKey, digest: String) -> CacheKey {
        RequestKeys.representation(of: resource, digest: "\(digest), \(self.mark)")
    }
}
