public import FoundationEssentials
package import TintypeConcurrency
import TintypeHTTP

/// Brings bytes from `http`, `https`, `file` and `data` URLs.
///
/// Its executor is the event loop of libcurl: one thread serves all transfers, and every call
/// to libcurl is a job of the actor. The thread starts with the first transfer and ends when
/// the actor goes away. Transfers keep the actor alive until they end.
public actor DownloadActor: ImageFetching {
    nonisolated let loop: CurlLoop
    nonisolated let configuration: Configuration
    /// Why nothing can be sent, where the configuration is at fault.
    private nonisolated let configurationError: DownloadError?
    private nonisolated let files = FileReader()
    /// The reads of files that callers wait for.
    private nonisolated let reads = TaskOwner()
    private nonisolated let ending = Locked<Task<Void, Never>?>(nil)
    private var lastID: UInt64 = 0

    /// The loop that every method of the actor runs on.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { self.loop.asUnownedSerialExecutor() }

    /// Creates a downloader, which opens no connection and starts no thread yet.
    ///
    /// Where the first download finds that there is no descriptor, thread or memory for that, it fails, and the next
    /// one tries again.
    ///
    /// - Parameters:
    ///   - configuration: Limits and habits.
    ///   - hooks: What is done with requests and responses on their way.
    public init(configuration: Configuration = Configuration(), hooks: DownloadHooks = DownloadHooks()) {
        self.init(configuration: configuration, hooks: hooks, loopDidEnd: nil)
    }

    init(
        configuration: Configuration,
        hooks: DownloadHooks = DownloadHooks(),
        environment: EngineEnvironment = EngineEnvironment(),
        startThread: @escaping POSIXThread.Starter = POSIXThread.start,
        loopDidEnd: (@Sendable () -> Void)?
    ) {
        self.configuration = configuration.sanitized
        do throws(DownloadError) {
            try self.configuration.checkSendable()
            self.configurationError = nil
        } catch {
            self.configurationError = error
        }
        let engine = TransferEngine(configuration: self.configuration, hooks: hooks, environment: environment)
        self.loop = CurlLoop(engine: engine, startThread: startThread, didEnd: loopDidEnd)
    }

    deinit {
        // A transfer in flight keeps the actor alive, so there is none left here.
        self.loop.stop()
    }

    /// Downloads the body of a resource.
    ///
    /// Equal `http` and `https` requests in flight share one transfer. Cancelling a caller ends only its own
    /// wait; when the last caller has left, the transfer is stopped.
    ///
    /// - Parameters:
    ///   - request: What to download. What it leaves out is as the configuration says.
    ///   - priority: How urgent it is to this caller; the most urgent one decides.
    ///   - observer: Is shown how much has been received, once for each chunk that arrives,
    ///     on the thread of the event loop: it must be quick and must not block. A caller
    ///     that joins a transfer is first shown its newest progress.
    ///   - bytesObserver: Is shown the bytes of the body as they arrive, copied, on the thread of the
    ///     event loop: it must be quick and must not block. A caller that joins a transfer is
    ///     first shown all that came before. Of `file:` and `data:` URLs it sees nothing, and nothing more
    ///     once a retry has brought another version of the body.
    /// - Returns: The response, whose body is complete and not empty.
    /// - Throws: ``DownloadError`` when the download fails, and `CancellationError` as soon as
    ///   the caller's task is cancelled. A status that the request does not accept is an error.
    public nonisolated func response(
        for request: DownloadRequest,
        priority: DownloadPriority = .normal,
        observer: (@Sendable (TransferProgress) -> Void)? = nil,
        bytesObserver: (@Sendable (Data) -> Void)? = nil
    ) async throws -> DownloadResponse {
        let observer = FetchObserver(
            priority: { priority },
            didProgress: observer ?? { _ in },
            didReceive: bytesObserver
        )
        var response = try await self.response(for: request, observer: observer)
        response.claim.take()?.giveBack()
        return response
    }

    /// The same for a caller whose priority may change before it is heard: it is asked for on the loop.
    ///
    /// A change that is not seen there is followed by a ``priorityDidChange(of:to:)`` that finds the transfer. The bytes
    /// of the body count until the response's claim goes away.
    public nonisolated func response(
        for request: DownloadRequest,
        observer: FetchObserver
    ) async throws -> DownloadResponse {
        let address = try self.admit(request)
        switch address.scheme {
        case .http, .https: return try await self.transfer(SharedRequest(request), from: address, observer)
        case .file: return try await self.read(request, at: address, observer)
        case .data: return try self.decode(request, at: address, observer)
        }
    }

    // Inlined, the next three would widen the frame of `response(for:observer:)`, which each waiting caller keeps.

    /// Throws if the request is refused before it becomes a transfer.
    @inline(never)
    private nonisolated func admit(_ request: DownloadRequest) throws(DownloadError) -> ResourceAddress {
        let address = try ResourceAddress(request.url.absoluteString)
        try self.checkPolicy(of: request, at: address)
        guard !self.loop.engine.isClosed else { throw .shutDown(at: address) }
        guard address.scheme == .http || address.scheme == .https else { return address }
        try self.checkSendable(request)
        try self.startLoop(for: address)
        return address
    }

    @inline(never)
    private nonisolated func read(
        _ request: DownloadRequest,
        at address: ResourceAddress,
        _ observer: FetchObserver
    ) async throws -> DownloadResponse {
        let limit = request.maximumBodySize ?? self.configuration.maximumBodySize
        let acceptsNotModified = request.acceptableStatusCodes?.contains(304) ?? false
        let knownTag = acceptsNotModified ? request.headers["If-None-Match"] : nil
        // A read can stand still in the kernel. A caller that is cancelled leaves the stream at once instead of the read.
        let (responses, reader) = AsyncThrowingStream<DownloadResponse, any Error>.makeStream()
        let read = self.reads.run("file read") { [files, bodyBudget] in
            await withTaskCancellationHandler {
                do {
                    try files.start(for: address)
                    try await bodyBudget.beginRead()
                    defer { bodyBudget.endRead() }
                    let response = try await files.response(
                        at: address,
                        url: request.url,
                        limit: limit,
                        knownTag: knownTag,
                        report: observer.didProgress
                    )
                    reader.yield(response.claimed(in: bodyBudget))
                    reader.finish()
                } catch {
                    reader.finish(throwing: error)
                }
            } onCancel: {
                reader.finish(throwing: CancellationError())
            }
        }
        reader.onTermination = { _ in read.cancel() }
        for try await response in responses { return response }
        throw CancellationError()
    }

    @inline(never)
    private nonisolated func decode(
        _ request: DownloadRequest,
        at address: ResourceAddress,
        _ observer: FetchObserver
    ) throws -> DownloadResponse {
        try Task.checkCancellation()
        let limit = request.maximumBodySize ?? self.configuration.maximumBodySize
        let response = try DataURL.response(at: address, url: request.url, limit: limit)
        let count = Int64(response.body.count)
        observer.didProgress(TransferProgress(receivedBytes: count, expectedBytes: count))
        return response.claimed(in: self.bodyBudget)
    }

    /// Cancels every download; each caller gets a `CancellationError`.
    public func cancelAll() {
        self.reads.cancelAll()
        self.loop.engine.cancelAll()
    }

    /// Ends every download, and gives back threads, connections and descriptors before it returns.
    ///
    /// Each caller gets a `CancellationError`. The first bytes of bodies that broke off are on disk then. Whatever is
    /// asked for later fails with ``DownloadError/Code/shutDown``; a second call waits for the first. A name that is
    /// looked up holds its thread until the system's resolver gives it up.
    public nonisolated func shutdown() async {
        let ending = self.ending.withLock { ending in
            // It keeps the actor until all is given back; no caller is to end it early.
            let task = ending ?? Task(name: "shutdown") { await self.giveBack() }
            ending = task
            return task
        }
        await ending.value
    }

    private nonisolated func giveBack() async {
        self.loop.engine.refuse()
        self.reads.cancelAll()
        // Without a thread there are no transfers, and none must be started for this.
        if self.loop.queue.hasThread { await self.endTransfers() }
        await self.files.retire()
        await self.loop.engine.partials.store?.retire()
        // In this order: no thread starts any more, so that what closes the engine has it to itself.
        self.loop.retire()
        await self.closeEngine()
        self.loop.join()
    }

    private func endTransfers() {
        self.loop.engine.cancelAll()
    }

    private func closeEngine() {
        self.loop.engine.close()
    }

    /// What has been done so far, `file:` and `data:` URLs not counted.
    public var counters: DownloadCounters {
        var counters = self.loop.engine.counters
        let memory = self.bodyBudget.status
        counters.bodyBytes = memory.usedBytes
        counters.peakBodyBytes = memory.peakBytes
        return counters
    }

    /// What the bytes of bodies count in.
    package nonisolated var bodyBudget: ByteBudget { self.loop.engine.bodyBudget }

    /// Throws where the request, or what the configuration adds to it, would break the head that is sent.
    nonisolated func checkSendable(_ request: DownloadRequest) throws(DownloadError) {
        if let configurationError { throw configurationError }
        try request.checkSendable()
    }

    /// Throws where the network policy refuses the address, which observers and counters then know of.
    nonisolated func checkPolicy(of request: DownloadRequest, at address: ResourceAddress) throws(DownloadError) {
        do throws(DownloadError) {
            try (request.networkPolicy ?? self.configuration.networkPolicy).check(address)
        } catch {
            self.loop.engine.noteRefusal(error, of: address)
            throw error
        }
    }

    /// A number that no other caller of this downloader has.
    func makeID() -> UInt64 {
        self.lastID += 1
        return self.lastID
    }

    /// Makes sure that there is a thread for a transfer.
    nonisolated func startLoop(for address: ResourceAddress) throws(DownloadError) {
        do throws(LoopStartError) {
            try self.loop.start()
        } catch {
            throw .notStarted(error, at: address)
        }
    }

    // Transfers are shared here rather than by a coalescer of tasks: the loop's thread sees all
    // callers anyway, and a task for each transfer halved the requests per second.
    private func transfer(
        _ request: SharedRequest,
        from address: ResourceAddress,
        _ observer: FetchObserver
    ) async throws -> DownloadResponse {
        let id = self.makeID()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                self.join(request, from: address, observer, id: id, continuation)
            }
        } onCancel: {
            // The wait ends, and with it this task, as soon as the loop has heard of it.
            Task { await self.leave(request, id: id) }
        }
    }

    /// Lets a caller wait for the transfer of `request`.
    ///
    /// Inlined, what it needs for a moment would stay in the frame of the caller for as long as that waits: 6 KB.
    @inline(never)
    private func join(
        _ request: SharedRequest,
        from address: ResourceAddress,
        _ observer: FetchObserver,
        id: UInt64,
        _ continuation: CheckedContinuation<DownloadResponse, any Error>
    ) {
        // The handler may already have run: look again before starting.
        guard !Task.isCancelled else {
            continuation.resume(throwing: CancellationError())
            return
        }
        let waiter = TransferWaiter(
            id: id,
            continuation: continuation,
            priority: observer.priority(),
            observer: observer.didProgress,
            // The bytes that arrive are not the body.
            bytesObserver: self.loop.engine.hooks.decrypt == nil ? observer.didReceive : nil
        )
        self.loop.engine.join(request, from: address, id: id, waiter: waiter, owner: self)
    }

    private func leave(_ request: SharedRequest, id: UInt64) {
        self.loop.engine.leave(request, id: id)
    }
}

