// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FleetSimulation

@Suite struct SimulationTests {
    /// A fleet in which nothing takes time, so that no two loads overlap.
    private static let instant: FleetSettings = {
        var settings = FleetSettings()
        settings.sharedRoundTrip = 0
        settings.origin = LogNormal(median: 0, spread: 0)
        settings.renderTime = 0
        settings.lifetime = .infinity
        settings.localSourceBytes = 0
        return settings
    }()

    /// Sources of 100 bytes with two results of 10 bytes each.
    private static func catalogue(sources: Int) -> Catalogue {
        Catalogue(
            sourceCount: sources,
            sources: (0..<2 * sources).map { $0 / 2 },
            bytes: [Int](repeating: 100, count: sources) + [Int](repeating: 10, count: 2 * sources)
        )
    }

    private static func counts(_ settings: FleetSettings, _ catalogue: Catalogue, _ requests: [Request]) -> FleetCounts
    {
        var simulation = Simulation(settings, catalogue: catalogue, windows: [0..<Double.infinity])
        return simulation.run(requests.makeIterator()).windows[0]
    }

    private static func traffic(sources: Int, rate: Double, seconds: Double, seed: UInt64) -> SyntheticTraffic {
        SyntheticTraffic(
            popularity: WeightedSampler(weights: Zipf(exponent: 0.8, count: sources).weights),
            sourceCount: sources,
            sizes: [2, 1],
            rate: rate,
            seconds: seconds,
            seed: seed
        )
    }

    // MARK: Against other computations

    @Test(arguments: [40, 200, 1_000], [0.7, 20, .infinity])
    func `a node without latencies has the counts of a plain loop over the requests`(entries: Int, lifetime: Double) {
        let catalogue = Self.catalogue(sources: 300)
        let requests = Array(IteratorSequence(Self.traffic(sources: 300, rate: 100, seconds: 30, seed: 4)))
        // The newest use last: a result, and when it expires.
        var list: [(result: Int, expiry: Double)] = []
        var hits = 0
        for request in requests {
            let index = list.firstIndex { $0.result == request.result }
            let entry = index.map { list.remove(at: $0) }
            if let entry, entry.expiry > request.time {
                hits += 1
                list.append(entry)
            } else {
                list.append((request.result, request.time + lifetime))
                if list.count > entries { list.removeFirst() }
            }
        }
        var settings = Self.instant
        settings.nodeCount = 1
        settings.sharing = .nothing
        settings.localResultBytes = 10 * entries
        settings.lifetime = lifetime
        let counts = Self.counts(settings, catalogue, requests)
        #expect(counts.requests == requests.count)
        #expect(counts.localHits == hits)
        #expect(counts.renders == requests.count - hits)
        #expect(counts.originRequests == requests.count - hits)
        #expect(counts.sharedRequests == 0)
    }

    @Test func `a node that caches sources requests each source once`() {
        let requests = Array(IteratorSequence(Self.traffic(sources: 300, rate: 100, seconds: 30, seed: 4)))
        var settings = Self.instant
        settings.nodeCount = 1
        settings.sharing = .nothing
        settings.localSourceBytes = 1 << 30
        let counts = Self.counts(settings, Self.catalogue(sources: 300), requests)
        #expect(counts.originRequests == Set(requests.map { ($0.result - 300) / 2 }).count)
        #expect(counts.renders == Set(requests.map(\.result)).count)
    }

    @Test(arguments: [FleetSettings.Sharing.cache, .cacheAndLocks], Balancer.Rule.allCases)
    func `a fleet without latencies loads each source once`(sharing: FleetSettings.Sharing, rule: Balancer.Rule) {
        let requests = Array(IteratorSequence(Self.traffic(sources: 300, rate: 100, seconds: 30, seed: 8)))
        var settings = Self.instant
        settings.nodeCount = 7
        settings.sharing = sharing
        settings.balancing = rule
        let counts = Self.counts(settings, Self.catalogue(sources: 300), requests)
        #expect(counts.originRequests == Set(requests.map { ($0.result - 300) / 2 }).count)
        #expect(counts.renders == Set(requests.map(\.result)).count)
        #expect(counts.duplicates == 0)
        #expect(counts.stores == counts.originRequests + counts.renders)
        #expect(counts.localHits + counts.lookUps - counts.renders == counts.requests)
    }

    @Test func `nodes that share nothing load as often as if each were alone`() {
        let catalogue = Self.catalogue(sources: 300)
        var requests = Array(IteratorSequence(Self.traffic(sources: 300, rate: 100, seconds: 30, seed: 8)))
        for index in requests.indices { requests[index].node = index * 7 % 5 }
        var settings = Self.instant
        settings.sharing = .nothing
        settings.localResultBytes = 1_000
        settings.nodeCount = 5
        let together = Self.counts(settings, catalogue, requests)
        let alone = (0..<5).map { node in Self.counts(settings, catalogue, requests.filter { $0.node == node }) }
        #expect(together.originRequests == alone.reduce(0) { $0 + $1.originRequests })
        #expect(together.localHits == alone.reduce(0) { $0 + $1.localHits })
    }

