// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
package import TintypeConcurrency
import TintypeHTTP

/// Downloads bytes from `http`, `https`, `file` and `data` URLs.
///
/// Its executor is the event loop of libcurl: one thread serves all transfers, and every call to libcurl is a job of
/// the actor. The thread starts with the first transfer and ends with the actor. Transfers keep the actor alive until
/// they end.
public actor DownloadActor: ImageFetching {
    nonisolated let loop: CurlLoop
    nonisolated let configuration: Configuration
    /// The error of all downloads, if the configuration is at fault.
    private nonisolated let configurationError: DownloadError?
    private nonisolated let files = FileReader()
    /// The reads of files that callers wait for.
    private nonisolated let reads = TaskOwner()
    private nonisolated let ending = Locked<Task<Void, Never>?>(nil)
    private var lastID: UInt64 = 0

    /// The loop that every method of the actor runs on.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { self.loop.asUnownedSerialExecutor() }

    /// Creates a downloader, without connections and without a thread.
    ///
    /// If there is no descriptor, thread or memory for the first download, it fails, and the next one tries again.
    ///
    /// ```swift
    /// let downloads = DownloadActor(hooks: DownloadHooks(modifyRequest: { request in
    ///     var request = request
    ///     request.headers["X-Trace"] = UUID().uuidString
    ///     return request
    /// }))
    /// ```
    ///
    /// - Parameters:
    ///   - configuration: The settings of the downloader.
    ///   - hooks: The functions that change requests and responses.
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
        // A transfer under way keeps the actor alive, so all have ended here.
        self.loop.stop()
    }

    /// Downloads the body of a resource.
    ///
    /// Equal `http` and `https` requests in flight share one transfer. Cancelling a caller ends only its own
    /// wait; when the last caller has left, the transfer is stopped.
    ///
    /// ```swift
    /// let response = try await downloads.response(for: DownloadRequest(url: url), priority: .high) { progress in
    ///     print(progress.fractionCompleted ?? 0)
    /// }
    /// print(response.body.count, response.metrics.total)
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request. Fields that are `nil` take their values from the configuration.
    ///   - priority: The priority for this caller; the highest one of all callers applies.
    ///   - observer: Receives the progress for each chunk, on the thread of the event loop: it must be quick and must not
    ///     block. A caller that joins a transfer first receives its newest progress.
    ///   - bytesObserver: Receives a copy of the bytes as they arrive, on the thread of the event loop: it must be quick
    ///     and must not block. A caller that joins a transfer first receives all earlier bytes. It receives nothing of
    ///     `file:` and `data:` URLs, and nothing more after a retry has brought another version of the body.
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

    /// Downloads the body for a caller whose priority may change before the loop reads it.
    ///
    /// A later change is followed by a ``priorityDidChange(of:to:)`` that finds the transfer. The bytes of the body
    /// count until the response's claim goes away.
    ///
    /// ```swift
    /// let response = try await downloads.response(
    ///     for: DownloadRequest(url: url),
    ///     observer: FetchObserver(didProgress: { progress in print(progress.receivedBytes) })
    /// )
    /// ```
    public nonisolated func response(
        for request: DownloadRequest,
        observer: FetchObserver
    ) async throws -> DownloadResponse {
        let address = try self.admit(request)
        switch address.scheme {
        case .http, .https: return try await self.transfer(SharedRequest(request), from: address, observer)
        case .file: return try await self.read(FileSource(address, url: request.url), for: request, observer)
        case .data: return try self.decode(request, at: address, observer)
        }
    }

    // Inlined, the next three would widen the frame of `response(for:observer:)`, which each waiting caller keeps.

    /// Throws if a request must not become a transfer.
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

    /// Reads a file, with the limit and the conditions of a request.
    ///
    /// - Throws: ``DownloadError``, or `CancellationError` as soon as the caller's task is cancelled.
    @inline(never)
    package nonisolated func read(
        _ file: FileSource,
        for request: DownloadRequest,
        _ observer: FetchObserver
    ) async throws -> DownloadResponse {
        guard !self.loop.engine.isClosed else { throw DownloadError.shutDown(at: file.address) }
        let limit = request.maximumBodySize ?? self.configuration.maximumBodySize
        let acceptsNotModified = request.acceptableStatusCodes?.contains(304) ?? false
        let conditions = acceptsNotModified ? request.headers : [:]
        // A read may hang in the kernel. A cancelled caller leaves the stream at once, and not the read.
        let (responses, reader) = AsyncThrowingStream<DownloadResponse, any Error>.makeStream()
        let read = self.reads.run("file read") { [files, bodyBudget] in
            await withTaskCancellationHandler {
                do {
                    try files.start(for: file.address)
                    try await bodyBudget.beginRead()
                    defer { bodyBudget.endRead() }
                    let response = try await files.response(
                        of: file,
                        limit: limit,
                        conditions: conditions,
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
    ///
    /// ```swift
    /// await downloads.cancelAll()
    /// ```
    public func cancelAll() {
        self.reads.cancelAll()
        self.loop.engine.cancelAll()
    }

    /// Cancels every download, and closes threads, connections and descriptors before it returns.
    ///
    /// Each caller gets a `CancellationError`. The first bytes of unfinished bodies are on disk then. Later downloads
    /// fail with ``TintypeErrorCode/shutDown``. A second call waits for the first. A look-up of a name keeps its
    /// thread until the system's resolver ends it.
    ///
    /// ```swift
    /// await downloads.shutdown()
    /// ```
    public nonisolated func shutdown() async {
        let ending = self.ending.withLock { ending in
            // The task keeps the actor until all is closed, and no caller can cancel it.
            let task = ending ?? Task(name: "shutdown") { await self.giveBack() }
            ending = task
            return task
        }
        await ending.value
    }

    private nonisolated func giveBack() async {
        self.loop.engine.refuse()
        self.reads.cancelAll()
        // Without a thread there are no transfers, and the shutdown must not start one.
        if self.loop.queue.hasThread { await self.endTransfers() }
        await self.files.retire()
        await self.loop.engine.partials.store?.retire()
        // In this order: no thread starts any more, so this task has the engine for itself.
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

    /// The counters of the downloader, without `file:` and `data:` URLs.
    public var counters: DownloadCounters {
        var counters = self.loop.engine.counters
        let memory = self.bodyBudget.status
        counters.bodyBytes = memory.usedBytes
        counters.peakBodyBytes = memory.peakBytes
        return counters
    }

    /// The budget for the bytes of bodies.
    package nonisolated var bodyBudget: ByteBudget { self.loop.engine.bodyBudget }

    /// Throws if a field of the request or of the configuration would break the head of the HTTP request.
    nonisolated func checkSendable(_ request: DownloadRequest) throws(DownloadError) {
        if let configurationError { throw configurationError }
        try request.checkSendable()
    }

    /// Throws if the network policy refuses the address, and reports that to observers and counters.
    nonisolated func checkPolicy(of request: DownloadRequest, at address: ResourceAddress) throws(DownloadError) {
        do throws(DownloadError) {
            try (request.networkPolicy ?? self.configuration.networkPolicy).check(address)
        } catch {
            self.loop.engine.noteRefusal(error, of: address)
            throw error
        }
    }

    /// Returns a number that no other caller of this downloader has.
    func makeID() -> UInt64 {
        self.lastID += 1
        return self.lastID
    }

    /// Starts the thread of the loop unless it runs.
    nonisolated func startLoop(for address: ResourceAddress) throws(DownloadError) {
        do throws(LoopStartError) {
            try self.loop.start()
        } catch {
            throw .notStarted(error, at: address)
        }
    }

    // The loop shares transfers instead of tasks: its thread sees all callers anyway, and a task for each transfer
    // halved the requests per second.
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
            // The wait ends as soon as the loop has received the cancellation.
            Task { await self.leave(request, id: id) }
        }
    }

    /// Lets a caller wait for the transfer of `request`.
    ///
    /// It must not be inlined: its temporary values would stay in the frame of the waiting caller, 6 KB.
    @inline(never)
    private func join(
        _ request: SharedRequest,
        from address: ResourceAddress,
        _ observer: FetchObserver,
        id: UInt64,
        _ continuation: CheckedContinuation<DownloadResponse, any Error>
    ) {
        // The cancellation handler may have run already, so check before the start.
        guard !Task.isCancelled else {
            continuation.resume(throwing: CancellationError())
            return
        }
        let waiter = TransferWaiter(
            id: id,
            continuation: continuation,
            priority: observer.priority(),
            observer: observer.didProgress,
            // The arriving bytes are encrypted, and not the body.
            bytesObserver: self.loop.engine.hooks.decrypt == nil ? observer.didReceive : nil
        )
        self.loop.engine.join(request, from: address, id: id, waiter: waiter, owner: self)
    }

    private func leave(_ request: SharedRequest, id: UInt64) {
        self.loop.engine.leave(request, id: id)
    }
}

extension DownloadActor {
    /// Downloads a body as a stream of chunks.
    ///
    /// The transfer is neither shared nor resumed. A hook for requests receives the request, but hooks for responses do
    /// not receive the response. `file:` and `data:` URLs cannot be streamed.
    ///
    /// ```swift
    /// let stream = try await downloads.stream(for: DownloadRequest(url: url))
    /// print(stream.head.expectedBytes ?? 0)
    /// for try await chunk in stream { print(chunk.count) }
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request. Fields that are `nil` take their values from the configuration.
    ///   - priority: The priority of the transfer.
    ///   - bufferSize: The bytes to buffer for a slow reader; one chunk more may be buffered.
    /// - Returns: The stream, after the head of the response has arrived.
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
    /// Changes the priority of a download for all of its callers.
    ///
    /// The priority matters while the transfer waits for its turn, and not afterwards. Does nothing if there is no
    /// transfer of an equal request.
    ///
    /// ```swift
    /// await downloads.setPriority(.high, for: DownloadRequest(url: url))
    /// ```
    public func setPriority(_ priority: DownloadPriority, for request: DownloadRequest) {
        self.loop.engine.setPriority(priority, of: request)
    }

    /// Changes the priority to the value that `priority` returns on the loop, so that the newest one applies.
    ///
    /// ```swift
    /// await downloads.priorityDidChange(of: DownloadRequest(url: url)) { .high }
    /// ```
    public func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) {
        self.loop.engine.setPriority(priority(), of: request)
    }

    /// Starts no more transfers until ``resume()``.
    ///
    /// Active transfers continue.
    ///
    /// The downloader still reads `file:` and `data:` URLs, which need no network.
    ///
    /// ```swift
    /// await downloads.suspend()
    /// let waiting = Task { try await downloads.response(for: DownloadRequest(url: url)) }
    /// await downloads.resume()
    /// ```
    public func suspend() {
        self.loop.engine.isSuspended = true
    }

    /// Lets transfers start again.
    ///
    /// ```swift
    /// await downloads.resume()
    /// ```
    public func resume() {
        self.loop.engine.isSuspended = false
    }
}

// The work of a transfer outside the loop. The transfer owns the task that calls these functions, and cancels it.

extension DownloadActor {
    /// Lets the hook change a request and looks for the first bytes of its body.
    ///
    /// The transfer continues afterwards.
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

    /// Passes a response to the hooks, and ends the transfer with their result.
    nonisolated func process(_ response: DownloadResponse, id: UInt64) async {
        do {
            // Bytes that a hook holds must not stop transfers for which it may be waiting.
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

    /// Returns when the first bytes of all unfinished bodies are on disk.
    ///
    /// Call it after the last download, before the process ends.
    ///
    /// ```swift
    /// await downloads.flushPartialBodies()
    /// ```
    public nonisolated func flushPartialBodies() async {
        await self.loop.engine.partials.store?.flush()
    }

    /// Returns a stream of the events of all transfers from now on.
    ///
    /// ```swift
    /// for await event in downloads.events() {
    ///     if case .failed(let error) = event.kind { print(event.url, error.code) }
    /// }
    /// ```
    ///
    /// - Parameter bufferSize: The number of events to buffer for a slow observer, which loses the oldest beyond that.
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