extension DownloadActor {
    /// Downloads a body chunk by chunk, to be taken while it arrives.
    ///
    /// The transfer is not shared, nothing of it is resumed, and hooks for responses do not see it: a request
    /// hook does. `file:` and `data:` URLs are not streamed.
    ///
    /// - Parameters:
    ///   - request: What to download. What it leaves out is as the configuration says.
    ///   - priority: How urgent it is.
    ///   - bufferSize: The bytes that are held for a reader that lags; up to one chunk more may be.
    /// - Returns: The stream, once the head of the response is here.
    /// - Throws: ``DownloadError`` when the request fails or its status is not accepted, and
    ///   `CancellationError` when the caller's task is cancelled.
    public nonisolated func stream(
        for request: DownloadRequest,
        priority: DownloadPriority = .normal,
        bufferSize: Int = 256 << 10
    ) async throws -> DownloadStream {
        let address = try ResourceAddress(request.url.absoluteString)
        try self.checkPolicy(of: request, at: address)
        guard address.scheme == .http || address.scheme == .https else {
            throw DownloadError.notStreamed(at: address)
        }
        try self.checkSendable(request)
        try self.startLoop(for: address)
        let channel = BodyChannel(limit: bufferSize)
        let source = await self.startStream(request, address, channel, priority)
        return DownloadStream(head: try await source.head(), source: source)
    }

