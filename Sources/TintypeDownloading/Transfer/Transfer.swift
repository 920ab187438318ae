import CCurl
import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

/// A request whose hash is known, and whose copies cost a reference: it has a dozen parts that would each count one.
final class SharedRequest: Hashable, Sendable {
    let value: DownloadRequest
    private let hash: Int

    init(_ value: DownloadRequest) {
        self.value = value
        self.hash = value.hashValue
    }

    static func == (left: SharedRequest, right: SharedRequest) -> Bool {
        left === right || left.hash == right.hash && left.value == right.value
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.hash)
    }
}

/// A caller that waits for a transfer.
struct TransferWaiter {
    let id: UInt64
    let continuation: CheckedContinuation<DownloadResponse, any Error>
    var priority: DownloadPriority
    let observer: (@Sendable (TransferProgress) -> Void)?
    var bytesObserver: (@Sendable (Data) -> Void)?
}

/// One download on its way: a request, the responses so far, and the callers that wait for it.
///
/// What it may do when is up to its ``machine``. The transfer reads what comes, keeps the bytes, and tells observers.
///
/// Not sendable: only the loop's thread touches it.
final class Transfer {
    typealias Instant = LoopInstant

    /// What libcurl should do after it handed something over.
    enum Verdict {
        case proceed
        case pause
        case abort
    }

    /// What the engine hears of.
    enum News {
        case head
        /// Bytes of which no observer knows; ``announce()`` must follow.
        case bytes
        case memoryShortage
    }

    let id: UInt64
    /// What was asked for; equal requests join the transfer.
    let identity: SharedRequest
    private let configuration: DownloadActor.Configuration
    private let report: (Transfer, News) -> Void
    private(set) var machine: TransferMachine

    // What is sent.

    /// The same as what was asked for, unless a hook changed it.
    private var sentRequest: SharedRequest
    var request: DownloadRequest { self.sentRequest.value }
    /// How it differs from the ordinary, or `nil`.
    private(set) var options: TransportOptions?
    /// Where the first byte is asked for.
    private var initialAddress: ResourceAddress
    /// Where the next byte comes from; redirects change it.
    private(set) var address: ResourceAddress
    /// The fields to send; redirects to another origin take the credentials out.
    private(set) var requestHeaders: HeaderFields

    // What waits: callers that share it, or the one reader of a stream.

    /// Mostly one.
    private var waiters: [TransferWaiter] = []
    private let channel: BodyChannel?
    private var streamPriority: DownloadPriority
    /// A hook that runs, or a look for the first bytes of the body.
    var task: Task<Void, Never>?
    /// The actor whose hooks the response must pass, if there are any.
    var owner: DownloadActor?

    // What has come, over all tries.

    var metrics = TransferMetrics()
    private var body: BodyBuffer
    /// Bytes that a reader was given and that are not in `body`.
    private var streamedBytes: Int64 = 0
    private var latestProgress: TransferProgress?
    private var hasNews = false
    /// The lines of responses that may have put a cookie into the jar since its store was last told.
    private var cookieCount = 0
    /// What counts the bytes of the body.
    let claim: ByteClaim
    /// Whether the bytes may be more than the budget has.
    var mayExceedBudget = false
    /// The bytes that another try need not ask for again.
    private(set) var resumption: Resumption?
    /// Whether the first bytes came from the store, and must be forgotten there.
    var usedStoredPart = false

    /// Creates a transfer for callers that ``join(_:)`` it, or for the reader of `channel`.
    init(
        id: UInt64,
        request shared: SharedRequest,
        address: ResourceAddress,
        configuration: DownloadActor.Configuration,
        bodyBudget: ByteBudget,
        channel: BodyChannel? = nil,
        priority: DownloadPriority = .normal,
        report: @escaping (Transfer, News) -> Void
    ) {
        self.id = id
        let request = shared.value
        self.identity = shared
        self.sentRequest = shared
        self.configuration = configuration
        self.report = report
        self.address = address
        self.initialAddress = address
        self.requestHeaders = request.headers
        let limits = TransferLimits(request, configuration)
        self.machine = TransferMachine(limits: limits)
        self.body = BodyBuffer(limit: limits.maximumBodySize, pool: .shared)
        self.claim = ByteClaim(bodyBudget)
        self.channel = channel
        self.streamPriority = priority
        self.options = TransportOptions(request).unlessOrdinary
    }

