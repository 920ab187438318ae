import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeImage

/// Request to encoded bytes: from disk, else from the origin, and then onto the disk.
struct SourcePipeline: Sendable {
    let store: SourceStore
    let downloads: DownloadActor
    let priorities: LoadPriorities
    let maximumBodySize: Int
    /// The statuses that the loader takes for success.
    let acceptableStatusCodes: StatusCodes
    let rules: FreshnessRules
    let ledger: SourceLedger

    /// The bytes that `request` names, from the nearest place that has them and may answer.
    ///
    /// Stale bytes are served where that is permitted and `mayServeStale`: somebody must then revalidate them.
    /// `held` is known of a picture that the caller has. Where the disk has no bytes, the origin is asked
    /// whether that one is current; if it is, the response says so and has no bytes.
    ///
    /// - Throws: `LoadError.Code.notInCache`, `.notModified`, `DownloadError`, `CancellationError`.
    func data(
        for request: ImageRequest,
        held: EntryMetadata? = nil,
        mayServeStale: Bool,
        report: @escaping @Sendable (SourceUpdate) -> Void
    ) async throws -> DataResponse {
        let ticket = self.ledger.begin(request.sourceKey)
        defer { self.ledger.end(ticket) }
        var stored = try await self.store.entry(for: request, countedIn: self.downloads.bodyBudget)
        if let stored, let response = try self.reuse(stored, for: request, mayServeStale: mayServeStale, ticket) {
            return response
        }
        guard self.mayAskOrigin(request) else {
            throw LoadError(
                code: .notInCache,
                message: "\(request.displayURL) is not in the cache; load it without the cache-only option."
            )
        }
        try Task.checkCancellation()
        if stored == nil, let held, held.bodyDigest != nil, self.rules.policy(for: request) != .neverRevalidate {
            stored = StoredSource(key: request.key, metadata: held, data: nil)
        }
        let exchange = SourceExchange(pipeline: self, request: request, ticket: ticket, report: report)
        do {
            return try await exchange.response(validating: stored)
        } catch let error as DownloadError {
            guard let stored, let response = self.standIn(stored, for: request, error, ticket) else { throw error }
            return response
        }
    }

    /// Takes bytes that turned out to be no picture out of the disk tier.
    func discard(_ request: ImageRequest) async {
        await self.store.remove(request)
    }

    /// Whether bytes like these are ones that the disk keeps.
    func isStorable(_ body: Data, for request: ImageRequest) -> Bool {
        self.rules.isStorable(body, for: request)
    }

    // MARK: Parts

    private func mayAskOrigin(_ request: ImageRequest) -> Bool {
        guard !request.options.contains(.cacheOnly) else { return false }
        guard self.rules.policy(for: request) != .neverRevalidate else { return true }
        return !CacheControl(request.headers.values(for: "Cache-Control")).has("only-if-cached")
    }

    /// The stored bytes, where they may answer without the origin.
    private func reuse(
        _ stored: StoredSource,
        for request: ImageRequest,
        mayServeStale: Bool,
        _ ticket: SourceLedger.Ticket
    ) throws -> DataResponse? {
        let metadata = stored.metadata
        let decision = self.rules.decision(for: metadata, of: request)
        guard decision == .serve || decision == .serveWhileRevalidating && mayServeStale else { return nil }
        let isHTTP = self.rules.policy(for: request) != .neverRevalidate
        if isHTTP, Precondition.isNotModified(request.headers, stored: metadata, now: self.rules.now()) {
            throw LoadError.notModified(request)
        }
        return self.response(stored, decision == .serve ? nil : .inBackground, ticket)
    }

    /// The stored bytes in place of an origin that failed, where they may be.
    private func standIn(
        _ stored: StoredSource,
        for request: ImageRequest,
        _ error: DownloadError,
        _ ticket: SourceLedger.Ticket
    ) -> DataResponse? {
        guard error.isOriginFailure, self.rules.policy(for: request) == .honorFreshness,
            ReuseDecision.servesAfterFailure(
                stored.metadata.response?.freshness,
                headers: request.headers,
                now: self.rules.now()
            )
        else { return nil }
        return self.response(stored, .failed, ticket)
    }

    private func response(
        _ stored: StoredSource,
        _ revalidation: Revalidation?,
        _ ticket: SourceLedger.Ticket
    ) -> DataResponse {
        DataResponse(
            data: stored.data ?? Data(),
            source: stored.data == nil ? .memory : .disk,
            metadata: stored.metadata,
            headers: stored.metadata.response?.servedFields(reusedAt: self.rules.now()) ?? [:],
            revalidation: revalidation,
            ticket: ticket,
            claim: stored.claim
        )
    }
}

extension DownloadError {
    /// Whether the origin or the way to it is at fault: what RFC 5861 (4) calls an error.
    fileprivate var isOriginFailure: Bool {
        if self.code == .badStatus { return [500, 502, 503, 504].contains(self.status) }
        return [.hostNotFound, .cannotConnect, .tlsFailed, .timedOut, .connectionLost, .bodyCutShort, .invalidResponse]
            .contains(self.code)
    }
}

extension LoadError {
    /// What a caller is told that asked for news of a copy of its own.
    static func notModified(_ request: ImageRequest) -> LoadError {
        LoadError(
            code: .notModified,
            message: "\(request.displayURL) is as the request's condition says, so no bytes were sent; "
                + "use the copy that you have, or ask without the condition."
        )
    }
}
