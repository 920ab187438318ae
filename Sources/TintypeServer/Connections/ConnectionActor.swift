// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc
import TintypeConcurrency
import TintypeHTTP

/// The connections of a server, on an event loop that is the actor's executor.
///
/// A handler answers each request at once on the loop, or in a task that the connection cancels if its client leaves.
actor ConnectionActor: SocketActor {
    /// The numbers of connections and requests.
    struct Counters: Sendable {
        var openConnections = 0
        var acceptedConnections: UInt64 = 0
        /// The requests that wait for an answer from a task.
        var waitingRequests = 0
        /// The requests whose clients left before they had an answer.
        var leftRequests: UInt64 = 0
        /// The connections that a time limit or the limit of unsent bytes ended.
        var expiredConnections: UInt64 = 0
    }

    /// The most bytes to receive at once, and to hold of later requests while a connection waits for an answer.
    private static let readSize = 16 << 10
    private static let acceptCount = 64
    /// The most calls of ``accept()`` during a shutdown, so that new clients cannot delay it indefinitely.
    private static let lastAcceptCount = 1_024
    private static let lingerMilliseconds: UInt64 = 2_000
    private static let scanMilliseconds: UInt64 = 250
    /// The number of steps, such as requests with ready answers, that a connection may take in a turn of the loop.
    private static let stepsPerTurn = 32
    /// The time in nanoseconds after which a connection takes no further step in a turn.
    private static let turnTime: UInt64 = 500_000

    private nonisolated let loop: SocketLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.loop.asUnownedSerialExecutor() }

    private let handler: any RequestHandling
    private let limits: Limits
    /// The time limits in milliseconds, which each request needs.
    private let times: (head: UInt64, idle: UInt64, answer: UInt64, progress: UInt64)
    private var listener: ListeningSocket?
    /// Whether the listener is not in the loop, because the process has no room for more connections.
    private var isListenerPaused = false
    /// The connections by descriptor.
    private var connections: [Connection?] = []
    private(set) var counters = Counters()
    private var lastWaitNumber: UInt64 = 0
    /// The total length of the bodies that are being received.
    private var bodyByteCount = 0
    private var unsentBodies = UnsentBodies()
    /// The last request identifier; the first is random, so that different processes have different ones.
    private var lastIdentifier = UInt64.random(in: 0...UInt64.max)
    private var buffer = [UInt8](repeating: 0, count: ConnectionActor.readSize)
    /// The connections that continue in the next turn.
    private var unfinished: [Connection] = []
    private var nextScan: UInt64 = 0
    private var idleConnections = IdleConnections(searchPeriod: ConnectionActor.scanMilliseconds * 1_000_000)
    private var isDraining = false
    private var drainWaiters: [CheckedContinuation<Void, Never>] = []
    private var headWriter = AnswerHeadWriter()

    private init(_ loop: SocketLoop, _ handler: any RequestHandling, _ limits: Limits, _ listener: ListeningSocket) {
        self.loop = loop
        self.handler = handler
        self.limits = limits
        self.times = (
            limits.headTime.limitMilliseconds, limits.idleTime.limitMilliseconds,
            limits.answerTime.limitMilliseconds, limits.progressTime.limitMilliseconds
        )
        self.listener = listener
    }

    /// Starts a server that answers requests at `address` until ``shutdown(within:)``.
    ///
    /// - Throws: ``ListenError``.
    static func start(
        at address: String,
        handler: any RequestHandling,
        limits: Limits = Limits()
    ) async throws(ListenError) -> (server: ConnectionActor, address: String) {
        let listener = try ListeningSocket(address)
        let name = listener.address
        var limits = limits
        limits.connectionCount = listener.reserveDescriptors(limits.connectionCount)
        do {
            // The epoll set, its wakeup, a listener and a few connections.
            let loop = try SocketLoop(name: "tintype-server", descriptorCount: 16)
            let server = ConnectionActor(loop, handler, limits, listener)
            try loop.start(serving: server)
            await server.begin()
            return (server, name)
        } catch let error as EpollError {
            throw ListenError("The server cannot start: \(String(cString: strerror(error.code))).")
        } catch {
            throw ListenError("The server cannot start: \(error).")
        }
    }

    private func begin() {
        // On busy processors, the loop would otherwise get no more time than each thread that makes images.
        POSIXThread.raisePriority()
        self.listen()
    }

    private func listen() {
        guard let listener else { return }
        // Reports waiting connections until they are accepted.
        self.isListenerPaused = !self.loop.watch(listener.descriptor, events: CInt(CSHIMS_READABLE))
    }

    // MARK: Shutdown

    /// Stops accepting connections, closes idle ones, and waits for the current answers of the others.
    ///
    /// - Parameter time: The longest time to wait. Then all connections are closed.
    func shutdown(within time: Duration) async {
        self.isDraining = true
        // Clients may already have sent requests over connections that wait in the kernel.
        for _ in 0..<Self.lastAcceptCount where !self.accept() { break }
        if let listener { _ = self.loop.watch(listener.descriptor, events: 0) }
        self.listener = nil
        for case let connection? in self.connections where connection.isIdle { self.close(connection) }
        if self.counters.openConnections > 0 {
            let waiting = Task {
                guard (try? await Task.sleep(for: time)) != nil else { return }
                self.endDrain()
            }
            await withCheckedContinuation { self.drainWaiters.append($0) }
            waiting.cancel()
        }
        for case let connection? in self.connections { self.close(connection) }
        self.loop.end()
        await self.loop.join()
    }

    private func endDrain() {
        let waiters = self.drainWaiters
        self.drainWaiters = []
        for waiter in waiters { waiter.resume() }
    }

    // MARK: Turns

    func prepareToWait() -> Int {
        if !self.unfinished.isEmpty { return 0 }
        return self.counters.openConnections == 0 && !self.isListenerPaused ? -1 : Int(Self.scanMilliseconds)
    }

    func serve(_ descriptor: CInt, events: CInt) {
        if descriptor == self.listener?.descriptor {
            _ = self.accept()
            return
        }
        let index = Int(descriptor)
        guard self.connections.indices.contains(index), let connection = self.connections[index] else { return }
        if events & CInt(CSHIMS_BROKEN) != 0 {
            // When both sides are done, the input before the end must still be read, or the kernel sends a reset.
            guard case .lingering = connection.phase else { return self.leave(connection) }
        }
        if events & CInt(CSHIMS_PEER_DONE | CSHIMS_BROKEN) != 0 { connection.isPeerDone = true }
        if events & CInt(CSHIMS_READABLE | CSHIMS_PEER_DONE | CSHIMS_BROKEN) != 0 { connection.mayHaveInput = true }
        if case .sending = connection.phase, events & CInt(CSHIMS_WRITABLE) != 0 { self.flush(connection) }
        self.advance(connection)
    }

    func endTurn() {
        let unfinished = self.unfinished
        self.unfinished.removeAll(keepingCapacity: true)
        for connection in unfinished {
            connection.isUnfinished = false
            self.advance(connection)
        }
        self.handler.didEndTurn()
        let now = Self.milliseconds
        if now >= self.nextScan {
            self.nextScan = now + Self.scanMilliseconds
            self.endExpired(now)
            if self.counters.openConnections < self.limits.connectionCount { self.idleConnections.removeAll() }
            if self.isListenerPaused { self.listen() }
        }
        if self.isDraining, self.counters.openConnections == 0 { self.endDrain() }
    }

    // MARK: Connections

    /// Accepts connections; returns false if no more are waiting, or if the process has no room.
    private func accept() -> Bool {
        guard let listener else { return false }
        for _ in 0..<Self.acceptCount {
            // Beyond the limit, a new connection takes the place of an idle one.
            let isFull = self.counters.openConnections >= self.limits.connectionCount
            let idle = isFull ? self.idleConnections.takeLongest(of: self.connections, at: Self.nanoseconds) : nil
            guard !isFull || idle != nil else {
                self.pauseListener()
                return false
            }
            var address = [UInt8](repeating: 0, count: 16)
            let descriptor = cshims_accept(listener.descriptor, &address)
            guard descriptor >= 0 else {
                let code = errno
                if let idle { self.idleConnections.putBack(idle) }
                switch code {
                case EINTR, ECONNABORTED: continue
                case EMFILE, ENFILE, ENOMEM, ENOBUFS: self.pauseListener()
                default: break
                }
                return false
            }
            // Each change of a connection is reported once.
            let events = CSHIMS_READABLE | CSHIMS_WRITABLE | CSHIMS_PEER_DONE | CSHIMS_ONCE_EACH
            guard self.loop.add(descriptor, events: CInt(events)) else {
                Glibc.close(descriptor)
                self.pauseListener()
                return false
            }
            if let idle { self.close(idle) }
            let missing = Int(descriptor) + 1 - self.connections.count
            if missing > 0 { self.connections.append(contentsOf: repeatElement(nil, count: missing)) }
            let connection = Connection(descriptor: descriptor, client: ClientAddress(bytes: address))
            self.connections[Int(descriptor)] = connection
            self.counters.openConnections += 1
            self.counters.acceptedConnections += 1
            // A new connection has only the time of a head to send its first head.
            self.setDeadline(of: connection, self.times.head)
            connection.idleStart = Self.nanoseconds
        }
        return true
    }

    /// Stops accepting until the next scan; new connections wait in the kernel.
    private func pauseListener() {
        guard let listener, !self.isListenerPaused else { return }
        self.isListenerPaused = true
        _ = self.loop.watch(listener.descriptor, events: 0)
    }

    private func close(_ connection: Connection) {
        switch connection.phase {
        case .closed: return
        case .waiting(let task):
            self.counters.waitingRequests -= 1
            task.cancel()
        case .receiving: self.bodyByteCount -= Self.countedLength(connection.exchange?.head?.contentLength ?? 0)
        default: break
        }
        connection.phase = .closed
        self.endOutput(of: connection)
        self.connections[Int(connection.descriptor)] = nil
        self.counters.openConnections -= 1
        // This also removes the descriptor from the epoll set.
        Glibc.close(connection.descriptor)
    }

    /// Ends a connection whose client has gone.
    private func leave(_ connection: Connection) {
        if case .waiting = connection.phase {
            self.counters.leftRequests += 1
            self.report(connection, 499, AnswerNote(message: "The client left."))
            connection.exchange = nil
        }
        self.close(connection)
    }

    /// Reports the end of the exchange.
    private func report(_ connection: Connection, _ status: Int, _ note: AnswerNote) {
        guard let exchange = connection.exchange else { return }
        self.handler.didEnd(
            ExchangeRecord(
                head: exchange.head,
                client: connection.client,
                identifier: exchange.identifier,
                status: status,
                sentByteCount: connection.output?.sentBodyCount ?? 0,
                isWhole: connection.output?.isWhole ?? false,
                duration: .nanoseconds(Int64(clamping: Self.nanoseconds - exchange.start)),
                note: note
            )
        )
    }

    // MARK: Requests

    /// Continues with a connection until it must wait, or until its turn is over.
    private func advance(_ connection: Connection) {
        let start = Self.nanoseconds
        for step in 0..<Self.stepsPerTurn {
            if step > 0, Self.nanoseconds - start > Self.turnTime { break }
            switch connection.phase {
            case .reading:
                guard self.readHead(of: connection) else { return }
            case .receiving:
                guard self.readBody(of: connection) else { return }
            case .waiting:
                if connection.isPeerDone { self.leave(connection) }
                return
            case .lingering:
                guard self.discardInput(of: connection) else { return }
            case .sending, .closed: return
            }
        }
        guard !connection.isUnfinished else { return }
        connection.isUnfinished = true
        self.unfinished.append(connection)
    }

    /// Reads and parses until a head is complete; returns false if the connection must wait, or has ended.
    private func readHead(of connection: Connection) -> Bool {
        if !connection.input.isEmpty {
            let input = connection.input
            connection.input = []
            if input.withUnsafeBytes({ self.parse($0, of: connection) }) { return true }
        }
        while case .reading = connection.phase, connection.mayHaveInput {
            guard let count = self.receive(connection) else { return false }
            // The buffer is lent to the parser, which copies only a head.
            let buffer = self.buffer
            let isHead = buffer.withUnsafeBytes {
                self.parse(UnsafeRawBufferPointer(rebasing: $0[..<count]), of: connection)
            }
            if isHead { return true }
        }
        return false
    }

    /// Parses a piece of a head; returns false if the head is incomplete.
    private func parse(_ piece: UnsafeRawBufferPointer, of connection: Connection) -> Bool {
        switch connection.parser.parse(piece) {
        case .incomplete:
            // Set the deadline once for each head, so that a client that sends byte by byte gains no time.
            if !connection.hasHeadDeadline {
                connection.hasHeadDeadline = true
                connection.idleStart = Self.nanoseconds
                self.setDeadline(of: connection, self.times.head)
            }
            return false
        case .head(let head, let byteCount):
            connection.input = Array(piece[byteCount...])
            self.begin(head, of: connection)
        case .refused(let refusal):
            self.refuse(connection, refusal.status, refusal.message)
        }
        return true
    }

    /// Receives bytes into the buffer; returns `nil` if no bytes are available, or if the connection has ended.
    private func receive(_ connection: Connection) -> Int? {
        while true {
            let count = recv(connection.descriptor, &self.buffer, Self.readSize, 0)
            if count > 0 {
                // A short read has drained the socket: the next bytes are a new event.
                if count < Self.readSize, !connection.isPeerDone { connection.mayHaveInput = false }
                connection.progressByteCount += count
                return count
            }
            if count < 0, errno == EINTR { continue }
            connection.mayHaveInput = false
            if count == 0 || errno != EAGAIN { self.leave(connection) }
            return nil
        }
    }

    private func begin(_ head: RequestHead, of connection: Connection) {
        connection.exchange = Connection.Exchange(
            head: head,
            identifier: RequestIdentifier(given: head.onlyValue(for: "X-Request-ID"), number: self.nextIdentifier()),
            start: Self.nanoseconds
        )
        guard let length = head.contentLength, length > 0 else { return self.dispatch(connection) }
        if let refusal = self.refusal(ofBodyOf: head, length) {
            return self.send(refusal, to: connection, closes: true)
        }
        self.bodyByteCount += Self.countedLength(length)
        connection.phase = .receiving
        connection.progressByteCount = 0
        self.setDeadline(of: connection, self.times.progress)
        if head.expectsContinue {
            let text = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
            _ = cshims_send(connection.descriptor, text, text.count, nil, 0)
        }
    }

    /// Returns the reason to refuse a body before it is received, or `nil`.
    private func refusal(ofBodyOf head: RequestHead, _ length: Int) -> ServerAnswer? {
        if let refusal = self.handler.refusal(ofBodyOf: head) { return refusal }
        let limit = self.handler.bodyLimit(of: head)
        if limit == 0 { return self.handler.refusal(400, "A request like this has no body.") }
        if length > limit { return self.handler.refusal(413, "The body is too large.") }
        let hasRoom = Self.countedLength(length) <= self.limits.bodyByteCount - self.bodyByteCount
        return hasRoom ? nil : self.handler.refusal(503, "The server receives too many bodies.")
    }

    /// Returns the number of bytes that count towards ``Limits/bodyByteCount``; 0 for short bodies, such as purges.
    private static func countedLength(_ length: Int) -> Int { length > self.readSize ? length : 0 }

    /// Reads the body of a request; returns false if the connection must wait.
    private func readBody(of connection: Connection) -> Bool {
        guard let length = connection.exchange?.head?.contentLength else { return false }
        while let missing = connection.exchange.map({ length - $0.body.count }), missing > 0 {
            if !connection.input.isEmpty {
                connection.exchange?.body.append(contentsOf: connection.input.prefix(missing))
                connection.input.removeFirst(min(missing, connection.input.count))
                continue
            }
            guard connection.mayHaveInput, let count = self.receive(connection) else { return false }
            connection.exchange?.body.append(contentsOf: self.buffer[..<min(missing, count)])
            if count > missing { connection.input = Array(self.buffer[missing..<count]) }
        }
        self.bodyByteCount -= Self.countedLength(length)
        self.dispatch(connection)
        return true
    }

    /// Lets the handler answer a request.
    private func dispatch(_ connection: Connection) {
        guard let exchange = connection.exchange, let head = exchange.head else { return }
        let request = ServerRequest(head: head, body: exchange.body, client: connection.client)
        if let answer = self.handler.readyAnswer(to: request) { return self.send(answer, to: connection) }
        self.counters.waitingRequests += 1
        exchange.waitStart = exchange.start
        self.setDeadline(of: connection, self.times.answer)
        self.lastWaitNumber += 1
        connection.waitNumber = self.lastWaitNumber
        let (handler, descriptor, number) = (self.handler, connection.descriptor, connection.waitNumber)
        // The connection owns the task, and cancels it when the client leaves.
        connection.phase = .waiting(
            Task.immediate {
                let answer = await Self.answer(request, by: handler)
                self.finish(descriptor, number, answer)
            }
        )
    }

    /// Runs the handler off the loop, which serves other connections meanwhile.
    @concurrent
    private static func answer(_ request: ServerRequest, by handler: any RequestHandling) async -> ServerAnswer {
        await handler.answer(to: request)
    }

    /// Sends an answer, unless the request with this number has already ended.
    private func finish(_ descriptor: CInt, _ number: UInt64, _ answer: ServerAnswer) {
        guard let connection = self.connections[Int(descriptor)], connection.waitNumber == number,
            case .waiting = connection.phase
        else { return }
        self.counters.waitingRequests -= 1
        self.send(answer, to: connection)
        self.advance(connection)
    }

    private func refuse(_ connection: Connection, _ status: Int, _ reason: String) {
        connection.exchange = Connection.Exchange(
            head: nil,
            identifier: .number(self.nextIdentifier()),
            start: Self.nanoseconds
        )
        self.send(self.handler.refusal(status, reason), to: connection, closes: true)
    }

    private func nextIdentifier() -> UInt64 {
        self.lastIdentifier &+= 1
        return self.lastIdentifier
    }

    // MARK: Answers

    private func send(_ answer: ServerAnswer, to connection: Connection, closes: Bool = false) {
        guard let exchange = connection.exchange else { return }
        let head = exchange.head
        let keepsAlive = head.map(\.keepsAlive) ?? false
        let isLast = closes || !keepsAlive || self.isDraining
        let waitTime = exchange.waitStart.map { Self.nanoseconds - $0 }
        let bytes = self.headWriter.bytes(of: answer.head, to: exchange, isLast: isLast, waitTime: waitTime)
        let hasBody = head?.method != .head && answer.status != 304 && answer.status != 204
        connection.output = Connection.Output(
            answer,
            head: bytes[...],
            body: hasBody ? answer.body : .none,
            start: Self.nanoseconds
        )
        connection.isLast = isLast
        connection.phase = .sending
        connection.progressByteCount = 0
        self.setDeadline(of: connection, self.times.progress)
        self.flush(connection)
    }

    /// Sends as much as the socket takes, and ends the exchange when all is sent.
    private func flush(_ connection: Connection) {
        switch connection.send() {
        case .broken: self.close(connection)
        case .blocked: self.countUnsent(of: connection)
        case .done:
            self.endOutput(of: connection)
            if connection.isLast {
                connection.phase = .lingering
                connection.input = []
                Glibc.shutdown(connection.descriptor, CInt(SHUT_WR))
                connection.deadline = Self.milliseconds + Self.lingerMilliseconds
            } else {
                connection.phase = .reading
                connection.hasHeadDeadline = false
                self.setDeadline(of: connection, self.times.idle)
                connection.idleStart = Self.nanoseconds
            }
        }
    }

    /// Counts the body of an answer that its client did not take at once.
    private func countUnsent(of connection: Connection) {
        guard connection.unsentBody == nil, case .data(let data)? = connection.output?.body else { return }
        let body = BodyIdentity(data)
        connection.unsentBody = body
        self.unsentBodies.insert(body)
        if self.unsentBodies.byteCount > self.limits.unsentByteCount { self.closeSlowestOutputs() }
    }

    /// Closes the connections that take their answers most slowly, until an eighth of the limit is free.
    ///
    /// The connections that share a body are closed together or not at all, because the body stays in memory until its
    /// last client has it. The fastest of these clients decides.
    private func closeSlowestOutputs() {
        let now = Self.nanoseconds
        let unsent = self.connections.compactMap { $0 }.filter { $0.unsentBody != nil }
        let clients = Dictionary(grouping: unsent, by: \.unsentBody).values.map { connections in
            (connections: connections, rate: connections.compactMap { $0.output?.rate(at: now) }.max() ?? 0)
        }
        let slowestFirst = clients.sorted { $0.rate < $1.rate }
        for (connections, _) in slowestFirst where self.unsentBodies.byteCount > self.limits.unsentByteCount / 8 * 7 {
            self.counters.expiredConnections += UInt64(connections.count)
            for connection in connections { self.close(connection) }
        }
    }

    /// Ends the output, and reports it.
    private func endOutput(of connection: Connection) {
        if let output = connection.output { self.report(connection, output.status, output.note) }
        if let body = connection.unsentBody { self.unsentBodies.remove(body) }
        connection.unsentBody = nil
        connection.output = nil
        connection.exchange = nil
    }

    /// Returns the bytes that a client must send or take in a period; more for a large body, so that it ends in time.
    private func leastProgress(of connection: Connection) -> Int {
        let byteCount = connection.output?.body.count ?? connection.exchange?.head?.contentLength ?? 0
        return max(self.limits.minimumByteCount, byteCount / max(1, self.limits.periodCount))
    }

    /// Discards the input of a connection after its last answer; returns false if it must wait, or has ended.
    private func discardInput(of connection: Connection) -> Bool {
        guard !connection.isPeerDone || connection.mayHaveInput else {
            self.close(connection)
            return false
        }
        guard connection.mayHaveInput else { return false }
        return self.receive(connection) != nil
    }

    // MARK: Time limits

    private func setDeadline(of connection: Connection, _ milliseconds: UInt64) {
        connection.deadline = Self.milliseconds + milliseconds
    }

    /// Ends the phases that have taken too long.
    ///
    /// Checking a connection takes a few nanoseconds. Sorting connections by deadline would cost more at each change.
    private func endExpired(_ now: UInt64) {
        for case let connection? in self.connections where connection.deadline <= now { self.expire(connection) }
    }

    private func expire(_ connection: Connection) {
        switch connection.phase {
        case .waiting(let task):
            self.counters.waitingRequests -= 1
            task.cancel()
            self.send(self.handler.refusal(503, "The answer took too long."), to: connection)
            self.advance(connection)
        case .receiving, .sending:
            guard connection.progressByteCount < self.leastProgress(of: connection) else {
                connection.progressByteCount = 0
                return self.setDeadline(of: connection, self.times.progress)
            }
            self.counters.expiredConnections += 1
            self.close(connection)
        case .reading:
            self.counters.expiredConnections += 1
            // Close an idle connection, and one that never sent anything, without an answer.
            guard connection.parser.isInHead else { return self.close(connection) }
            self.refuse(connection, 408, "The request took too long.")
        case .lingering: self.close(connection)
        case .closed: break
        }
    }

    private static var nanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private static var milliseconds: UInt64 { self.nanoseconds / 1_000_000 }
}

extension Duration {
    /// The duration in milliseconds as a limit, at most about 30 years, which is as good as no limit.
    fileprivate var limitMilliseconds: UInt64 {
        UInt64(min(max(self, .zero), .seconds(1_000_000_000)) / .milliseconds(1))
    }
}
