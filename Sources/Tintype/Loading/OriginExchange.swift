// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading
import TintypeFlights
import TintypeHTTP
import TintypeRequests

/// The limits within which a loader asks origins.
struct OriginRules: Sendable {
    /// The fetcher of requests that have none of their own.
    let fetcher: any ImageFetching
    /// Whether the fetcher may know other schemes than the downloader.
    let fetchesAnyScheme: Bool
    let acceptableStatusCodes: StatusCodes
    private let maximumBodySize: Int
    private let limits: DecodingLimits

    init(_ configuration: LoaderActor.Configuration, _ downloads: DownloadActor) {
        let fetcher = configuration.fetcher ?? downloads
        self.fetcher = configuration.fetcherWrapper?(fetcher) ?? fetcher
        self.fetchesAnyScheme = configuration.fetcher.map { !($0 is DownloadActor) } ?? false
        self.acceptableStatusCodes = configuration.downloads.acceptableStatusCodes
        self.maximumBodySize = configuration.downloads.maximumBodySize
        self.limits = configuration.limits
    }

    /// Returns the most bytes that the body of a request may have.
    func maximumBodySize(of request: ImageRequest) -> Int {
        let limits = request.transport.decodingLimits ?? self.limits
        return min(limits.maximumEncodedBytes, request.transport.bodyLimit ?? self.maximumBodySize)
    }
}

/// The exchange of one load with its origin, and what the caches store of it.
struct OriginExchange: Sendable {
    let services: LoadServices
    let request: ImageRequest
    let flight: FlightState
    /// Whether it is a load; otherwise a caller gives the bytes.
    var isLoad = true

    private var rules: FreshnessRules { self.services.rules }
    private var plan: CachingPlan { self.rules.plan(for: self.request) }
    private var usesHTTP: Bool { self.plan.obeysHTTP }

    /// Asks the origin, with the validators of the stored response, if there is one.
    ///
    /// Reads its bytes if the origin confirms them.
    func response(validating known: StoredSource?) async throws -> Body {
        let isCallers = self.usesHTTP && Precondition.isConditional(self.request.headers)
        let validators = known.map { Validators($0.metadata) }
        let conditions = isCallers ? [:] : validators?.conditions ?? [:]
        let acceptsNotModified = isCallers || !conditions.isEmpty
        let (response, identity) = try await self.transfer(
            conditions,
            acceptsNotModified: acceptsNotModified,
            isRefresh: known != nil
        )
        try Task.checkCancellation()
        guard response.status == 304 else {
            return try await self.keep(response, replacing: known, identity: identity)
        }
        guard !isCallers else { throw LoadError.notModified(self.request, response.headers) }
        let (sources, budget) = (self.services.sources, self.services.downloads.bodyBudget)
        if let known, let validators, self.isAbout(known, validators, response),
            let stored = try await sources.completed(known, for: self.request, countedIn: budget)
        {
            return try await self.confirm(stored, by: response, identity: identity)
        }
        // The origin has confirmed a response that is no longer here, so ask again without a condition.
        let whole = try await self.transfer([:], acceptsNotModified: false, isRefresh: true)
        try Task.checkCancellation()
        return try await self.keep(whole.response, replacing: known, identity: whole.identity)
    }

    // MARK: Asking

