import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeHTTP
import TintypeImage

/// Request to encoded bytes: from disk, else from the origin, and then onto the disk.
struct BytesLoad: Sendable {
    let services: LoadServices
    let request: ImageRequest
    /// What is known of a picture that is there.
    ///
    /// Where the disk has no bytes, the origin is asked whether that one is current; if it is, the response says so and
    /// has no bytes.
    let held: EntryMetadata?
    /// Whether stale bytes may be served where that is permitted; they must then be revalidated.
    let mayServeStale: Bool
    let flight: Flight

    /// The bytes, from the nearest place that has them and may answer.
    ///
    /// - Throws: `LoadError.Code.notInCache`, `.notModified`, `DownloadError`, `CancellationError`.
    func run() async throws -> DataResponse {
        let ticket = self.services.ledger.begin(self.request.sourceKey)
        defer { self.services.ledger.end(ticket) }
        var stored = try await self.services.store.entry(
            for: self.request,
            countedIn: self.services.downloads.bodyBudget
        )
        if let stored, let response = try self.reuse(stored, ticket) { return response }
        guard self.mayAskOrigin else {
            throw LoadError(
                code: .notInCache,
                message: "\(self.request.displayURL) is not in the cache; "
                    + "load it with a cache policy that asks the origin."
            )
        }
        try Task.checkCancellation()
        if stored == nil, let held, held.bodyDigest != nil, self.plan.obeysHTTP {
            stored = StoredSource(key: self.request.key, metadata: held, data: nil)
        }
        let exchange = OriginExchange(
            services: self.services,
            request: self.request,
            ticket: ticket,
            flight: self.flight
        )
        do {
            return try await exchange.response(validating: stored)
        } catch let error as DownloadError {
            guard let stored, let response = self.standIn(stored, error, ticket) else { throw error }
            return response
        }
    }

    // MARK: Parts

    private var plan: CachingPlan { self.services.rules.plan(for: self.request) }

    private var mayAskOrigin: Bool {
        guard self.plan.policy != .cacheOnly else { return false }
        guard self.plan.obeysHTTP else { return true }
        return !CacheControl(self.request.headers.values(for: "Cache-Control")).has("only-if-cached")
    }

    /// The stored bytes, where they may answer without the origin.
    private func reuse(
        _ stored: StoredSource,
        _ ticket: SourceLedger.Ticket
    ) throws -> DataResponse? {
        let metadata = stored.metadata
        let decision = self.services.rules.decision(for: metadata, of: self.request, under: self.plan.policy)
        guard decision == .serve || decision == .serveWhileRevalidating && self.mayServeStale else { return nil }
        let isHTTP = self.plan.obeysHTTP
        if isHTTP, Precondition.isNotModified(self.request.headers, stored: metadata, now: self.services.rules.now()) {
            throw LoadError.notModified(self.request)
        }
        return self.response(stored, decision == .serve ? nil : .inBackground, ticket)
    }

    /// The stored bytes in place of an origin that failed, where they may be.
    private func standIn(
        _ stored: StoredSource,
        _ error: DownloadError,
        _ ticket: SourceLedger.Ticket
    ) -> DataResponse? {
        guard error.isOriginFailure, self.plan.policy == .honorFreshness,
            ReuseDecision.servesAfterFailure(
                stored.metadata.response?.freshness,
                headers: self.request.headers,
                now: self.services.rules.now()
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
            headers: stored.metadata.response?.servedFields(reusedAt: self.services.rules.now()) ?? [:],
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
    /// What a caller is told that comes after the end.
    static let shutDown = LoadError(code: .shutDown, message: "The loader has been shut down; make another one.")

    /// What a caller is told that asked for news of a copy of its own.
    static func notModified(_ request: ImageRequest) -> LoadError {
        LoadError(
            code: .notModified,
            message: "\(request.displayURL) is as the request's condition says, so no bytes were sent; "
                + "use the copy that you have, or ask without the condition."
        )
    }
}
