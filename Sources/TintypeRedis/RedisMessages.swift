// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import TintypeConcurrency

/// The messages of a channel, as ``RedisClient/messages(on:limit:)`` returns them.
///
/// An element is the content of a message, or `nil` if earlier messages may be missing. This happens when a
/// subscription begins, also after a lost connection, and when the reader is too slow. A cache that listens for
/// removals must empty itself at each `nil`.
///
/// The subscription ends when the sequence and its iterators go away. Let one task at a time read it.
public struct RedisMessages: AsyncSequence, Sendable {
    /// The content of a message, or `nil` if messages may be missing.
    public typealias Element = Data?
    public typealias Failure = Never

    /// Reads messages in the order in which they came.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: MessageSubscription

        /// Waits for the next message.
        ///
        /// Returns no element if the task is cancelled or the client was shut down.
        public mutating func next() async -> Data?? { await self.subscription.buffer.next() }
    }

    let subscription: MessageSubscription

    /// Creates a reader.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: self.subscription) }
}

/// Ends a subscription when its last reader goes away.
final class MessageSubscription: Sendable {
    let buffer: MessageBuffer
    private let inbox: RedisInbox

    init(_ buffer: MessageBuffer, inbox: RedisInbox) {
        self.buffer = buffer
        self.inbox = inbox
    }

    deinit {
        _ = self.inbox.send(.unsubscribe(self.buffer))
    }
}

/// The messages of a channel that a reader has not taken yet: the newest ones, up to a limit.
final class MessageBuffer: Sendable {
    private struct State {
        var messages: [Data?] = []
        var readers: [UInt64: CheckedContinuation<Data??, Never>] = [:]
        var nextReader: UInt64 = 0
        var hasEnded = false
        /// Whether the server has confirmed the subscription since the connection was opened.
        var isConfirmed = false
    }

    let channel: String
    private let limit: Int
    private let state = Locked(State())

    init(channel: String, limit: Int) {
        self.channel = channel
        self.limit = max(2, limit)
    }

    /// Records that the server has confirmed the subscription; returns whether that is new.
    func confirm() -> Bool {
        self.state.withLock { state in
            defer { state.isConfirmed = true }
            return !state.isConfirmed
        }
    }

    /// Records that the connection was lost.
    func unconfirm() {
        self.state.withLock { $0.isConfirmed = false }
    }

    /// Adds a message, or a `nil` for lost messages.
    func add(_ message: Data?) {
        let reader = self.state.withLock { state -> CheckedContinuation<Data??, Never>? in
            guard !state.hasEnded else { return nil }
            if let reader = state.readers.popFirst()?.value { return reader }
            // Consecutive losses count as one.
            if message == nil, let last = state.messages.last, last == nil { return nil }
            state.messages.append(message)
            if state.messages.count > self.limit {
                state.messages.removeFirst(2)
                state.messages.insert(nil, at: 0)
            }
            return nil
        }
        reader?.resume(returning: .some(message))
    }

    /// Waits for a message; returns no element at the end, or if the task is cancelled.
    func next() async -> Data?? {
        let id = self.makeID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { self.begin($0, id: id) }
        } onCancel: {
            self.leave(id)?.resume(returning: nil)
        }
    }

    // No function that takes the lock is inlined into an asynchronous one; see `SharedTask`.

    @inline(never)
    private func makeID() -> UInt64 {
        self.state.withLock { state in
            state.nextReader += 1
            return state.nextReader
        }
    }

    /// Lets a reader wait, unless there is a message or the end.
    @inline(never)
    private func begin(_ reader: CheckedContinuation<Data??, Never>, id: UInt64) {
        let result = self.state.withLock { state -> Data??? in
            if !state.messages.isEmpty { return .some(.some(state.messages.removeFirst())) }
            if state.hasEnded || Task.isCancelled { return .some(nil) }
            state.readers[id] = reader
            return nil
        }
        if let result { reader.resume(returning: result) }
    }

    @inline(never)
    private func leave(_ id: UInt64) -> CheckedContinuation<Data??, Never>? {
        self.state.withLock { $0.readers.removeValue(forKey: id) }
    }

    /// Ends the messages.
    ///
    /// Waiting messages can still be read.
    func finish() {
        let readers = self.state.withLock { state in
            state.hasEnded = true
            defer { state.readers = [:] }
            return state.readers.values.map { $0 }
        }
        for reader in readers { reader.resume(returning: nil) }
    }
}
