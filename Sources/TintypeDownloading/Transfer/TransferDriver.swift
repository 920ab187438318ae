// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

/// Moves transfers forward on one curl multi handle: performs the actions of their machines.
///
/// Not sendable: only the loop's thread touches it.
final class TransferDriver {
    private let configuration: DownloadActor.Configuration
    let hooks: DownloadHooks
    let partials: PartialBodyAccess
    /// Set before the first transfer.
    var multi: CurlMulti? {
        didSet { self.multi?.onFlood = { [unowned self] in self.endFlooded($0) } }
    }
    let registry: TransferRegistry
    var queue: TransferQueue
    let backpressure: BodyBackpressure
    private var handles: HandlePool
    private var deadlines: TransferDeadlines
    private var retries: RetrySchedule

    init(
        configuration shared: SharedConfiguration,
        hooks: DownloadHooks,
        environment: EngineEnvironment
    ) {
        let configuration = shared.value
        self.configuration = configuration
        self.hooks = hooks
        self.partials = PartialBodyAccess(shared)
        self.registry = TransferRegistry()
        self.queue = TransferQueue(
            maximumActive: configuration.maximumTransfers,
            maximumPerOrigin: configuration.maximumConnectionsPerHost,
            order: configuration.order,
            rateLimit: configuration.rateLimit
        )
        self.backpressure = BodyBackpressure(
            budget: ByteBudget(limit: configuration.bodyMemory),
            patience: configuration.memoryPatience
        )
        self.handles = HandlePool(configuration: shared)
        let now = LoopInstant.now
        let interval = TransferLimits.speedCheckInterval(configuration.minimumSpeed)
        self.deadlines = TransferDeadlines(speedCheckInterval: interval, now: now)
        self.retries = RetrySchedule(configuration.retryPolicy.budget, environment: environment, now: now)
        self.registry.onMemoryShortage = { [backpressure] in backpressure.insert($0) }
    }

    /// The number of transfers that libcurl works on.
    var activeCount: Int { self.handles.count }

    private var running: some Sequence<Transfer> { self.handles.ids.lazy.compactMap { self.registry[$0] } }

    /// The time when libcurl was last called: near enough for events that start no time limit.
    private var turnTime: LoopInstant { self.multi?.now ?? .now }

    /// Frees all objects of libcurl.
    func releaseHandles() {
        self.handles.removeAll(on: self.multi)
        self.multi?.dropResting()
        self.multi = nil
    }

    // MARK: Turns of the loop

    /// Does all that can be done without waiting.
    func drive() {
        self.registry.announceNews()
        self.beginTurn()
        self.advance()
        if self.multi?.readLeftRecords() ?? false { self.advance() }
    }

    /// Starts and ends transfers for as long as the one leads to the other.
    private func advance() {
        var hasEnded = true
        while hasEnded {
            self.submitDelayed()
            self.backpressure.relieve(among: self.running) { self.resume($0) }
            self.startReady()
            self.multi?.runTimer()
            self.registry.announceNews()
            hasEnded = self.completeFinished() || self.endOverdue()
            self.registry.resumeSettled()
        }
    }

    /// Waits for a socket or a time limit.
    func wait() {
        let deadline = LoopInstant.earlier(self.deadlines.next, self.queue.nextTokenTime)
        self.multi?.wait(until: .earlier(deadline, self.backpressure.nextReview))
    }

    /// Lets sockets have a turn, without a wait.
    func poll() {
        self.multi?.wait(until: .now, hasJobs: true)
    }

    // MARK: The way of a transfer

    /// Starts a transfer, unless a hook or a part of its body comes first.
    func begin(_ transfer: Transfer, owner: DownloadActor) {
        self.retries.didStartTransfer()
        self.registry.insert(transfer)
        if self.hooks.changeResponses { transfer.owner = owner }
        guard self.hooks.modifyRequest != nil || self.partials.mayHavePart(of: transfer) else {
            self.move(transfer, .submit, at: self.turnTime)
            return
        }
        let (id, request) = (transfer.id, transfer.request)
        transfer.task = Task { await owner.prepare(request, id: id) }
    }

