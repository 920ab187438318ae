import TintypeConcurrency

/// Hands each event to all observers; one that does not keep up loses its oldest.
final class EventBroadcast: Sendable {
    private struct State {
        var nextID = 0
        var hasEnded = false
        var observers: [Int: AsyncStream<DownloadEvent>.Continuation] = [:]
    }

    private let state = Locked(State())

    /// Whether anybody listens; it costs nothing to tell nobody.
    var hasObservers: Bool { self.state.withLock { !$0.observers.isEmpty } }

    func makeStream(limit: Int) -> AsyncStream<DownloadEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadEvent.self,
            bufferingPolicy: .bufferingNewest(max(1, limit))
        )
        let id = self.state.withLock { state -> Int? in
            guard !state.hasEnded else { return nil }
            state.nextID += 1
            state.observers[state.nextID] = continuation
            return state.nextID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            let removed = self?.state.withLock { $0.observers.removeValue(forKey: id) }
            _ = consume removed
        }
        return stream
    }

    func send(_ event: DownloadEvent) {
        let observers = self.state.withLock { Array($0.observers.values) }
        for observer in observers { observer.yield(event) }
    }

    /// Ends every stream, and each that is made later: nothing more will happen.
    func finish() {
        let observers = self.state.withLock { state in
            state.hasEnded = true
            defer { state.observers = [:] }
            return Array(state.observers.values)
        }
        for observer in observers { observer.finish() }
    }
}