    private func startStream(
        _ request: DownloadRequest,
        _ address: ResourceAddress,
        _ channel: BodyChannel,
        _ priority: DownloadPriority
    ) -> StreamSource {
        let id = self.makeID()
        self.loop.engine.stream(request, from: address, id: id, into: channel, priority: priority, owner: self)
        return StreamSource(channel: channel, downloader: self, id: id)
    }

    func leaveStream(_ id: UInt64) {
        self.loop.engine.leaveStream(id)
    }

    func resumeStream(_ id: UInt64) {
        self.loop.engine.resumeStream(id)
    }
}

extension DownloadActor {
    /// Makes a download more or less urgent for all that wait for it.
    ///
    /// It matters while the transfer waits for its turn; one that runs goes on as it is. Does nothing where no
    /// equal request is in flight.
    public func setPriority(_ priority: DownloadPriority, for request: DownloadRequest) {
        self.loop.engine.setPriority(priority, of: request)
    }

    /// The same with a priority that is asked for on the loop, so that the newest one counts.
    public func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) {
        self.loop.engine.setPriority(priority(), of: request)
    }

    /// Lets no transfer start until ``resume()``; those that run go on.
    ///
    /// `file:` and `data:` URLs, which need no network, are read all the same.
    public func suspend() {
        self.loop.engine.isSuspended = true
    }

    /// Lets transfers start again.
    public func resume() {
        self.loop.engine.isSuspended = false
    }
}

