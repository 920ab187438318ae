import CCurl
import FoundationEssentials

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
        guard
            let handle = idle
                ?? EasyHandle(options: transfer.options, configuration: self.configuration, multi: self.multi)
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
        transfer.willStart()
        self.active[transfer.id] = ActiveTransfer(handle: handle, headers: headers)
        guard self.multi.add(handle.easy) else {
            self.fail(transfer, DownloadError.outOfMemory(at: transfer.address))
            return
        }
        self.expect(deadline: transfer.firstDeadline)
    }

    private func headerList(for transfer: Transfer) throws(DownloadError) -> HeaderList {
        let rest = transfer.asksForRest ? transfer.resumption : nil
        if let defaultHeaderList, transfer.requestHeaders.isEmpty, rest == nil { return defaultHeaderList }
        var headers = self.defaultHeaders
        for (name, _) in transfer.requestHeaders { headers.set(nil, for: name) }
        for (name, value) in transfer.requestHeaders { headers.append(value, for: name) }
        for (name, value) in rest?.headers ?? [:] { headers.append(value, for: name) }
        return try HeaderList(headers)
    }

    // MARK: Ending

    /// Takes what libcurl has finished; returns whether there was any.
    func completeFinished() -> Bool {
        var hasFinished = false
        while let (easy, code) = self.multi.nextFinished() {
            guard let handle = EasyHandle.of(easy: easy), let transfer = handle.transfer else { continue }
            self.complete(transfer, code: code, handle: handle)
            hasFinished = true
        }
        return hasFinished
    }

    private func complete(_ transfer: Transfer, code: CURLcode, handle: EasyHandle) {
        transfer.metrics.add(ccurl_get_metrics(handle.easy))
        if transfer.metrics.httpVersion == .http2 { self.queue.setMultiplexes(origin: transfer.address.origin) }
        let details = code == CURLE_OK ? "" : handle.errorDetails
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
        guard let handle = self.active.removeValue(forKey: transfer.id)?.handle else { return }
        self.multi.remove(handle.easy)
        handle.transfer = nil
        transfer.isPaused = false
        if case .paused = transfer.memoryWait {
            transfer.memoryWait = nil
            self.shortage.remove(transfer.id)
        }
        if handle.isReusable { self.idleHandles.append(handle) }
        self.queue.finish(origin: transfer.address.origin)
    }

    // MARK: Time

    private func expect(deadline: ContinuousClock.Instant) {
        self.nextDeadline = self.nextDeadline.map { min($0, deadline) } ?? deadline
    }

    /// Ends those that take too long; returns whether there was any.
    ///
    /// A byte that arrives only moves a deadline away, so that all of them are looked at seldom.
    func endOverdue() -> Bool {
        let now = ContinuousClock.now
        guard let deadline = self.nextDeadline, now >= deadline else { return false }
        self.nextDeadline = nil
        var hasEnded = false
        for (id, active) in self.active {
            guard let transfer = self.transfers[id] else { continue }
            switch transfer.check(connectedAfter: active.handle.connectTime, now: now) {
            case .success(let deadline): self.expect(deadline: deadline)
            case .failure(let error):
                transfer.metrics.add(ccurl_get_metrics(active.handle.easy))
                self.detach(transfer)
                self.settle(transfer, error)
                hasEnded = true
            }
        }
        return hasEnded
    }

    // MARK: Telling

    func tell(_ transfer: Transfer, _ kind: DownloadEvent.Kind) {
        guard self.events.hasObservers else { return }
        let url = DownloadError.url(transfer.address) ?? transfer.request.url
        self.events.send(DownloadEvent(transferID: transfer.id, url: url, kind: kind))
    }
}
