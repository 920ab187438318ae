public import FoundationEssentials
import TintypeConcurrency

/// Something that happened to a transfer.
///
/// A request that the network policy refuses becomes no transfer: ``Kind/refused(_:)`` is all that happens.
/// Each transfer begins with one ``Kind/started`` and ends with one of ``Kind/finished(_:)``,
/// ``Kind/failed(_:)`` and ``Kind/cancelled``; an observer that began to listen in between sees the rest.
public struct DownloadEvent: Sendable {
    /// What happened.
    public enum Kind: Sendable {
        /// The network policy refused it before there was a transfer.
        case refused(DownloadError)
        /// It was asked for.
        case started
        /// The head of a response came, that of a redirect included.
        case receivedHead(status: Int)
        /// It failed, and is tried again so much later.
        case retrying(after: Duration, DownloadError)
        /// Its body is complete.
        case finished(TransferMetrics)
        /// It gave no body.
        case failed(DownloadError)
        /// No caller waited any more.
        case cancelled
    }

    /// Which of the downloader's transfers it is about; 0 for what became none.
    public let transferID: UInt64
    /// What was asked for, without credentials.
    public let url: URL
    /// What happened.
    public let kind: Kind
}

/// Hands each event to all observers; one that does not keep up loses its oldest.
final class EventBroadcast: Sendable {
    private struct State {
        var nextID = 0
        var hasEnded = false
        var observers: [Int: AsyncStream<DownloadEvent>.Continuation] = [:]
    }

    private let state = Locked(State())

    /// Whether there are observers; an event that none is shown should cost nothing.
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
