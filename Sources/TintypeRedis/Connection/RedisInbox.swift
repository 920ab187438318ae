// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TintypeConcurrency

/// The events that tasks send to the loop of a client, and the number of calls that wait.
final class RedisInbox: Sendable {
    enum Event: Sendable {
        case call(RedisCall)
        case subscribe(MessageBuffer)
        case unsubscribe(MessageBuffer)
        case stop
    }

    private struct State {
        var events: [Event] = []
        /// Whether the loop sleeps, or is about to, and must be woken.
        var isSleeping = false
        var isClosed = false
    }

    private let state = Locked(State())
    private let waiting = Atomic(0)
    private let limit: Int
    private let wakeup: EpollSet.Wakeup

    /// Creates an inbox that admits `limit` waiting calls.
    init(limit: Int, wakeup: EpollSet.Wakeup) {
        self.limit = limit
        self.wakeup = wakeup
    }

    /// Counts a call as waiting.
    ///
    /// - Throws: ``RedisError`` if too many calls wait.
    func enter() throws(RedisError) {
        guard self.waiting.add(1, ordering: .relaxed).newValue <= self.limit else {
            self.leave()
            throw RedisError(.tooManyWaiting, "\(self.limit) commands wait for Redis already. Try again later.")
        }
    }

    /// Counts a call as no longer waiting.
    func leave() {
        self.waiting.subtract(1, ordering: .relaxed)
    }

    var waitingCount: Int { self.waiting.load(ordering: .relaxed) }

    /// Adds an event, and wakes the loop if it sleeps; returns false after ``close()``.
    @inline(never)
    func send(_ event: Event) -> Bool {
        let (isOpen, mustWake) = self.state.withLock { state -> (Bool, Bool) in
            guard !state.isClosed else { return (false, false) }
            state.events.append(event)
            defer { state.isSleeping = false }
            return (true, state.isSleeping)
        }
        if mustWake { self.wakeup.wake() }
        return isOpen
    }

    /// Moves the events to `batch`, which must be empty.
    func take(into batch: inout [Event]) {
        self.state.withLock { state in
            state.isSleeping = false
            swap(&state.events, &batch)
        }
    }

    /// Returns whether the loop may sleep: from then on, an event wakes it.
    func prepareToSleep() -> Bool {
        self.state.withLock { state in
            state.isSleeping = state.events.isEmpty
            return state.isSleeping
        }
    }

    /// Refuses further events, and returns the last ones.
    func close() -> [Event] {
        self.state.withLock { state in
            state.isClosed = true
            defer { state.events = [] }
            return state.events
        }
    }
}
