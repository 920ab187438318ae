import CCurl
import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

/// One download on its way: a request, the responses so far, and whoever waits.
///
/// Not sendable: only the loop's thread touches it.
final class Transfer {
    /// What libcurl should do after it handed something over.
    enum Verdict {
        case proceed
        case pause
        case abort
    }

    let id: UInt64
    /// What was asked for; equal requests join the transfer.
    let identity: DownloadRequest
    /// What is sent: the same, unless a hook changed it.
    private(set) var request: DownloadRequest
    private(set) var limits: TransferLimits
    /// How it differs from the ordinary, or `nil`.
    private(set) var options: TransportOptions?
    private let configuration: DownloadActor.Configuration
    var networkPolicy: NetworkPolicy { self.configuration.networkPolicy }
    /// Whether every connection is to a proxy that the program named; with exceptions, some may be to the host.
    var leadsToProxy: Bool {
        guard case .explicit(_, _, let exceptions) = (self.options?.proxy ?? self.configuration.proxy).value else {
            return false
        }
        return exceptions.isEmpty
    }

    // Who waits: callers that share it, or the one reader of a stream.
    private var waiters: [UInt64: TransferWaiter] = [:]
    var channel: BodyChannel?
    var latestProgress: TransferProgress?
    var streamPriority = DownloadPriority.normal
    /// A hook that runs, or a look for the first bytes of the body.
    var task: Task<Void, Never>?
    /// Whose hooks the response must pass, if any.
    var owner: DownloadActor?

    /// Where the first byte is asked for.
    private var initialAddress: ResourceAddress
    /// Where the next byte comes from; redirects change it.
    private(set) var address: ResourceAddress
    /// The fields to send; redirects to another origin take the credentials out.
    private(set) var requestHeaders: HeaderFields
    var metrics = TransferMetrics()
    /// The addresses that the policy was asked about since the request was last sent.
    var connections = ConnectionRecord()
    /// The tries so far.
    var attempts = 1
    /// When the first request was handed to libcurl.
    var firstStartTime: ContinuousClock.Instant?
    /// When the last request was handed to libcurl, and when something last arrived.
    var startTime = ContinuousClock.now
    var lastProgress = ContinuousClock.now
    /// The same moments for the head of the response, in the time that people use.
    var requestTime = Date()
    var responseTime = Date()
    /// From when on the bytes of the body are counted for the minimum speed, and those that were here then.
    var speedWindow: (start: ContinuousClock.Instant, bytes: Int64)?
    /// The same for all bytes, and whether the last such window brought little.
    var progressWindow: (start: ContinuousClock.Instant, bytes: Int64) = (.now, 0)
    var isLagging = false
    var isPaused = false

    /// The lines of responses that may have put a cookie into the jar since its store was last told.
    private var cookieCount = 0

    /// Why it was aborted from a callback.
    var failure: DownloadError?
    var status: Int?
    var responseHeaders = HeaderFields()
    /// Whether the whole head of the final response (not of an informational one) is here.
    var hasHead = false
    /// Whether bytes may come that are neither head nor body.
    var hasWatchedFraming = false
    var headerBytes = 0
    var discardedBytes: Int64 = 0
    /// Bytes that a reader was given and that are not in `body`.
    var streamedBytes: Int64 = 0
    var expectedBytes: Int64?
    /// What the head says of the body's codings, and what undoes them.
    var codings = ContentCodings.identity
    var decoder: ContentDecoder?
    var body: BodyBuffer

    /// What counts the bytes of the body.
    var claim: ByteClaim
    /// Whether the bytes may be more than the budget has.
    var mayExceedBudget = false
    /// What it waits for, if memory is short.
    var memoryWait: MemoryWait?
    var onShortage: ((Transfer) -> Void)?
    /// Whether its connection carries others as well.
    var isMultiplexed = false

