import CCurl
import FoundationEssentials
import Synchronization
import TintypeConcurrency
import TintypeHTTP

/// The time of day and chance, which tests choose.
struct EngineEnvironment: Sendable {
    var date: @Sendable () -> Date = { Date() }
    /// A number from 0 to 1.
    var random: @Sendable () -> Double = { Double.random(in: 0...1) }
}

/// What a transfer holds while libcurl works on it.
struct ActiveTransfer {
    let handle: EasyHandle
    /// libcurl does not copy them.
    let headers: HeaderList
    /// Whether it has given its place to others.
    var isLagging = false
}

/// Moves transfers forward on one curl multi handle.
///
/// Sendable although unchecked: after `init`, every method except ``open()``, ``wake()`` and those that say otherwise is only called
/// in jobs of the loop that owns the engine. It opens the engine before its thread can run, and calls `wake()` after.
final class TransferEngine: @unchecked Sendable {
    /// When a transfer is tried again, or ends wherever it is.
    private struct Appointment: Comparable {
        let time: LoopInstant
        let id: UInt64

        static func < (left: Appointment, right: Appointment) -> Bool { left.time < right.time }
    }

    private let configuration: DownloadActor.Configuration
    let hooks: DownloadHooks
    let partials: PartialBodyStore?
    let events = Broadcast<DownloadEvent>()
    private let environment: EngineEnvironment
    /// Opened before the first transfer.
    private(set) var multi: CurlMulti?
    /// What ends the wait of ``multi``, for any thread.
    private let wakeup = Locked<SocketPoll.Wakeup?>(nil)
    /// Whether there will be no transfer any more.
    private let hasClosed = Atomic<Bool>(false)
    private let earlyRefusals = Atomic<Int>(0)
    var queue: TransferQueue
    /// Those that wait, those that run, and those that a hook works on.
    private(set) var transfers: [UInt64: Transfer] = [:]
    /// The same ones, to find the one that a request can share; streams are not shared.
    private var transfersByIdentity: [SharedRequest: Transfer] = [:]
    private var delayed = Heap<Appointment>()
    /// The ends of those that have one for all their tries, and of some that are over.
    private var totalDeadlines = Heap<Appointment>()
    private var retryBudget: RetryBudget
    private(set) var counters = DownloadCounters()
    private let backpressure: BodyBackpressure
    /// Those that run.
    private var active: [UInt64: ActiveTransfer] = [:]
    private var idleHandles: [EasyHandle] = []
    /// What libcurl still has of transfers that are over, by its handle: each waits for the address of a name.
    ///
    /// The look-up has a thread and descriptors, and can't be ended. It keeps the transfer's place, so that there are
    /// no more of them than places, however many transfers are cancelled; its connect limit ends it, too.
    private var lookUps: [UnsafeMutableRawPointer: (active: ActiveTransfer, origin: String)] = [:]
    private let defaultHeaders: HeaderFields
    /// `nil` where they can't be sent, which every request is then told.
    private let defaultHeaderList: HeaderList?
    /// Made once for all transfers, which end before the engine does.
    private lazy var report: (Transfer, Transfer.News) -> Void = { [unowned self] transfer, news in
        switch news {
        case .head:
            self.counters.receivedHeads += 1
            self.tell(transfer, .receivedHead(status: transfer.status ?? 0))
        case .bytes: self.news.append(transfer)
        case .memoryShortage:
            self.counters.memoryWaits += 1
            self.backpressure.insert(transfer)
        }
    }
    /// Those that have bytes which their observers do not know of.
    private var news: [Transfer] = []
    /// Those that are over, and whose callers do not know yet.
    ///
    /// They hear of it together: each alone would wake a thread of its own.
    private var settled: [(transfer: Transfer, result: Result<DownloadResponse, any Error>)] = []
    /// No transfer can be overdue before this.
    private var nextDeadline: LoopInstant?
    /// Speeds are looked at in steps from here on.
    private let speedCheckOrigin = LoopInstant.now
    private var nextSpeedCheck = LoopInstant.now
    private let speedCheckInterval: Duration