    /// Sends `request`, which a hook has made of the one that was asked for.
    func replace(_ request: DownloadRequest, address: ResourceAddress) {
        self.sentRequest = SharedRequest(request)
        self.address = address
        self.initialAddress = address
        self.requestHeaders = request.headers
        self.machine.limits = TransferLimits(request, self.configuration)
        self.body = BodyBuffer(limit: self.limits.maximumBodySize, pool: .shared)
        self.options = TransportOptions(request).unlessOrdinary
    }

    // MARK: The machine

    /// Moves the machine on; the engine does what it says.
    func transition(_ event: TransferMachine.Event, at now: Instant) -> TransferMachine.Action {
        self.machine.transition(event, at: now)
    }

    var limits: TransferLimits { self.machine.limits }
    var status: Int? { self.machine.exchange?.status }
    var responseHeaders: HeaderFields { self.machine.exchange?.fields ?? [:] }
    var expectedBytes: Int64? { self.machine.exchange?.body?.plan.expectedBytes }
    /// Whether the whole head of the final response (not of an informational one) is here.
    var hasHead: Bool { self.machine.exchange?.body != nil }
    /// Whether bytes may come that are neither head nor body.
    var hasWatchedFraming: Bool { self.machine.exchange?.body?.plan.hasWatchedFraming ?? false }
    /// Whether the bytes of the body are those of the representation.
    private var isIdentity: Bool { self.machine.exchange?.body?.plan.codings ?? .identity == .identity }
    private var decoder: ContentDecoder? { self.machine.exchange?.body?.plan.decoder }

    /// Why it was stopped, if that is a failure of its own.
    var failure: DownloadError? {
        if case .failure(let error)? = self.machine.exchange?.stopReason { error } else { nil }
    }

    /// Whether everything must be asked for again.
    var mustRestart: Bool {
        if case .restart? = self.machine.exchange?.stopReason { true } else { false }
    }

    /// Ends the request with an error, unless it has another one.
    func stop(_ failure: DownloadError, at now: Instant) {
        _ = self.transition(.stop(.failure(failure)), at: now)
    }

    private func abort(_ failure: DownloadError, at now: Instant) -> Verdict {
        self.stop(failure, at: now)
        return .abort
    }

    /// Ends the request, so that everything is asked for: the rest would be more than the whole leaves.
    private func abortResumption(at now: Instant) -> Verdict {
        _ = self.transition(.stop(.restart), at: now)
        return .abort
    }

    // MARK: How it is sent

    var networkPolicy: NetworkPolicy { self.request.networkPolicy ?? self.configuration.networkPolicy }

    var retryPolicy: RetryPolicy { self.request.retryPolicy ?? self.configuration.retryPolicy }

    private var proxy: ProxyPolicy { self.options?.proxy ?? self.configuration.proxy }

    /// Whether every connection is to a proxy that the program named; with exceptions, some may be to the host.
    var leadsToProxy: Bool {
        if case .explicit(_, _, let exceptions) = self.proxy.value { exceptions.isEmpty } else { false }
    }

    /// Whether libcurl answers a challenge, of the server or the proxy, with a second request of its own.
    private var answersChallenges: Bool {
        if case .digest? = self.options?.credentials?.value { return true }
        guard case .explicit(_, let credentials, _) = self.proxy.value, case .digest? = credentials?.value else {
            return false
        }
        return true
    }

    /// Takes the target of a redirect.
    func redirect(to target: ResourceAddress) {
        if target.origin != self.address.origin {
            self.requestHeaders = Redirect.safeHeaders(self.requestHeaders)
            let options = self.options ?? TransportOptions(self.request)
            self.options = Redirect.safeOptions(options, configured: self.configuration.tls).unlessOrdinary
        }
        self.address = target
        self.metrics.redirectCount += 1
    }

    /// Goes back to the first address, for another try.
    func restart() {
        self.address = self.initialAddress
        self.requestHeaders = self.request.headers
        self.options = TransportOptions(self.request).unlessOrdinary
        // The body of a response that was of no use is gone.
        if self.body.count == 0 { self.claim.giveBack() }
        self.metrics.redirectCount = 0
    }

    // MARK: What waits

    var isStream: Bool { self.channel != nil }
    var hasWaiters: Bool { !self.waiters.isEmpty }

