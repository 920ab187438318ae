// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
public import TintypeDownloading
public import TintypeImage

/// An event of a load; the last one is ``finished(_:)``.
public enum LoadEvent: Sendable {
    /// More bytes have arrived.
    case progress(TransferProgress)
    /// An unfinished image that is worth showing; its ``Image/isPreview`` is true.
    ///
    /// It comes from this load, or it is the last one of an earlier load that did not end; see
    /// ``LoadOptions/keepPreviews``.
    case preview(Image)
    /// The cached image, while the loader asks the origin whether it is current.
    ///
    /// Only loads under ``CachePolicy/revalidate`` report it, first and at most once.
    case cached(ImageResponse)
    /// The image is there. Nothing follows.
    case finished(ImageResponse)
}

/// The events of one load, as an asynchronous sequence.
///
/// The load starts with the first call of `next()`. It ends with the sequence, when the reading task is cancelled, or
/// when the iterator goes away, as after a `break`. (At the top level of a `main.swift`, Swift keeps the iterator of a
/// loop as long as the program runs: put such a loop into a function.) A slow reader never delays the load: newer
/// progress and previews replace unread ones. Every iteration ends with exactly one ``LoadEvent/finished(_:)`` or one
/// error.
public struct LoadEvents: AsyncSequence, Sendable {
    public typealias Element = LoadEvent
    public typealias Failure = any Error

    typealias Load = @Sendable (_ report: @escaping @Sendable (LoadUpdate) -> Void) async throws -> ImageResponse

    private let load: Load

    init(load: @escaping Load) {
        self.load = load
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(LoadEventSource(load: self.load))
    }

    /// Reads the events of one load.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let source: LoadEventSource

        init(_ source: LoadEventSource) {
            self.source = source
        }

        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> LoadEvent? {
            try await self.source.next(isolation: actor)
        }

        public mutating func next() async throws -> LoadEvent? {
            try await self.source.next(isolation: #isolation)
        }
    }
}

/// Owns the task of one load and ends it when the iterator goes away.
final class LoadEventSource: Sendable {
    private let load: LoadEvents.Load
    private let mailbox = LoadEventMailbox()
    private let task = Locked<Task<Void, Never>?>(nil)

    init(load: @escaping LoadEvents.Load) {
        self.load = load
    }

    deinit {
        self.task.withLock { $0.take() }?.cancel()
    }

    func next(isolation actor: isolated (any Actor)?) async throws -> LoadEvent? {
        self.startIfNeeded()
        return try await withTaskCancellationHandler(
            operation: { try await self.mailbox.next(isolation: actor) },
            onCancel: {
                self.task.withLock { $0 }?.cancel()
                self.mailbox.finish(with: .failure(CancellationError()))
            },
            isolation: actor
        )
    }

    private func startIfNeeded() {
        // Creating a task does not take the lock.
        self.task.withLock { task in
            guard task == nil else { return }
            task = Task(name: "load events") { [load = self.load, mailbox = self.mailbox] in
                do {
                    mailbox.finish(with: .success(try await load { mailbox.report($0) }))
                } catch {
                    mailbox.finish(with: .failure(error))
                }
            }
        }
    }
}

/// The unread events of a load: the cached image, the newest progress, the newest preview and the end.
private final class LoadEventMailbox: Sendable {
    private typealias Reader = CheckedContinuation<LoadEvent?, any Error>

    private struct State {
        var cached: ImageResponse?
        var progress: TransferProgress?
        var preview: Image?
        var lastReported: Int64 = -1
        var end: Result<ImageResponse, any Error>?
        var isOver = false
        var reader: Reader?

        /// Returns the next event, or `nil` if it has not arrived yet.
        mutating func take() -> Result<LoadEvent?, any Error>? {
            if let cached = self.cached.take() { return .success(.cached(cached)) }
            if let progress = self.progress.take() { return .success(.progress(progress)) }
            if let preview = self.preview.take() { return .success(.preview(preview)) }
            if let end = self.end.take() { return end.map { .finished($0) } }
            return self.isOver ? .success(nil) : nil
        }
    }

    private let state = Locked(State())

    /// Stores an update, which replaces an unread one of its kind.
    ///
    /// Drops progress that is older than the last.
    func report(_ update: LoadUpdate) {
        self.offer { state in
            switch update {
            case .cached(let response): state.cached = response
            case .progress(let progress) where progress.receivedBytes > state.lastReported:
                (state.progress, state.lastReported) = (progress, progress.receivedBytes)
            case .preview(let image): state.preview = image
            case .progress, .bytes: break
            }
        }
    }

    /// Ends the events; the first end counts.
    ///
    /// The reader still receives unread events before the end.
    func finish(with end: Result<ImageResponse, any Error>) {
        self.offer { ($0.end, $0.isOver) = (end, true) }
    }

    /// Stores an event, and passes it to a waiting reader; does nothing after the end.
    private func offer(_ keep: @Sendable (inout State) -> Void) {
        let next = self.state.withLock { state -> (reader: Reader, event: Result<LoadEvent?, any Error>)? in
            guard !state.isOver else { return nil }
            keep(&state)
            // If a reader waits, there is no other event.
            guard let reader = state.reader, let event = state.take() else { return nil }
            state.reader = nil
            return (reader, event)
        }
        if let next { next.reader.resume(with: next.event) }
    }

    /// Returns the next event; `nil` after the end.
    ///
    /// Only one reader may wait at a time.
    func next(isolation actor: isolated (any Actor)?) async throws -> LoadEvent? {
        try await withCheckedThrowingContinuation(isolation: actor) { (reader: Reader) in
            let event = self.state.withLock { state -> Result<LoadEvent?, any Error>? in
                guard let event = state.take() else {
                    precondition(state.reader == nil, "an iterator of load events is read by two tasks at once")
                    state.reader = reader
                    return nil
                }
                return event
            }
            if let event { reader.resume(with: event) }
        }
    }
}
