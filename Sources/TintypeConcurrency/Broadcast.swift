// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Hands each element to all streams that were made of it; one that is not read fast enough loses its oldest elements.
public final class Broadcast<Element: Sendable>: Sendable {
    private struct State {
        var nextID = 0
        var hasEnded = false
        var observers: [Int: AsyncStream<Element>.Continuation] = [:]
    }

    private let state = Locked(State())
    private let observerCount = Atomic<Int>(0)

    /// Makes a broadcast without observers.
    public init() {}

    /// Whether there are observers, read without a lock: an element that none is shown should cost nothing.
    public var hasObservers: Bool { self.observerCount.load(ordering: .relaxed) > 0 }

    /// A stream of all that is sent from now on, of which the newest `limit` elements wait to be read.
    public func makeStream(limit: Int) -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Element.self,
            bufferingPolicy: .bufferingNewest(max(1, limit))
        )
        let id = self.state.withLock { state -> Int? in
            guard !state.hasEnded else { return nil }
            state.nextID += 1
            state.observers[state.nextID] = continuation
            self.observerCount.store(state.observers.count, ordering: .relaxed)
            return state.nextID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            let removed = self?.state.withLock { state in
                defer { self?.observerCount.store(state.observers.count, ordering: .relaxed) }
                return state.observers.removeValue(forKey: id)
            }
            _ = consume removed
        }
        return stream
    }

    /// Shows `element` to all streams.
    public func send(_ element: Element) {
        let observers = self.state.withLock { Array($0.observers.values) }
        for observer in observers { observer.yield(element) }
    }

    /// Ends every stream, and each that is made later: nothing more will happen.
    public func finish() {
        let observers = self.state.withLock { state in
            state.hasEnded = true
            defer { state.observers = [:] }
            self.observerCount.store(0, ordering: .relaxed)
            return Array(state.observers.values)
        }
        for observer in observers { observer.finish() }
    }
}
