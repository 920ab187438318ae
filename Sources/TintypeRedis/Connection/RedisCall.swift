// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// A command on its way to a reply.
///
/// The call resumes its caller exactly once, because whoever settles it takes the continuation out of the lock: the
/// reply, the deadline, a cancellation or the shutdown. A late reply then finds nothing to resume.
final class RedisCall: Sendable {
    /// The sender of a command.
    enum Purpose: Sendable {
        /// A caller waits for the reply.
        case caller
        /// The command belongs to the greeting of a connection, or is `ASKING`.
        case greeting
        /// The reply says which node serves which keys.
        case directory
    }

    private typealias Waiter = CheckedContinuation<RedisValue, any Error>

    private struct State {
        /// The command; `nil` once the call is settled, because its words may be large.
        var command: RedisCommand?
        var waiter: Waiter?
        /// The node that the call waits for.
        var address: RedisAddress?
        /// Whether `ASKING` must precede the command.
        var needsAsking = false
        /// The number of times that the call was sent again.
        var repeats = 0
        var lastError: RedisError?
    }

    let purpose: Purpose
    /// The end of the time budget; see ``MonotonicClock``.
    let deadline: Int64
    let timeBudget: Duration
    private let state: Locked<State>
    private let inbox: RedisInbox?

    /// Creates a call; `inbox` counts it as waiting until it is settled.
    init(_ command: RedisCommand, purpose: Purpose, timeBudget: Duration, now: Int64, inbox: RedisInbox? = nil) {
        self.purpose = purpose
        self.timeBudget = timeBudget
        self.deadline = now + timeBudget.nanoseconds
        self.inbox = inbox
        self.state = Locked(State(command: command))
    }

    /// The command, or `nil` if the call is settled.
    var command: RedisCommand? { self.state.withLock { $0.command } }

    var isSettled: Bool { self.state.withLock { $0.command == nil } }

    /// Lets `waiter` wait; returns false, and drops it, if the call is settled.
    @inline(never)
    func begin(_ waiter: CheckedContinuation<RedisValue, any Error>) -> Bool {
        self.state.withLock { state in
            guard state.command != nil else { return false }
            state.waiter = waiter
            return true
        }
    }

    /// Settles the call, unless it is settled.
    @inline(never)
    func settle(_ result: Result<RedisValue, any Error>) {
        let (isFirst, waiter) = self.state.withLock { state -> (Bool, Waiter?) in
            guard state.command != nil else { return (false, nil) }
            state.command = nil
            return (true, state.waiter.take())
        }
        guard isFirst else { return }
        self.inbox?.leave()
        waiter?.resume(with: result)
    }

    func fail(_ error: RedisError) {
        self.settle(.failure(error))
    }

    /// Records the node that the call waits for.
    func assign(to address: RedisAddress, needsAsking: Bool = false) {
        self.state.withLock { state in
            state.address = address
            state.needsAsking = needsAsking
        }
    }

    /// Returns the command, and whether `ASKING` must precede it; returns `nil` if the call is settled.
    func commandToSend() -> (command: RedisCommand, needsAsking: Bool)? {
        self.state.withLock { state in state.command.map { ($0, state.needsAsking) } }
    }

    /// Settles the call because its time is over.
    func expire() {
        let (address, lastError) = self.state.withLock { ($0.address, $0.lastError) }
        let place = address.map { "from \($0) " } ?? ""
        let reason = lastError.map { " Before that: \($0.message)" } ?? ""
        self.fail(RedisError(.timedOut, "No reply came \(place)within \(self.timeBudget).\(reason)"))
    }

    /// Records the reason for sending the call again, and returns how often that has happened.
    func recordRepeat(_ error: RedisError?) -> Int {
        self.state.withLock { state in
            state.repeats += 1
            state.lastError = error ?? state.lastError
            return state.repeats
        }
    }
}