    /// Returns the response of the fetcher, and the credentials of the request as the program's hook left them.
    private func transfer(
        _ conditions: HeaderFields,
        acceptsNotModified: Bool,
        isRefresh: Bool
    ) async throws -> (response: DownloadResponse, identity: String?) {
        var headers = self.request.headers + conditions
        if !self.request.isLocal, headers["Cache-Control"] == nil, let directive = self.directive {
            headers.append(directive, for: "Cache-Control")
        }
        let services = self.services
        let maximumBodySize = services.origins.maximumBodySize(of: self.request)
        let hooks = services.hooks.downloadHooks(of: self.request)
        let flight = self.flight
        var request = self.request.download(headers: headers, maximumBodySize: maximumBodySize)
        request.isRefresh = isRefresh
        request.retriesFailures = flight.demand.retriesFailed
        if acceptsNotModified { request.acceptableStatusCodes = services.origins.acceptableStatusCodes.union(304) }
        if let hooks { request = try await self.callingHook { [request] in try await hooks.prepare(request) } }
        let showBytes: @Sendable (Data) -> Void = { flight.report(.bytes($0)) }
        let fetch = Fetch(request: request, fetcher: self.request.source.fetcher?.value ?? services.origins.fetcher)
        let isOwn = (fetch.fetcher as? DownloadActor) === services.downloads
        let response: DownloadResponse
        self.tell(.downloadStarted)
        let start = ContinuousClock.now
        do {
            response = try await flight.running(fetch) { priority in
                try await fetch.fetcher.response(
                    for: fetch.request,
                    observer: FetchObserver(
                        priority: priority,
                        didProgress: { flight.report(.progress($0)) },
                        didReceive: flight.demand.showsPreviews && !(hooks?.changeResponses ?? false) ? showBytes : nil
                    )
                )
            }
        } catch is CancellationError where !isOwn && !flight.isAbandoned {
            throw self.gaveUp
        }
        // A fetcher may cancel the task in which it runs.
        if Task.isCancelled, !flight.isAbandoned { throw self.gaveUp }
        func admitted(_ response: DownloadResponse, isCounted: Bool) throws(DownloadError) -> DownloadResponse {
            try response.admitted(
                statuses: request.acceptableStatusCodes ?? services.origins.acceptableStatusCodes,
                maximumBodySize: maximumBodySize,
                countedIn: services.downloads.bodyBudget,
                isCounted: isCounted
            )
        }
        let received = try admitted(response, isCounted: isOwn)
        flight.record.note(received.metrics, within: start.duration(to: .now))
        flight.record.note(byteCount: received.body.count)
        self.tell(.downloadFinished(byteCount: received.body.count, received.metrics))
        let identity = fetch.request.headers["Authorization"] ?? fetch.request.credentials?.identity
        guard let hooks, hooks.changeResponses, received.status != 304 else { return (received, identity) }
        // Bytes that a hook holds must not stop downloads for which it may be waiting.
        received.claim?.giveBack()
        let processed = try await self.callingHook { try await hooks.process(received) }
        return (try admitted(processed, isCounted: false), identity)
    }

    /// Calls a function of the program.
    ///
    /// If it throws a `CancellationError` by itself, the load fails with `refused`.
    private func callingHook<Result>(_ call: () async throws -> Result) async throws -> Result {
        do {
            return try await call()
        } catch is CancellationError where !self.flight.isAbandoned {
            throw DownloadError(
                code: .refused,
                message: "A hook for \(self.request.displayURL) gave up as if it had been cancelled.",
                url: self.request.url
            )
        }
    }

    /// The error of a fetcher that threw a `CancellationError` although no task was cancelled.
    ///
    /// Callers must not mistake it for their own cancellation.
    private var gaveUp: DownloadError {
        DownloadError(
            code: .refused,
            message: "The fetcher of \(self.request.displayURL) gave up as if it had been cancelled; ask again.",
            url: self.request.url
        )
    }

    private func tell(_ kind: LoadActivity.Kind) {
        self.services.activities.send(kind, .bytes, self.request, of: self.isLoad ? self.flight : nil)
    }

    /// The directive for caches on the way (RFC 9111, 5.2.1).
    ///
    /// It also keeps a reload from sharing the transfer of another load.
    private var directive: String? {
        switch self.plan.policy {
        case .reload: "no-cache"
        case .revalidate: "max-age=0"
        case .neverRevalidate, .honorFreshness, .cacheOnly: nil
        }
    }

    // MARK: Answers

    /// Returns whether a 304 confirms the stored response, and not one of another URL with the same tag.
    private func isAbout(_ stored: StoredSource, _ validators: Validators, _ response: DownloadResponse) -> Bool {
        guard validators.areSelected(by: Validators(response.headers)) else { return false }
        let url = response.url.withoutCredentials.text
        if stored.metadata.sourceURL ?? url == url { return true }
        // A cache key of the user names one image, whatever its URL. A redirect is the choice of the origin, and a key
        // with the URL in it names no more than the URL.
        let own = self.request.url.withoutCredentials.text
        return self.request.cacheKey.map { own == url && !$0.contains(own) } ?? false
    }

