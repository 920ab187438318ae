import TintypeConcurrency
import TintypeDownloading
import TintypeImage

/// What a reader of load events has not seen yet: the cached image, the newest progress, the newest
/// preview and the end.
final class LoadEventMailbox: Sendable {
    private typealias Reader = CheckedContinuation<LoadEvent?, any Error>

    private struct State {
        var cached: ImageResponse?
        var progress: TransferProgress?
        var preview: Image?
        var lastReported: Int64 = -1
        var end: Result<ImageResponse, any Error>?
        var isOver = false
        var reader: Reader?

        /// The next event for a reader, or `nil` when there is none yet.
        mutating func take() -> Result<LoadEvent?, any Error>? {
            if let cached = self.cached.take() { return .success(.cached(cached)) }
            if let progress = self.progress.take() { return .success(.progress(progress)) }
            if let preview = self.preview.take() { return .success(.preview(preview)) }
            if let end = self.end.take() { return end.map { .finished($0) } }
            return self.isOver ? .success(nil) : nil
        }
    }

    private let state = Locked(State())

    /// Offers the image that is cached.
    func report(_ cached: ImageResponse) {
        self.offer(.success(.cached(cached))) { $0.cached = cached }
    }

    /// Offers progress; older progress than what was offered before is dropped.
    func report(_ progress: TransferProgress) {
        self.offer(
            .success(.progress(progress)),
            if: { state in
                guard progress.receivedBytes > state.lastReported else { return false }
                state.lastReported = progress.receivedBytes
                return true
            },
            keep: { $0.progress = progress }
        )
    }

    /// Offers a preview in place of one that was not read.
    func report(_ preview: Image) {
        self.offer(.success(.preview(preview))) { $0.preview = preview }
    }

    /// Ends the events; the first end counts.
    ///
    /// What is unread is still delivered before it.
    func finish(with end: Result<ImageResponse, any Error>) {
        self.offer(
            end.map { .finished($0) },
            if: { state in
                state.isOver = true
                return true
            },
            keep: { $0.end = end }
        )
    }

    /// Hands an event to the reader that waits, or keeps it for the next one; does nothing after the end.
    private func offer(
        _ event: Result<LoadEvent?, any Error>,
        if isNew: @Sendable (inout State) -> Bool = { _ in true },
        keep: @Sendable (inout State) -> Void
    ) {
        let reader = self.state.withLock { state -> Reader? in
            guard !state.isOver, isNew(&state) else { return nil }
            guard let reader = state.reader.take() else {
                keep(&state)
                return nil
            }
            return reader
        }
        reader?.resume(with: event)
    }

    /// The next event; `nil` after the end.
    ///
    /// One reader at a time.
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
