import TintypeConcurrency
public import TintypeDownloading
public import TintypeImage

/// What happens during a load, in order; the last event is ``finished(_:)``.
public enum LoadEvent: Sendable {
    /// More bytes have arrived.
    case progress(TransferProgress)
    /// An unfinished image that is worth showing; its ``Image/isPreview`` is true.
    ///
    /// Of this load, or the last one of a load before that broke off; see ``LoadOptions/keepPreviews``.
    case preview(Image)
    /// The image that is cached, while the origin is asked whether it is current.
    ///
    /// Only of loads under ``CachePolicy/revalidate``; comes first, and at most once.
    case cached(ImageResponse)
    /// The image is there. Nothing follows.
    case finished(ImageResponse)
}

/// The events of one load, as an asynchronous sequence.
///
/// The load starts with the first call of `next()`. It ends when the sequence does, when the
/// task that reads it is cancelled, or when its iterator goes away, as after a `break`. (At the top level of a
/// `main.swift` Swift keeps the iterator of a loop for as long as the program runs: put such a loop into a function.) A slow
/// reader never delays the load: progress and previews that were not read are replaced by newer ones.
/// Every iteration ends with exactly one ``LoadEvent/finished(_:)`` or one error.
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
        // Creating a task calls nothing that takes the lock.
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
