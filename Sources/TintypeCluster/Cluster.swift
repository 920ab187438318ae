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
/// cluster.join(with: loader)
/// ```
///
/// A cluster never fails a load. Without Redis each process works alone, and the cluster tries Redis again by itself.
public final class Cluster: Sendable {
    private let store: SharedStore
    private let leases: Leases
    /// The entries that have changed.
    private let changes: ChangeLog
    /// The purges of the servers.
    private let purges: ChangeLog
    private let beats: Heartbeat
    /// The byte tier in Redis.
    public var tier: any ByteTier { self.sharedTier }
    private let sharedTier: SharedTier
    /// The loaders of this process.
    private let loaders = Locked<[WeakLoader]>([])
    /// Owns the repeated removals.
    private let owner = TaskOwner()

    private struct WeakLoader: Sendable {
        weak let loader: LoaderActor?
    }

    /// Creates a cluster; connects at the first call.
    ///
    /// ```swift
    /// let cluster = Cluster(Cluster.Configuration(redis: try RedisConfiguration(url: "redis://10.0.0.5")))
    /// ```
    public init(_ configuration: Configuration) {
        self.store = SharedStore(configuration)
        self.leases = Leases(self.store)
        self.changes = ChangeLog(self.store, "changes")
        self.purges = ChangeLog(self.store, "purges", keepsByAge: true)
        self.sharedTier = SharedTier(self.store, self.leases, self.changes)
        self.beats = Heartbeat(self.store, self.leases)
    }

    /// Takes part in the cluster with a loader, until ``shutdown()``.
    ///
    /// The memory and the disk of the loader lose the entries that other machines change, within
    /// ``Configuration/changePeriod``. The other machines see the counts of this process in ``status()``.
    ///
    /// ```swift
    /// cluster.join(with: loader)
    /// ```
    public func join(with loader: LoaderActor) {
        self.loaders.withLock { $0.append(WeakLoader(loader: loader)) }
        let node = self.store.configuration.nodeName
        // The loader has the tier, which has the log of changes.
        self.changes.follow { [weak loader] changes in
            // An error of the disk is in its statistics.
            guard let changes else {
                try? await loader?.forget(familyOf: nil)
                return
            }
            for change in changes where change.node != node {
                try? await loader?.forget(familyOf: CacheKey(change.text))
            }
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
    public var statistics: ClusterStatistics { self.store.statistics(self.leases) }

    /// Removes all images whose origin gave them a tag, in `Cache-Tag` or `Surrogate-Key`, from all machines.
    ///
    /// A machine that has not read of the removal yet may store an image of its older source. So the cluster removes the
    /// sources again after 2 and after 10 times the ``Configuration/changePeriod``, in the background.
    ///
    /// ```swift
    /// let count = try await cluster.purge(tag: "article-17")
    /// ```
    ///
    /// - Returns: The number of sources.
    /// - Throws: `CacheError` if Redis fails.
    public func purge(tag: String) async throws -> Int {
        var (count, cursor) = (0, SharedTier.startCursor)
        repeat {
            let (families, next) = try await self.sharedTier.families(tagged: tag, from: cursor)
            // Also if a removal fails.
            defer { self.removeAgain(families) }
            for family in families { try await self.remove(family) }
            // This comes last, so that a failed purge can be repeated.
            try await self.sharedTier.forget(families, tagged: tag)
            (count, cursor) = (count + families.count, next)
        } while cursor != SharedTier.startCursor
        return count
    }

    /// Removes families again: once all machines have read of the first removal, and once the stores that began before it
    /// have ended.
    private func removeAgain(_ families: [CacheKey]) {
        guard !families.isEmpty else { return }
        let period = self.store.configuration.changePeriod
        self.owner.run("repeated removal") { [weak self] in
            for pause in [period * 2, period * 8] {
                guard (try? await Task.sleep(for: pause)) != nil else { return }
                // A tier that fails here removes the family before its next change or look-up.
                for family in families where !Task.isCancelled { try? await self?.remove(family) }
            }
        }
    }

    /// Removes a family from all tiers; the other machines read of it in the log of changes.
    private func remove(_ family: CacheKey) async throws {
        let loaders = self.joinedLoaders()
        for loader in loaders { try await loader.removeFamily(of: family) }
        if loaders.isEmpty { _ = try await self.sharedTier.removeFamily(of: family) }
    }

    @inline(never)
    private func joinedLoaders() -> [LoaderActor] { self.loaders.withLock { $0.compactMap(\.loader) } }

    /// Announces a purge to all servers; returns its identifier, which is greater than all earlier ones.
    ///
    /// - Throws: ``CacheError`` if Redis fails.
    package func announce(purge text: String) async throws -> String { try await self.purges.append(text) }

    /// Calls `apply` with the purges so far and then with later ones; returns after the purges so far, or after a
    /// second without an answer from Redis.
    package func followPurges(
        _ apply: @escaping @Sendable ([(text: String, identifier: String)]) -> Void
    ) async {
        let applyAll: @Sendable ([Change]?) -> Void = { apply(($0 ?? []).map { ($0.text, $0.id) }) }
        var last = Change.start
        let end = ContinuousClock.now + .seconds(1)
        // The first connection may take longer than a command.
        while (try? await self.purges.apply(applyAll, after: &last, until: end)) == nil, .now < end, !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(50))
        }
        self.purges.follow(after: last, applyAll)
    }

    /// The most bytes of a tag; the cluster ignores longer ones.
    package static let longestTag = 256

    /// Returns the state of the cluster: its processes, and the nodes of Redis.
    ///
    /// ```swift
    /// for process in try await cluster.status().processes { print(process.name, process.statistics.hits) }
    /// ```
    ///
    /// - Throws: `CacheError` if Redis fails.
    public func status() async throws -> ClusterStatus {
        ClusterStatus(processes: try await Heartbeat.processes(self.store), redis: await self.store.redis.nodes())
    }

    /// Releases the locks, and closes the connections.
    ///
    /// ```swift
    /// await loader.shutdown()
    /// await cluster.shutdown()
    /// ```
    public func shutdown() async {
        self.owner.cancelAll()
        await self.owner.waitForAll()
        await self.changes.shutdown()
        await self.purges.shutdown()
        await self.beats.shutdown()
        await self.leases.endAll()
        await self.store.redis.shutdown()
    }
}
