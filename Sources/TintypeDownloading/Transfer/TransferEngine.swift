import CCurl
import FoundationEssentials
import Glibc

/// Moves transfers forward on one curl multi handle.
///
/// Sendable although unchecked: after `init`, every method except ``wake()`` is only called
/// on the thread of the loop that owns the engine.
final class TransferEngine: @unchecked Sendable {
    /// The environment is read once, here: reading it later could race with `setenv`.
    private static let usesProxies = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        .contains { (name: String) in getenv(name) != nil }
    private static let hasGlobalState: Bool = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK

    private let configuration: DownloadActor.Configuration
    private let multi: UnsafeMutableRawPointer
    private let defaultHeaders: HTTPHeaders
    private let defaultHeaderList: HeaderList
    private var queue: TransferQueue
    /// Those that wait and those that run.
    private var transfers: [UInt64: Transfer] = [:]
    /// The same ones, to find the one that a request can share.
    private var transfersByRequest: [DownloadRequest: Transfer] = [:]
    /// Those that run, with what they hold.
    private var active: [UInt64: (handle: EasyHandle, headers: HeaderList)] = [:]
    private var idleHandles: [EasyHandle] = []
    /// No transfer can be overdue before this.
    private var nextDeadline: ContinuousClock.Instant?
    private(set) var counters = DownloadCounters()

