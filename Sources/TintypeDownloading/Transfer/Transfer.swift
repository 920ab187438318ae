// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

/// One download: its request, its ``machine``, and the parts that do the work of it.
///
/// The machine decides what may happen when. The transfer reads the head and the body of a response, and moves the machine
/// on. The ``audience`` has the callers that wait, the ``body`` has the bytes.
///
/// Not sendable: only the loop's thread touches it.
final class Transfer {
    typealias Instant = LoopInstant

    /// The order that libcurl gets after it handed something over.
    enum Verdict {
        case proceed
        case pause
        case abort
    }

    /// The events that the engine is notified of.
    enum News {
        case head
        /// Bytes that no observer knows of; ``announce()`` must follow.
        case bytes
        case memoryShortage
    }

    let id: UInt64
    /// The request that callers made; equal requests join the transfer.
    let identity: SharedRequest
    /// The client of the caller that started the transfer; `nil` if the program names none.
    let client: WorkClient?
    /// The origin of the last request, at which the transfer has had its turn.
    var servedOrigin: String?
    private let configuration: SharedConfiguration
    private let report: (Transfer, News) -> Void
    private(set) var machine: TransferMachine
    /// The request that is sent: the callers' own, unless a hook changed it.
    private(set) var outgoing: OutgoingRequest
    var audience: TransferAudience
    var body: IncomingBody
    /// The bytes that another try need not ask for again.
    private(set) var resumption: Resumption?
    /// Whether the first bytes came from the store, and must be removed there.
    var usedStoredPart = false
    var metrics = TransferMetrics()
    /// The lines of responses that may have put a cookie into the jar since its store was last notified.
    private var cookieCount = 0
    /// A hook that runs, or a search for the first bytes of the body.
    var task: Task<Void, Never>?
    /// The actor whose hooks the response must pass, if there are any.
    var owner: DownloadActor?

    /// Creates a transfer for callers that ``join(_:)`` it, or for the reader of `channel`.
    init(
        id: UInt64,
        request: SharedRequest,
        address: ResourceAddress,
        configuration: SharedConfiguration,
        bodyBudget: ByteBudget,
        client: WorkClient?,
        channel: BodyChannel? = nil,
        priority: DownloadPriority = .normal,
        report: @escaping (Transfer, News) -> Void
    ) {
        self.id = id
        self.identity = request
        self.client = client
        self.configuration = configuration
        self.report = report
        self.outgoing = OutgoingRequest(request, address: address, configuration: configuration)
        let limits = self.outgoing.limits
        self.machine = TransferMachine(limits: limits)
        self.audience = TransferAudience(channel: channel, priority: priority)
        self.body = IncomingBody(limit: limits.maximumBodySize, budget: bodyBudget)
    }

    // MARK: The request

    var request: DownloadRequest { self.outgoing.request }
    var address: ResourceAddress { self.outgoing.address }
    var limits: TransferLimits { self.machine.limits }
    var isStream: Bool { self.audience.channel != nil }

    /// Sends `request`, which a hook has made of the callers' own.
    func replace(_ request: DownloadRequest, address: ResourceAddress) {
        self.outgoing = OutgoingRequest(SharedRequest(request), address: address, configuration: self.configuration)
        self.machine.limits = self.outgoing.limits
        self.body.reset(limit: self.limits.maximumBodySize)
    }

    /// Goes to the target of a redirect.
    func redirect(to target: ResourceAddress) {
        self.outgoing.redirect(to: target)
        self.metrics.redirectCount += 1
    }

    /// Goes back to the first address, for another try.
    func restart() {
        self.outgoing.restart()
        self.body.restart()
        self.metrics.redirectCount = 0
    }

    // MARK: The machine

    /// Moves the machine on; the engine does what it says.
    func transition(_ event: TransferMachine.Event, at now: Instant) -> TransferMachine.Action {
        self.machine.transition(event, at: now)
    }