    /// As urgent as the most urgent of those that wait.
    var priority: DownloadPriority {
        self.waiters.lazy.map(\.priority).max() ?? self.streamPriority
    }

    func join(_ waiter: TransferWaiter) {
        // The others would be shown again what it is shown now. What an earlier try left is not sure to belong here.
        if self.hasNews { self.announce() }
        self.waiters.append(waiter)
        if let latestProgress { waiter.observer?(latestProgress) }
        if let show = waiter.bytesObserver, self.hasShownBytes { show(self.body.copy()) }
    }

    /// Takes a waiter out, which the caller must then resume.
    func leave(_ id: UInt64) -> TransferWaiter? {
        self.waiters.firstIndex { $0.id == id }.map { self.waiters.remove(at: $0) }
    }

    func setPriority(_ priority: DownloadPriority) {
        self.streamPriority = priority
        for index in self.waiters.indices { self.waiters[index].priority = priority }
    }

    /// Resumes all that wait; there are none afterwards.
    func finish(_ result: Result<DownloadResponse, any Error>) {
        let waiters = self.waiters
        self.waiters = []
        for waiter in waiters { waiter.continuation.resume(with: result) }
        self.channel?.finish(result.map { _ in })
    }

    /// Remembers that bytes came.
    ///
    /// Observers are told once in a turn of the loop: a body may come in as many pieces as it has bytes.
    private func noteNews() {
        guard !self.hasNews else { return }
        self.hasNews = true
        self.report(self, .bytes)
    }

    /// Tells observers of what has come since they were last told.
    func announce() {
        self.hasNews = false
        let knownCount = Int(self.latestProgress?.receivedBytes ?? 0)
        guard self.body.count > knownCount else { return }
        let progress = TransferProgress(receivedBytes: Int64(self.body.count), expectedBytes: self.expectedBytes)
        self.latestProgress = progress
        for waiter in self.waiters { waiter.observer?(progress) }
        self.body.withBytes { self.show(UnsafeRawBufferPointer(rebasing: $0[knownCount...])) }
    }

    /// Whether the body is decoded while it comes.
    private var isShown: Bool { self.waiters.contains { $0.bytesObserver != nil } }

    /// Whether observers have seen bytes of the body.
    private var hasShownBytes: Bool { self.latestProgress.map { $0.receivedBytes > 0 } ?? false }

    /// Copies what arrived, once, for those that decode while it comes.
    private func show(_ bytes: UnsafeRawBufferPointer) {
        let observers = self.waiters.compactMap(\.bytesObserver)
        guard !observers.isEmpty else { return }
        let copy = Data(bytes)
        for show in observers { show(copy) }
    }

    // MARK: What libcurl hands over

    /// Takes one line of a head: the status line, a field, or the empty line after the last.
    func receive(headerLine bytes: UnsafeRawBufferPointer, at now: Instant) -> Verdict {
        let line = HeaderLine(bytes, after: self.responseHeaders.last?.name)
        let isIndented = bytes.first == UInt8(ascii: " ") || bytes.first == UInt8(ascii: "\t")
        // It continues no field (RFC 9112, 2.2), and some would take it for one.
        if isIndented, self.responseHeaders.isEmpty {
            return self.abort(.invalidResponse("its first field begins with white space", at: self.address), at: now)
        }
        var isMultiplexed = false
        switch line {
        case .status(let status):
            // libcurl takes any three digits over HTTP/2 (RFC 9110, 15).
            guard status >= 100 else {
                return self.abort(.invalidResponse("its status is \(status)", at: self.address), at: now)
            }
            isMultiplexed = !bytes.starts(with: "HTTP/1".utf8)
            if self.isChallenged { _ = self.transition(.answerChallenge, at: now) }
        case .field(let name, _): self.noteField(name)
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
            guard self.isSuccess else {
                _ = self.transition(.stop(.unwanted), at: now)
                return .abort
            }
            return self.abort(.cutShort(self, "when another response began"), at: now)
        default: return .abort
        }
    }

    /// Whether the response that is here is a challenge that libcurl has answered.
    private var isChallenged: Bool {
        self.answersChallenges && (self.status == 401 || self.status == 407) && self.receivedBytes == 0
    }

    private var cookieJar: CookieJar? {
        CookiePolicy.jar(of: self.options?.cookies, configured: self.configuration.cookieJar)
    }

