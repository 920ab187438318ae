// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeFlights
import TintypeHTTP
import TintypeRequests

/// A cached response for a request.
struct StoredSource: Sendable {
    let key: CacheKey
    let metadata: EntryMetadata
    /// The name of a representation of the resource, from which the key is derived.
    var representation: CacheKey?
    /// The encoded bytes, if they were read.
    var data: Data?
    /// The name of the byte tier that had the bytes.
    var tier: String?
    /// Whether the disk has the bytes.
    ///
    /// If not, only an image in memory is left of them.
    var isOnDisk = true
    /// The claim of the bytes on the byte budget, if they were read for use.
    var claim: ByteClaim?

    /// The name of the response among the responses of its origin.
    var name: CacheKey { self.representation ?? self.key }
}

/// Finds encoded bytes on disk under the key that the policy of a request demands.
///
/// Without revalidation the key is the URL with the headers. Under policies that follow HTTP's freshness, it is the URL with
/// the headers that may identify the user, and the headers that the response's `Vary` names select among the representations
/// (RFC 9111, 4.1). The list of names has an entry of its own beside the representations (``Selectors``).
struct StoredSources: Sendable {
    let cache: CacheActor
    let rules: FreshnessRules

    enum Part {
        case metadata, bytes
    }

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
    /// Returns `nil` for a load that asks the origin first, because it reads its entry after the answer.
    func readyEntry(for request: ImageRequest) -> StoredSource? {
        let plan = self.rules.plan(for: request)
        guard plan.bytes.query.contains(.disk), plan.policy != .revalidate else { return nil }
        return self.findReady(of: request, plan) { key in
            self.cache.readyEntry(for: key).map {
                StoredSource(key: key, metadata: $0.metadata, data: $0.data, tier: $0.tier)
            }
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
    func representation(
        _ part: Part,
        of resource: CacheKey,
        selectedBy request: ImageRequest
    ) async throws -> StoredSource? {
        guard resource != request.sourceKey, let selectors = try await self.selectors(of: resource),
            let digest = VarySelection.digest(of: selectors.names, in: self.rules.headers(of: request)),
            var stored = try await self.look(for: part, of: selectors.key(of: resource, digest: digest)),
            stored.metadata.response?.selectionDigest == digest
        else { return nil }
        stored.representation = RequestKeys.representation(of: resource, digest: digest)
        return stored
    }

    func selectors(of resource: CacheKey) async throws -> Selectors? {
        try await self.look(for: .bytes, of: RequestKeys.selectors(of: resource))?.data.flatMap { Selectors($0) }
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

    // MARK: Reuse

    /// Returns a stored entry as bytes if it may answer a load without the origin.
    ///
    /// - Throws: `LoadError.Code.notModified`.
    func reuse(_ stored: StoredSource?, for request: ImageRequest, mayServeStale: Bool) throws(LoadError) -> Body? {
        guard let stored else { return nil }
        let plan = self.rules.plan(for: request)
        let decision = self.rules.decision(stored.metadata.response?.freshness, of: request, under: plan.policy)
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
            tier: stored.tier,
            metadata: stored.metadata,
            headers: stored.metadata.response?.servedFields(reusedAt: self.rules.now()) ?? [:],
            revalidation: revalidation,
            // An image in memory is not made of what the disk has.
            arrival: stored.data == nil ? nil : .read(as: stored.name),
            claim: stored.claim
        )
    }

    // MARK: Names

    /// Returns the name that the policy of `request` gives a response.
    func name(of metadata: EntryMetadata, for request: ImageRequest) -> ResponseName {
        let resource = self.rules.resourceKey(of: request)
        guard self.rules.plan(for: request).usesHTTPKeys else {
            return ResponseName(key: request.sourceKey, resource: resource)
        }
        guard resource != request.sourceKey, let record = metadata.response,
            let digest = record.selectionDigest, let fields = VarySelection.names(in: record.values(for: "Vary"))
        else { return ResponseName(key: resource, resource: resource) }
        let key = RequestKeys.representation(of: resource, digest: digest)
        return ResponseName(key: key, resource: resource, fields: fields)
    }

    // MARK: Steps

    /// Returns whether HTTP permits the stored response: loads under other policies store any response, and a shared cache may
    /// have been a private one before.
    private func mayBeHere(_ stored: StoredSource, _ request: ImageRequest) -> Bool {
        guard let record = stored.metadata.response else { return true }
        var headers = HeaderFields()
        headers["Authorization"] = request.authorization
        return Storability.allows(record, requestHeaders: headers, isShared: self.rules.isShared)
    }

    func look(for part: Part, of key: CacheKey) async throws -> StoredSource? {
        if part == .metadata {
            return try await self.cache.metadata(for: key).map { StoredSource(key: key, metadata: $0) }
        }
        guard let entry = try await self.cache.entry(for: key) else { return nil }
        return StoredSource(key: key, metadata: entry.metadata, data: entry.data, tier: entry.tier)
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
struct Selectors {
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
