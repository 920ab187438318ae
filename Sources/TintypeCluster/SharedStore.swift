// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeRedis

/// The Redis deployment of a cluster, behind circuit breakers.
///
/// While a circuit is open, calls fail at once, so that loads continue locally. Writes have a circuit of their own: a
/// full Redis and a replica refuse them, but still answer reads.
final class SharedStore: Sendable {
    private struct State {
        var reads = Circuit()
        var writes = Circuit()
        var counts = ClusterStatistics()
        /// Whether the last report says that Redis refuses the client.
        var hasReportedRefusal = false

        var isOpen: Bool { self.reads.isOpen || self.writes.isOpen }

        mutating func change<Result>(_ command: RedisCommand, _ body: (inout Circuit) -> Result) -> Result {
            command.isReadOnly ? body(&self.reads) : body(&self.writes)
        }
    }

    let redis: RedisClient
    let configuration: Cluster.Configuration
    private let state = Locked(State())

    init(_ configuration: Cluster.Configuration) {
        self.configuration = configuration
        self.redis = RedisClient(configuration.redis)
    }

    /// Runs a command: a name and its words, the last of which may be bytes.
    ///
    /// - Throws: As ``run(_:byteCount:)``.
    func run(
        _ name: String,
        _ words: String...,
        value: Data? = nil,
        key: String,
        isReadOnly: Bool = false
    ) async throws -> RedisValue {
        let arguments = words.map { RedisArgument.text($0) } + [value.map { .data($0) }].compactMap(\.self)
        return try await self.run(RedisCommand(name, arguments: arguments, key: key, isReadOnly: isReadOnly))
    }

    /// Sets fields of a hash and its lifetime at once, so that no field is left without a lifetime; returns the number
    /// of new fields.
    func set(_ fields: [(name: String, value: Data)], of family: String, lifetime: Duration) async throws -> Int64 {
        let words = fields.flatMap { [RedisArgument.text($0.name), .data($0.value)] }
        let head: [RedisArgument] = [.text(Self.setting), "1", .text(family), .text("\(lifetime.milliseconds)")]
        let reply = try await self.run(
            RedisCommand("EVAL", arguments: head + words, key: family),
            byteCount: fields.reduce(0) { $0 + $1.value.count }
        )
        return reply.number ?? 0
    }

    private static let setting = """
        local count = redis.call('HSET', KEYS[1], unpack(ARGV, 2))
        redis.call('PEXPIRE', KEYS[1], ARGV[1])
        return count
        """

    /// Runs a command that transfers `byteCount` bytes, for which its time budget is longer.
    ///
    /// - Throws: ``CacheError`` (`.tierFailed`, `.tierTimedOut`), `CancellationError`.
    func run(_ command: RedisCommand, byteCount: Int = 0) async throws -> RedisValue {
        guard self.admits(command) else { throw Self.refusal }
        do {
            // A slow network transfers 16 kB in a millisecond.
            let budget = self.configuration.redis.commandTimeBudget + .milliseconds(byteCount >> 14)
            let value = try await self.redis.run(command, timeBudget: budget)
            self.succeed(command)
            return value
        } catch let error as RedisError {
            self.fail(command, error)
            throw Self.failure(error)
        } catch {
            self.abandon(command)
            throw error
        }
    }

    /// Returns the messages of a channel.
    ///
    /// - Throws: ``CacheError`` (`.tierFailed`).
    func messages(on channel: String) throws -> RedisMessages {
        do throws(RedisError) {
            return try self.redis.messages(on: channel)
        } catch {
            throw Self.failure(error)
        }
    }

    private static func failure(_ error: RedisError) -> CacheError {
        CacheError(
            code: error.code == .timedOut ? .tierTimedOut : .tierFailed,
            message: "The shared tier failed: \(error.message)"
        )
    }

    /// Returns the counts of this process; without `leases`, it counts no locks.
    @inline(never)
    func statistics(_ leases: Leases? = nil) -> ClusterStatistics {
        var counts = self.state.withLock { state in
            var counts = state.counts
            counts.isCircuitOpen = state.isOpen
            return counts
        }
        counts.leases = leases?.count ?? 0
        return counts
    }

    @inline(never)
    func count(_ change: (inout ClusterStatistics) -> Void) {
        self.state.withLock { change(&$0.counts) }
    }

    // MARK: Names

    /// The name of the hash that has the entries of a family.
    ///
    /// The braces put all names of a family into one slot of a Redis Cluster.
    func family(of key: CacheKey) -> String { "\(self.configuration.keyPrefix):{\(key.root.digest)}" }

    /// The field of an entry in the hash of its family.
    ///
    /// A derived entry depends on the encoders and transforms, so its field has their revision.
    func field(of key: CacheKey) -> String {
        key.isDerived ? "\(key.digest)-\(self.configuration.revision)" : key.digest
    }

    func name(_ parts: String...) -> String { ([self.configuration.keyPrefix] + parts).joined(separator: ":") }

    // MARK: Circuit

    // No function that takes the lock is inlined into an asynchronous one; see `SharedTask`.

    /// Whether calls are refused, because the store has failed.
    @inline(never)
    func isCircuitOpen() -> Bool { self.state.withLock(\.isOpen) }

    @inline(never)
    private func admits(_ command: RedisCommand) -> Bool {
        self.state.withLock { state in
            let isAdmitted = state.change(command) { $0.admits(at: .now) }
            if !isAdmitted { state.counts.refusedCalls += 1 }
            return isAdmitted
        }
    }

    private static let refusal = CacheError(
        code: .tierFailed,
        message: "The shared tier is not asked, because it has failed; the cluster tries it again by itself."
    )

    /// Returns whether Redis may have run a command that failed with `error`.
    ///
    /// An open circuit refuses a command before it is sent.
    static func mayHaveRun(_ error: any Error) -> Bool { (error as? CacheError)?.message != Self.refusal.message }

    @inline(never)
    private func succeed(_ command: RedisCommand) {
        let hasClosed = self.state.withLock { state in
            state.counts.calls += 1
            return state.change(command) { $0.succeed() } && !state.isOpen
        }
        if hasClosed { self.configuration.report(.circuitClosed) }
    }

    @inline(never)
    private func fail(_ command: RedisCommand, _ error: RedisError) {
        self.state.withLock { state in
            state.counts.failedCalls += 1
            state.counts.lastError = error.message
        }
        // Redis has answered.
        guard error.code.isOutage else { return self.succeed(command) }
        let mustReport = self.state.withLock { state in
            state.counts.calls += 1
            let wasOpen = state.isOpen
            let hasOpened = state.change(command) { $0.fail(at: .now) } && !wasOpen
            if hasOpened { state.counts.circuitOpenings += 1 }
            // If Redis is back but refuses the client, a person must act.
            let isNew = state.isOpen && error.code == .refused && !state.hasReportedRefusal
            if hasOpened || isNew { state.hasReportedRefusal = error.code == .refused }
            return hasOpened || isNew
        }
        if mustReport { self.configuration.report(.circuitOpened(reason: error.message)) }
    }

    @inline(never)
    private func abandon(_ command: RedisCommand) {
        self.state.withLock { $0.change(command) { $0.abandon(at: .now) } }
    }
}

extension RedisError.Code {
    /// Whether the store itself has failed, unlike an answer that refuses one command.
    fileprivate var isOutage: Bool {
        switch self {
        case .serverError, .invalidCommand: false
        default: true
        }
    }
}