    /// The bytes that another try need not ask for again.
    var resumption: Resumption?
    /// Whether the request that was sent last asked for the rest.
    private(set) var hasAskedForRest = false
    /// Whether a resumption failed, so that the next try asks for everything.
    var mustRestart = false
    /// Whether the first bytes came from the store, and must be forgotten there.
    var usedStoredPart = false
    var onHead: ((Transfer) -> Void)?
    /// Is told of the first bytes that no observer knows of; ``announce()`` must follow.
    var onNews: ((Transfer) -> Void)?
    private var hasNews = false

    init(
        id: UInt64,
        request: DownloadRequest,
        address: ResourceAddress,
        configuration: DownloadActor.Configuration,
        bodyBudget: ByteBudget
    ) {
        self.id = id
        self.identity = request
        self.request = request
        self.configuration = configuration
        self.address = address
        self.initialAddress = address
        self.requestHeaders = request.headers
        self.limits = TransferLimits(request, configuration)
        self.body = BodyBuffer(limit: self.limits.maximumBodySize)
        self.claim = ByteClaim(bodyBudget)
        let options = TransportOptions(request)
        self.options = options.isOrdinary ? nil : options
    }

    /// Sends `request`, which a hook has made of the one that was asked for.
    func replace(_ request: DownloadRequest, address: ResourceAddress) {
        self.request = request
        self.address = address
        self.initialAddress = address
        self.requestHeaders = request.headers
        self.limits = TransferLimits(request, self.configuration)
        self.body = BodyBuffer(limit: self.limits.maximumBodySize)
        let options = TransportOptions(request)
        self.options = options.isOrdinary ? nil : options
    }

    /// Whether the proxy may ask for a second request.
    var usesDigestProxy: Bool {
        guard case .explicit(_, let credentials, _) = (self.options?.proxy ?? self.configuration.proxy).value,
            case .digest = credentials?.value
        else { return false }
        return true
    }

    /// Whether the request accepts the status of the final response.
    var isSuccess: Bool { self.status.map(self.limits.acceptableStatusCodes.contains) ?? false }

    var receivedBytes: Int { self.body.count + Int(self.streamedBytes) }

    // MARK: Who waits

    var hasWaiters: Bool { !self.waiters.isEmpty || self.channel != nil }

    /// As urgent as the most urgent of those who wait.
    var priority: DownloadPriority {
        self.waiters.values.lazy.map(\.priority).max() ?? self.streamPriority
    }

    func join(_ id: UInt64, _ waiter: TransferWaiter) {
        // The others would be shown again what it is shown now. What an earlier try left is not sure to belong here.
        if self.hasNews { self.announce() }
        self.waiters[id] = waiter
        if let latestProgress { waiter.observer?(latestProgress) }
        if let show = waiter.bytesObserver, self.hasShownBytes { show(self.body.copy()) }
    }

    /// Takes a waiter out, whom the caller must then resume.
    func leave(_ id: UInt64) -> TransferWaiter? {
        self.waiters.removeValue(forKey: id)
    }

    func setPriority(_ priority: DownloadPriority) {
        self.streamPriority = priority
        for id in self.waiters.keys { self.waiters[id]?.priority = priority }
    }

    /// Resumes all who wait; there are none afterwards.
    func finish(_ result: Result<DownloadResponse, any Error>) {
        let waiters = self.waiters
        self.waiters = [:]
        for waiter in waiters.values { waiter.continuation.resume(with: result) }
        self.channel?.finish(result.map { _ in })
        self.channel = nil
    }

    /// Remembers that bytes came.
    ///
    /// Observers are told once in a turn of the loop: a body may come in as many pieces as it has bytes.
    func noteNews() {
        guard !self.hasNews else { return }
        self.hasNews = true
        self.onNews?(self)
    }

