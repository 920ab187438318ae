import TintypeCaching
import TintypeConcurrency
public import TintypeDownloading

/// Brings images into a cache before they are asked for.
///
/// A prefetcher works on several lists at once; its limits hold for all of them together. A list
/// lives as long as its reader, which keeps the prefetcher alive.
public final class Prefetcher: Sendable {
    /// Where prefetched images go.
    public enum Destination: Sendable, Hashable {
        /// Encoded bytes on disk; nothing is decoded.
        case disk
        /// Decoded images in memory, and their bytes on disk.
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
    ///   - loader: Loads the images; its caches are filled.
    ///   - destination: Where the images go; default disk.
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

/// How far the prefetch of a list is.
public struct PrefetchProgress: Sendable {
    /// The image that ended last.
    public let latest: PrefetchResult
    /// The images of the list that have ended, failed ones among them.
    public let completedCount: Int
    /// The images of the list that failed.
    public let failedCount: Int
    /// The images of the list.
    public let totalCount: Int
    /// The encoded bytes of the images that came over the network.
    public let receivedBytes: Int64

    /// Whether this is the last one.
    public var isFinished: Bool { self.completedCount == self.totalCount }
}

/// How the prefetch of one image ended.
public struct PrefetchResult: Sendable {
    /// What was loaded.
    public struct Loaded: Sendable, Hashable {
        /// Where it came from: not the network when it was cached already.
        public let source: LoadSource
        /// The encoded bytes.
        public let byteCount: Int
    }

    /// What was asked for.
    public let request: ImageRequest
    /// What came of it; the error is a `LoadError` or a `CancellationError`.
    public let outcome: Result<Loaded, any Error>
}

/// The prefetch of one list.
private struct PrefetchList: Sendable {
    let requests: [ImageRequest]
    let loader: LoaderActor
    let destination: Prefetcher.Destination
    let concurrency: Int
    let priority: DownloadPriority
    /// Shared with the prefetcher's other lists.
    let gate: WeightedGate

    /// Loads the images and reports each one as it ends; after a cancellation, no more.
    func load(report: (PrefetchProgress) -> Void) async {
        await withTaskGroup(of: PrefetchResult?.self) { group in
            var rest = self.requests.makeIterator()
            var counts = (completed: 0, failed: 0, bytes: Int64(0))
            // One begins as another ends, so that a long list costs no task for each request.
            for _ in 0..<self.concurrency {
                guard let request = rest.next() else { break }
                group.addTask { await self.result(of: request) }
            }
            while let result = await group.next() {
                guard let result, !Task.isCancelled else { continue }
                counts.completed += 1
                switch result.outcome {
                case .failure: counts.failed += 1
                case .success(let loaded) where loaded.source == .network: counts.bytes += Int64(loaded.byteCount)
                case .success: break
                }
                report(
                    PrefetchProgress(
                        latest: result,
                        completedCount: counts.completed,
                        failedCount: counts.failed,
                        totalCount: self.requests.count,
                        receivedBytes: counts.bytes
                    )
                )
                if let request = rest.next() { group.addTask { await self.result(of: request) } }
            }
        }
    }

    /// How the load of `request` ends; `nil` when it was cancelled before it began.
    private func result(of request: ImageRequest) async -> PrefetchResult? {
        try? await self.gate.withWeight(1) {
            let outcome: Result<PrefetchResult.Loaded, any Error>
            do { outcome = .success(try await self.load(request)) } catch { outcome = .failure(error) }
            return PrefetchResult(request: request, outcome: outcome)
        }
    }

    private func load(_ request: ImageRequest) async throws -> PrefetchResult.Loaded {
        let request = self.prepared(request)
        switch self.destination {
        case .disk: return try await self.store(request)
        case .memory:
            let response = try await self.loader.response(for: request)
            return .init(source: response.source, byteCount: response.metadata.byteCount ?? 0)
        }
    }

    /// The request as it is loaded ahead of time, and its alternatives: no fallback stands for what is not there.
    private func prepared(_ request: ImageRequest) -> ImageRequest {
        var request = request
        request.options.insert(.waitForStore)
        request.priority = self.priority
        request.fallback = nil
        request.alternatives = request.alternatives.map { self.prepared($0) }
        return request
    }

    /// Stores the bytes of the first source that gives any.
    private func store(_ request: ImageRequest) async throws -> PrefetchResult.Loaded {
        let request = try await self.loader.admitted(request)
        return try await AlternativeLoad.first(of: request) { source, isFirst in
            isFirst ? try await self.storeAlone(source) : try await self.store(source)
        }.value
    }

    private func storeAlone(_ request: ImageRequest) async throws -> PrefetchResult.Loaded {
        let response = try await self.loader.dataResponse(forAdmitted: request)
        if let error = response.storeError { throw error }
        guard response.metadata.formatName != nil else {
            throw LoadError(
                code: .notAnImage,
                message: "\(request.displayURL) is not a picture, so it was not stored; check the URL."
            )
        }
        // What is a file already needs no copy.
        if response.source == .network {
            let store = self.loader.services.store
            try await store.checkStored(response.metadata, mayBeKept: response.mayBeKept, of: request)
        }
        return .init(source: response.source, byteCount: response.data.count)
    }
}
