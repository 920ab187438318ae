import TintypeCaching
import TintypeConcurrency
import TintypeDownloading

/// The prefetch of one list.
struct PrefetchList: Sendable {
    let requests: [ImageRequest]
    let loader: LoaderActor
    let destination: Prefetcher.Destination
    let concurrency: Int
    let priority: DownloadPriority
    /// Shared with the prefetcher's other lists.
    let gate: WeightedGate

    /// Loads the pictures and reports each one as it ends; after a cancellation, no more.
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
        var request = request
        request.options.insert(.waitForStore)
        request.priority = self.priority
        switch self.destination {
        case .disk:
            return try await self.store(request)
        case .memory:
            let response = try await self.loader.response(for: request)
            return .init(source: response.source, byteCount: response.metadata.byteCount ?? 0)
        }
    }

    private func store(_ request: ImageRequest) async throws -> PrefetchResult.Loaded {
        let response = try await self.loader.dataResponse(for: request)
        if let error = response.storeError { throw error }
        guard response.metadata.formatName != nil else {
            throw LoadError(
                code: .notAnImage,
                message: "\(request.displayURL) is not a picture, so it was not stored; check the URL."
            )
        }
        // What is a file already needs no copy.
        let store = self.loader.services.store
        if response.source == .network, await !store.contains(response.metadata, of: request) {
            throw LoadError(
                code: .cacheFailed,
                message: "\(request.displayURL) is not on disk after its load; "
                    + "give the loader a disk tier and let the request store in it."
            )
        }
        return .init(source: response.source, byteCount: response.data.count)
    }
}