    private func noteField(_ name: String) {
        guard self.cookieJar != nil, !self.hasHead, name.lowercased() == "set-cookie" else { return }
        self.cookieCount += 1
    }

    /// Lets the jar keep to its limits; a cookie was in it before this.
    func settleCookies() {
        guard self.cookieCount > 0 else { return }
        self.cookieJar?.store.didReceive(self.cookieCount)
        self.cookieCount = 0
    }

    private func readHead(at now: Instant) -> Verdict {
        self.report(self, .head)
        guard let exchange = self.machine.exchange, let status = exchange.status else { return .abort }
        let declared: Int64?
        switch DeclaredLength(exchange.fields) {
        case .none: declared = nil
        case .bytes(let count): declared = count
        case .invalid:
            return self.abort(.invalidResponse("its Content-Length is no number", at: self.address), at: now)
        }
        var plan = TransferMachine.BodyPlan()
        plan.isWanted = self.limits.acceptableStatusCodes.contains(status)
        plan.responseTime = Date()
        plan.hasBody = self.request.method != .head && status != 204 && status != 304
        let isChunked = exchange.fields["Transfer-Encoding"] != nil
        // Chunks say themselves where the body ends (RFC 9112, 6.3).
        plan.declaredBytes = isChunked ? nil : declared
        plan.hasWatchedFraming = !plan.hasBody || declared == 0 || declared == nil && isChunked
        guard plan.isWanted else {
            _ = self.transition(.expect(plan), at: now)
            guard declared ?? 0 > TransferMachine.discardLimit, !self.answersChallenges else { return .proceed }
            _ = self.transition(.stop(.unwanted), at: now)
            return .abort
        }
        plan.codings = ContentCodings(exchange.fields)
        do throws(DownloadError) {
            guard try self.accept(exchange, status: status, plan, at: now) else {
                return self.abortResumption(at: now)
            }
            plan.decoder = try self.makeDecoder(plan.codings)
        } catch {
            return self.abort(error, at: now)
        }
        return self.expect(declared, plan, at: now)
    }

    /// Throws where the response is none that was asked for; returns false where everything must be asked for.
    private func accept(
        _ exchange: TransferMachine.Exchange,
        status: Int,
        _ plan: TransferMachine.BodyPlan,
        at now: Instant
    ) throws(DownloadError) -> Bool {
        // libcurl would undo it, and take one that breaks off for whole.
        guard !Self.hasTransferCoding(exchange.fields) else {
            throw .invalidResponse("it has a transfer coding that was not asked for", at: self.address)
        }
        // A part that was not asked for must not pass for the whole.
        if status == 206, !self.asksForRest, self.requestHeaders["Range"] == nil {
            throw .invalidResponse("it sent a part of the body unasked", at: self.address)
        }
        // A difference to an older version, or a part of one (RFC 3229, 10.4.1).
        if status == 226, self.requestHeaders["A-IM"] == nil {
            throw .invalidResponse("it sent a difference (226) that was not asked for", at: self.address)
        }
        guard self.applyResumption(exchange, isIdentity: plan.codings == .identity, at: now) else { return false }
        guard self.limits.accepts(contentType: self.responseHeaders["Content-Type"]) || status == 304 else {
            throw .unacceptableContentType(of: self)
        }
        return true
    }

    private func makeDecoder(_ codings: ContentCodings) throws(DownloadError) -> ContentDecoder? {
        guard case .known(let codings) = codings else { return nil }
        do throws(ContentDecoder.Failure) {
            return try ContentDecoder(codings, limit: self.limits.maximumBodySize)
        } catch {
            throw self.undecodable(error)
        }
    }

    /// Looks at the declared length before anything comes.
    private func expect(_ declared: Int64?, _ plan: TransferMachine.BodyPlan, at now: Instant) -> Verdict {
        var plan = plan
        if let declared, self.request.method != .head, self.status != 304 {
            let (total, overflow) = declared.addingReportingOverflow(Int64(self.body.count))
            if let resumption, overflow || total > Int64(resumption.total) { return self.abortResumption(at: now) }
            guard !overflow, total <= Int64(self.limits.maximumBodySize) else {
                return self.abort(self.bodyTooLarge(declared: overflow ? declared : total), at: now)
            }
            if plan.codings == .identity { plan.expectedBytes = self.resumption.map { Int64($0.total) } ?? total }
            if self.channel == nil { self.body.reserve(declared: Int(total)) }
        }
        _ = self.transition(.expect(plan), at: now)
        if let channel {
            channel.receive(
                ResponseHead(
                    status: self.status ?? 0,
                    headers: self.responseHeaders,
                    url: self.finalURL,
                    expectedBytes: plan.expectedBytes
                )
            )
        } else {
            // What an earlier try left belongs to the picture for sure by now.
            self.announce()
        }
        return .proceed
    }