    /// Whether the whole head of the final response (not of an informational one) is here.
    var hasHead: Bool { self.machine.exchange?.body != nil }
    /// Whether bytes may come that are neither head nor body.
    var hasWatchedFraming: Bool { self.machine.exchange?.body?.plan.hasWatchedFraming ?? false }
    var status: Int? { self.machine.exchange?.status }
    /// Whether the request accepts the status of the response.
    var isSuccess: Bool { self.status.map(self.limits.acceptableStatusCodes.contains) ?? false }
    /// Whether the request that was sent last asked for the rest.
    var hasAskedForRest: Bool { self.machine.exchange?.asksForRest ?? false }
    private var expectedBytes: Int64? { self.machine.exchange?.body?.plan.expectedBytes }
    private var rules: ResponseRules {
        ResponseRules(
            method: self.request.method,
            requestHeaders: self.outgoing.headers,
            limits: self.limits,
            asksForRest: self.asksForRest
        )
    }

    /// The state of the response that is on its way, or came last.
    private var response: ResponseState {
        var response = ResponseState(address: self.address, receivedBytes: self.body.receivedBytes)
        if let exchange = self.machine.exchange {
            response.status = exchange.status
            response.headers = exchange.fields
            response.hasHead = exchange.body != nil
        }
        return response
    }

    /// Ends the request with an error, unless it has another one.
    func stop(_ failure: DownloadError, at now: Instant) {
        _ = self.transition(.stop(.failure(failure)), at: now)
    }

    private func abort(_ failure: DownloadError, at now: Instant) -> Verdict {
        self.stop(failure, at: now)
        return .abort
    }

    /// Ends the request for another reason than a failure of its own.
    private func abort(_ reason: TransferMachine.StopReason, at now: Instant) -> Verdict {
        _ = self.transition(.stop(reason), at: now)
        return .abort
    }

    // MARK: The audience

    /// Adds a caller that waits.
    func join(_ waiter: TransferWaiter) {
        self.audience.join(waiter, body: self.body.buffer, expectedBytes: self.expectedBytes)
    }

    /// Notifies observers of the bytes that have come since the last time.
    func announce() {
        self.audience.announce(self.body.buffer, expectedBytes: self.expectedBytes)
    }

    // MARK: The head

    /// Takes one line of a head: the status line, a field, or the empty line after the last.
    func receive(headerLine bytes: UnsafeRawBufferPointer, at now: Instant) -> Verdict {
        let isIndented = bytes.first == UInt8(ascii: " ") || bytes.first == UInt8(ascii: "\t")
        let previous = isIndented ? self.machine.exchange?.fields.last?.name : nil
        // It continues no field (RFC 9112, 2.2), and some would take it for one.
        if isIndented, previous == nil {
            return self.abort(.invalidResponse("its first field begins with white space", at: self.address), at: now)
        }
        let line = HeaderLine(bytes, after: previous)
        var isMultiplexed = false
        switch line {
        case .status(let status):
            // libcurl takes any three digits over HTTP/2 (RFC 9110, 15).
            guard status >= 100 else {
                return self.abort(.invalidResponse("its status is \(status)", at: self.address), at: now)
            }
            isMultiplexed = !bytes.starts(with: "HTTP/1".utf8)
            if self.isChallenged { _ = self.transition(.answerChallenge, at: now) }
        case .field(let name, _): self.countCookie(inField: name)
        case .continuation, .end, .malformed: break
        }
        let event = TransferMachine.Event.line(line, byteCount: bytes.count, isMultiplexed: isMultiplexed)
        switch self.transition(event, at: now) {
        case .proceed: return .proceed
        case .readHead: return self.readHead(at: now)
        case .refuseHead:
            let limit = self.limits.maximumHeaderSize
            return self.abort(.invalidResponse("its header has more than \(limit) bytes", at: self.address), at: now)
        case .refuseResponse:
            guard self.isSuccess else { return self.abort(.unwanted, at: now) }
            return self.abort(.cutShort(self.response, "when another response began"), at: now)
        default: return .abort
        }
    }

    /// Whether the response that is here is a challenge that libcurl has answered.
    private var isChallenged: Bool {
        guard self.outgoing.answersChallenges, let status = self.status else { return false }
        return (status == 401 || status == 407) && self.body.receivedBytes == 0
    }

