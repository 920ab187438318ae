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
        /// What is being downloaded for them; loads with different options ask for different things.
        var downloads: [UInt64: DownloadRequest] = [:]

        var priority: DownloadPriority? {
            self.waiters.lastIndex { $0 > 0 }.flatMap { DownloadPriority(rawValue: $0) }
        }

        var isOver: Bool { self.priority == nil && self.downloads.isEmpty }
    }

    private struct State {
        var sources: [CacheKey: Source] = [:]
        var lastID: UInt64 = 0
    }

    private let state = Locked(State())
    private let downloads: DownloadActor

    init(downloads: DownloadActor) {
        self.downloads = downloads
    }

    /// The number of sources that somebody waits for.
    var count: Int { self.state.withLock { $0.sources.count } }

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

    /// Runs the download of `source`, which asks how urgent it is when it begins.
    func downloading<Result>(
        _ request: DownloadRequest,
        for source: CacheKey,
        _ download: (_ priority: @escaping @Sendable () -> DownloadPriority) async throws -> Result
    ) async rethrows -> Result {
        let id = self.state.withLock { state -> UInt64 in
            state.lastID += 1
            var entry = state.sources[source] ?? Source()
            entry.downloads[state.lastID] = request
            state.sources[source] = entry
            return state.lastID
        }
        defer {
            self.state.withLock { state in
                state.sources[source]?.downloads[id] = nil
                if state.sources[source]?.isOver ?? false { state.sources[source] = nil }
            }
        }
        return try await download { self.priority(of: source) ?? .normal }
    }

    private func change(_ key: CacheKey, by count: Int, _ priority: DownloadPriority) async {
        let requests = self.state.withLock { state -> [DownloadRequest] in
            var source = state.sources[key] ?? Source()
            let old = source.priority
            source.waiters[priority.rawValue] += count
            state.sources[key] = source.isOver ? nil : source
            guard let urgent = source.priority, urgent != old else { return [] }
            return Array(source.downloads.values)
        }
        // Asked for again there: two changes may arrive in another order than they were made in.
        for request in requests {
            await self.downloads.updatePriority(of: request) { self.priority(of: key) ?? priority }
        }
    }

    private func priority(of source: CacheKey) -> DownloadPriority? {
        self.state.withLock { $0.sources[source]?.priority }
    }
}