    init(
        configuration: DownloadActor.Configuration,
        hooks: DownloadHooks = DownloadHooks(),
        environment: EngineEnvironment = EngineEnvironment()
    ) {
        self.configuration = configuration
        self.hooks = hooks
        self.environment = environment
        self.backpressure = BodyBackpressure(
            budget: ByteBudget(limit: configuration.bodyMemory),
            patience: configuration.memoryPatience
        )
        self.partials = configuration.partialBodies.map { PartialBodyStore($0) }
        self.queue = TransferQueue(
            maximumActive: configuration.maximumTransfers,
            maximumPerOrigin: configuration.maximumConnectionsPerHost,
            order: configuration.order,
            rateLimit: configuration.rateLimit
        )
        self.speedCheckInterval = TransferLimits.speedCheckInterval(configuration.minimumSpeed)
        self.retryBudget = RetryBudget(configuration.retryPolicy.budget, now: .now)
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
        let wakeup = self.multi?.poll.wakeup
        self.wakeup.withLock { $0 = wakeup }
    }

    /// Whether ``refuse()`` was called.
    var isClosed: Bool { self.hasClosed.load(ordering: .relaxed) }

    /// Lets no transfer begin from now on; safe from any thread.
    func refuse() {
        self.hasClosed.store(true, ordering: .relaxed)
    }

    /// Gives back what libcurl and the system gave, up to what ends a wait; there are no transfers then.
    func close() {
        self.events.finish()
        self.releaseHandles()
        self.multi = nil
    }

    /// Gives back what ends a wait, when no thread waits any more.
    func closeWakeup() {
        self.wakeup.withLock { $0 = nil }
    }

    deinit {
        self.events.finish()
        self.releaseHandles()
    }

    private func releaseHandles() {
        for active in self.active.values { self.multi?.remove(active.handle.easy) }
        for easy in self.lookUps.keys { self.multi?.remove(easy) }
        // Easy handles must be gone before their multi handle.
        self.active = [:]
        self.lookUps = [:]
        self.idleHandles = []
        self.multi?.dropResting()
    }

    // MARK: Orders

    /// The number of transfers that wait for their turn, for another try or for a hook.
    var waitingCount: Int { self.transfers.count - self.active.count }

    /// The number of transfers that libcurl works on.
    var activeCount: Int { self.active.count }

    private var running: some Sequence<Transfer> { self.active.keys.lazy.compactMap { self.transfers[$0] } }

    /// What the bytes of all bodies count in.
    var bodyBudget: ByteBudget { self.backpressure.budget }

    /// Lets a caller wait for the transfer of `request`, which is started if there is none.
    func join(
        _ request: SharedRequest,
        from address: ResourceAddress,
        id: UInt64,
        waiter: TransferWaiter,
        owner: DownloadActor
    ) {
        guard !self.isClosed else {
            waiter.continuation.resume(throwing: DownloadError.shutDown(at: address))
            return
        }
        if let transfer = self.transfersByIdentity[request] {
            self.counters.shared += 1
            transfer.join(waiter)
            self.queue.setPriority(transfer.priority, of: transfer.id)
            return
        }
        let transfer = Transfer(
            id: id,
            request: request,
            address: address,
            configuration: self.configuration,
            bodyBudget: self.bodyBudget,
            report: self.report
        )
        transfer.join(waiter)
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
        guard !self.isClosed else {
            channel.finish(.failure(DownloadError.shutDown(at: address)))
            return
        }
        let transfer = Transfer(
            id: id,
            request: SharedRequest(request),
            address: address,
            configuration: self.configuration,
            bodyBudget: self.bodyBudget,
            channel: channel,
            priority: priority,
            report: self.report
        )
        self.begin(transfer, owner: owner)
    }

    /// Ends the wait of a caller that was cancelled; the last one out ends the transfer.
    ///
    /// libcurl closes the transfer's connection, unless that carries others.
    func leave(_ request: SharedRequest, id: UInt64) {
        guard let transfer = self.transfersByIdentity[request], let waiter = transfer.leave(id) else {
            return
        }
        if transfer.hasWaiters {
            self.queue.setPriority(transfer.priority, of: transfer.id)
        } else {
            self.cancel(transfer)
        }
        waiter.continuation.resume(throwing: CancellationError())
    }

    /// Ends a stream that is not read any more; does nothing for one that is over.
    func leaveStream(_ id: UInt64) {
        guard let transfer = self.transfers[id], transfer.isStream else { return }
        self.cancel(transfer)
    }

