// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TintypeConcurrency

/// Takes the orders of a downloader, and lends the thread of its loop to the transfers.
///
/// Sendable although unchecked: after `init`, only jobs of the loop that owns the engine call its methods, except for
/// ``open()``, ``wake()`` and methods that say otherwise. The loop opens the engine before its thread can run, and
/// calls `wake()` afterwards.
final class TransferEngine: @unchecked Sendable {
    private let configuration: SharedConfiguration
    let hooks: DownloadHooks
    let partials: PartialBodyAccess
    private let driver: TransferDriver
    /// Ends the wait of the loop, from any thread.
    private let wakeup = Locked<EpollSet.Wakeup?>(nil)
    /// Whether no transfer may begin any more.
    private let hasClosed = Atomic<Bool>(false)
    private let earlyRefusals = Atomic<Int>(0)
    /// The events of all transfers; safe from any thread.
    let events: Broadcast<DownloadEvent>

    init(
        configuration: DownloadActor.Configuration,
        hooks: DownloadHooks = DownloadHooks(),
        environment: EngineEnvironment = EngineEnvironment()
    ) {
        self.configuration = SharedConfiguration(configuration)
        self.hooks = hooks
        self.driver = TransferDriver(configuration: self.configuration, hooks: hooks, environment: environment)
        self.partials = self.driver.partials
        self.events = self.driver.registry.events
        self.bodyBudget.setWatcher { [weak self] in self?.wake() }
    }

    deinit {
        self.events.finish()
        self.driver.releaseHandles()
    }

    // MARK: Life

    /// Whether the engine was opened.
    var isOpen: Bool { self.driver.multi != nil }

    /// Opens the multi handle; called once, before there is a transfer and before the loop's thread starts.
    ///
    /// - Throws: ``LoopStartError``; then it may be called again.
    func open() throws(LoopStartError) {
        let multi = try CurlMulti(
            // The queue keeps to this itself; redirects and a lost HTTP/2 connection may not.
            maximumConnectionsPerHost: self.configuration.value.maximumConnectionsPerHost,
            // The default is four times the transfers that are running: when a burst ends, it
            // would close connections that the next burst needs.
            maximumConnections: self.configuration.value.maximumTransfers * 3
        )
        self.driver.multi = multi
        let wakeup = multi.poll.wakeup
        self.wakeup.withLock { $0 = wakeup }
    }

    /// Whether ``refuse()`` was called.
    var isClosed: Bool { self.hasClosed.load(ordering: .relaxed) }

    /// Refuses all transfers from now on; safe from any thread.
    func refuse() {
        self.hasClosed.store(true, ordering: .relaxed)
    }

    /// Frees all objects of libcurl; there are no transfers then.
    func close() {
        self.events.finish()
        self.driver.releaseHandles()
    }

    /// Frees the descriptor that ends a wait, when no thread waits any more.
    func closeWakeup() {
        self.wakeup.withLock { $0 = nil }
    }

    // MARK: The loop's calls

    /// Does all that can be done without waiting.
    func drive() {
        self.driver.drive()
    }

    /// Waits for a socket, a time limit or ``wake()``.
    func wait() {
        self.driver.wait()
    }

    /// Lets sockets have a turn, without a wait.
    func poll() {
        self.driver.poll()
    }

    /// Waits for ``wake()`` alone, and touches nothing else.
    func park() {
        self.wakeup.withLock { $0 }?.wait()
    }

    /// Ends the wait that goes on, or the next one; safe from any thread.
    func wake() {
        // Before it is opened nothing waits.
        self.wakeup.withLock { $0 }?.wake()
    }

    // MARK: Figures

    /// The figures of all transfers.
    var counters: DownloadCounters {
        var counters = self.driver.registry.counters
        counters.active = self.driver.activeCount
        counters.waiting = self.driver.registry.count - counters.active
        counters.refused += self.earlyRefusals.load(ordering: .relaxed)
        return counters
    }

    /// The budget of all bodies; safe from any thread.
    var bodyBudget: ByteBudget { self.driver.backpressure.budget }

    /// Records a request that the policy refuses before it becomes a transfer; safe from any thread.
    func noteRefusal(_ error: DownloadError, of address: ResourceAddress) {
        self.earlyRefusals.add(1, ordering: .relaxed)
        guard self.events.hasObservers, let url = DownloadError.url(address) else { return }
        self.events.send(DownloadEvent(transferID: 0, url: url, kind: .refused(error)))
    }

    // MARK: Orders

    /// Lets a caller wait for the transfer of `request`, and starts that transfer unless it is under way.
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
        if let transfer = self.driver.registry.share(request) {
            transfer.join(waiter)
            self.driver.queue.setPriority(transfer.audience.priority, of: transfer.id)
            return
        }
        let transfer = Transfer(
            id: id,
            request: request,
            address: address,
            configuration: self.configuration,
            bodyBudget: self.bodyBudget,
            client: WorkClient.current,
            report: self.driver.registry.report
        )
        transfer.join(waiter)
        self.driver.begin(transfer, owner: owner)
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
            client: WorkClient.current,
            channel: channel,
            priority: priority,
            report: self.driver.registry.report
        )
        self.driver.begin(transfer, owner: owner)
    }

    /// Ends the wait of a caller that was cancelled; the last one out ends the transfer.
    ///
    /// libcurl closes the transfer's connection, unless that carries others.
    func leave(_ request: SharedRequest, id: UInt64) {
        guard let transfer = self.driver.registry.transfer(for: request), let waiter = transfer.audience.leave(id)
        else {
            return
        }
        if transfer.audience.isEmpty {
            self.driver.cancel(transfer)
        } else {
            self.driver.queue.setPriority(transfer.audience.priority, of: transfer.id)
        }
        waiter.continuation.resume(throwing: CancellationError())
    }

    /// Ends a stream that is not read any more; does nothing for one that is over.
    func leaveStream(_ id: UInt64) {
        guard let transfer = self.driver.registry[id], transfer.isStream else { return }
        self.driver.cancel(transfer)
    }

    /// Lets a stream go on whose reader has made room.
    func resumeStream(_ id: UInt64) {
        // One that waits for memory goes on when there is some, and finds the room then.
        guard let transfer = self.driver.registry[id], case .reader? = transfer.machine.exchange?.pause else { return }
        self.driver.resume(transfer)
    }

    func setPriority(_ priority: DownloadPriority, of request: DownloadRequest) {
        guard let transfer = self.driver.registry.transfer(for: SharedRequest(request)) else { return }
        let old = transfer.audience.priority
        transfer.audience.setPriority(priority)
        if transfer.audience.priority != old { self.driver.registry.didReprioritize() }
        self.driver.queue.setPriority(priority, of: transfer.id)
    }

    /// Ends every transfer, as if each caller had been cancelled.
    func cancelAll() {
        for transfer in self.driver.registry.all { self.driver.cancel(transfer) }
    }

    /// Whether no transfer starts for now.
    var isSuspended: Bool {
        get { self.driver.queue.isSuspended }
        set { self.driver.queue.isSuspended = newValue }
    }

    // MARK: Hooks

    /// Continues a transfer that was prepared.
    func submit(_ id: UInt64, _ request: DownloadRequest, partial: PartialBody?) {
        self.driver.submit(id, request, partial: partial)
    }

    /// Ends a transfer with the result of the hooks.
    func finish(_ id: UInt64, _ result: Result<DownloadResponse, any Error>) {
        guard let transfer = self.driver.registry[id] else { return }
        switch result {
        case .success(let response): self.driver.finish(transfer, response)
        case .failure(let error): self.driver.fail(transfer, error)
        }
    }
}