    /// Whether the body has a transfer coding besides the chunked one, which everything must understand.
    private static func hasTransferCoding(_ fields: HeaderFields) -> Bool {
        fields.values(for: "Transfer-Encoding").contains { value in
            value.lowercased().split { ", \t".contains($0) }.contains { $0 != "chunked" && $0 != "identity" }
        }
    }

    /// Takes bytes of the body.
    ///
    /// - Parameters:
    ///   - bytes: The bytes as they came.
    ///   - now: The time.
    ///   - mayDecode: Is told how many bytes were decoded, those between two codings included; returns false where others must have a turn first.
    /// - Returns: What libcurl is to do next.
    func receive(body bytes: UnsafeRawBufferPointer, at now: Instant, mayDecode: (Int) -> Bool) -> Verdict {
        switch self.transition(.bytes(bytes.count), at: now) {
        case .take: break
        case .discard: return .proceed
        case .hold: return .pause
        default: return .abort
        }
        guard let decoder else { return self.take(bytes, at: now) }
        let room = self.claimRoom(for: 0, at: now)
        guard room == .proceed else { return room }
        defer { self.claimHeldBytes() }
        do throws(ContentDecoder.Failure) {
            return try decoder.decode(bytes, mayGoOn: mayDecode) {
                mayDecode($0.count) ? self.take($0, at: now) : .pause
            }
        } catch {
            return self.abort(self.undecodable(error), at: now)
        }
    }

    /// Takes bytes of the representation.
    private func take(_ bytes: UnsafeRawBufferPointer, at now: Instant) -> Verdict {
        if let channel { return self.stream(bytes, into: channel, at: now) }
        if let resumption, bytes.count > resumption.total - self.body.count { return self.abortResumption(at: now) }
        let room = self.claimRoom(for: bytes.count, at: now)
        guard case .proceed = room else { return room }
        switch self.body.append(bytes) {
        case .appended: break
        case .overLimit: return self.abort(self.bodyTooLarge(declared: nil), at: now)
        case .outOfMemory: return self.abort(.outOfMemory(at: self.address), at: now)
        }
        self.noteNews()
        return .proceed
    }

    private func stream(_ bytes: UnsafeRawBufferPointer, into channel: BodyChannel, at now: Instant) -> Verdict {
        guard self.streamedBytes + Int64(bytes.count) <= Int64(self.limits.maximumBodySize) else {
            return self.abort(self.bodyTooLarge(declared: nil), at: now)
        }
        // libcurl hands the same bytes over again when the transfer goes on.
        guard bytes.isEmpty || channel.offer(bytes) else {
            _ = self.transition(.pause(.reader), at: now)
            return .pause
        }
        self.streamedBytes += Int64(bytes.count)
        return .proceed
    }

    private func undecodable(_ failure: ContentDecoder.Failure) -> DownloadError {
        switch failure {
        case .corrupt: .invalidResponse("its body is not coded as its Content-Encoding says", at: self.address)
        case .tooLarge: self.bodyTooLarge(declared: nil)
        case .outOfMemory: .outOfMemory(at: self.address)
        }
    }

    private func bodyTooLarge(declared: Int64?) -> DownloadError {
        .bodyTooLarge(
            limit: self.limits.maximumBodySize,
            declared: declared,
            status: self.status,
            headers: self.responseHeaders,
            at: self.address
        )
    }

    // MARK: The memory of a body

    var receivedBytes: Int { self.body.count + Int(self.streamedBytes) }