    /// Lets a stream go on whose reader has made room.
    func resumeStream(_ id: UInt64) {
        // One that waits for memory goes on when there is some, and finds the room then.
        guard let transfer = self.transfers[id], case .reader? = transfer.machine.exchange?.pause else { return }
        self.resume(transfer)
    }

    func setPriority(_ priority: DownloadPriority, of request: DownloadRequest) {
        guard let transfer = self.transfersByIdentity[SharedRequest(request)] else { return }
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
        var hasEnded = true
        while hasEnded {
            self.submitDelayed()
            self.backpressure.relieve(among: self.running) { self.resume($0) }
            self.startReady()
            self.multi?.runTimer()
            self.announceNews()
            hasEnded = self.completeFinished() || self.endOverdue()
            self.tellSettled()
        }
    }

    private func tellSettled() {
        guard !self.settled.isEmpty else { return }
        for (transfer, result) in self.settled { transfer.finish(result) }
        self.settled.removeAll(keepingCapacity: true)
    }

    /// Before those that are complete end: their progress does as well.
    private func announceNews() {
        guard !self.news.isEmpty else { return }
        for transfer in self.news { transfer.announce() }
        self.news.removeAll(keepingCapacity: true)
    }

    /// Waits for a socket, a time limit or ``wake()``.
    func wait() {
        var deadline = LoopInstant.earlier(self.nextDeadline, self.delayed.first?.time)
        deadline = .earlier(deadline, .earlier(self.queue.nextTokenTime, self.totalDeadlines.first?.time))
        self.multi?.wait(until: .earlier(deadline, self.backpressure.nextReview))
    }

    /// Waits for ``wake()`` alone, and touches nothing else.
    func park() {
        self.wakeup.withLock { $0 }?.wait()
    }

    /// Lets sockets have a turn, without a wait.
    func poll() {
        self.multi?.wait(until: .now)
    }

    /// Ends the wait that goes on, or the next one; safe from any thread.
    func wake() {
        // Before it is opened nothing waits.
        self.wakeup.withLock { $0 }?.wake()
    }

    // MARK: The way of a transfer

    private func begin(_ transfer: Transfer, owner: DownloadActor) {
        self.counters.started += 1
        self.transfers[transfer.id] = transfer
        self.retryBudget.didStartRequest()
        self.tell(transfer, .started)
        if self.hooks.changeResponses { transfer.owner = owner }
        guard self.hooks.modifyRequest != nil || self.mayHavePart(of: transfer) else {
            self.move(transfer, .submit)
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
            if request != transfer.request {
                try request.checkSendable()
                let address = try ResourceAddress(request.url.absoluteString)
                guard address.scheme == .http || address.scheme == .https else {
                    throw .unsupportedScheme(String(request.url.absoluteString.prefix { $0 != ":" }))
                }
                try (request.networkPolicy ?? self.configuration.networkPolicy).check(address)
                transfer.replace(request, address: address)
            }
        } catch {
            self.fail(transfer, error)
            return
        }
        if let partial { transfer.resume(from: partial) }
        self.move(transfer, .submit)
    }

    /// Tells a transfer what happened, and does what follows.
    func move(_ transfer: Transfer, _ event: TransferMachine.Event, at now: LoopInstant = .now) {
        switch transfer.transition(event, at: now) {
        case .enqueue:
            self.queue.submit(transfer.id, origin: transfer.address.origin, priority: transfer.priority)
        case .submit(let time): self.delayed.insert(Appointment(time: time, id: transfer.id))
        case .look(let time):
            self.expect(deadline: time)
            self.setLagging(transfer)
        case .expire(let limit): self.expire(transfer, limit)
        case .yield:
            transfer.yieldMemory()
            self.backpressure.insert(transfer)
        case .unpause: self.unpause(transfer)
        // What those lead to is done where the event comes from.
        case .none, .proceed, .readHead, .refuseHead, .refuseResponse, .take, .discard, .hold, .abort, .judge, .finish:
            break
        }
    }

    private func submitDelayed() {
        guard let first = self.delayed.first else { return }
        let now = LoopInstant.now
        var next: Appointment? = first
        while let due = next, due.time <= now {
            self.delayed.popFirst()
            if let transfer = self.transfers[due.id] { self.move(transfer, .submit, at: now) }
            next = self.delayed.first
        }
    }

