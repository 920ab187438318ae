import TintypeConcurrency
public import TintypeDownloading

/// Brings pictures into a cache before they are asked for.
///
/// A prefetcher works on several lists at once; its limits hold for all of them together. A list
/// lives as long as its reader, which keeps the prefetcher alive.
public final class Prefetcher: Sendable {
    /// Where prefetched pictures go.
    public enum Destination: Sendable, Hashable {
        /// Encoded bytes on disk; nothing is decoded.
        case disk
        /// Decoded pictures in memory, and their bytes on disk.
        case memory
    }

    private let loader: LoaderActor
    private let destination: Destination
    private let concurrency: Int
    private let priority: DownloadPriority
    private let gate: WeightedGate
    private let lists = TaskOwner()

    /// Creates a prefetcher.
    ///
    /// - Parameters:
    ///   - loader: Loads the pictures; its caches are filled.
    ///   - destination: Where the pictures go; default disk.
    ///   - concurrency: How many are loaded at once, at least 1; default 3.
    ///   - priority: How urgent the downloads are, whatever the requests say; default low, so that
    ///     those that a user waits for go first.
    public init(
        loader: LoaderActor,
        destination: Destination = .disk,
        concurrency: Int = 3,
        priority: DownloadPriority = .low
    ) {
        self.loader = loader
        self.destination = destination
        self.concurrency = max(1, concurrency)
        self.priority = priority
        self.gate = WeightedGate(capacity: max(1, concurrency))
    }

    /// Loads `requests` and reports each one as it ends.
    ///
    /// The stream has one element for each request and then ends. It ends early, without elements
    /// for those that are left, after ``cancelAll()``. When its reader is cancelled or goes away, the
    /// loads that are left are cancelled.
    public func prefetch(_ requests: [ImageRequest]) -> AsyncStream<PrefetchProgress> {
        let (stream, continuation) = AsyncStream.makeStream(of: PrefetchProgress.self)
        let list = PrefetchList(
            requests: requests,
            loader: self.loader,
            destination: self.destination,
            concurrency: self.concurrency,
            priority: self.priority,
            gate: self.gate
        )
        let task = self.lists.run("prefetch") {
            await list.load { continuation.yield($0) }
            continuation.finish()
        }
        continuation.onTermination = { _ in
            task.cancel()
            // Owns the task; until now the reader may have held nothing else of it.
            _ = self
        }
        return stream
    }

    // MARK: Control

    /// Begins no load until ``resume()``; those under way go on.
    public func pause() {
        self.gate.suspend()
    }

    /// Goes on after ``pause()``.
    public func resume() {
        self.gate.resume()
    }

    /// Whether no load begins.
    public var isPaused: Bool { self.gate.isSuspended }

    /// The loads that are under way.
    public var loadCount: Int { self.gate.usedWeight }

    /// The loads that would begin next, and wait for their turn.
    public var waiterCount: Int { self.gate.waiterCount }

    /// Ends all lists and the loads that are under way; the streams end.
    public func cancelAll() {
        self.lists.cancelAll()
    }
}
