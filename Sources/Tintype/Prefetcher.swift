// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeConcurrency
public import TintypeDownloading
import TintypeRequests

/// Loads images into a cache before they are needed.
///
/// A prefetcher works on several lists at once, and its limits apply to all of them together. A list lives as long as
/// its reader, and keeps the prefetcher alive.
public final class Prefetcher: Sendable {
    /// The cache tiers that prefetched images fill.
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
    /// ```swift
    /// let prefetcher = Prefetcher(loader: loader, destination: .memory, concurrency: 8)
    /// ```
    ///
    /// - Parameters:
    ///   - loader: The loader whose caches the prefetcher fills.
    ///   - destination: The tiers to fill; default disk.
    ///   - concurrency: The number of images to load at once, at least 1; default 3.
    ///   - priority: The priority of the downloads, instead of that of the requests; default low, so that loads for which
    ///     a user waits go first.
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
    /// The stream has one element for each request and then ends. After ``cancelAll()`` it ends early, without elements
    /// for the remaining requests. If its reader is cancelled or goes away, the prefetcher cancels the remaining loads.
    ///
    /// ```swift
    /// for await progress in Prefetcher(loader: loader).prefetch(requests) {
    ///     print(progress.completedCount, progress.failedCount, progress.totalCount)
    /// }
    /// ```
    public func prefetch(_ requests: [ImageRequest]) -> AsyncStream<PrefetchProgress> {
        let (stream, continuation) = AsyncStream.makeStream(of: PrefetchProgress.self)
        // The task retains the prefetcher until the list ends.
        let task = self.lists.run("prefetch") {
            await self.load(requests) { continuation.yield($0) }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    // MARK: Control

    /// Starts no more loads until ``resume()``.
    ///
    /// Loads under way continue.
    ///
    /// ```swift
    /// let prefetcher = Prefetcher(loader: loader)
    /// prefetcher.pause()
    /// print(prefetcher.isPaused)  // true
    /// ```
    public func pause() {
        self.gate.suspend()
    }

    /// Continues after ``pause()``.
    ///
    /// ```swift
    /// let prefetcher = Prefetcher(loader: loader)
    /// prefetcher.pause()
    /// prefetcher.resume()
    /// ```
    public func resume() {
        self.gate.resume()
    }

    /// Whether the prefetcher is paused.
    public var isPaused: Bool { self.gate.isSuspended }

    /// The number of loads under way.
    public var loadCount: Int { self.gate.usedWeight }

    /// The number of loads that wait for their turn.
    public var waiterCount: Int { self.gate.waiterCount }

    /// Cancels all lists and loads; the streams end.
    ///
    /// ```swift
    /// let prefetcher = Prefetcher(loader: loader)
    /// prefetcher.cancelAll()
    /// ```
    public func cancelAll() {
        self.lists.cancelAll()
    }

    // MARK: Loading

    /// Loads the images and reports each one as it ends, unless the task is cancelled.
    private func load(_ requests: [ImageRequest], report: (PrefetchProgress) -> Void) async {
        await withTaskGroup(of: PrefetchResult?.self) { group in
            var rest = requests.makeIterator()
            var counts = (completed: 0, failed: 0, bytes: Int64(0))
            // Start a load when another one ends, so that a long list does not have a task for each request.
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
                        totalCount: requests.count,
                        receivedBytes: counts.bytes
                    )
                )
                if let request = rest.next() { group.addTask { await self.result(of: request) } }
            }
        }
    }

    /// Returns the result of the load of `request`; `nil` if it was cancelled before it began.
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

    /// Returns the request to prefetch, with its alternatives, without its fallback.
    private func prepared(_ request: ImageRequest) -> ImageRequest {
        var request = request
        request.options.insert(.waitForStore)
        request.priority = self.priority
        request.fallback = nil
        request.alternatives = request.alternatives.map { self.prepared($0) }
        return request
    }

    /// Stores the bytes of the first source that has any.
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
                message: "\(request.displayURL) is not an image, so it was not stored; check the URL."
            )
        }
        // A file needs no copy on disk.
        if response.source == .network {
            let store = self.loader.services.store
            try await store.checkStored(response.metadata, mayBeKept: response.mayBeKept, of: request)
        }
        return .init(source: response.source, byteCount: response.data.count)
    }
}

/// The progress of the prefetch of a list.
public struct PrefetchProgress: Sendable {
    /// The image that ended last.
    public let latest: PrefetchResult
    /// The number of images that have ended, including failed ones.
    public let completedCount: Int
    /// The number of images that failed.
    public let failedCount: Int
    /// The number of images in the list.
    public let totalCount: Int
    /// The number of encoded bytes that came over the network.
    public let receivedBytes: Int64

    /// Whether this is the last one.
    public var isFinished: Bool { self.completedCount == self.totalCount }
}

/// The result of the prefetch of one image.
public struct PrefetchResult: Sendable {
    /// A loaded image.
    public struct Loaded: Sendable, Hashable {
        /// The tier or origin of the image: not the network if it was cached.
        public let source: LoadSource
        /// The number of encoded bytes.
        public let byteCount: Int
    }

    /// The request.
    public let request: ImageRequest
    /// The result; the error is a `LoadError` or a `CancellationError`.
    public let outcome: Result<Loaded, any Error>
}
