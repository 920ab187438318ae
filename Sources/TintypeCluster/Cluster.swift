// SPDX-License-Identifier: Apache-2.0

public import Tintype
import TintypeConcurrency
import TintypeRedis

/// A fleet of loaders that act as one: they share a cache in Redis, and make each image once.
///
/// Each process has one cluster, whose parts are a byte tier and a fetcher:
///
/// ```swift
/// let cluster = Cluster(Cluster.Configuration(redis: try RedisConfiguration(url: "redis://10.0.0.5")))
/// var configuration = LoaderActor.Configuration()
/// configuration.tiers = [cluster.tier]
/// configuration.fetcherWrapper = { cluster.fetcher(over: $0) }
/// let loader = LoaderActor(configuration: configuration)
/// cluster.join(with: loader.cache)
/// ```
///
/// A cluster never fails a load. Without Redis each process works alone, and the cluster tries Redis again by itself.
public final class Cluster: Sendable {
    private let store: SharedStore
    private let leases: Leases
    private let changes: ChangeLog
    private let beats: Heartbeat
    /// The byte tier in Redis.
    public var tier: any ByteTier { self.sharedTier }
    private let sharedTier: SharedTier
    /// The caches of this process.
    private let caches = Locked<[WeakCache]>([])

    private struct WeakCache: Sendable {
        weak let cache: CacheActor?
    }

    /// Creates a cluster; connects at the first call.
    ///
    /// ```swift
    /// let cluster = Cluster(Cluster.Configuration(redis: try RedisConfiguration(url: "redis://10.0.0.5")))
    /// ```
    public init(_ configuration: Configuration) {
        self.store = SharedStore(configuration)
        self.leases = Leases(self.store)
        self.changes = ChangeLog(self.store)
        self.sharedTier = SharedTier(self.store, self.leases, self.changes)
        self.beats = Heartbeat(self.store, self.leases)
    }

    /// Takes part in the cluster with the cache of a loader, until ``shutdown()``.
    ///
    /// The memory and the disk of the cache lose the entries that other machines change, within
    /// ``Configuration/changePeriod``. The others see the counts of this process in ``status()``.
    ///
    /// ```swift
    /// cluster.join(with: loader.cache)
    /// ```
    public func join(with cache: CacheActor) {
        self.caches.withLock { $0.append(WeakCache(cache: cache)) }
        // The cache has the tier, which has the log of changes.
        self.changes.follow { [weak cache] root in
            // An error of the disk is in its statistics.
            try? await cache?.forgetFamily(of: root)
        }
        self.beats.begin()
    }

    /// Returns a fetcher that shares the failures and the revalidations of `base`.
    ///
    /// ```swift
    /// configuration.loader.fetcher = cluster.fetcher(over: downloads)
    /// ```
    public func fetcher(over base: any ImageFetching) -> any ImageFetching {
        SharedFetcher(base: base, store: self.store, leases: self.leases)
    }

    /// The counts of this process.
    public var statistics: ClusterStatistics {
        var statistics = self.store.statistics
        statistics.leases = self.leases.count
        return statistics
    }

    /// Removes all images whose origin gave them a tag, in `Cache-Tag` or `Surrogate-Key`, from all machines.
    ///
    /// ```swift
    /// let count = try await cluster.purge(tag: "article-17")
    /// ```
    ///
    /// - Returns: The number of sources.
    /// - Throws: ``CacheError`` if Redis fails.
    public func purge(tag: String) async throws -> Int {
        let families = try await self.sharedTier.families(tagged: tag)
        let caches = self.joinedCaches()
        for family in families {
            // The other machines read the removal in the log of changes.
            for cache in caches { try await cache.removeFamily(of: family) }
            if caches.isEmpty { _ = try await self.sharedTier.removeFamily(of: family) }
        }
        // Last: a purge that fails can be repeated.
        try await self.sharedTier.forget(tag: tag)
        return families.count
    }

    @inline(never)
    private func joinedCaches() -> [CacheActor] { self.caches.withLock { $0.compactMap(\.cache) } }

    /// Returns the state of the cluster: its processes, and the nodes of Redis.
    ///
    /// ```swift
    /// for process in try await cluster.status().processes { print(process.name, process.statistics.hits) }
    /// ```
    ///
    /// - Throws: ``CacheError`` if Redis fails.
    public func status() async throws -> ClusterStatus {
        ClusterStatus(processes: try await self.beats.processes(), redis: await self.store.redis.nodes())
    }

    /// Gives up the locks, and closes the connections.
    ///
    /// ```swift
    /// await loader.shutdown()
    /// await cluster.shutdown()
    /// ```
    public func shutdown() async {
        await self.changes.shutdown()
        await self.beats.shutdown()
        await self.leases.endAll()
        await self.store.redis.shutdown()
    }
}