    /// Stores a whole response, as far as rules and hooks permit it.
    func keep(
        _ response: DownloadResponse,
        replacing stored: StoredSource?,
        identity: String? = nil
    ) async throws -> Body {
        let record = self.record(of: response)
        let body = BodyDigest.value(of: response.body)
        var metadata = EntryMetadata(
            formatName: self.rules.format(of: response.body, for: self.request)?.name,
            sourceURL: response.url.withoutCredentials.text,
            mediaType: response.headers["content-type"],
            etag: response.headers["etag"],
            lastModified: response.headers["last-modified"],
            responseDate: record?.responseDate ?? self.rules.now(),
            byteCount: response.body.count,
            response: record,
            bodyDigest: body
        )
        metadata = self.request.noting(metadata, at: self.rules.now())
        // Ask the hook before the turn is bound to the store: one that ignores its cancellation must not hold up later loads.
        let mayStore = await self.services.hooks.mayStore(metadata, of: self.request)
        try self.flight.beginKeeping()
        let isAllowed = mayStore && self.isAllowed(record, identity)
        // An HTML page that says "try later" must not become the cached image.
        let isStorable = self.rules.isStorable(response.body, for: self.request)
        let (store, demand) = (self.services.store, self.flight.demand)
        var storeError: LoadError?
        // A reload replaces what is cached even if no tier stores its answer.
        let isNews = isStorable && (demand.storesAnything || self.plan.policy == .reload)
        if isNews, isAllowed {
            storeError = await self.flight.record.timing(\.store) {
                await store.keepSerialized(response.body, metadata, for: self.request, demand)
            }
            if demand.storesBytes, storeError == nil { self.tell(.stored(.disk)) }
        } else if isNews {
            await store.remove(self.request)
        }
        let name = self.services.sources.name(of: metadata, for: self.request)
        return Body(
            data: response.body,
            source: self.request.isLocal ? .file : .network,
            metadata: metadata,
            headers: record?.servedFields(reusedAt: nil) ?? response.headers,
            storeError: storeError,
            // An origin that ignores conditions may send the same bytes again.
            revalidation: stored.map { $0.metadata.bodyDigest == body ? .notModified : .modified },
            mayBeKept: isAllowed,
            arrival: isNews ? .fetched(as: name.key) : nil,
            fetched: FetchedResponse(flight: self.flight.id, name: name),
            keptFor: isAllowed && isStorable ? demand : nil,
            claim: response.claim
        )
    }

    /// Updates the stored response by a 304 (RFC 9111, 4.3.4).
    private func confirm(
        _ stored: StoredSource,
        by response: DownloadResponse,
        identity: String?
    ) async throws -> Body {
        try self.flight.beginKeeping()
        var metadata = stored.metadata
        let times = self.times(of: response)
        let old = metadata.response ?? self.assumedRecord(of: metadata)
        let record = self.rules.judged(
            old.updated(
                by: response.headers,
                requestHeaders: self.rules.headers(of: self.request),
                requestDate: times.request,
                responseDate: times.response,
                isShared: self.rules.isShared,
                wasRedirected: response.metrics.redirectCount > 0
            ),
            of: self.request
        )
        // A file has no lifetime: each load that revalidates checks it.
        metadata.response = self.request.isLocal ? nil : record
        metadata.etag = record.values(for: "ETag").first
        metadata.lastModified = record.values(for: "Last-Modified").first
        metadata.mediaType = record.values(for: "Content-Type").first
        metadata.responseDate = record.responseDate
        let body = metadata.bodyDigest ?? BodyDigest.value(of: stored.data ?? Data())
        metadata.bodyDigest = body
        let isAllowed = self.isAllowed(record, identity)
        let isNews = stored.metadata.response.map { !$0.isAsGoodAs(record) } ?? true
        let store = self.services.store
        var storeError: LoadError?
        if !isAllowed {
            await store.remove(self.request)
        } else if isNews, let data = stored.data {
            storeError = await store.keep(data, metadata: metadata, for: self.request, self.flight.demand)
        }
        let name = self.services.sources.name(of: metadata, for: self.request)
        return Body(
            data: stored.data ?? Data(),
            source: stored.data == nil ? .memory : .disk,
            metadata: metadata,
            headers: record.servedFields(reusedAt: nil),
            storeError: storeError,
            revalidation: .notModified,
            mayBeKept: isAllowed,
            arrival: .fetched(as: name.key),
            fetched: FetchedResponse(flight: self.flight.id, name: name),
            claim: stored.claim
        )
    }

    // MARK: Parts