    /// Remembers when a transfer that starts for the first time must be over.
    private func appoint(totalDeadline time: LoopInstant, of transfer: Transfer) {
        if self.totalDeadlines.count > self.transfers.count * 2 + 1_024 {
            let transfers = self.transfers
            self.totalDeadlines.filter { transfers[$0.id] != nil }
        }
        self.totalDeadlines.insert(Appointment(time: time, id: transfer.id))
    }

    /// Ends those whose time is over while they wait for a turn, for another try or for a hook.
    private func endWaiting(_ now: LoopInstant) -> Bool {
        var hasEnded = false
        while let first = self.totalDeadlines.first, first.time <= now {
            self.totalDeadlines.popFirst()
            guard let transfer = self.transfers[first.id] else { continue }
            // A wait for memory moves it away, and while that lasts it is not known how far.
            let deadline = transfer.machine.totalDeadline ?? now + self.configuration.memoryPatience
            guard deadline <= now else {
                self.totalDeadlines.insert(Appointment(time: deadline, id: first.id))
                continue
            }
            guard self.active[first.id] == nil else { continue }
            self.fail(transfer, transfer.error(past: .total))
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
        if error.isRefusal { self.counters.refused += 1 }
        self.tell(transfer, .failed(error))
        self.end(transfer, .failure(error))
    }

    private func succeed(_ transfer: Transfer, _ response: DownloadResponse) {
        self.counters.succeeded += 1
        if transfer.metrics.resumedBytes > 0 { self.counters.resumed += 1 }
        self.tell(transfer, .finished(response.metrics))
        self.end(transfer, .success(response))
    }

    private func end(_ transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        self.detach(transfer)
        self.queue.remove(transfer.id)
        self.backpressure.forget(transfer)
        transfer.task?.cancel()
        self.keepPart(of: transfer, result)
        guard transfer.transition(.end, at: .now) == .finish else { return }
        self.transfers[transfer.id] = nil
        if self.transfersByIdentity[transfer.identity] === transfer {
            self.transfersByIdentity[transfer.identity] = nil
        }
        self.counters.receivedBytes += transfer.metrics.bytes
        self.settled.append((transfer, result))
    }

    // MARK: Starting

    private func startReady() {
        let now = LoopInstant.now
        while let id = self.queue.next(now: now) {
            if let transfer = self.transfers[id] { self.start(transfer, at: now) }
        }
    }

    /// Hands a request to libcurl: the first, that of each redirect, and that of each try.
    private func start(_ transfer: Transfer, at now: LoopInstant) {
        let idle = transfer.options == nil ? self.idleHandles.popLast() : nil
        guard let multi,
            let handle = idle
                ?? EasyHandle(options: transfer.options, configuration: self.configuration, multi: multi)
        else {
            self.queue.finish(origin: transfer.address.origin)
            self.fail(transfer, DownloadError.outOfMemory(at: transfer.address))
            return
        }
        let headers: HeaderList
        do throws(DownloadError) {
            headers = try self.headerList(for: transfer)
        } catch {
            self.queue.finish(origin: transfer.address.origin)
            self.fail(transfer, error)
            return
        }
        if transfer.request.networkPolicy != nil { multi.mixesPolicies = true }
        handle.prepare(for: transfer, headers: headers, activeCount: self.active.count)
        let isFirst = transfer.machine.firstStartTime == nil
        self.active[transfer.id] = ActiveTransfer(handle: handle, headers: headers)
        guard multi.add(handle.easy) else {
            self.fail(transfer, DownloadError.outOfMemory(at: transfer.address))
            return
        }
        self.move(transfer, .send(asksForRest: transfer.asksForRest, date: Date()), at: now)
        if isFirst, let time = transfer.machine.totalDeadline { self.appoint(totalDeadline: time, of: transfer) }
        self.expectSpeedCheck(after: now)
    }

    private func headerList(for transfer: Transfer) throws(DownloadError) -> HeaderList {
        let rest = transfer.asksForRest ? transfer.resumption : nil
        if let defaultHeaderList, transfer.requestHeaders.isEmpty, rest == nil { return defaultHeaderList }
        var headers = self.defaultHeaders
        for field in transfer.requestHeaders { headers.set(nil, for: field.name) }
        return try HeaderList(headers + transfer.requestHeaders + (rest?.headers ?? [:]))
    }

    // MARK: Ending

    /// Takes what libcurl has finished; returns whether there was any.
    private func completeFinished() -> Bool {
        var hasFinished = false
        while let (easy, code) = self.multi?.nextFinished() {
            hasFinished = true
            if let look = self.lookUps.removeValue(forKey: easy) {
                self.release(look.active, origin: look.origin)
            } else if let handle = EasyHandle.of(easy: easy), let transfer = handle.transfer {
                self.complete(transfer, code: code, handle: handle)
            }
        }
        return hasFinished
    }

    private func complete(_ transfer: Transfer, code: CURLcode, handle: EasyHandle) {
        guard !handle.foundSurplus else {
            self.changeConnection(of: transfer, handle)
            return
        }
        transfer.metrics.add(ccurl_get_metrics(handle.easy))
        if transfer.metrics.httpVersion == .http2 { self.queue.setMultiplexes(origin: transfer.address.origin) }
        let details = code == CURLE_OK ? "" : handle.errorDetails
        let bodyEnd = handle.bodyEnd
        if code == CURLE_OK { handle.leaveConnection(isWhole: true) }
        self.detach(transfer, isComplete: true)
        guard case .judging = transfer.machine.phase else { return }
        do throws(DownloadError) {
            if let target = try transfer.redirectTarget(limit: self.configuration.maximumRedirects) {
                transfer.redirect(to: target)
                self.move(transfer, .sendAgain)
                return
            }
            var connections = handle.connections
            ccurl_getinfo_long(handle.easy, CURLINFO_HTTP_CONNECTCODE, &connections.tunnelStatus)
            self.process(
                try transfer.makeResponse(code: code, details: details, connections: connections, bodyEnd: bodyEnd),
                of: transfer
            )
        } catch {
            self.settle(transfer, error)
        }
    }

    /// Sends the request over a new connection: nothing of it has gone over the one that was chosen.
    private func changeConnection(of transfer: Transfer, _ handle: EasyHandle) {
        guard let multi = self.multi else { return }
        multi.remove(handle.easy)
        handle.takeFreshConnection()
        guard multi.add(handle.easy) else {
            self.fail(transfer, DownloadError.outOfMemory(at: transfer.address))
            return
        }
    }

    /// Lets those go on that had enough of the last turn, and ends those that are not worth it.
    private func beginTurn() {
        // First, or one that has ended for another reason would seem to be refused.
        _ = self.completeFinished()
        var count = self.multi?.beginTurn() ?? 0
        guard count > 0 else { return }
        let end = LoopInstant.now + CurlMulti.turn
        repeat {
            count -= 1
            guard let handle = self.multi?.popResting(), handle.isResting else { continue }
            handle.isResting = false
            guard let transfer = handle.transfer else { continue }
            if transfer.machine.isPaused { continue }
            // libcurl does nothing more with it, and does not say that it is over.
            let code = transfer.failure == nil ? handle.unpause() : CURLE_WRITE_ERROR
            if code != CURLE_OK { self.complete(transfer, code: code, handle: handle) }
            // Many that flood take turns as well.
        } while count > 0 && .now < end
    }

    /// Ends those whose connection brought nothing but frames, and so was ended.
    private func endFlooded(_ descriptor: CInt) {
        let flooded = self.active.filter { $0.value.handle.sharedDescriptor == descriptor }
        for (id, active) in flooded {
            guard let transfer = self.transfers[id] else { continue }
            let reason = "its connection has more framing than content"
            transfer.stop(.invalidResponse(reason, at: transfer.address), at: .now)
            self.complete(transfer, code: CURLE_RECV_ERROR, handle: active.handle)
        }
    }

    /// Lets the hooks have the response, if there are any.
    private func process(_ response: DownloadResponse, of transfer: Transfer) {
        guard let owner = transfer.owner, !transfer.isStream else {
            self.succeed(transfer, response)
            return
        }
        let id = transfer.id
        self.move(transfer, .process)
        transfer.task = Task { await owner.process(response, id: id) }
    }

    /// Ends a transfer with what the hooks made of its response.
    func finish(_ transfer: Transfer, _ response: DownloadResponse) {
        transfer.task = nil
        do throws(DownloadError) {
            try transfer.judge(response)
            self.succeed(transfer, response)
        } catch {
            self.settle(transfer, error)
        }
    }

    /// Takes a transfer away from libcurl, if it has it, and gives its place to the next, unless a name is looked up.
    private func detach(_ transfer: Transfer, isComplete: Bool = false) {
        guard let active = self.active.removeValue(forKey: transfer.id) else { return }
        let handle = active.handle
        let origin = transfer.address.origin
        if !isComplete, handle.isLookingUp {
            // Without a transfer, no address is good enough to connect to: the look-up is the last that it does.
            self.lookUps[handle.easy] = (active, origin)
        } else {
            self.release(active, origin: origin)
        }
        handle.transfer = nil
        transfer.settleCookies()
        if transfer.machine.isPaused { self.backpressure.remove(transfer) }
        self.move(transfer, .finish)
    }

    private func release(_ active: ActiveTransfer, origin: String) {
        self.multi?.remove(active.handle.easy)
        active.handle.releaseConnection()
        active.handle.isResting = false
        if active.handle.isReusable { self.idleHandles.append(active.handle) }
        self.queue.finish(origin: origin, isLagging: active.isLagging)
    }

    /// Lets a transfer go on that was paused, or was given up for want of memory.
    private func resume(_ transfer: Transfer) {
        let bytes = self.active[transfer.id].map { Int64(ccurl_get_body_bytes($0.handle.easy)) }
        self.move(transfer, .resume(bodyBytes: bytes ?? 0))
    }

    private func unpause(_ transfer: Transfer) {
        guard let handle = self.active[transfer.id]?.handle else { return }
        // What libcurl has kept comes before this returns.
        let code = handle.unpause()
        if code != CURLE_OK { self.complete(transfer, code: code, handle: handle) }
    }

    // MARK: Time

    private func expect(deadline: LoopInstant) {
        self.nextDeadline = .earlier(self.nextDeadline, deadline)
    }

    /// When speeds are looked at next: at the same times for all, so that thousands cost one look.
    private func expectSpeedCheck(after time: LoopInstant) {
        let interval = self.speedCheckInterval
        // Mostly one is expected already.
        if let nextDeadline, nextDeadline <= self.nextSpeedCheck, time < self.nextSpeedCheck { return }
        guard self.nextSpeedCheck <= time else {
            self.expect(deadline: self.nextSpeedCheck)
            return
        }
        let count = ((time - self.speedCheckOrigin) / interval).rounded(.down) + 1
        self.nextSpeedCheck = self.speedCheckOrigin + interval * count
        self.expect(deadline: self.nextSpeedCheck)
    }

    /// Ends those that take too long; returns whether there was any.
    ///
    /// A byte that arrives only moves a deadline away, so that all of them are looked at seldom.
    private func endOverdue() -> Bool {
        let now = LoopInstant.now
        var hasEnded = self.endWaiting(now)
        guard let deadline = self.nextDeadline, now >= deadline else { return hasEnded }
        self.nextDeadline = nil
        for (id, active) in self.active {
            guard let transfer = self.transfers[id] else { continue }
            let bytes = Int64(ccurl_get_body_bytes(active.handle.easy))
            self.move(transfer, .look(connectTime: active.handle.connectTime, bodyBytes: bytes), at: now)
            if self.active[id] == nil { hasEnded = true }
        }
        if !self.active.isEmpty { self.expectSpeedCheck(after: now) }
        return hasEnded
    }

    private func expire(_ transfer: Transfer, _ limit: TransferMachine.TimeLimit) {
        let error = transfer.error(past: limit)
        if let handle = self.active[transfer.id]?.handle {
            transfer.metrics.add(ccurl_get_metrics(handle.easy))
            handle.forbidReuse()
        }
        self.detach(transfer)
        if case .judging = transfer.machine.phase { self.settle(transfer, error) }
    }

    /// Lets one that brings next to nothing go on beside those that have places, if there is room for it.
    private func setLagging(_ transfer: Transfer) {
        guard let active = self.active[transfer.id], let exchange = transfer.machine.exchange,
            exchange.isLagging != active.isLagging, self.queue.setLagging(exchange.isLagging)
        else { return }
        self.active[transfer.id]?.isLagging = exchange.isLagging
    }

    // MARK: Trying again

    /// Decides what becomes of a transfer whose request failed: another try, or the end.
    private func settle(_ transfer: Transfer, _ error: DownloadError) {
        if transfer.mustRestart || transfer.failedResuming(error) {
            self.forgetPart(of: transfer)
            transfer.dropBody()
            transfer.restart()
            self.move(transfer, .sendAgain)
            return
        }
        guard self.canRetry(transfer), let delay = self.delay(before: transfer, error) else {
            self.fail(transfer, error)
            return
        }
        transfer.keepWhatCanBeResumed()
        transfer.restart()
        transfer.metrics.retryCount += 1
        self.counters.retried += 1
        self.tell(transfer, .retrying(after: delay, error))
        self.move(transfer, .retry(after: delay))
    }

    private func canRetry(_ transfer: Transfer) -> Bool {
        // A reader has seen the head, and perhaps more.
        !transfer.isStream || !transfer.hasHead || !transfer.isSuccess
    }

    private func delay(before transfer: Transfer, _ error: DownloadError) -> Duration? {
        let policy = transfer.retryPolicy
        guard policy.maximumAttempts > 1,
            let delay = policy.delay(
                after: error,
                attempts: transfer.machine.attempts,
                date: self.environment.date(),
                random: self.environment.random()
            )
        else { return nil }
        let now = LoopInstant.now
        if let deadline = transfer.machine.totalDeadline, now + delay >= deadline { return nil }
        return self.retryBudget.takeTry(now: now) ? delay : nil
    }

    /// Whether it is worth looking for the first bytes of a body.
    private func mayHavePart(of transfer: Transfer) -> Bool {
        guard let partials, transfer.canResume, let key = PartialBodyKey(transfer.request, self.configuration) else {
            return false
        }
        return partials.mayHave(key)
    }

    /// Puts the first bytes of a body that is not whole into the store, and takes those of a whole one out.
    private func keepPart(of transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        guard let partials else { return }
        switch result {
        case .success: self.forgetPart(of: transfer)
        case .failure(let error):
            let cause = error as? DownloadError
            // Asking for a part may be what was refused, and would be every time.
            if let cause, Self.isRefusal(cause, ofRest: transfer.hasAskedForRest) { self.forgetPart(of: transfer) }
            // Limits and refusals would come again.
            let isBroken = error is CancellationError || cause.map(Self.mayGoOn) ?? false
            guard isBroken, let key = PartialBodyKey(transfer.request, self.configuration),
                let partial = transfer.takePartialBody()
            else { return }
            partials.insert(partial, for: key)
        }
    }

    private static func isRefusal(_ error: DownloadError, ofRest: Bool) -> Bool {
        switch error.code {
        case .invalidResponse: true
        case .badStatus where ofRest: true
        case .badStatus: error.status.map { 400..<500 ~= $0 && $0 != 408 && $0 != 429 } ?? false
        default: false
        }
    }

    private static func mayGoOn(_ error: DownloadError) -> Bool {
        [.connectionLost, .bodyCutShort, .timedOut, .tooSlow].contains(error.code)
    }

    private func forgetPart(of transfer: Transfer) {
        guard let partials, transfer.usedStoredPart,
            let key = PartialBodyKey(transfer.request, self.configuration)
        else { return }
        transfer.usedStoredPart = false
        // One short job of the store, which ends by itself.
        Task { await partials.remove(key) }
    }

    // MARK: Telling

    /// The requests that the policy refused before they became transfers; known on any thread.
    var earlyRefusalCount: Int { self.earlyRefusals.load(ordering: .relaxed) }

    /// Notes a request that the policy refuses; safe from any thread.
    func noteRefusal(_ error: DownloadError, of address: ResourceAddress) {
        self.earlyRefusals.add(1, ordering: .relaxed)
        guard self.events.hasObservers, let url = DownloadError.url(address) else { return }
        self.events.send(DownloadEvent(transferID: 0, url: url, kind: .refused(error)))
    }

    private func tell(_ transfer: Transfer, _ kind: DownloadEvent.Kind) {
        guard self.events.hasObservers else { return }
        let url = DownloadError.url(transfer.address) ?? transfer.request.url
        self.events.send(DownloadEvent(transferID: transfer.id, url: url, kind: kind))
    }
}