    private func countCookie(inField name: String) {
        guard self.outgoing.cookieJar != nil, !self.hasHead, name.lowercased() == "set-cookie" else { return }
        self.cookieCount += 1
    }

    /// Lets the jar keep to its limits; a cookie was in it before this.
    func settleCookies() {
        guard self.cookieCount > 0 else { return }
        self.outgoing.cookieJar?.store.didReceive(self.cookieCount)
        self.cookieCount = 0
    }

    private func readHead(at now: Instant) -> Verdict {
        self.report(self, .head)
        self.body.decoder = nil
        let (rules, response) = (self.rules, self.response)
        guard let status = response.status else { return .abort }
        do throws(DownloadError) {
            let declared = try ResponseRules.declaredLength(of: response)
            var plan = rules.plan(status: status, fields: response.headers, declared: declared, date: Date())
            guard plan.isWanted else {
                _ = self.transition(.expect(plan), at: now)
                guard declared ?? 0 > TransferMachine.discardLimit, !self.outgoing.answersChallenges else {
                    return .proceed
                }
                return self.abort(.unwanted, at: now)
            }
            try rules.checkHead(of: response)
            guard self.applyResumption(response, isIdentity: plan.codings == .identity, at: now) else {
                return self.abort(.restart, at: now)
            }
            // If the response brings the rest, its fields are the fields of the whole by now.
            try rules.checkContentType(of: self.response)
            self.body.decoder = try self.makeDecoder(plan.codings)
            if let declared, rules.method != .head, status != 304 {
                let (total, overflow) = declared.addingReportingOverflow(Int64(self.body.count))
                if let resumption, overflow || total > Int64(resumption.total) {
                    return self.abort(.restart, at: now)
                }
                guard !overflow, total <= Int64(self.limits.maximumBodySize) else {
                    throw .bodyTooLarge(
                        limit: self.limits.maximumBodySize,
                        declared: overflow ? declared : total,
                        of: response
                    )
                }
                if plan.codings == .identity { plan.expectedBytes = self.resumption.map { Int64($0.total) } ?? total }
                if !self.isStream { self.body.reserve(declared: Int(total)) }
            }
            _ = self.transition(.expect(plan), at: now)
            self.announceHead(expectedBytes: plan.expectedBytes)
        } catch {
            return self.abort(error, at: now)
        }
        return .proceed
    }

    private func announceHead(expectedBytes: Int64?) {
        guard let channel = self.audience.channel else {
            // The bytes of an earlier try belong to the image for sure by now.
            self.announce()
            return
        }
        let response = self.response
        channel.receive(
            DownloadStream.Head(
                status: response.status ?? 0,
                headers: response.headers,
                url: self.finalURL,
                expectedBytes: expectedBytes
            )
        )
    }

    private func makeDecoder(_ codings: ContentCodings) throws(DownloadError) -> ContentDecoder? {
        guard case .known(let codings) = codings else { return nil }
        do throws(ContentDecoder.Failure) {
            return try ContentDecoder(codings, limit: self.limits.maximumBodySize)
        } catch {
            throw .undecodable(error, limit: self.limits.maximumBodySize, of: self.response)
        }
    }

    // MARK: The body

    /// Takes bytes of the body.
    ///
    /// - Parameters:
    ///   - bytes: The received bytes.
    ///   - now: The time.
    ///   - mayDecode: Receives the number of decoded bytes, including bytes between two codings; returns false if other
    ///     transfers must have a turn first.
    /// - Returns: The order for libcurl.
    func receive(body bytes: UnsafeRawBufferPointer, at now: Instant, mayDecode: (Int) -> Bool) -> Verdict {
        switch self.transition(.bytes(bytes.count), at: now) {
        case .take: break
        case .discard: return .proceed
        case .hold: return .pause
        default: return .abort
        }
        guard let decoder = self.body.decoder else { return self.take(bytes, at: now) }
        let isShown = self.audience.isShown
        if let wanted = self.body.claimRoom(for: 0, isShown: isShown) { return self.waitForMemory(wanted, at: now) }
        defer { self.body.claimHeldBytes(isShown: isShown) }
        do throws(ContentDecoder.Failure) {
            return try decoder.decode(bytes, mayGoOn: mayDecode) {
                mayDecode($0.count) ? self.take($0, at: now) : .pause
            }
        } catch {
            return self.abort(.undecodable(error, limit: self.limits.maximumBodySize, of: self.response), at: now)
        }
    }

