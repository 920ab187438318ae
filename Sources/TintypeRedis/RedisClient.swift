// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// A client of a Redis server, a Redis Cluster or a service of Sentinel.
///
/// All tasks share a connection to each node. Their commands follow each other without waiting for replies. The client
/// reconnects by itself.
///
/// ```swift
/// let client = RedisClient(try RedisConfiguration(url: "redis://127.0.0.1:6379"))
/// _ = try await client.run(RedisCommand("SET", "greeting", "hello", "EX", 60, key: "greeting"))
/// let reply = try await client.run(RedisCommand("GET", "greeting", key: "greeting", isReadOnly: true))
/// print(reply.text ?? "There is no greeting.")
/// await client.shutdown()
/// ```
public final class RedisClient: Sendable {
    private enum State {
        case idle
        case running(RedisEngine)
        case shutDown
    }

    private let configuration: RedisConfiguration
    private let state = Locked(State.idle)

    /// Creates a client.
    ///
    /// The first command starts its thread and opens the first connection.
    ///
    /// In this example, the client publishes the URL of an image that all servers must remove.
    ///
    /// ```swift
    /// let client = RedisClient(try RedisConfiguration(url: "redis://10.0.0.5"))
    /// _ = try await client.run(RedisCommand("PUBLISH", "removals", .text(url.absoluteString)))
    /// ```
    public init(_ configuration: RedisConfiguration) {
        self.configuration = configuration
    }

    deinit {
        guard let engine = self.runningEngine() else { return }
        _ = engine.inbox.send(.stop)
        engine.loop.detach()
    }

    /// Runs a command, and returns the reply.
    ///
    /// The command fails at once if the server cannot be reached again before the time budget ends.
    ///
    /// In this example, all servers together request at most 100 images of a host in each minute. If Redis fails, so does
    /// the request.
    ///
    /// ```swift
    /// let minute = Int(Date.now.timeIntervalSince1970) / 60
    /// let counter = "loads:\(url.host() ?? ""):\(minute)"
    /// _ = try await client.run(RedisCommand("SET", .text(counter), 0, "NX", "EX", 120, key: counter))
    /// let count = try await client.run(RedisCommand("INCR", .text(counter), key: counter)).number ?? 0
    /// guard count <= 100 else { throw LoadError(code: .refused, message: "The limit is reached; wait a minute.") }
    /// let image = try await loader.image(for: url)
    /// ```
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - timeBudget: The longest time to wait for the reply, including the time to connect. `nil`, the default, is
    ///     ``RedisConfiguration/commandTimeBudget``.
    /// - Returns: The reply.
    /// - Throws: ``RedisError``, or `CancellationError` if the task is cancelled. In both cases the server may have
    ///   executed the command.
    public func run(_ command: RedisCommand, timeBudget: Duration? = nil) async throws -> RedisValue {
        if let refusal = command.refusal { throw refusal }
        let inbox = try self.started().inbox
        try inbox.enter()
        let call = RedisCall(
            command,
            purpose: .caller,
            timeBudget: timeBudget ?? self.configuration.commandTimeBudget,
            now: MonotonicClock.now,
            inbox: inbox
        )
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard call.begin(continuation) else { return continuation.resume(throwing: CancellationError()) }
                if !inbox.send(.call(call)) { call.fail(Self.shutDownError) }
            }
        } onCancel: {
            call.settle(.failure(CancellationError()))
        }
    }

    /// Subscribes to a channel, and again after each reconnection.
    ///
    /// The first element is `nil`, when the subscription begins. See ``RedisMessages``.
    ///
    /// ```swift
    /// let client = RedisClient(RedisConfiguration(.standalone(RedisAddress("127.0.0.1"))))
    /// for await message in try client.messages(on: "removals") {
    ///     guard let message else { continue }  // Messages may be missing: empty the cache.
    ///     print("remove", String(decoding: message, as: UTF8.self))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - channel: The name of the channel.
    ///   - limit: The most messages that wait to be read; 1,024 by default. The newest ones stay.
    /// - Returns: The messages, from now on.
    /// - Throws: ``RedisError`` if the client was shut down, or cannot start.
    public func messages(on channel: String, limit: Int = 1_024) throws(RedisError) -> RedisMessages {
        let inbox = try self.started().inbox
        let buffer = MessageBuffer(channel: channel, limit: limit)
        guard inbox.send(.subscribe(buffer)) else { throw Self.shutDownError }
        return RedisMessages(subscription: MessageSubscription(buffer, inbox: inbox))
    }

    /// Returns the nodes that the client knows, and the state of their connections.
    ///
    /// Returns no nodes before the first command and after ``shutdown()``.
    ///
    /// ```swift
    /// for node in await client.nodes() where node.state == .disconnected {
    ///     print("Redis at \(node.address) has no connection.", node.lastError?.message ?? "")
    /// }
    /// ```
    public func nodes() async -> [RedisNodeStatus] {
        guard let engine = self.runningEngine() else { return [] }
        return await engine.statuses
    }

    /// Fails all commands that wait, closes the connections and ends the thread.
    ///
    /// Later commands fail with ``RedisError/Code/shutDown``. A second call does nothing.
    ///
    /// ```swift
    /// let host = ProcessInfo.processInfo.hostName
    /// _ = try? await client.run(RedisCommand("SREM", "servers", .text(host), key: "servers"))
    /// await client.shutdown()
    /// ```
    public func shutdown() async {
        guard let engine = self.runningEngine(isLast: true) else { return }
        _ = engine.inbox.send(.stop)
        await engine.loop.join()
    }

    static let shutDownError = RedisError(.shutDown, "The client was shut down.")

    /// Returns the engine if it runs, and shuts the client down if `isLast`.
    @inline(never)
    private func runningEngine(isLast: Bool = false) -> RedisEngine? {
        self.state.withLock { state in
            defer { if isLast { state = .shutDown } }
            guard case .running(let engine) = state else { return nil }
            return engine
        }
    }

    /// Returns the engine, and starts it for the first command.
    ///
    /// Never inlined into an asynchronous function, like all functions here that take a lock; see `SharedTask`.
    @inline(never)
    private func started() throws(RedisError) -> RedisEngine {
        try self.state.withLock { state throws(RedisError) in
            switch state {
            case .running(let engine): return engine
            case .shutDown: throw Self.shutDownError
            case .idle:
                if let refusal = self.configuration.refusal { throw refusal }
                let engine = try Self.start(self.configuration)
                state = .running(engine)
                return engine
            }
        }
    }

    private static func start(_ configuration: RedisConfiguration) throws(RedisError) -> RedisEngine {
        let engine: RedisEngine
        do throws(EpollError) {
            engine = try RedisEngine(configuration)
        } catch {
            throw RedisError(.outOfResources, "The system refuses a file descriptor; raise the limit (ulimit -n).")
        }
        do throws(ThreadError) {
            try engine.loop.start(serving: engine)
        } catch {
            throw RedisError(.outOfResources, error.message)
        }
        return engine
    }
}