// What a transfer does away from the loop. The transfer owns the task that calls these, and cancels it.

extension DownloadActor {
    /// Lets the hook change a request and looks for the first bytes of its body, then lets the transfer go on.
    nonisolated func prepare(_ request: DownloadRequest, id: UInt64) async {
        do {
            let prepared = try await self.loop.engine.hooks.prepare(request)
            var partial: PartialBody?
            if let key = PartialBodyKey(prepared, self.configuration) {
                partial = await self.loop.engine.partials.store?.body(for: key)
            }
            await self.submit(prepared, id: id, partial: partial)
        } catch {
            await self.end(id, .failure(error))
        }
    }

    /// Lets the hooks have a response, then ends the transfer with what they make of it.
    nonisolated func process(_ response: DownloadResponse, id: UInt64) async {
        do {
            // What a hook holds is its own, and must not keep transfers from going on that it may be waiting for.
            var response = response
            let claim = response.claim.take()
            claim?.giveBack()
            response = try await self.loop.engine.hooks.process(response)
            claim?.set(response.body.count)
            claim?.hold()
            response.claim = claim
            await self.end(id, .success(response))
        } catch {
            await self.end(id, .failure(error))
        }
    }

    /// Returns once the first bytes of all bodies that broke off are on disk.
    ///
    /// Call it before the process ends, after the last download.
    public nonisolated func flushPartialBodies() async {
        await self.loop.engine.partials.store?.flush()
    }

    /// What happens to all transfers from now on.
    ///
    /// - Parameter bufferSize: The events that are kept for an observer that does not keep up; it then
    ///   loses the oldest.
    /// - Returns: A stream of its own, which ends with the downloader, or with its shutdown.
    public nonisolated func events(bufferSize: Int = 256) -> AsyncStream<DownloadEvent> {
        self.loop.engine.events.makeStream(limit: bufferSize)
    }

    private func submit(_ request: DownloadRequest, id: UInt64, partial: PartialBody?) {
        self.loop.engine.submit(id, request, partial: partial)
    }

    private func end(_ id: UInt64, _ result: Result<DownloadResponse, any Error>) {
        self.loop.engine.finish(id, result)
    }
}
