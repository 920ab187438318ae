import TintypeCaching
import TintypeConcurrency
import TintypeDownloading

/// Makes the download of each source as urgent as the most urgent of those who wait for it.
///
/// Callers that share a load are one waiter to the downloader, so that it can't see them come and go.
final class LoadPriorities: Sendable {
    private struct Source {
        /// Those who wait, by priority.
        var waiters = [Int](repeating: 0, count: DownloadPriority.allCases.count)
        /// What is being downloaded for them, and as how urgent.
        var download: (request: DownloadRequest, priority: DownloadPriority)?

        var priority: DownloadPriority? {
            self.waiters.lastIndex { $0 > 0 }.flatMap { DownloadPriority(rawValue: $0) }
        }
    }

    private let sources = Locked<[CacheKey: Source]>([:])
    private let downloads: DownloadActor

    init(downloads: DownloadActor) {
        self.downloads = downloads
    }

    /// The number of sources that somebody waits for.
    var count: Int { self.sources.withLock { $0.count } }

    /// Runs the wait of one caller for `source`.
    func waiting<Result>(
        for source: CacheKey,
        priority: DownloadPriority,
        _ wait: () async throws -> Result
    ) async rethrows -> Result {
        await self.change(source, by: 1, priority)
        do {
            let result = try await wait()
            await self.change(source, by: -1, priority)
            return result
        } catch {
            await self.change(source, by: -1, priority)
            throw error
        }
    }

    /// Runs the download of `source`, and tells it how urgent it is at its start.
    func downloading<Result>(
        _ request: DownloadRequest,
        for source: CacheKey,
        _ download: (DownloadPriority) async throws -> Result
    ) async rethrows -> Result {
        let priority = self.sources.withLock { sources in
            let priority = sources[source]?.priority ?? .normal
            sources[source, default: Source()].download = (request, priority)
            return priority
        }
        defer {
            self.sources.withLock { sources in
                sources[source]?.download = nil
                if sources[source]?.priority == nil { sources[source] = nil }
            }
        }
        return try await download(priority)
    }

    private func change(_ key: CacheKey, by count: Int, _ priority: DownloadPriority) async {
        let changed = self.sources.withLock { sources -> (request: DownloadRequest, priority: DownloadPriority)? in
            var source = sources[key] ?? Source()
            source.waiters[priority.rawValue] += count
            defer { sources[key] = source.priority == nil && source.download == nil ? nil : source }
            guard let download = source.download, let urgent = source.priority, urgent != download.priority
            else { return nil }
            source.download?.priority = urgent
            return (download.request, urgent)
        }
        if let changed { await self.downloads.setPriority(changed.priority, for: changed.request) }
    }
}