    init(configuration: DownloadActor.Configuration) {
        precondition(Self.hasGlobalState, "curl_global_init failed")
        guard let multi = curl_multi_init() else { preconditionFailure("curl_multi_init failed: no memory") }
        self.configuration = configuration
        self.multi = multi
        self.defaultHeaders = configuration.requestHeaders
        self.defaultHeaderList = HeaderList(self.defaultHeaders)
        self.queue = TransferQueue(
            maximumActive: configuration.maximumTransfers,
            maximumPerOrigin: configuration.maximumConnectionsPerHost
        )
        // The queue keeps to this itself; redirects and a lost HTTP/2 connection may not.
        ccurl_multi_setopt_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, configuration.maximumConnectionsPerHost)
        // The default is four times the transfers that are running: when a burst ends, it
        // would close connections that the next burst needs.
        ccurl_multi_setopt_long(multi, CURLMOPT_MAXCONNECTS, configuration.maximumTransfers * 2)
    }

    deinit {
        for (handle, _) in self.active.values { curl_multi_remove_handle(self.multi, handle.easy) }
        // Easy handles must be gone before their multi handle.
        self.active = [:]
        self.idleHandles = []
        curl_multi_cleanup(self.multi)
    }

    // MARK: Orders

    /// The number of transfers that wait for their turn.
    var waitingCount: Int { self.transfers.count - self.active.count }

    /// The number of transfers that libcurl works on.
    var activeCount: Int { self.active.count }

    /// Lets a caller wait for the transfer of `request`, which is started if there is none.
    func join(_ request: DownloadRequest, from address: ResourceAddress, id: UInt64, waiter: TransferWaiter) {
        if let transfer = self.transfersByRequest[request] {
            self.counters.shared += 1
            transfer.join(id, waiter)
            return
        }
        let transfer = Transfer(id: id, request: request, address: address, configuration: self.configuration)
        transfer.join(id, waiter)
        self.counters.started += 1
        self.transfers[id] = transfer
        self.transfersByRequest[request] = transfer
        self.queue.submit(id, origin: address.origin)
    }

    /// Ends the wait of a caller that was cancelled; the last one out ends the transfer.
    ///
    /// libcurl closes the transfer's connection, unless that carries others.
    func leave(_ request: DownloadRequest, id: UInt64) {
        guard let transfer = self.transfersByRequest[request], let waiter = transfer.leave(id) else { return }
        if !transfer.hasWaiters {
            self.counters.cancelled += 1
            self.detach(transfer)
            self.forget(transfer)
        }
        waiter.continuation.resume(throwing: CancellationError())
    }

    /// Ends every transfer, as if each caller had been cancelled.
    func cancelAll() {
        for transfer in self.transfers.values {
            self.counters.cancelled += 1
            self.detach(transfer)
            self.end(transfer, .failure(CancellationError()))
        }
    }

    // MARK: The loop's calls

    /// Does all that can be done without waiting.
    func drive() {
        repeat {
            self.startReady()
            guard !self.active.isEmpty else {
                self.nextDeadline = nil
                return
            }
            var running: CInt = 0
            curl_multi_perform(self.multi, &running)
        } while self.completeFinished()
        self.endOverdue()
    }

    /// Waits for a socket, a time limit or ``wake()``.
    func wait() {
        let limit = self.nextDeadline.map { ($0 - .now).wholeMilliseconds } ?? Int(Int32.max)
        curl_multi_poll(self.multi, nil, 0, CInt(limit), nil)
    }

    /// Ends the wait that goes on, or the next one; safe from any thread.
    func wake() {
        curl_multi_wakeup(self.multi)
    }

    // MARK: Starting

    private func startReady() {
        while let id = self.queue.next(isWanted: { self.transfers[$0] != nil }) {
            if let transfer = self.transfers[id] { self.start(transfer) }
        }
    }

    private func start(_ transfer: Transfer) {
        guard let handle = self.idleHandles.popLast() ?? EasyHandle(usesProxies: Self.usesProxies) else {
            self.queue.finish(origin: transfer.address.origin)
            self.fail(transfer, .outOfMemory(at: transfer.address))
            return
        }
        let headers = self.headerList(for: transfer)
        handle.prepare(for: transfer, headers: headers)
        transfer.willStart()
        self.active[transfer.id] = (handle, headers)
        guard curl_multi_add_handle(self.multi, handle.easy) == CURLM_OK else {
            self.detach(transfer)
            self.fail(transfer, .outOfMemory(at: transfer.address))
            return
        }
        self.expect(deadline: transfer.lastProgress + transfer.timeout)
    }

    private func headerList(for transfer: Transfer) -> HeaderList {
        guard !transfer.requestHeaders.isEmpty else { return self.defaultHeaderList }
        var headers = self.defaultHeaders
        for (name, _) in transfer.requestHeaders { headers.set(nil, for: name) }
        for (name, value) in transfer.requestHeaders { headers.append(value, for: name) }
        return HeaderList(headers)
    }

    // MARK: Ending

    /// Takes what libcurl has finished; returns whether there was any.
    private func completeFinished() -> Bool {
        var hasFinished = false
        var pending: CInt = 0
        while let message = curl_multi_info_read(self.multi, &pending) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            let code = ccurl_msg_result(message)
            var context: UnsafeMutableRawPointer?
            ccurl_getinfo_pointer(easy, CURLINFO_PRIVATE, &context)
            guard let context, let transfer = EasyHandle.of(context).transfer else { continue }
            self.complete(transfer, code: code, details: EasyHandle.of(context).errorDetails, easy: easy)
            hasFinished = true
        }
        return hasFinished
    }

    private func complete(_ transfer: Transfer, code: CURLcode, details: String, easy: UnsafeMutableRawPointer) {
        transfer.metrics.add(ccurl_get_metrics(easy))
        if transfer.metrics.httpVersion == .http2 { self.queue.setMultiplexes(origin: transfer.address.origin) }
        self.detach(transfer)
        do throws(DownloadError) {
            if let target = try transfer.redirectTarget(limit: self.configuration.maximumRedirects) {
                transfer.redirect(to: target)
                self.queue.submit(transfer.id, origin: target.origin)
                return
            }
            let response = try transfer.makeResponse(code: code, details: details)
            self.counters.succeeded += 1
            self.end(transfer, .success(response))
        } catch {
            self.fail(transfer, error)
        }
    }

    /// Takes a transfer away from libcurl and gives its place to the next.
    private func detach(_ transfer: Transfer) {
        // One that waits is skipped when its turn comes.
        guard let (handle, _) = self.active.removeValue(forKey: transfer.id) else { return }
        curl_multi_remove_handle(self.multi, handle.easy)
        handle.transfer = nil
        self.idleHandles.append(handle)
        self.queue.finish(origin: transfer.address.origin)
    }

    private func fail(_ transfer: Transfer, _ error: DownloadError) {
        self.counters.failed += 1
        self.end(transfer, .failure(error))
    }

    private func end(_ transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        self.forget(transfer)
        transfer.finish(result)
    }

    private func forget(_ transfer: Transfer) {
        self.transfers[transfer.id] = nil
        self.transfersByRequest[transfer.request] = nil
        self.counters.receivedBytes += transfer.metrics.bytes
    }

    // MARK: Time

    private func expect(deadline: ContinuousClock.Instant) {
        self.nextDeadline = self.nextDeadline.map { min($0, deadline) } ?? deadline
    }

    /// Ends those that have received nothing for too long.
    ///
    /// libcurl's own limit on speed is a mean over seconds and so not exact. A byte that
    /// arrives only moves a deadline away, so that all of them are looked at seldom.
    private func endOverdue() {
        let now = ContinuousClock.now
        guard let deadline = self.nextDeadline, now >= deadline else { return }
        self.nextDeadline = nil
        for (id, (handle, _)) in self.active {
            guard let transfer = self.transfers[id] else { continue }
            let deadline = transfer.deadline(connectedAfter: handle.connectTime, now: now)
            if now >= deadline {
                self.detach(transfer)
                self.fail(transfer, transfer.stalledError)
            } else {
                self.expect(deadline: deadline)
            }
        }
    }
}