    private func isAllowed(_ record: ResponseRecord?, _ identity: String?) -> Bool {
        guard self.usesHTTP, let record else { return true }
        guard !Precondition.bypassesCache(self.request.headers) else { return false }
        // A hook may have added an identity that the request itself does not have.
        var headers = self.request.judgedHeaders
        if let identity { headers["Authorization"] = identity }
        return Storability.allows(record, requestHeaders: headers, isShared: self.rules.isShared)
    }

    private func record(of response: DownloadResponse) -> ResponseRecord? {
        guard let status = response.status else { return nil }
        let times = self.times(of: response)
        return self.rules.judged(
            ResponseRecord(
                status: status,
                headers: response.headers,
                requestHeaders: self.rules.headers(of: self.request),
                requestDate: times.request,
                responseDate: times.response,
                isShared: self.rules.isShared,
                wasRedirected: response.metrics.redirectCount > 0
            ),
            of: self.request
        )
    }

    /// Returns the record that an entry of an older version most likely had.
    private func assumedRecord(of metadata: EntryMetadata) -> ResponseRecord {
        var headers = HeaderFields()
        if let type = metadata.mediaType { headers.append(type, for: "Content-Type") }
        if let etag = metadata.etag { headers.append(etag, for: "ETag") }
        if let date = metadata.lastModified { headers.append(date, for: "Last-Modified") }
        let date = metadata.responseDate ?? self.rules.now()
        return ResponseRecord(
            status: 200,
            headers: headers,
            requestHeaders: [:],
            requestDate: date,
            responseDate: date,
            isShared: self.rules.isShared
        )
    }

    /// Returns the times of the exchange on the clock for ages.
    private func times(of response: DownloadResponse) -> (request: Date, response: Date) {
        let now = self.rules.now()
        let offset = now.timeIntervalSince(Date())
        // A fetcher may return a time that is not finite, or that HTTP cannot write.
        func onClock(_ time: Date) -> Date {
            let time = time.addingTimeInterval(offset)
            return abs(time.timeIntervalSince(now)) < 1e10 ? time : now
        }
        return (onClock(response.requestTime), onClock(response.responseTime))
    }
}

extension DownloadResponse {
    /// Returns the response of a fetcher if it is within the limits, counted in `budget` unless it is counted already.
    ///
    /// - Throws: ``TintypeErrorCode/badStatus``, `.bodyTooLarge`, `.emptyBody`.
    fileprivate func admitted(
        statuses: StatusCodes,
        maximumBodySize: Int,
        countedIn budget: ByteBudget,
        isCounted: Bool
    ) throws(DownloadError) -> DownloadResponse {
        func refusal(_ code: DownloadError.Code, _ message: String) -> DownloadError {
            DownloadError(code: code, message: message, url: self.url, status: self.status, headers: self.headers)
        }
        var name: String { self.url.withoutCredentials.text }
        if let status, !statuses.contains(status) {
            throw refusal(.badStatus, "\(name) was answered with status \(status); check the request.")
        }
        guard self.body.count <= maximumBodySize else {
            throw refusal(
                .bodyTooLarge,
                "The body of \(name) has more bytes than the limit of \(maximumBodySize); "
                    + "raise that limit to accept it."
            )
        }
        guard !self.body.isEmpty || !(200..<300).contains(self.status ?? 200) else {
            throw refusal(.emptyBody, "The body of \(name) is empty; check what is stored there.")
        }
        guard !isCounted else { return self }
        // A fetcher that wraps a downloader may keep the response, which would count there for as long as that.
        let counted = self.claimed(in: budget)
        self.claim?.giveBack()
        return counted
    }
}

extension ImageRequest {
    /// Returns the download of the request's bytes.
    ///
    /// Properties that are `nil` take their values from the downloader's configuration.
    fileprivate func download(headers: HeaderFields, maximumBodySize: Int) -> DownloadRequest {
        var download = DownloadRequest(
            url: self.url,
            headers: headers,
            timeout: self.transport.timeouts.idle,
            maximumBodySize: maximumBodySize,
            credentials: self.source.credentials,
            allowsInvalidCertificates: self.options.contains(.allowInvalidCertificates)
        )
        download.totalTimeout = self.transport.timeouts.total
        download.cookies = self.source.cookies
        download.networkPolicy = self.transport.networkPolicy
        download.retryPolicy = self.transport.retryPolicy
        return download
    }
}
