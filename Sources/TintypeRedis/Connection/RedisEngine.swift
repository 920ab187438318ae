// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// The nodes and calls of a client, on an event loop that is the actor's executor.
///
/// A turn of the loop takes the new calls of all tasks and writes them with one system call per connection.
actor RedisEngine: SocketActor {
    /// The first and the longest pause before a call is sent again, in nanoseconds.
    private static let firstRepeatDelay: Int64 = 5_000_000
    private static let longestRepeatDelay: Int64 = 100_000_000
    /// The maximum number of times that a read is sent again after a lost connection.
    private static let repeatLimit = 16
    /// The maximum number of redirections that are followed without a pause.
    private static let redirectionLimit = 4
    /// The time between two checks that the client's subscriptions still exist, in nanoseconds.
    private static let probeInterval: Int64 = 5_000_000_000

    private enum NameState {
        case searching
        case found([String])
        case failed(String)
    }

    nonisolated let loop: SocketLoop
    /// The calls of tasks.
    nonisolated let inbox: RedisInbox
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.loop.asUnownedSerialExecutor() }

    private let configuration: RedisConfiguration
    private let connectTime: Int64
    private var directory: RedisDirectory
    private var nodes: [RedisAddress: RedisNode] = [:]
    private var connections: [CInt: RedisConnection] = [:]
    private var deadlines = DeadlineQueue()
    /// The calls whose node is not known yet.
    private var unrouted = CallQueue()
    /// The calls that are sent again later, and when.
    private var delayed: [(time: Int64, call: RedisCall)] = []
    private var directoryCall: (call: RedisCall, address: RedisAddress)?
    private var names: [String: NameState] = [:]
    private let resolver = NameResolver()
    private let tasks = TaskOwner()
    private var now = MonotonicClock.now
    private var events: [RedisInbox.Event] = []

    // The subscriptions, which have a connection of their own.
    private var buffers: [String: [MessageBuffer]] = [:]
    private var messageNode: RedisNode?
    private var messageSchedule: ReconnectSchedule
    private var messageFailures = 0
    private var nextMessageAttempt = Int64.min
    private var nextProbe = Int64.max
    private var isStopped = false
    /// The errors of servers that have refused the greeting, until their connections are removed.
    private var greetingErrors: [ObjectIdentifier: RedisError] = [:]

    /// Creates the engine and its loop, whose thread does not run yet.
    ///
    /// - Throws: ``EpollError`` if the system refuses a descriptor.
    init(_ configuration: RedisConfiguration) throws(EpollError) {
        self.configuration = configuration
        self.connectTime = configuration.connectTimeout.nanoseconds
        self.directory = RedisDirectory(configuration)
        self.messageSchedule = ReconnectSchedule(configuration)
        // The epoll set, its wakeup and a few connections.
        let loop = try SocketLoop(name: "tintype-redis", descriptorCount: 8)
        self.loop = loop
        self.inbox = RedisInbox(limit: configuration.waitingLimit, wakeup: loop.wakeup)
    }

    /// The nodes that the client knows.
    var statuses: [RedisNodeStatus] {
        let known = self.directory.nodes.map { self.node($0.address, role: $0.role) }
        let others = self.nodes.values.filter { node in !known.contains { $0 === node } && !node.connections.isEmpty }
        return (known + others.sorted { $0.address.description < $1.address.description }).map(\.status)
    }

    // MARK: Turns

    func serve(_ descriptor: CInt, events: CInt) {
        guard let connection = self.connections[descriptor] else { return }
        self.now = MonotonicClock.now
        connection.serve(events, now: self.now)
    }

    func endTurn() {
        self.now = MonotonicClock.now
        self.settleOutcomes()
        self.inbox.take(into: &self.events)
        for event in self.events { self.take(event) }
        self.events.removeAll(keepingCapacity: self.events.capacity <= 1_024)
        guard !self.isStopped else { return }
        self.endExpired()
        self.routeDelayed()
        self.closeSilent()
        repeat {
            self.ask()
            self.advanceMessages()
            for node in self.nodes.values where !node.queue.isEmpty { self.sendQueue(of: node) }
            for connection in self.connections.values { connection.flush() }
        } while self.settleOutcomes()
    }

    private func take(_ event: RedisInbox.Event) {
        switch event {
        case .call(let call) where self.isStopped: call.fail(RedisClient.shutDownError)
        case .call(let call):
            self.deadlines.insert(call)
            self.route(call)
        case .subscribe(let buffer) where self.isStopped: buffer.finish()
        case .subscribe(let buffer): self.subscribe(buffer)
        case .unsubscribe(let buffer): self.unsubscribe(buffer)
        case .stop: self.stop()
        }
    }

    /// Returns the time until the next deadline or attempt, in milliseconds.
    ///
    /// Attempts that were due in the turn that has just ended do not count: another event continues them, such as the
    /// result of a name look-up.
    func prepareToWait() -> Int {
        guard self.inbox.prepareToSleep() else { return 0 }
        var next = self.deadlines.next() ?? .max
        for delayed in self.delayed { next = min(next, delayed.time) }
        if let time = self.directory.nextQuestionTime { next = min(next, time) }
        for node in self.nodes.values where !node.queue.isEmpty && node.nextAttempt > self.now {
            next = min(next, node.nextAttempt)
        }
        for connection in self.connections.values { next = min(next, self.patience(with: connection)) }
        if !self.buffers.isEmpty {
            if self.messageConnection?.phase == .ready {
                next = min(next, self.nextProbe)
            } else if self.messageConnection == nil, self.nextMessageAttempt > self.now {
                next = min(next, self.nextMessageAttempt)
            }
        }
        guard next < .max else { return -1 }
        let nanoseconds = next - MonotonicClock.now
        return nanoseconds <= 0 ? 0 : Int(min((nanoseconds + 999_999) / 1_000_000, 60_000))
    }

    /// The moment at which a connection counts as broken if nothing arrives before.
    private func patience(with connection: RedisConnection) -> Int64 {
        switch connection.phase {
        case .connecting, .greeting: connection.start + self.connectTime
        case .ready:
            connection.isIdle && connection.owedConfirmations == 0 ? .max : connection.lastProgress + self.connectTime
        case .closed: .max
        }
    }

    private func endExpired() {
        while let call = self.deadlines.popExpired(now: self.now) {
            if call.purpose == .directory { self.failDirectory(call) }
            call.expire()
        }
        let limit = 1_024 + 2 * self.inbox.waitingCount
        self.deadlines.dropSettled(above: limit)
        self.unrouted.dropSettled(above: limit)
        for node in self.nodes.values { node.queue.dropSettled(above: limit) }
        if self.delayed.count > limit { self.delayed.removeAll(where: \.call.isSettled) }
    }

    private func closeSilent() {
        for connection in self.connections.values where self.patience(with: connection) <= self.now {
            connection.close("The server did not answer within \(self.configuration.connectTimeout).")
        }
    }

    // MARK: Calls

    /// Gives a call to the node that handles its command.
    private func route(_ call: RedisCall) {
        guard let command = call.command else { return }
        guard let address = self.directory.target(of: command, now: self.now) else {
            self.directory.refresh(now: self.now)
            if let failure = self.directory.failure(until: call.deadline) { return call.fail(failure) }
            return self.unrouted.append(call)
        }
        self.enqueue(call, at: self.node(address, role: .master))
    }

    private func enqueue(_ call: RedisCall, at node: RedisNode, needsAsking: Bool = false) {
        if node.isOutOfReach(until: call.purpose == .directory ? self.now : call.deadline, now: self.now) {
            return self.refuse(call, node.lastError ?? RedisError(.disconnected, "\(node.address) cannot be reached."))
        }
        call.assign(to: node.address, needsAsking: needsAsking)
        node.queue.append(call)
    }

    /// Fails a call whose node is out of reach, unless another node may take over in time.
    private func refuse(_ call: RedisCall, _ error: RedisError) {
        if call.purpose == .directory { return self.failDirectory(call) }
        guard self.directory.hasAlternatives else { return call.fail(error) }
        self.directory.refresh(now: self.now)
        self.delay(call, error)
    }

    /// Sends a call again after a pause, or fails it if it has too little time left.
    private func delay(_ call: RedisCall, _ error: RedisError) {
        let doublings = min(call.recordRepeat(error) - 1, 10)
        let time = self.now + min(Self.firstRepeatDelay << doublings, Self.longestRepeatDelay)
        guard time < call.deadline else { return call.fail(error) }
        self.delayed.append((time, call))
    }

    private func routeDelayed() {
        guard !self.delayed.isEmpty else { return }
        let due = self.delayed.filter { $0.time <= self.now }
        guard !due.isEmpty else { return }
        self.delayed.removeAll { $0.time <= self.now }
        for (_, call) in due { self.route(call) }
    }

    /// Returns the node at an address; creates it if needed.
    private func node(_ address: RedisAddress, role: RedisNodeStatus.Role) -> RedisNode {
        if let node = self.nodes[address] { return node }
        let node = RedisNode(address, role: role, schedule: ReconnectSchedule(self.configuration))
        self.nodes[address] = node
        return node
    }

    /// Gives waiting calls to the connections of a node, and opens a new connection if that helps.
    private func sendQueue(of node: RedisNode) {
        var next = node.leastBusy
        while let connection = next, connection.hasRoom, let (call, command, needsAsking) = node.queue.popFirst() {
            if needsAsking { self.send(RedisCommand("ASKING"), over: connection) }
            connection.send(call, command, now: self.now)
            next = node.leastBusy
        }
        let isBusy = next.map { !$0.isIdle } ?? true
        guard isBusy, node.connections.count < self.configuration.connectionsPerNode, !node.isOpening else { return }
        // All calls may be settled.
        if next == nil { node.queue.dropSettled() }
        guard !node.queue.isEmpty || next != nil, node.nextAttempt <= self.now else { return }
        self.open(node)
    }

    // MARK: Connections

    /// Opens a connection, unless the name of the host is still being looked up.
    private func open(_ node: RedisNode) {
        let hosts: [String]
        switch self.addresses(of: node.address.host) {
        case .searching: return
        case .found(let found): hosts = found
        case .failed(let reason):
            self.names[node.address.host] = nil
            return self.recordFailure(of: node, "The name of the host was not found: \(reason)")
        }
        var failure = ""
        // The attempts try the addresses of a host in turn.
        let host = hosts[node.schedule.failureCount % hosts.count]
        let connection = RedisConnection(
            address: host,
            port: node.address.port,
            loop: self.loop,
            now: self.now,
            failure: &failure
        )
        guard let connection else {
            self.names[node.address.host] = nil
            return self.recordFailure(of: node, failure)
        }
        // The system gives the number of a connection that was closed in this turn to the next one.
        if let closed = self.connections[connection.descriptor] { self.settleOutcomes(of: closed) }
        self.connections[connection.descriptor] = connection
        node.connections.append(connection)
        for command in Greeting(self.configuration, role: node.role).commands { self.send(command, over: connection) }
    }

    /// Sends one of the client's own commands.
    private func send(_ command: RedisCommand, over connection: RedisConnection) {
        let call = RedisCall(command, purpose: .greeting, timeBudget: .zero, now: self.now)
        connection.send(call, command, now: self.now)
    }

    private func addresses(of host: String) -> NameState {
        if NameResolver.isAddress(host) { return .found([host]) }
        if let state = self.names[host] { return state }
        self.names[host] = .searching
        let resolver = self.resolver
        self.tasks.run("look up a name") { [weak self] in
            let result = await resolver.addresses(of: host)
            await self?.record(result, of: host)
        }
        return .searching
    }

    private func record(_ result: Result<[String], NameError>, of host: String) {
        switch result {
        case .success(let addresses): self.names[host] = .found(addresses)
        case .failure(let error): self.names[host] = .failed(error.message)
        }
    }

    private func recordFailure(of node: RedisNode, _ message: String) {
        let error = RedisError(.disconnected, "\(node.address): \(message)")
        self.recordFailure(of: node, error, pause: node.schedule.pauseAfterFailure())
    }

    /// Records a failure, and fails the calls that cannot wait for the next attempt.
    private func recordFailure(of node: RedisNode, _ error: RedisError, pause: Int64) {
        node.recordFailure(error, pause: pause, now: self.now)
        if node === self.messageNode {
            self.messageFailures += 1
            self.nextMessageAttempt = self.now + self.messageSchedule.pauseAfterFailure()
        }
        guard node.connections.isEmpty else { return }
        self.directory.refresh(now: self.now)
        for call in node.queue.removeAll() {
            if call.purpose == .directory { self.failDirectory(call) } else { self.enqueue(call, at: node) }
        }
    }

    /// Handles the outcomes and messages of all connections; returns whether there was anything to handle.
    @discardableResult
    private func settleOutcomes() -> Bool {
        self.connections.values.reduce(false) { self.settleOutcomes(of: $1) || $0 }
    }

    @discardableResult
    private func settleOutcomes(of connection: RedisConnection) -> Bool {
        let isClosed = connection.phase == .closed
        let outcomes = connection.takeOutcomes()
        let messages = connection.takeMessages()
        guard isClosed || !outcomes.isEmpty || !messages.isEmpty else { return false }
        for message in messages { self.deliver(message) }
        guard let node = self.owner(of: connection) else {
            self.connections[connection.descriptor] = nil
            return true
        }
        if !connection.wasReady { self.settleGreeting(outcomes, of: connection, node) }
        if connection.phase == .closed { self.remove(connection, from: node) }
        for outcome in outcomes + connection.takeOutcomes() { self.settle(outcome, of: node) }
        return true
    }

    private func owner(of connection: RedisConnection) -> RedisNode? {
        if let node = self.messageNode, node.connections.contains(where: { $0 === connection }) { return node }
        return self.nodes.values.first { node in node.connections.contains { $0 === connection } }
    }

    /// Checks the replies to the greeting, after which the server may have closed the connection.
    private func settleGreeting(
        _ outcomes: [RedisConnection.Outcome],
        of connection: RedisConnection,
        _ node: RedisNode
    ) {
        for outcome in outcomes {
            guard let reply = outcome.reply, let command = outcome.call.command?.name else { continue }
            if let error = Greeting.refusal(of: reply, to: command, from: node.address) {
                self.greetingErrors[ObjectIdentifier(connection)] = error
                return connection.close(error.message)
            }
        }
        guard connection.phase == .greeting, connection.isIdle else { return }
        connection.becomeReady()
        node.schedule.reset()
        node.lastError = nil
        if node === self.messageNode {
            connection.subscribe(Array(self.buffers.keys), now: self.now)
            self.nextProbe = self.now + Self.probeInterval
        }
    }

    private func remove(_ connection: RedisConnection, from node: RedisNode) {
        self.connections[connection.descriptor] = nil
        node.connections.removeAll { $0 === connection }
        node.earlierCommands += connection.sentCount
        guard !connection.isRetired else { return }
        self.names[node.address.host] = nil
        let error =
            self.greetingErrors.removeValue(forKey: ObjectIdentifier(connection))
            ?? RedisError(.disconnected, "\(node.address): \(connection.failure)")
        if connection.wasReady {
            // A connection that worked for a while is opened again at once.
            let pause = max(0, connection.start + node.schedule.first - self.now)
            self.recordFailure(of: node, error, pause: pause)
        } else {
            self.recordFailure(of: node, error, pause: node.schedule.pauseAfterFailure())
        }
    }

    private func settle(_ outcome: RedisConnection.Outcome, of node: RedisNode) {
        let call = outcome.call
        switch (call.purpose, outcome.reply) {
        case (.greeting, _): call.settle(.success(.null))
        case (.directory, .value(let value)?): self.takeAnswer(value, to: call)
        case (.directory, _): self.failDirectory(call, outcome.reply, from: node.address)
        case (.caller, .value(let value)?): call.settle(.success(value))
        case (.caller, .error(let text)?): self.judge(text, call, node)
        case (.caller, nil):
            guard let command = call.command else { return }
            let error = node.lastError ?? RedisError(.disconnected, "\(node.address): The connection was lost.")
            guard command.isReadOnly, call.recordRepeat(error) <= Self.repeatLimit else { return call.fail(error) }
            self.route(call)
        }
    }

    /// Decides what a server's error means for a call.
    private func judge(_ text: String, _ call: RedisCall, _ node: RedisNode) {
        if self.directory.hasAlternatives, let redirection = Redirection(text, from: node.address) {
            guard call.recordRepeat(nil) <= Self.redirectionLimit else {
                self.directory.refresh(now: self.now)
                return self.delay(
                    call,
                    RedisError(.clusterDown, "The nodes disagree on a slot: \(node.address) answered \(text).")
                )
            }
            switch redirection {
            case .moved(let slot, let address):
                self.directory.move(slot: slot, to: address)
                self.directory.refresh(now: self.now)
                self.enqueue(call, at: self.node(address, role: .master))
            case .ask(let address): self.enqueue(call, at: self.node(address, role: .master), needsAsking: true)
            }
            return
        }
        let error = RedisError(reply: text, from: node.address)
        guard self.directory.hasAlternatives, error.code == .clusterDown || error.code == .readOnly else {
            return call.fail(error)
        }
        self.directory.refresh(now: self.now)
        self.delay(call, error)
    }

    // MARK: Directory

    private func ask() {
        guard let question = self.directory.takeQuestion(now: self.now) else { return }
        let call = RedisCall(
            question.command,
            purpose: .directory,
            timeBudget: self.configuration.connectTimeout,
            now: self.now
        )
        self.directoryCall = (call, question.address)
        self.deadlines.insert(call)
        self.enqueue(call, at: self.node(question.address, role: question.role))
    }

    private func takeAnswer(_ value: RedisValue, to call: RedisCall) {
        guard let (current, address) = self.directoryCall, current === call else { return }
        if let error = self.directory.answer(value, from: address, now: self.now) {
            return self.failDirectory(call, error)
        }
        self.directoryCall = nil
        call.settle(.success(.null))
        let known = self.directory.nodes
        for (address, role) in known { self.node(address, role: role).role = role }
        // The other nodes have left, were only asked for addresses, or receive their first slots.
        for (address, node) in self.nodes where !known.contains(where: { $0.address == address }) {
            for connection in node.connections where connection.isIdle {
                connection.retire("\(address) serves no slots.")
            }
            for call in node.queue.removeAll() { self.route(call) }
            if node.connections.isEmpty { self.nodes[address] = nil }
        }
        for call in self.unrouted.removeAll() { self.route(call) }
    }

    private func failDirectory(_ call: RedisCall, _ reply: RedisReply? = nil, from address: RedisAddress) {
        guard case .error(let text)? = reply else { return self.failDirectory(call) }
        self.failDirectory(call, RedisError(reply: text, from: address))
    }

    /// Asks the next node, or fails the calls that wait for an answer if all nodes have failed.
    private func failDirectory(_ call: RedisCall, _ error: RedisError? = nil) {
        guard let (current, address) = self.directoryCall, current === call else { return }
        self.directoryCall = nil
        call.settle(.success(.null))
        let error =
            error ?? self.nodes[address]?.lastError
            ?? RedisError(.disconnected, "\(address) did not answer within \(self.configuration.connectTimeout).")
        guard self.directory.fail(error, now: self.now) else { return }
        for call in self.unrouted.removeAll() { self.route(call) }
    }

    // MARK: Messages

    private var messageConnection: RedisConnection? { self.messageNode?.connections.first }

    private func subscribe(_ buffer: MessageBuffer) {
        self.buffers[buffer.channel, default: []].append(buffer)
        if let connection = self.messageConnection, connection.phase == .ready {
            connection.subscribe([buffer.channel], now: self.now)
        }
    }

    private func unsubscribe(_ buffer: MessageBuffer) {
        buffer.finish()
        self.buffers[buffer.channel]?.removeAll { $0 === buffer }
        guard self.buffers[buffer.channel]?.isEmpty == true else { return }
        self.buffers[buffer.channel] = nil
        guard let connection = self.messageConnection else { return }
        if self.buffers.isEmpty {
            connection.retire("There are no subscriptions.")
        } else if connection.phase == .ready {
            connection.unsubscribe(buffer.channel)
        }
    }

    private func deliver(_ message: RedisConnection.Message) {
        switch message {
        case .subscribed(let channel):
            self.messageSchedule.reset()
            for buffer in self.buffers[channel] ?? [] where buffer.confirm() { buffer.add(nil) }
        case .message(let channel, let value):
            guard let data = value.data else { return }
            for buffer in self.buffers[channel] ?? [] { buffer.add(data) }
        }
    }

    /// Opens the connection for messages, and checks regularly that it still works.
    private func advanceMessages() {
        guard !self.buffers.isEmpty else { return }
        if let connection = self.messageConnection {
            guard self.nextProbe <= self.now, connection.phase == .ready else { return }
            // Another node may have become the master, although the connection has not ended.
            let targets = self.directory.messageTargets(now: self.now)
            if let address = self.messageNode?.address, !targets.isEmpty, !targets.contains(address) {
                return connection.close("\(address) is no longer a master.")
            }
            self.nextProbe = self.now + Self.probeInterval
            connection.subscribe(Array(self.buffers.keys.prefix(1)), now: self.now)
        } else if self.nextMessageAttempt <= self.now {
            for buffer in self.buffers.values.joined() { buffer.unconfirm() }
            let targets = self.directory.messageTargets(now: self.now)
            guard !targets.isEmpty else { return self.directory.refresh(now: self.now) }
            // The masters of a cluster are tried in turn.
            let address = targets[self.messageFailures % targets.count]
            if self.messageNode?.address != address {
                self.messageNode = RedisNode(address, role: .master, schedule: ReconnectSchedule(self.configuration))
            }
            if let node = self.messageNode { self.open(node) }
        }
    }

    // MARK: Shutdown

    private func stop() {
        self.isStopped = true
        for event in self.inbox.close() {
            switch event {
            case .call(let call): call.fail(RedisClient.shutDownError)
            case .subscribe(let buffer), .unsubscribe(let buffer): buffer.finish()
            case .stop: break
            }
        }
        for call in self.deadlines.removeAll() { call.fail(RedisClient.shutDownError) }
        for buffer in self.buffers.values.joined() { buffer.finish() }
        self.buffers = [:]
        for connection in self.connections.values { connection.close(RedisClient.shutDownError.message) }
        self.connections = [:]
        self.nodes = [:]
        self.messageNode = nil
        self.tasks.cancelAll()
        self.loop.end()
    }
}
