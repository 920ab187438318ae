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
                    let response = try await load { update in
                        switch update {
                        case .progress(let progress): mailbox.report(progress)
                        case .preview(let image): mailbox.report(image)
                        case .cached(let response): mailbox.report(response)
                        case .bytes: break
                        }
                    }
                    mailbox.finish(with: .success(response))
                } catch {
                    mailbox.finish(with: .failure(error))
                }
            }
        }
    }
}
