import CCurl
import FoundationEssentials
import Synchronization
import TintypeConcurrency
import TintypeHTTP

/// Moves transfers forward on one curl multi handle.
///
/// Sendable although unchecked: after `init`, every method except ``open()`` and ``wake()`` is only called
/// in jobs of the loop that owns the engine. It opens the engine before its thread can run, and calls `wake()` after.
final class TransferEngine: @unchecked Sendable {
    /// When a transfer is tried again, or ends wherever it is.
    private struct Appointment: Comparable {
        let time: ContinuousClock.Instant
        let id: UInt64

        static func < (left: Appointment, right: Appointment) -> Bool { left.time < right.time }
    }

    let configuration: DownloadActor.Configuration
    let hooks: DownloadHooks
    let partials: PartialBodyStore?
    let events = EventBroadcast()
    let environment: EngineEnvironment
    /// Opened before the first transfer.
    private(set) var multi: CurlMulti?
    /// Whether ``multi`` is there for good, so that any thread may look at it.
    private let isOpen = Atomic<Bool>(false)
    var queue: TransferQueue
    /// Those that wait, those that run, and those that a hook works on.
    private(set) var transfers: [UInt64: Transfer] = [:]
    /// The same ones, to find the one that a request can share; streams are not shared.
    private var transfersByIdentity: [DownloadRequest: Transfer] = [:]
    private var delayed = Heap<Appointment>()
    /// The ends of those that have one for all their tries, and of some that are over.
    private var totalDeadlines = Heap<Appointment>()
    var budget: RetryBudget
    var counters = DownloadCounters()
    let bodyBudget: ByteBudget
    var shortage = MemoryShortage()

    // Those that run; see the extension that starts them.
    var active: [UInt64: ActiveTransfer] = [:]
    var idleHandles: [EasyHandle] = []
    let defaultHeaders: HeaderFields
    /// `nil` where they can't be sent, which every request is then told.
    let defaultHeaderList: HeaderList?
    /// Made once for all transfers, which end before the engine does.
    private lazy var didReceiveHead: (Transfer) -> Void = { [unowned self] in
        self.counters.receivedHeads += 1
        self.tell($0, .receivedHead(status: $0.status ?? 0))
    }
    private lazy var didReceiveBytes: (Transfer) -> Void = { [unowned self] in self.news.append($0) }
    /// Those that have bytes which their observers do not know of.
    private var news: [Transfer] = []
    private lazy var didRunShort: (Transfer) -> Void = { [unowned self] in
        self.counters.memoryWaits += 1
        self.shortage.insert($0.id)
    }
    /// No transfer can be overdue before this.
    var nextDeadline: ContinuousClock.Instant?
    /// Speeds are looked at in steps from here on.
    let speedCheckOrigin = ContinuousClock.now
    var nextSpeedCheck = ContinuousClock.now
    let speedCheckInterval: Duration

    init(
        configuration: DownloadActor.Configuration,
        hooks: DownloadHooks = DownloadHooks(),
        environment: EngineEnvironment = EngineEnvironment()
    ) {
        self.configuration = configuration
        self.hooks = hooks
        self.environment = environment
        self.bodyBudget = ByteBudget(limit: configuration.bodyMemory)
        self.partials = configuration.partialBodies.map { PartialBodyStore($0) }
        self.queue = TransferQueue(
            maximumActive: configuration.maximumTransfers,
            maximumPerOrigin: configuration.maximumConnectionsPerHost,
            order: configuration.order,
            rateLimit: configuration.rateLimit
        )
        self.speedCheckInterval = TransferLimits.speedCheckInterval(configuration.minimumSpeed)
        self.budget = RetryBudget(configuration.retryPolicy.budget, now: .now)
        self.defaultHeaders = configuration.requestHeaders
        self.defaultHeaderList = try? HeaderList(self.defaultHeaders)
        self.bodyBudget.setWatcher { [weak self] in self?.wake() }
    }

    /// Opens the multi handle; called once, before there is a transfer and before the loop's thread starts.
    ///
    /// - Throws: ``LoopStartError``; then it may be called again.
    func open() throws(LoopStartError) {
        self.multi = try CurlMulti(
            // The queue keeps to this itself; redirects and a lost HTTP/2 connection may not.
            maximumConnectionsPerHost: self.configuration.maximumConnectionsPerHost,
            // The default is four times the transfers that are running: when a burst ends, it
            // would close connections that the next burst needs.
            maximumConnections: self.configuration.maximumTransfers * 3
        )
        self.multi?.onFlood = { [unowned self] in self.endFlooded($0) }
        self.isOpen.store(true, ordering: .releasing)
    }

    deinit {
        self.events.finish()
        for active in self.active.values { self.multi?.remove(active.handle.easy) }
        // Easy handles must be gone before their multi handle.
        self.active = [:]
        self.idleHandles = []
        self.multi?.dropResting()
    }