    // MARK: Requests at the same time

    /// `perNode` requests for one result at each of four nodes, all within a millisecond.
    private static func burst(perNode: Int) -> [Request] {
        (0..<4 * perNode).map { Request(time: Double($0) * 0.001 / Double(4 * perNode), result: 1, node: $0 % 4) }
    }

    private static let slow: FleetSettings = {
        var settings = FleetSettings()
        settings.nodeCount = 4
        settings.origin = LogNormal(median: 1, spread: 0)
        return settings
    }()

    @Test func `each node joins its own requests, and the lock joins the nodes`() {
        var settings = Self.slow
        settings.sharing = .nothing
        var counts = Self.counts(settings, Self.catalogue(sources: 1), Self.burst(perNode: 25))
        #expect(counts.joins == 96)
        #expect(counts.originRequests == 4)
        #expect(counts.duplicates == 3)
        #expect(counts.mostAtOnce == 4)
        settings.sharing = .cache
        counts = Self.counts(settings, Self.catalogue(sources: 1), Self.burst(perNode: 25))
        #expect(counts.originRequests == 4)
        #expect(counts.renders == 4)
        settings.sharing = .cacheAndLocks
        counts = Self.counts(settings, Self.catalogue(sources: 1), Self.burst(perNode: 25))
        #expect(counts.joins == 96)
        #expect(counts.originRequests == 1)
        #expect(counts.renders == 1)
        #expect(counts.duplicates == 0)
        // Four nodes look the result up, one of them its source, and three the result again.
        #expect(counts.lookUps == 8)
        #expect(counts.sharedHits == 3)
        #expect(counts.lockRequests == 5)
        #expect(counts.stores == 2)
        #expect(counts.longWaits == 0)
    }

    @Test func `two sizes of a source at two nodes share one request to the origin`() {
        let requests = [Request(time: 0, result: 1, node: 0), Request(time: 0, result: 2, node: 1)]
        let counts = Self.counts(Self.slow, Self.catalogue(sources: 1), requests)
        #expect(counts.originRequests == 1)
        #expect(counts.renders == 2)
    }

    @Test func `two sizes of a source at one node share one request to the origin without a shared tier`() {
        var settings = Self.slow
        settings.sharing = .nothing
        let requests = [Request(time: 0, result: 1, node: 0), Request(time: 0, result: 2, node: 0)]
        let counts = Self.counts(settings, Self.catalogue(sources: 1), requests)
        #expect(counts.originRequests == 1)
        #expect(counts.renders == 2)
    }

    @Test func `a node that waits too long loads without the lock`() {
        var settings = Self.slow
        settings.longestWait = 0.5
        let counts = Self.counts(settings, Self.catalogue(sources: 1), Self.burst(perNode: 1))
        // Three nodes stop waiting for the result. All of them then wait for the source, and stop again.
        #expect(counts.longWaits == 6)
        #expect(counts.originRequests == 4)
    }

    // MARK: Lifetimes

    @Test func `a source is requested again when it is no longer fresh`() {
        var settings = Self.instant
        settings.nodeCount = 2
        settings.lifetime = 10
        let requests = [0.0, 5, 9.9, 10, 12, 25].enumerated().map { Request(time: $1, result: 1, node: $0 % 2) }
        let counts = Self.counts(settings, Self.catalogue(sources: 1), requests)
        #expect(counts.originRequests == 3)
        #expect(counts.duplicates == 0)
    }

    @Test func `a node asks the shared tier again after the local lifetime`() {
        var settings = Self.instant
        settings.nodeCount = 1
        settings.localLifetime = 2
        let requests = [0.0, 1, 1.9, 2, 3, 4].map { Request(time: $0, result: 1, node: 0) }
        let counts = Self.counts(settings, Self.catalogue(sources: 1), requests)
        #expect(counts.localHits == 3)
        #expect(counts.sharedHits == 2)
        #expect(counts.originRequests == 1)
    }

    @Test func `a result of a source in the local cache is fresh as long as the source`() {
        var settings = Self.instant
        settings.nodeCount = 2
        settings.lifetime = 100
        settings.localLifetime = 2
        settings.localSourceBytes = 1_000
        // The first node makes a second size, which the other one finds in the shared tier.
        let requests = [
            Request(time: 0, result: 1, node: 0), Request(time: 1, result: 2, node: 0),
            Request(time: 90, result: 2, node: 1),
        ]
        let counts = Self.counts(settings, Self.catalogue(sources: 1), requests)
        #expect(counts.renders == 2)
        #expect(counts.sharedHits == 1)
    }