    /// Tells observers of what has come since they were last told.
    func announce() {
        self.hasNews = false
        let knownCount = Int(self.latestProgress?.receivedBytes ?? 0)
        guard self.body.count > knownCount else { return }
        let progress = TransferProgress(receivedBytes: Int64(self.body.count), expectedBytes: self.expectedBytes)
        self.latestProgress = progress
        for waiter in self.waiters.values { waiter.observer?(progress) }
        self.body.withBytes { self.show(UnsafeRawBufferPointer(rebasing: $0[knownCount...])) }
    }

    /// Whether someone decodes the body while it comes.
    var isShown: Bool { self.waiters.values.contains { $0.bytesObserver != nil } }

    /// Copies what arrived, once, for those who decode while it comes.
    private func show(_ bytes: UnsafeRawBufferPointer) {
        let observers = self.waiters.values.compactMap(\.bytesObserver)
        guard !observers.isEmpty else { return }
        let copy = Data(bytes)
        for show in observers { show(copy) }
    }

    /// Those who were shown bytes of another version must see no more: the two do not fit together.
    func blindObservers() {
        for id in self.waiters.keys { self.waiters[id]?.bytesObserver = nil }
    }

    // MARK: On the way

    /// Whether it has a jar, which each `Set-Cookie` may fill.
    private var cookieJar: CookieJar? { self.options?.cookieJar ?? self.configuration.cookieJar }

    func noteField(_ name: String) {
        guard self.cookieJar != nil, name.lowercased() == "set-cookie" else { return }
        self.cookieCount += 1
    }

    /// Lets the jar keep to its limits; a cookie was in it before this.
    func settleCookies() {
        guard self.cookieCount > 0 else { return }
        self.cookieJar?.store.didReceive(self.cookieCount)
        self.cookieCount = 0
    }

    func willStart() {
        self.startTime = .now
        self.hasAskedForRest = self.asksForRest
        self.lastProgress = self.startTime
        self.firstStartTime = self.firstStartTime ?? self.startTime
        self.requestTime = Date()
        self.progressWindow = (self.startTime, 0)
        self.isLagging = false
    }

    /// Takes the target of a redirect; what the old response left behind is dropped.
    func redirect(to target: ResourceAddress) {
        if target.origin != self.address.origin {
            self.requestHeaders = Redirect.safeHeaders(self.requestHeaders)
            self.dropIdentity()
        }
        self.address = target
        self.metrics.redirectCount += 1
        self.resetResponse()
        self.headerBytes = 0
    }

    /// Leaves behind what says who asks, that of the configuration included.
    private func dropIdentity() {
        var options = self.options ?? TransportOptions(self.request)
        options.credentials = nil
        options.unixSocketPath = nil
        var tls = options.tls ?? self.configuration.tls
        if tls.clientCertificate != nil {
            tls.clientCertificate = nil
            options.tls = tls
        }
        self.options = options.isOrdinary ? nil : options
    }

    /// Goes back to the first address, for another try.
    func restart() {
        self.address = self.initialAddress
        self.requestHeaders = self.request.headers
        let options = TransportOptions(self.request)
        self.options = options.isOrdinary ? nil : options
        self.failure = nil
        // The body of a response that was of no use is gone.
        if self.body.count == 0 { self.claim.giveBack() }
        self.mustRestart = false
        self.metrics.redirectCount = 0
        self.headerBytes = 0
        self.resetResponse()
    }

    /// Moves the body out; the transfer is over.
    func takeBody() -> Data {
        let held = self.body.heldByteCount()
        let data = self.body.takeData()
        // Most of what was not needed goes back to the system.
        self.claim.set(min(held, data.count + data.count / 4))
        if !data.isEmpty { self.claim.hold() }
        return data
    }

    func resetResponse() {
        self.status = nil
        self.responseHeaders.removeAll(keepingCapacity: true)
        self.hasHead = false
        self.hasWatchedFraming = false
        self.discardedBytes = 0
        self.expectedBytes = nil
        self.codings = .identity
        self.decoder = nil
        self.speedWindow = nil
    }
}