    /// Takes bytes of the representation.
    private func take(_ bytes: UnsafeRawBufferPointer, at now: Instant) -> Verdict {
        if let channel = self.audience.channel { return self.stream(bytes, into: channel, at: now) }
        if let resumption, bytes.count > resumption.total - self.body.count { return self.abort(.restart, at: now) }
        switch self.body.append(bytes, isShown: self.audience.isShown) {
        case .taken:
            if self.audience.noteBytes() { self.report(self, .bytes) }
            return .proceed
        case .tooLarge:
            return self.abort(.bodyTooLarge(limit: self.body.limit, declared: nil, of: self.response), at: now)
        case .outOfMemory: return self.abort(.outOfMemory(at: self.address), at: now)
        case .noRoom(let wanted): return self.waitForMemory(wanted, at: now)
        }
    }

    private func stream(_ bytes: UnsafeRawBufferPointer, into channel: BodyChannel, at now: Instant) -> Verdict {
        guard self.body.hasRoom(forStreamed: bytes.count) else {
            return self.abort(.bodyTooLarge(limit: self.body.limit, declared: nil, of: self.response), at: now)
        }
        // libcurl hands the same bytes over again when the transfer goes on.
        guard bytes.isEmpty || channel.offer(bytes) else {
            _ = self.transition(.pause(.reader), at: now)
            return .pause
        }
        self.body.didStream(bytes.count)
        return .proceed
    }

    /// Lets the transfer wait until the budget has room for so many bytes.
    private func waitForMemory(_ wanted: Int, at now: Instant) -> Verdict {
        defer { self.report(self, .memoryShortage) }
        // A paused stream holds up the others of its connection in libcurl. Bytes that a reader has cannot be taken back.
        guard self.machine.exchange?.isMultiplexed != true || self.isStream else {
            let wanted = max(wanted, self.expectedBytes.map { Int($0) } ?? 0)
            return self.abort(.memory(.init(wantedByteCount: wanted, start: now)), at: now)
        }
        _ = self.transition(.pause(.memory(.init(wantedByteCount: wanted, start: now))), at: now)
        return .pause
    }

    /// Leaves everything behind that takes memory, to be sent again later.
    func yieldMemory() {
        self.dropBody()
        self.body.reset(limit: self.limits.maximumBodySize)
        self.restart()
    }

    /// Drops the bytes so far.
    ///
    /// Observers saw bytes of another response, and see no more.
    func dropBody() {
        self.audience.forgetBody()
        self.resumption = nil
        self.metrics.resumedBytes = 0
        self.body.removeAll()
    }

    // MARK: Resumption

    /// Whether the request asks for the whole of a resource, of which a part can be asked for instead.
    var canResume: Bool {
        !self.isStream
            && Resumption.isPossible(
                self.request.method,
                headers: self.outgoing.headers,
                accepting: self.limits.acceptableStatusCodes
            )
    }

    /// The bytes that are here, if the rest can be asked for.
    private var resumable: Resumption? {
        guard self.canResume, let plan = self.machine.exchange?.body?.plan else { return nil }
        return Resumption(
            of: self.body.count,
            response: self.response,
            plan: plan,
            earlier: self.resumption?.validator
        )
    }

    /// Whether the request that is sent now asks for the rest: only the address that the other bytes came from gets
    /// their validator, and can have the rest of them.
    var asksForRest: Bool {
        self.resumption.map { $0.source == PartialBodyKey.source(self.address) } ?? false
    }

    /// Takes the first bytes that an earlier transfer left.
    func resume(from partial: PartialBody) {
        guard partial.total <= self.limits.maximumBodySize, self.canResume, self.body.restore(partial.bytes) else {
            return
        }
        self.usedStoredPart = true
        self.resumption = Resumption(partial)
    }