    /// Claims the memory for so many bytes more, or says what libcurl must do without it.
    private func claimRoom(for count: Int, at now: Instant) -> Verdict {
        let wanted = self.heldByteCount(adding: count)
        guard wanted > self.claim.byteCount, !self.claim.grow(to: wanted) else { return .proceed }
        guard !self.mayExceedBudget else {
            self.claim.set(wanted)
            return .proceed
        }
        defer { self.report(self, .memoryShortage) }
        // A paused stream holds up the others of its connection in libcurl. What a reader has can't be taken back.
        guard self.machine.exchange?.isMultiplexed != true || self.channel != nil else {
            let wanted = max(wanted, self.expectedBytes.map { Int($0) } ?? 0)
            _ = self.transition(.stop(.memory(.init(wantedByteCount: wanted, start: now))), at: now)
            return .abort
        }
        _ = self.transition(.pause(.memory(.init(wantedByteCount: wanted, start: now))), at: now)
        return .pause
    }

    /// Claims what is held already, whether or not it fits: the library that undoes a coding tells of its window only
    /// when it has it.
    ///
    /// Only the windows of one body exceed the budget so: all transfers have one thread, and none of them begins to
    /// decode before what it has fits.
    private func claimHeldBytes() {
        let held = self.heldByteCount()
        if held > self.claim.byteCount { self.claim.set(held) }
    }

    /// The bytes of memory that the transfer takes with `count` bytes more of its body.
    private func heldByteCount(adding count: Int = 0) -> Int {
        // What is shown is copied, and kept by its decoder.
        self.body.heldByteCount(adding: count) * (self.isShown ? 2 : 1) + (self.decoder?.heldByteCount ?? 0)
    }

    /// Leaves everything behind that takes memory, to be sent again later.
    func yieldMemory() {
        self.dropBody()
        self.body = BodyBuffer(limit: self.limits.maximumBodySize, pool: .shared)
        self.claim.set(0)
        self.restart()
    }

    /// Moves the body out; the transfer is over.
    private func takeBody() -> Data {
        let held = self.body.heldByteCount()
        let data = self.body.takeData()
        // Most of what was not needed goes back to the system.
        self.claim.set(min(held, data.count + data.count / 4))
        if !data.isEmpty { self.claim.hold() }
        return data
    }

    /// Drops what is here; what observers saw of it was of another response.
    func dropBody() {
        // They must see no more: the two do not fit together.
        if self.hasShownBytes { for index in self.waiters.indices { self.waiters[index].bytesObserver = nil } }
        self.resumption = nil
        self.metrics.resumedBytes = 0
        self.body.removeAll()
        self.latestProgress = nil
    }

    // MARK: Going on where an earlier try, or an earlier process, broke off

    /// Whether the request asks for the whole of a resource, of which a part can be asked for instead.
    var canResume: Bool {
        let codes = self.limits.acceptableStatusCodes
        guard self.request.method == .get, self.channel == nil, codes.contains(206), codes.contains(200) else {
            return false
        }
        let conditions = ["Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"]
        return self.requestHeaders.isEmpty || conditions.allSatisfy { self.requestHeaders[$0] == nil }
    }

    /// What is here of the body, if the rest can be asked for: the server offers it, the version is known for
    /// sure, and something is here but not all.
    private var resumable: Resumption? {
        guard self.canResume, let exchange = self.machine.exchange, let plan = exchange.body?.plan,
            let status = exchange.status, status == 200 || status == 206, plan.codings == .identity,
            self.body.count > 0, let expectedBytes = plan.expectedBytes, self.body.count < expectedBytes,
            status == 206 || exchange.fields["Accept-Ranges"]?.lowercased() == "bytes",
            let validator = Validators.strong(in: exchange.fields, now: plan.responseTime)
                ?? self.resumption?.validator
        else { return nil }
        return Resumption(
            source: PartialBodyKey.source(self.address),
            validator: validator,
            offset: self.body.count,
            total: Int(expectedBytes),
            wholeHeaders: Resumption.fieldsOfWhole(exchange.fields)
        )
    }

    /// Whether the request that is sent now asks for the rest: only the address that the other bytes came from is
    /// told their validator, and can have the rest of them.
    var asksForRest: Bool {
        self.resumption.map { $0.source == PartialBodyKey.source(self.address) } ?? false
    }

    /// Whether the request that was sent last asked for the rest.
    var hasAskedForRest: Bool { self.machine.exchange?.asksForRest ?? false }

    /// What is here of the body, to be kept for another transfer.
    ///
    /// The bytes are moved out: the transfer is over.
    func takePartialBody() -> PartialBody? {
        let control = CacheControl(self.responseHeaders.values(for: "Cache-Control"))
        guard !control.has("no-store"), let resumable else { return nil }
        return PartialBody(
            source: resumable.source,
            validator: resumable.validator,
            total: resumable.total,
            headers: resumable.wholeHeaders,
            bytes: self.takeBody(),
            claim: self.claim
        )
    }