    /// Goes on with a transfer that was prepared.
    func submit(_ id: UInt64, _ request: DownloadRequest, partial: PartialBody?) {
        guard let transfer = self.registry[id] else { return }
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

    /// Passes an event to the machine of a transfer, and performs its action.
    func move(_ transfer: Transfer, _ event: TransferMachine.Event, at now: LoopInstant = .now) {
        switch transfer.transition(event, at: now) {
        case .enqueue:
            // A redirect or another try continues the turn. After all transfers of its client, its time would be over.
            let origin = transfer.address.origin
            self.queue.submit(
                transfer.id,
                origin: origin,
                priority: transfer.audience.priority,
                client: transfer.servedOrigin == origin ? nil : transfer.client
            )
        case .submit(let time): self.deadlines.addTry(of: transfer.id, at: time)
        case .look(let time):
            self.deadlines.expectLook(at: time)
            self.setLagging(transfer)
        case .expire(let limit): self.expire(transfer, limit)
        case .yield:
            transfer.yieldMemory()
            self.backpressure.insert(transfer)
        case .unpause: self.unpause(transfer)
        // The sender of the event performs these.
        case .none, .proceed, .readHead, .refuseHead, .refuseResponse, .take, .discard, .hold, .abort, .judge, .finish:
            break
        }
    }

    private func submitDelayed() {
        guard self.deadlines.hasTries else { return }
        let now = LoopInstant.now
        while let id = self.deadlines.takeTry(now: now) {
            if let transfer = self.registry[id] { self.move(transfer, .submit, at: now) }
        }
    }

    /// Ends the transfers whose time is over while they wait for a turn, for another try or for a hook.
    private func endWaiting(_ now: LoopInstant) -> Bool {
        var hasEnded = false
        while let id = self.deadlines.takeEnd(now: now) {
            guard let transfer = self.registry[id] else { continue }
            // A wait for memory moves it away, and while that lasts it is not known how far.
            let deadline = transfer.machine.totalDeadline ?? now + self.configuration.memoryPatience
            guard deadline <= now else {
                self.deadlines.addEnd(of: id, at: deadline)
                continue
            }
            guard self.handles[id] == nil else { continue }
            self.fail(transfer, transfer.error(past: .total))
            hasEnded = true
        }
        return hasEnded
    }

    func cancel(_ transfer: Transfer) {
        self.end(transfer, .failure(CancellationError()))
    }

    func fail(_ transfer: Transfer, _ error: any Error) {
        self.end(transfer, .failure(error as? DownloadError ?? CancellationError()))
    }

    private func succeed(_ transfer: Transfer, _ response: DownloadResponse) {
        self.end(transfer, .success(response))
    }

    private func end(_ transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        self.registry.willEnd(transfer, result)
        self.detach(transfer)
        self.queue.remove(transfer.id)
        self.backpressure.forget(transfer)
        transfer.task?.cancel()
        self.partials.settle(transfer, result)
        guard transfer.transition(.end, at: self.turnTime) == .finish else { return }
        self.registry.settle(transfer, result)
    }

    // MARK: Starting

    private func startReady() {
        // The end of a throttled time must be seen even if no transfer waits, or the loop would not sleep.
        guard self.queue.waitingCount > 0 || self.queue.nextTokenTime != nil else { return }
        let now = LoopInstant.now
        while let id = self.queue.next(now: now) {
            if let transfer = self.registry[id] { self.start(transfer, at: now) }
        }
    }

    /// Hands a request to libcurl: the first, that of each redirect, and that of each try.
    private func start(_ transfer: Transfer, at now: LoopInstant) {
        do throws(DownloadError) {
            guard let multi else { throw .outOfMemory(at: transfer.address) }
            try self.handles.start(transfer, on: multi)
        } catch {
            self.queue.finish(origin: transfer.address.origin)
            self.fail(transfer, error)
            return
        }
        transfer.servedOrigin = transfer.address.origin
        let isFirst = transfer.machine.firstStartTime == nil
        self.move(transfer, .send(asksForRest: transfer.asksForRest, date: Date()), at: now)
        if isFirst, let time = transfer.machine.totalDeadline {
            self.deadlines.removeOutdatedEnds(count: self.registry.count) { self.registry[$0] != nil }
            self.deadlines.addEnd(of: transfer.id, at: time)
        }
        self.deadlines.expectSpeedCheck(after: now)
    }

    // MARK: Ending

    /// Completes the transfers that libcurl has finished; returns whether there was any.
    private func completeFinished() -> Bool {
        guard let multi else { return false }
        var hasFinished = false
        while let (easy, code) = multi.nextFinished() {
            hasFinished = true
            if let active = self.handles.finishLookUp(of: easy, on: multi) {
                self.queue.finish(origin: active.origin, isLagging: active.isLagging)
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
                try self.hooks.check(redirectTo: target, from: transfer.address)
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

    /// Continues the transfers that used up their share of the last turn, and ends the stopped ones.
    private func beginTurn() {
        // First, or one that has ended for another reason would seem to be refused.
        _ = self.completeFinished()
        var count = self.multi?.beginTurn() ?? 0
        guard count > 0 else { return }
        let end = LoopInstant.now + CurlMulti.turn
        repeat {
            count -= 1
            guard let handle = self.multi?.popResting() else { return }
            guard let transfer = handle.transfer, !transfer.machine.isPaused else { continue }
            // libcurl does nothing more with it, and does not say that it is over.
            let code = transfer.machine.failure == nil ? handle.unpause() : CURLE_WRITE_ERROR
            if code != CURLE_OK { self.complete(transfer, code: code, handle: handle) }
            // Many that flood take turns as well.
        } while count > 0 && .now < end
    }

    /// Ends the transfers whose connection brought nothing but frames, and was ended for that.
    private func endFlooded(_ descriptor: CInt) {
        for (id, handle) in self.handles.transfers(on: descriptor) {
            guard let transfer = self.registry[id] else { continue }
            let reason = "its connection has more framing than content"
            transfer.stop(.invalidResponse(reason, at: transfer.address), at: .now)
            self.complete(transfer, code: CURLE_RECV_ERROR, handle: handle)
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

    /// Ends a transfer with the response that the hooks have returned.
    func finish(_ transfer: Transfer, _ response: DownloadResponse) {
        transfer.task = nil
        do throws(DownloadError) {
            try transfer.check(response)
            self.succeed(transfer, response)
        } catch {
            self.settle(transfer, error)
        }
    }

    /// Takes a transfer away from libcurl, if it has it, and gives its place to the next, unless a look-up keeps it.
    private func detach(_ transfer: Transfer, isComplete: Bool = false) {
        guard let active = self.handles[transfer.id] else { return }
        if let free = self.handles.finish(active, id: transfer.id, isComplete: isComplete, on: self.multi) {
            self.queue.finish(origin: free.origin, isLagging: free.isLagging)
        }
        transfer.settleCookies()
        if transfer.machine.isPaused { self.backpressure.remove(transfer) }
        self.move(transfer, .finish, at: self.turnTime)
    }

    /// Lets a transfer go on that was paused, or was given up for want of memory.
    func resume(_ transfer: Transfer) {
        let bytes = self.handles.handle(of: transfer.id).map { Int64(ccurl_get_body_bytes($0.easy)) }
        self.move(transfer, .resume(bodyBytes: bytes ?? 0))
    }

    private func unpause(_ transfer: Transfer) {
        guard let handle = self.handles.handle(of: transfer.id) else { return }
        // Bytes that libcurl has kept come before this returns.
        let code = handle.unpause()
        if code != CURLE_OK { self.complete(transfer, code: code, handle: handle) }
    }

    // MARK: Time

    /// Ends the transfers that take too long; returns whether there was any.
    ///
    /// A byte that arrives only moves a deadline away, so that all of them are looked at seldom.
    private func endOverdue() -> Bool {
        let now = LoopInstant.now
        var hasEnded = self.endWaiting(now)
        guard let delay = self.deadlines.takeLook(now: now) else { return hasEnded }
        // The process or the loop was stopped, and sees the time before the answers that have arrived meanwhile.
        if delay > .milliseconds(100), self.takeArrived() { hasEnded = true }
        for id in Array(self.handles.ids) {
            guard let transfer = self.registry[id], let handle = self.handles.handle(of: id) else { continue }
            let bytes = Int64(ccurl_get_body_bytes(handle.easy))
            self.move(transfer, .look(connectTime: handle.connectTime, bodyBytes: bytes), at: now)
            if self.handles[id] == nil { hasEnded = true }
        }
        if self.handles.count > 0 { self.deadlines.expectSpeedCheck(after: now) }
        return hasEnded
    }

    /// Lets libcurl take what has arrived, and completes transfers; returns whether there was any.
    private func takeArrived() -> Bool {
        // Each connection has a turn, although others may bring more and more.
        for _ in 0..<self.handles.count {
            guard self.multi?.wait(until: .now, hasJobs: true) == true else { break }
        }
        return self.completeFinished()
    }

    private func expire(_ transfer: Transfer, _ limit: TransferMachine.TimeLimit) {
        let error = transfer.error(past: limit)
        if let handle = self.handles.handle(of: transfer.id) {
            transfer.metrics.add(ccurl_get_metrics(handle.easy))
            handle.forbidReuse()
        }
        self.detach(transfer)
        if case .judging = transfer.machine.phase { self.settle(transfer, error) }
    }

    /// Takes the place of a transfer that brings next to nothing, which goes on beside the others, if there is room for it.
    private func setLagging(_ transfer: Transfer) {
        guard let active = self.handles[transfer.id], let exchange = transfer.machine.exchange,
            exchange.isLagging != active.isLagging, self.queue.setLagging(exchange.isLagging)
        else { return }
        self.handles.setLagging(exchange.isLagging, of: transfer.id)
    }

    // MARK: Trying again

    /// Tries a transfer whose request failed once more, or ends it.
    private func settle(_ transfer: Transfer, _ error: DownloadError) {
        if transfer.machine.mustRestart || transfer.failedResuming(error) {
            self.partials.removePart(of: transfer)
            transfer.dropBody()
            transfer.restart()
            self.move(transfer, .sendAgain)
            return
        }
        guard self.canRetry(transfer), let delay = self.delay(before: transfer, error) else {
            self.fail(transfer, error)
            return
        }
        transfer.keepResumableBytes()
        transfer.restart()
        transfer.metrics.retryCount += 1
        self.registry.didPlanRetry(of: transfer, after: delay, error)
        self.move(transfer, .retry(after: delay))
    }

    private func canRetry(_ transfer: Transfer) -> Bool {
        // A reader has seen the head, and perhaps more.
        !transfer.isStream || !transfer.hasHead || !transfer.isSuccess
    }

    private func delay(before transfer: Transfer, _ error: DownloadError) -> Duration? {
        self.retries.delay(
            after: error,
            attempts: transfer.machine.attempts,
            policy: transfer.outgoing.retryPolicy,
            end: transfer.machine.totalDeadline,
            now: .now
        )
    }
}
