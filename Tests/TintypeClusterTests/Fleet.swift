// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeRedis
import TintypeTestSupport

@testable import TintypeCluster

/// Loaders that share a Redis as the processes of a fleet do: each has a memory and a cluster of its own.
struct Fleet {
    struct Node {
        let cluster: Cluster
        let loader: LoaderActor
        let events: EventRecord

        /// Returns the thumbnail of a source as JPEG.
        func thumbnail(_ url: URL, side: Int = 20) async throws -> EncodedResponse {
            var request = ImageRequest(url: url)
            request.rendering.thumbnail = .fit(width: side, height: side)
            return try await self.loader.encoded(request, as: .jpeg())
        }
    }

    let origin: FaultyOrigin
    let nodes: [Node]
    let clock = FleetClock()

    /// Creates a fleet of three nodes.
    init(
        _ redis: RedisServer,
        _ responses: [String: FaultyResponse],
        change: (inout Cluster.Configuration, inout LoaderActor.Configuration) -> Void = { _, _ in }
    ) throws {
        self.origin = try FaultyOrigin(responses)
        let clock = self.clock
        self.nodes = try (0..<3).map { index in
            let events = EventRecord()
            var settings = try Cluster.Configuration(redis)
            settings.nodeName = "node-\(index)"
            settings.changePeriod = .milliseconds(20)
            settings.report = { events.append($0) }
            var configuration = LoaderActor.Configuration()
            configuration.disk = nil
            configuration.cachePolicy = .honorFreshness
            configuration.isSharedCache = true
            configuration.failureLifetimes = .none
            configuration.downloads.retryPolicy = .never
            configuration.now = { clock.now }
            configuration.memory.now = { clock.now }
            change(&settings, &configuration)
            let cluster = Cluster(settings)
            configuration.tiers = [cluster.tier]
            configuration.fetcherWrapper = { cluster.fetcher(over: $0) }
            let loader = LoaderActor(configuration: configuration)
            cluster.join(with: loader)
            return Node(cluster: cluster, loader: loader, events: events)
        }
    }

    /// Runs `body` with a fleet, and ends it.
    static func run<Result>(
        _ redis: RedisServer,
        _ responses: [String: FaultyResponse],
        change: (inout Cluster.Configuration, inout LoaderActor.Configuration) -> Void = { _, _ in },
        _ body: (Fleet) async throws -> Result
    ) async throws -> Result {
        let fleet = try Fleet(redis, responses, change: change)
        do {
            let result = try await body(fleet)
            await fleet.shutdown()
            return result
        } catch {
            await fleet.shutdown()
            throw error
        }
    }

    func shutdown() async {
        for node in self.nodes {
            await node.loader.shutdown()
            await node.cluster.shutdown()
        }
    }

    /// Runs `body` in `count` tasks on each node, and returns the results.
    func onAllNodes<Value: Sendable>(
        _ count: Int,
        _ body: @escaping @Sendable (Node, Int) async throws -> Value
    ) async throws -> [Value] {
        try await withThrowingTaskGroup(of: Value.self) { group in
            for node in self.nodes {
                for index in 0..<count { group.addTask { try await body(node, index) } }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// The number of encodes on all nodes.
    var encodeCount: Int {
        get async {
            var count = 0
            for node in self.nodes { count += Int(await node.loader.statistics().encode.count) }
            return count
        }
    }

    var statistics: [ClusterStatistics] { self.nodes.map(\.cluster.statistics) }
}

/// The events of a cluster in their order.
final class EventRecord: Sendable {
    private let state = Locked<[Cluster.Configuration.Event]>([])

    var events: [Cluster.Configuration.Event] { self.state.withLock { $0 } }

    func append(_ event: Cluster.Configuration.Event) {
        self.state.withLock { $0.append(event) }
    }
}

/// A clock that the test moves.
final class FleetClock: Sendable {
    private let offset = Locked(0.0)

    var now: Date { Date().addingTimeInterval(self.offset.withLock { $0 }) }

    func advance(by seconds: Double) {
        self.offset.withLock { $0 += seconds }
    }
}

/// Returns a PNG of one colour.
func makePNG(_ value: UInt8 = 128) throws -> [UInt8] {
    let pixels = try PixelBuffer.make(.rgb8, width: 64, height: 64) { _, _, _ in value }
    return Array(try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions()))
}

extension Cluster.Configuration {
    /// Creates settings whose limits a busy machine keeps.
    init(_ redis: RedisServer) throws {
        self.init(redis: try RedisConfiguration(url: "redis://127.0.0.1:\(redis.port)"))
        self.redis.commandTimeBudget = .seconds(60)
        // If a lock is renewed late and has ended, its owner seems to have given it up.
        self.leaseLifetime = .seconds(600)
    }
}