    /// Takes the first bytes that an earlier transfer left.
    func resume(from partial: PartialBody) {
        guard partial.total <= self.limits.maximumBodySize, self.canResume else { return }
        let isKept = partial.bytes.withUnsafeBytes { self.body.append($0) == .appended }
        guard isKept else {
            self.body.removeAll()
            return
        }
        self.claim.set(self.body.heldByteCount())
        self.usedStoredPart = true
        self.resumption = Resumption(
            source: partial.source,
            validator: partial.validator,
            offset: partial.bytes.count,
            total: partial.total,
            wholeHeaders: partial.headers
        )
    }

    /// Decides what becomes of the bytes that are here, now that the answer to a `Range` has come.
    ///
    /// - Returns: Whether the response is of use; otherwise everything must be asked for again.
    private func applyResumption(
        _ exchange: TransferMachine.Exchange,
        isIdentity: Bool,
        at now: Instant
    ) -> Bool {
        guard let resumption else { return true }
        // The request had no condition that it could answer.
        if exchange.status == 304, self.asksForRest { return false }
        guard exchange.status == 206 else {
            // The whole of it, perhaps another version.
            self.dropBody()
            return true
        }
        guard self.asksForRest, resumption.isContinued(by: exchange.fields), isIdentity,
            self.body.count == resumption.offset
        else { return false }
        _ = self.transition(.complete(resumption.completed(by: exchange.fields)), at: now)
        self.metrics.resumedBytes = Int64(resumption.offset)
        return true
    }

    /// Whether `error` may only be how the server answers when it is asked for the rest: what is here must not stand
    /// in the way of the whole, with this load and each that follows.
    func failedResuming(_ error: DownloadError) -> Bool {
        guard self.hasAskedForRest else { return false }
        return switch error.code {
        case .invalidResponse, .emptyBody, .bodyTooLarge, .unacceptableContentType: true
        // Others are a matter of when is asked, or of what.
        case .badStatus: error.status.map { [304, 416, 501].contains($0) } ?? false
        // A rest that is whole and brings nothing; one that the transport cut has a cause.
        case .bodyCutShort: error.underlyingError == nil && self.body.count == self.resumption?.offset
        default: false
        }
    }

    /// Keeps what is here for the next try if the rest can be asked for, and drops it otherwise.
    func keepWhatCanBeResumed() {
        let isUntouched = self.resumption.map { $0.offset == self.body.count } ?? false
        if let resumable {
            self.resumption = resumable
        } else if !isUntouched {
            self.dropBody()
        }
    }

    // MARK: What a finished request means

    /// The address to go on with, or `nil` when the response is no redirect.
    func redirectTarget(limit: Int) throws(DownloadError) -> ResourceAddress? {
        guard let exchange = self.machine.exchange, exchange.body != nil, self.failure == nil,
            let status = exchange.status, [301, 302, 303, 307, 308].contains(status), !self.isSuccess,
            let location = exchange.fields["Location"], !location.isEmpty
        else { return nil }
        guard self.metrics.redirectCount < limit else { throw .tooManyRedirects(limit: limit, at: self.address) }
        guard let text = Redirect.resolve(location, from: self.address) else {
            throw .invalidResponse("its Location is no URL", at: self.address)
        }
        guard let target = try? ResourceAddress(text), target.scheme == .http || target.scheme == .https else {
            throw .unsafeRedirect(to: text, at: self.address)
        }
        try self.networkPolicy.check(target)
        return target
    }

    /// Whether the request accepts the status of the final response.
    var isSuccess: Bool { self.status.map(self.limits.acceptableStatusCodes.contains) ?? false }

