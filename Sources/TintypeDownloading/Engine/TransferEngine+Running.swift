import CCurl
import FoundationEssentials
import TintypeHTTP

// Those that libcurl works on.

extension TransferEngine {
    // MARK: Starting

    func startReady() {
        while let id = self.queue.next(now: .now) {
            if let transfer = self.transfers[id] { self.start(transfer) }
        }
    }

    /// Hands a request to libcurl: the first, that of each redirect, and that of each try.
    private func start(_ transfer: Transfer) {
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
        handle.prepare(for: transfer, headers: headers, activeCount: self.active.count)
        let isFirst = transfer.firstStartTime == nil
        transfer.willStart()
        if isFirst, let time = transfer.totalDeadline { self.appoint(totalDeadline: time, of: transfer) }
        self.active[transfer.id] = ActiveTransfer(handle: handle, headers: headers)
        guard multi.add(handle.easy) else {
            self.fail(transfer, DownloadError.outOfMemory(at: transfer.address))
            return
        }
        self.expect(deadline: transfer.firstDeadline)
        self.expectSpeedCheck(after: transfer.startTime)
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
    func completeFinished() -> Bool {
        var hasFinished = false
        while let (easy, code) = self.multi?.nextFinished() {
            guard let handle = EasyHandle.of(easy: easy), let transfer = handle.transfer else { continue }
            self.complete(transfer, code: code, handle: handle)
            hasFinished = true
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
        if code == CURLE_OK { handle.leaveConnection(isWhole: true) }
        self.detach(transfer)
        // The order counts: what ended for want of memory looks like a failure.
        if case .yielded = transfer.memoryWait {
            transfer.yieldMemory()
            self.shortage.insert(transfer.id)
            return
        }
        do throws(DownloadError) {
            if let target = try transfer.redirectTarget(limit: self.configuration.maximumRedirects) {
                transfer.redirect(to: target)
                self.submit(transfer)
                return
            }
            self.process(try transfer.makeResponse(code: code, details: details), of: transfer)
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
    func beginTurn() {
        // First, or one that has ended for another reason would seem to be refused.
        _ = self.completeFinished()
        var count = self.multi?.beginTurn() ?? 0
        guard count > 0 else { return }
        let end = ContinuousClock.now + CurlMulti.turn
        repeat {
            count -= 1
            guard let handle = self.multi?.popResting(), handle.isResting else { continue }
            handle.isResting = false
            guard let transfer = handle.transfer else { continue }
            if transfer.failure == nil, transfer.isPaused || handle.unpause() { continue }
            // libcurl does nothing more with it, and does not say that it is over.
            self.complete(transfer, code: CURLE_WRITE_ERROR, handle: handle)
            // Many that flood take turns as well.
        } while count > 0 && .now < end
    }

    /// Ends those whose connection brought nothing but frames, and so was ended.
    func endFlooded(_ descriptor: CInt) {
        let flooded = self.active.filter { $0.value.handle.sharedDescriptor == descriptor }
        for (id, active) in flooded {
            guard let transfer = self.transfers[id] else { continue }
            transfer.failure =
                transfer.failure
                ?? .invalidResponse("its connection has more framing than content", at: transfer.address)
            self.complete(transfer, code: CURLE_RECV_ERROR, handle: active.handle)
        }
    }

    /// Lets the hooks have the response, if there are any.
    private func process(_ response: DownloadResponse, of transfer: Transfer) {
        guard let owner = transfer.owner, transfer.channel == nil else {
            self.succeed(transfer, response)
            return
        }
        let id = transfer.id
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

    /// Takes a transfer away from libcurl, if it has it, and gives its place to the next.
    func detach(_ transfer: Transfer) {
        guard let active = self.active.removeValue(forKey: transfer.id) else { return }
        let handle = active.handle
        self.multi?.remove(handle.easy)
        handle.releaseConnection()
        handle.isResting = false
        handle.transfer = nil
        transfer.settleCookies()
        transfer.isPaused = false
        if case .paused = transfer.memoryWait {
            transfer.memoryWait = nil
            self.shortage.remove(transfer.id)
        }
        if handle.isReusable { self.idleHandles.append(handle) }
        self.queue.finish(origin: transfer.address.origin, isLagging: active.isLagging)
    }

    // MARK: Time

    func expect(deadline: ContinuousClock.Instant) {
        self.nextDeadline = self.nextDeadline.map { min($0, deadline) } ?? deadline
    }

    /// When speeds are looked at next: at the same times for all, so that thousands cost one look.
    private func expectSpeedCheck(after time: ContinuousClock.Instant) {
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
    func endOverdue() -> Bool {
        let now = ContinuousClock.now
        var hasEnded = self.endWaiting(now)
        guard let deadline = self.nextDeadline, now >= deadline else { return hasEnded }
        self.nextDeadline = nil
        for (id, active) in self.active {
            guard let transfer = self.transfers[id] else { continue }
            let result = transfer.check(
                connectedAfter: active.handle.connectTime,
                bodyBytes: Int64(ccurl_get_body_bytes(active.handle.easy)),
                now: now
            )
            switch result {
            case .success(let deadline):
                self.expect(deadline: deadline)
                self.setLagging(transfer, active)
            case .failure(let error):
                transfer.metrics.add(ccurl_get_metrics(active.handle.easy))
                active.handle.forbidReuse()
                self.detach(transfer)
                self.settle(transfer, error)
                hasEnded = true
            }
        }
        if !self.active.isEmpty { self.expectSpeedCheck(after: now) }
        return hasEnded
    }

    /// Lets one that brings next to nothing go on beside those that have places, if there is room for it.
    private func setLagging(_ transfer: Transfer, _ active: ActiveTransfer) {
        guard transfer.isLagging != active.isLagging, self.queue.setLagging(transfer.isLagging) else { return }
        self.active[transfer.id]?.isLagging = transfer.isLagging
    }

    // MARK: Telling

    func tell(_ transfer: Transfer, _ kind: DownloadEvent.Kind) {
        guard self.events.hasObservers else { return }
        let url = DownloadError.url(transfer.address) ?? transfer.request.url
        self.events.send(DownloadEvent(transferID: transfer.id, url: url, kind: kind))
    }
}