    @Test func `windows split the counts`() {
        let requests = [0.0, 1, 2, 3].map { Request(time: $0, result: 1, node: 0) }
        var simulation = Simulation(Self.instant, catalogue: Self.catalogue(sources: 1), windows: [0..<1, 2..<3])
        let outcome = simulation.run(requests.makeIterator())
        #expect(outcome.windows.map(\.requests) == [1, 1])
        #expect(outcome.windows.map(\.originRequests) == [1, 0])
        #expect(outcome.originBySecond == [1])
        #expect(outcome.mostSharedBytes == 110)
    }

    // MARK: Losses

    private static func losing(_ nodes: Range<Int>, at time: Double, for duration: Double) -> FleetSettings {
        var settings = Self.slow
        settings.losses = [FleetSettings.Loss(nodes: nodes, time: time, duration: duration)]
        return settings
    }

    @Test func `a lost node comes back with empty caches`() {
        var settings = Self.losing(0..<1, at: 10, for: 5)
        settings.nodeCount = 1
        settings.sharing = .nothing
        let requests = [0.0, 5, 12, 20, 30].map { Request(time: $0, result: 1) }
        let counts = Self.counts(settings, Self.catalogue(sources: 1), requests)
        #expect(counts.localHits == 2)
        #expect(counts.lost == 1)
        #expect(counts.originRequests == 2)
        #expect(counts.duplicates == 1)
    }

    @Test func `the requests of a lost owner of a lock are lost, and the others get the lock when its lease ends`() {
        var settings = Self.losing(0..<1, at: 0.5, for: 60)
        settings.lease = 5
        let counts = Self.counts(settings, Self.catalogue(sources: 1), Self.burst(perNode: 2))
        #expect(counts.lost == 2)
        #expect(counts.originRequests == 2)
        #expect(counts.duplicates == 1)
        #expect(counts.mostAtOnce == 1)
        #expect(counts.renders == 1)
        #expect(counts.longWaits == 0)
    }

    @Test func `a lease that is longer than the wait lets each node load`() {
        var settings = Self.losing(0..<1, at: 0.5, for: 60)
        settings.lease = 15
        settings.longestWait = 10
        let counts = Self.counts(settings, Self.catalogue(sources: 1), Self.burst(perNode: 1))
        // The lost owner had the locks of the result and of its source, for which the others wait one after the other.
        #expect(counts.longWaits == 3)
        #expect(counts.renders == 3)
        #expect(counts.originRequests == 2)
    }

    // MARK: Determinism

    @Test(arguments: FleetSettings.Sharing.allCases, Balancer.Rule.allCases)
    func `a seed decides the outcome`(sharing: FleetSettings.Sharing, rule: Balancer.Rule) {
        func outcome(seed: UInt64) -> Simulation.Outcome {
            var settings = Self.losing(0..<2, at: 20, for: 5)
            settings.nodeCount = 6
            settings.sharing = sharing
            settings.balancing = rule
            settings.lifetime = 10
            settings.localResultBytes = 1_000
            settings.sharedBytes = 20_000
            settings.origin = LogNormal(median: 0.1, spread: 0.5)
            settings.seed = seed
            let catalogue = Self.catalogue(sources: 500)
            var simulation = Simulation(settings, catalogue: catalogue, windows: [0..<10, 10..<40])
            return simulation.run(Self.traffic(sources: 500, rate: 300, seconds: 40, seed: seed))
        }
        let once = outcome(seed: 3)
        #expect(once == outcome(seed: 3))
        #expect(once != outcome(seed: 4))
    }

    @Test(arguments: FleetSettings.Sharing.allCases, Balancer.Rule.allCases)
    func `every request is answered from a cache, joins a load, starts one, or is lost`(
        sharing: FleetSettings.Sharing,
        rule: Balancer.Rule
    ) {
        var settings = Self.losing(1..<3, at: 5, for: 5)
        settings.nodeCount = 5
        settings.sharing = sharing
        settings.balancing = rule
        let traffic = Array(IteratorSequence(Self.traffic(sources: 500, rate: 300, seconds: 20, seed: 2)))
        let counts = Self.counts(settings, Self.catalogue(sources: 500), traffic)
        #expect(counts.requests == traffic.count)
        #expect(counts.requestsByNode.reduce(0, +) == counts.requests)
        #expect(counts.originRequests >= counts.duplicates)
        if sharing == .cacheAndLocks, rule != .roundRobin { #expect(counts.mostAtOnce <= 3) }
        if rule == .sourceHash, sharing == .nothing { #expect(counts.mostAtOnce <= 3) }
    }
}