    // MARK: Orders

    /// The number of transfers that wait for their turn, for another try or for a hook.
    var waitingCount: Int { self.transfers.count - self.active.count }

    /// The number of transfers that libcurl works on.
    var activeCount: Int { self.active.count }

    /// Lets a caller wait for the transfer of `request`, which is started if there is none.
    func join(
        _ request: DownloadRequest,
        from address: ResourceAddress,
        id: UInt64,
        waiter: TransferWaiter,
        owner: DownloadActor
    ) {
        if let transfer = self.transfersByIdentity[request] {
            self.counters.shared += 1
            transfer.join(id, waiter)
            self.queue.setPriority(transfer.priority, of: transfer.id)
            return
        }
        let transfer = Transfer(
            id: id,
            request: request,
            address: address,
            configuration: self.configuration,
            bodyBudget: self.bodyBudget
        )
        transfer.join(id, waiter)
        self.transfersByIdentity[request] = transfer
        self.begin(transfer, owner: owner)
    }

    /// Starts a transfer of its own, whose body goes into `channel`.
    func stream(
        _ request: DownloadRequest,
        from address: ResourceAddress,
        id: UInt64,
        into channel: BodyChannel,
        priority: DownloadPriority,
        owner: DownloadActor
    ) {
        let transfer = Transfer(
            id: id,
            request: request,
            address: address,
            configuration: self.configuration,
            bodyBudget: self.bodyBudget
        )
        transfer.channel = channel
        transfer.streamPriority = priority
        self.begin(transfer, owner: owner)
    }

    /// Ends the wait of a caller that was cancelled; the last one out ends the transfer.
    ///
    /// libcurl closes the transfer's connection, unless that carries others.
    func leave(_ request: DownloadRequest, id: UInt64) {
        guard let transfer = self.transfersByIdentity[request], let waiter = transfer.leave(id) else { return }
        if transfer.hasWaiters {
            self.queue.setPriority(transfer.priority, of: transfer.id)
        } else {
            self.cancel(transfer)
        }
        waiter.continuation.resume(throwing: CancellationError())
    }

    /// Ends a stream that nobody reads any more; does nothing for one that is over.
    func leaveStream(_ id: UInt64) {
        guard let transfer = self.transfers[id], transfer.channel != nil else { return }
        self.cancel(transfer)
    }

    /// Lets a stream go on whose reader has made room.
    func resumeStream(_ id: UInt64) {
        guard let transfer = self.transfers[id], transfer.isPaused, let active = self.active[id] else { return }
        // It goes on when there is memory, and finds the room then.
        guard transfer.memoryWait == nil else { return }
        transfer.willWait(bodyBytes: Int64(ccurl_get_body_bytes(active.handle.easy)), now: .now)
        transfer.isPaused = false
        if !active.handle.unpause(), let failure = transfer.failure { self.fail(transfer, failure) }
    }

    func setPriority(_ priority: DownloadPriority, of request: DownloadRequest) {
        guard let transfer = self.transfersByIdentity[request] else { return }
        let old = transfer.priority
        transfer.setPriority(priority)
        if transfer.priority != old { self.counters.reprioritized += 1 }
        self.queue.setPriority(priority, of: transfer.id)
    }

    /// Ends every transfer, as if each caller had been cancelled.
    func cancelAll() {
        for transfer in self.transfers.values { self.cancel(transfer) }
    }

    // MARK: The loop's calls

    /// Does all that can be done without waiting.
    func drive() {
        self.announceNews()
        self.beginTurn()
        repeat {
            self.submitDelayed()
            self.relieveShortage()
            self.startReady()
            self.multi?.runTimer()
            self.announceNews()
        } while self.completeFinished() || self.endOverdue()
    }

    /// Before those that are complete end: their progress does as well.
    private func announceNews() {
        guard !self.news.isEmpty else { return }
        for transfer in self.news { transfer.announce() }
        self.news.removeAll(keepingCapacity: true)
    }

    /// Waits for a socket, a time limit or ``wake()``.
    func wait() {
        let deadlines = [
            self.nextDeadline, self.delayed.first?.time, self.queue.nextTokenTime, self.totalDeadlines.first?.time,
            self.shortage.nextReview,
        ]
        let deadline = deadlines.compactMap(\.self).min()
        self.multi?.wait(until: deadline)
    }

    /// Waits for ``wake()`` alone, and touches nothing else.
    func park() {
        self.multi?.park()
    }

    /// Lets sockets have a turn, without a wait.
    func poll() {
        self.multi?.wait(until: .now)
    }

    /// Ends the wait that goes on, or the next one; safe from any thread.
    func wake() {
        // Before that nothing waits.
        if self.isOpen.load(ordering: .acquiring) { self.multi?.wake() }
    }