    /// The response, once libcurl reported `code` for the request.
    func makeResponse(
        code: CURLcode,
        details: String,
        connections: ConnectionRecord,
        bodyEnd: BodyEnd
    ) throws(DownloadError) -> DownloadResponse {
        if let failure { throw failure }
        let exchange = self.machine.exchange
        if let status = exchange?.status, self.hasHead, !self.isSuccess {
            throw .badStatus(status, headers: self.responseHeaders, at: self.address)
        }
        guard code == CURLE_OK else { throw self.error(code, details: details, connections) }
        guard let exchange, let plan = exchange.body?.plan, let status = exchange.status else {
            throw .transferFailed(CURLE_GOT_NOTHING, details: "it ended inside the header", of: self)
        }
        try self.check(bodyEnd, of: plan)
        if let decoder = plan.decoder, decoder.hasStarted, !decoder.isComplete {
            throw .cutShort(self, "before its coding did")
        }
        guard self.receivedBytes > 0 || self.mayBeEmpty(status) else {
            throw .emptyBody(status: status, headers: exchange.fields, at: self.address)
        }
        if let resumption, self.receivedBytes != resumption.total {
            throw .cutShort(self, "after \(self.receivedBytes) of \(resumption.total) bytes")
        }
        return DownloadResponse(
            body: self.takeBody(),
            // With the bytes that were here it is the whole again (RFC 9110, 15.3.7.3).
            status: self.resumption == nil ? status : 200,
            headers: exchange.fields,
            url: self.finalURL,
            metrics: self.metrics,
            requestTime: exchange.requestTime,
            responseTime: plan.responseTime,
            claim: self.claim
        )
    }

    /// Throws if libcurl reports success for a body that may not be whole.
    ///
    /// A declared length decides. Without one libcurl finds the end of an HTTP/1.1 body for sure, but not that of an
    /// HTTP/2 body.
    private func check(_ end: BodyEnd, of plan: TransferMachine.BodyPlan) throws(DownloadError) {
        guard plan.hasBody else { return }
        if let declared = plan.declaredBytes {
            guard end.bytes == declared else {
                throw .cutShort(self, "after \(end.bytes) of \(declared) declared bytes")
            }
        } else if self.machine.exchange?.isMultiplexed ?? false, !end.hasEndedStream {
            throw .cutShort(self, "before its HTTP/2 stream did")
        }
    }

    private func error(_ code: CURLcode, details: String, _ connections: ConnectionRecord) -> DownloadError {
        if let denial = connections.denial { return .addressNotAllowed(denial, at: self.address) }
        if connections.tunnelStatus >= 300, !self.hasHead {
            return .tunnelRefused(status: connections.tunnelStatus, at: self.address)
        }
        let refusal = connections.socketRefusal
        if let error = DownloadError.shortage(code, details: details, socketRefusal: refusal, at: self.address) {
            return error
        }
        // libcurl gives up on a header line of 100 kB with the words for missing memory.
        guard self.hasHead || code != CURLE_OUT_OF_MEMORY else {
            return .invalidResponse("a line of its header is too long", at: self.address)
        }
        // It also has other words for a first field that begins with white space than our own.
        guard self.hasHead || self.status == nil || code != CURLE_BAD_FUNCTION_ARGUMENT else {
            return .invalidResponse("a line of its header is no field", at: self.address)
        }
        return .transferFailed(code, details: details, of: self)
    }

    /// The error of a transfer that took too long.
    func error(past limit: TransferMachine.TimeLimit) -> DownloadError {
        switch limit {
        case .total: .tookTooLong(self.limits.totalTimeout ?? .zero, of: self)
        case .firstByte: .noFirstByte(after: self.limits.firstByteTimeout ?? .zero, of: self)
        case .speed: .tooSlow(self)
        case .silence: .stalled(after: self.limits.timeout, of: self)
        }
    }

    /// Judges a response that hooks have changed as if it had come so.
    func judge(_ response: DownloadResponse) throws(DownloadError) {
        guard let status = response.status else {
            throw .invalidResponse("a hook has taken its status away", at: self.address)
        }
        guard self.limits.acceptableStatusCodes.contains(status) else {
            throw .badStatus(status, headers: response.headers, at: self.address)
        }
        guard !response.body.isEmpty || self.mayBeEmpty(status) else {
            throw .emptyBody(status: status, headers: response.headers, at: self.address)
        }
    }

    /// Whether the response may have no body; 304 and its like have none.
    private func mayBeEmpty(_ status: Int) -> Bool {
        self.request.method == .head || !(200..<300 ~= status)
    }

    /// Where the body comes from.
    private var finalURL: URL {
        guard self.metrics.redirectCount > 0 else { return self.request.url }
        // libcurl has written the target, and is stricter than `URL`.
        return URL(string: self.address.text) ?? self.request.url
    }
}
