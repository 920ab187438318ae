// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
import TintypeDownloading
import TintypeImage

/// The unread events of a load: the cached image, the newest progress, the newest preview and the end.
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

    /// Offers the cached image.
    func report(_ cached: ImageResponse) {
        self.offer(.success(.cached(cached))) { $0.cached = cached }
    }

    /// Offers progress, and drops progress that is older than the last.
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

    /// Offers a preview, which replaces an unread one.
    func report(_ preview: Image) {
        self.offer(.success(.preview(preview))) { $0.preview = preview }
    }

    /// Ends the events; the first end counts.
    ///
    /// The reader still receives unread events before the end.
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

    /// Hands an event to the waiting reader, or keeps it for the next one; does nothing after the end.
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