    // MARK: The way of a transfer

    private func begin(_ transfer: Transfer, owner: DownloadActor) {
        transfer.onHead = self.didReceiveHead
        transfer.onShortage = self.didRunShort
        transfer.onNews = self.didReceiveBytes
        self.counters.started += 1
        self.transfers[transfer.id] = transfer
        self.budget.didStartRequest()
        self.tell(transfer, .started)
        if self.hooks.changeResponses { transfer.owner = owner }
        guard self.hooks.modifyRequest != nil || self.mayHavePart(of: transfer) else {
            self.submit(transfer)
            return
        }
        let (id, request) = (transfer.id, transfer.request)
        transfer.task = Task { await owner.prepare(request, id: id) }
    }

    /// Goes on with a transfer that was prepared.
    func submit(_ id: UInt64, _ request: DownloadRequest, partial: PartialBody?) {
        guard let transfer = self.transfers[id] else { return }
        transfer.task = nil
        do throws(DownloadError) {
            if request != transfer.identity {
                try request.checkSendable()
                let address = try ResourceAddress(request.url.absoluteString)
                guard address.scheme == .http || address.scheme == .https else {
                    throw .unsupportedScheme(String(request.url.absoluteString.prefix { $0 != ":" }))
                }
                try self.configuration.networkPolicy.check(address)
                transfer.replace(request, address: address)
            }
        } catch {
            self.fail(transfer, error)
            return
        }
        if let partial { transfer.resume(from: partial) }
        self.submit(transfer)
    }

    func submit(_ transfer: Transfer) {
        self.queue.submit(transfer.id, origin: transfer.address.origin, priority: transfer.priority)
    }

    /// Tries again after `delay`.
    func submit(_ transfer: Transfer, after delay: Duration) {
        self.delayed.insert(Appointment(time: .now + delay, id: transfer.id))
    }

    private func submitDelayed() {
        guard let first = self.delayed.first else { return }
        let now = ContinuousClock.now
        var next: Appointment? = first
        while let due = next, due.time <= now {
            self.delayed.popFirst()
            if let transfer = self.transfers[due.id] { self.submit(transfer) }
            next = self.delayed.first
        }
    }

    /// Remembers when a transfer that starts for the first time must be over.
    func appoint(totalDeadline time: ContinuousClock.Instant, of transfer: Transfer) {
        if self.totalDeadlines.count > self.transfers.count * 2 + 1_024 {
            let transfers = self.transfers
            self.totalDeadlines.filter { transfers[$0.id] != nil }
        }
        self.totalDeadlines.insert(Appointment(time: time, id: transfer.id))
    }

    /// Ends those whose time is over while they wait for a turn, for another try or for a hook.
    func endWaiting(_ now: ContinuousClock.Instant) -> Bool {
        var hasEnded = false
        while let first = self.totalDeadlines.first, first.time <= now {
            self.totalDeadlines.popFirst()
            guard let transfer = self.transfers[first.id] else { continue }
            // A wait for memory moves it away, and while that lasts it is not known how far.
            let deadline = transfer.totalDeadline ?? now + self.environment.memoryPatience
            guard deadline <= now else {
                self.totalDeadlines.insert(Appointment(time: deadline, id: first.id))
                continue
            }
            guard self.active[first.id] == nil else { continue }
            self.fail(transfer, DownloadError.tookTooLong(transfer.limits.totalTimeout ?? .zero, of: transfer))
            hasEnded = true
        }
        return hasEnded
    }

    private func cancel(_ transfer: Transfer) {
        self.counters.cancelled += 1
        self.tell(transfer, .cancelled)
        self.end(transfer, .failure(CancellationError()))
    }

    func fail(_ transfer: Transfer, _ error: any Error) {
        guard let error = error as? DownloadError else {
            self.cancel(transfer)
            return
        }
        self.counters.failed += 1
        self.tell(transfer, .failed(error))
        self.end(transfer, .failure(error))
    }

    func succeed(_ transfer: Transfer, _ response: DownloadResponse) {
        self.counters.succeeded += 1
        if transfer.metrics.resumedBytes > 0 { self.counters.resumed += 1 }
        self.tell(transfer, .finished(response.metrics))
        self.end(transfer, .success(response))
    }

    private func end(_ transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        self.detach(transfer)
        self.queue.remove(transfer.id)
        self.shortage.forget(transfer.id)
        transfer.task?.cancel()
        self.keepPart(of: transfer, result)
        self.transfers[transfer.id] = nil
        if self.transfersByIdentity[transfer.identity] === transfer {
            self.transfersByIdentity[transfer.identity] = nil
        }
        self.counters.receivedBytes += transfer.metrics.bytes
        transfer.finish(result)
    }
}