    /// Keeps or drops the bytes that are here, as the head of an answer demands.
    ///
    /// - Returns: Whether the response is of use; otherwise everything must be asked for again.
    private func applyResumption(_ response: ResponseState, isIdentity: Bool, at now: Instant) -> Bool {
        guard let resumption else { return true }
        let answer = resumption.answer(
            of: response,
            isIdentity: isIdentity,
            isAsked: self.asksForRest,
            count: self.body.count
        )
        switch answer {
        case .rest(let fields):
            _ = self.transition(.complete(fields), at: now)
            self.metrics.resumedBytes = Int64(resumption.offset)
        case .whole: self.dropBody()
        case .useless: return false
        }
        return true
    }

    /// Whether `error` may only be the answer to a request for the rest.
    func failedResuming(_ error: DownloadError) -> Bool {
        self.hasAskedForRest
            && Resumption.isRefused(by: error, hasGrown: self.body.count != self.resumption?.offset)
    }

    /// Keeps the bytes that are here for the next try if the rest can be asked for, and drops them otherwise.
    func keepResumableBytes() {
        let isUntouched = self.resumption.map { $0.offset == self.body.count } ?? false
        if let resumable {
            self.resumption = resumable
        } else if !isUntouched {
            self.dropBody()
        }
    }

    /// Moves the bytes that are here out, for another transfer; this one is over.
    func takePartialBody() -> PartialBody? {
        let control = CacheControl(self.response.headers.values(for: "Cache-Control"))
        guard !control.has("no-store"), let resumable else { return nil }
        return PartialBody(
            source: resumable.source,
            validator: resumable.validator,
            total: resumable.total,
            headers: resumable.wholeHeaders,
            bytes: self.body.takeData(),
            claim: self.body.claim
        )
    }

    // MARK: The end

    /// The address to go on with, or `nil` if the response is no redirect.
    func redirectTarget(limit: Int) throws(DownloadError) -> ResourceAddress? {
        guard self.machine.failure == nil, !self.isSuccess, self.request.method.isSafe else { return nil }
        return try Redirect.target(
            of: self.response,
            count: self.metrics.redirectCount,
            limit: limit,
            policy: self.outgoing.networkPolicy
        )
    }

    /// The response, once libcurl reported `code` for the request.
    func makeResponse(
        code: CURLcode,
        details: String,
        connections: ConnectionCheck,
        bodyEnd: BodyEnd
    ) throws(DownloadError) -> DownloadResponse {
        if let failure = self.machine.failure { throw failure }
        let (rules, response) = (self.rules, self.response)
        try rules.checkStatus(of: response)
        guard code == CURLE_OK else { throw .failed(code, details: details, connections, of: response) }
        guard let exchange = self.machine.exchange, let plan = exchange.body?.plan, let status = exchange.status else {
            throw .transferFailed(CURLE_GOT_NOTHING, details: "it ended inside the header", of: response)
        }
        var end = bodyEnd
        if let decoder = self.body.decoder.take(), decoder.hasStarted { end.hasEndedCodings = decoder.isComplete }
        try rules.check(
            end,
            of: plan,
            isMultiplexed: exchange.isMultiplexed,
            total: self.resumption?.total,
            response: response
        )
        return DownloadResponse(
            body: self.body.takeData(),
            // With the bytes that were here it is the whole again (RFC 9110, 15.3.7.3).
            status: self.resumption == nil ? status : 200,
            headers: exchange.fields,
            url: self.finalURL,
            metrics: self.metrics,
            requestTime: exchange.requestTime,
            responseTime: plan.responseTime,
            claim: self.body.claim
        )
    }

    /// Throws if the request does not accept a response that hooks have changed.
    func check(_ response: DownloadResponse) throws(DownloadError) {
        try self.rules.check(response, at: self.address)
    }

    /// The error of a transfer that took too long.
    func error(past limit: TransferMachine.TimeLimit) -> DownloadError {
        .past(limit, of: self.limits, self.response)
    }

    /// The URL of the body.
    private var finalURL: URL {
        guard self.metrics.redirectCount > 0 else { return self.request.url }
        // libcurl has written the target, and is stricter than `URL`.
        return URL(string: self.address.text) ?? self.request.url
    }
}
