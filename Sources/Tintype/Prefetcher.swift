/// Brings pictures into a cache before they are asked for.
public struct Prefetcher: Sendable {
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

    /// Creates a prefetcher.
    ///
    /// - Parameters:
    ///   - loader: Loads the pictures; its caches are filled.
    ///   - destination: Where the pictures go; default disk.
    ///   - concurrency: How many are loaded at once, at least 1; default 3.
    public init(loader: LoaderActor, destination: Destination = .disk, concurrency: Int = 3) {
        self.loader = loader
        self.destination = destination
        self.concurrency = max(1, concurrency)
    }

    /// Loads `requests` and reports each one as it ends.
    ///
    /// The stream has one element for each request and then ends. When its reader is cancelled
    /// or goes away, the loads that are left are cancelled.
    public func prefetch(_ requests: [ImageRequest]) -> AsyncStream<PrefetchResult> {
        let (stream, continuation) = AsyncStream.makeStream(of: PrefetchResult.self)
        let task = Task(name: "prefetch") {
            await self.run(requests) { continuation.yield($0) }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    private func run(_ requests: [ImageRequest], report: @escaping @Sendable (PrefetchResult) -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            for (index, request) in requests.enumerated() {
                // One begins as another ends, so that a long list costs no task for each request.
                if index >= self.concurrency { await group.next() }
                // Nobody reads any more.
                guard !Task.isCancelled else { return }
                group.addTask {
                    let outcome = await self.outcome { try await self.load(request) }
                    report(PrefetchResult(request: request, outcome: outcome))
                }
            }
        }
    }

    private func load(_ request: ImageRequest) async throws -> PrefetchResult.Loaded {
        var request = request
        request.options.insert(.waitForStore)
        switch self.destination {
        case .disk:
            let response = try await self.loader.dataResponse(for: request)
            if let error = response.storeError { throw error }
            guard response.metadata.formatName != nil else {
                throw LoadError(
                    code: .notAnImage,
                    message: "\(request.displayURL) is not a picture, so it was not stored; check the URL."
                )
            }
            return .init(source: response.source, byteCount: response.data.count)
        case .memory:
            let response = try await self.loader.response(for: request)
            return .init(source: response.source, byteCount: response.metadata.byteCount ?? 0)
        }
    }

    private func outcome(
        _ load: () async throws -> PrefetchResult.Loaded
    ) async -> Result<PrefetchResult.Loaded, any Error> {
        do { return .success(try await load()) } catch { return .failure(error) }
    }
}

/// How the prefetch of one picture ended.
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
