// SPDX-License-Identifier: Apache-2.0

/// Plays the requests of clients against a fleet, event by event.
///
/// Everything is a value and a seed decides each random number, so a run gives the same counts each time.
struct Simulation {
    /// The outcome of a run.
    struct Outcome: Equatable, Sendable {
        /// The counts of each window.
        var windows: [FleetCounts]
        /// The requests to the origin in each second.
        var originBySecond: [Int]
        /// The most bytes that the shared tier contained.
        var mostSharedBytes: Int
        /// The entries that the shared tier evicted.
        var sharedEvictions: Int
    }

    private let settings: FleetSettings
    private let catalogue: Catalogue
    private let windows: [Range<Double>]
    private var outcome: Outcome
    /// The counts outside of all windows.
    private var uncounted: FleetCounts
    private var window: Int?

    private var now = 0.0
    private var events = EventQueue()
    private var generator: SeededGenerator
    private var balancer: Balancer
    private var nodes: [FleetNode]
    private var shared: any ItemCache
    private var locks = LockTable()
    private var flightCount = 0
    /// The requests for each source that the origin answers at the moment.
    private var atOrigin: [Int]
    /// The end of the lifetime of the last copy of each source.
    private var freshUntil: [Double]

    /// Creates a fleet with empty caches, and counts the given stretches of time apart from each other.
    init(_ settings: FleetSettings, catalogue: Catalogue, windows: [Range<Double>]) {
        let counts = FleetCounts(nodeCount: settings.nodeCount)
        self.settings = settings
        self.catalogue = catalogue
        self.windows = windows
        self.outcome = Outcome(
            windows: windows.map { _ in counts },
            originBySecond: [],
            mostSharedBytes: 0,
            sharedEvictions: 0
        )
        self.uncounted = counts
        self.generator = SeededGenerator(seed: settings.seed)
        self.balancer = Balancer(
            rule: settings.balancing,
            nodeCount: settings.nodeCount,
            itemCount: catalogue.itemCount
        )
        self.nodes = (0..<settings.nodeCount).map { _ in FleetNode(settings) }
        self.shared =
            switch settings.sharedEviction {
            case .leastRecentlyUsed: LeastRecentlyUsedCache(capacity: settings.sharedBytes)
            case .leastFrequentlyUsed:
                LeastFrequentlyUsedCache(capacity: settings.sharedBytes, seed: settings.seed &+ 2)
            }
        self.atOrigin = [Int](repeating: 0, count: catalogue.sourceCount)
        self.freshUntil = [Double](repeating: -.infinity, count: catalogue.sourceCount)
        for loss in settings.losses {
            for node in loss.nodes {
                self.events.add(Event(time: loss.time, kind: .nodeStops, node: node, generation: 0))
                self.events.add(Event(time: loss.time + loss.duration, kind: .nodeStarts, node: node, generation: 0))
            }
        }
    }

    /// Plays requests in the order of their times, and the events that follow from them.
    mutating func run(_ requests: some IteratorProtocol<Request>) -> Outcome {
        var requests = requests
        var request = requests.next()
        while true {
            if let eventTime = self.events.nextTime, eventTime <= request?.time ?? .infinity {
                guard let event = self.events.removeFirst() else { break }
                self.advance(to: event.time)
                self.handle(event)
            } else if let arrived = request {
                self.advance(to: arrived.time)
                self.receive(arrived)
                request = requests.next()
            } else {
                break
            }
        }
        self.outcome.sharedEvictions = self.shared.evictions
        return self.outcome
    }

    private mutating func advance(to time: Double) {
        self.now = time
        if let window, self.windows[window].contains(time) { return }
        self.window = self.windows.firstIndex { $0.contains(time) }
    }

    private mutating func count(_ change: (inout FleetCounts) -> Void) {
        if let window { change(&self.outcome.windows[window]) } else { change(&self.uncounted) }
    }

    private mutating func schedule(
        _ kind: Event.Kind,
        after delay: Double,
        at node: Int,
        item: Int,
        expiry: Double = 0,
        serial: Int = 0
    ) {
        self.events.add(
            Event(
                time: self.now + delay,
                kind: kind,
                node: node,
                generation: self.nodes[node].generation,
                item: item,
                expiry: expiry,
                serial: serial
            )
        )
    }

    // MARK: Requests

    private mutating func receive(_ request: Request) {
        let item = request.result
        self.count { $0.requests += 1 }
        let chosen = request.node ?? self.balancer.node(forResult: item, source: self.catalogue.source(of: item))
        guard let node = chosen, self.balancer.isAlive(node) else {
            self.count { $0.lost += 1 }
            return
        }
        self.count { $0.requestsByNode[node] += 1 }
        if self.nodes[node].results.expiry(of: item, at: self.now) != nil {
            self.count { $0.localHits += 1 }
        } else if self.nodes[node].flights[item] != nil {
            self.nodes[node].flights[item]?.requests += 1
            self.count { $0.joins += 1 }
        } else {
            self.startFlight(of: item, at: node)
            self.nodes[node].flights[item]?.requests += 1
        }
    }

    private mutating func startFlight(of item: Int, at node: Int) {
        self.flightCount += 1
        self.nodes[node].flights[item] = FleetNode.Flight(serial: self.flightCount)
        if self.settings.sharing == .nothing {
            self.load(item, at: node)
        } else {
            self.lookUp(item, at: node, after: 0)
        }
    }

    // MARK: The shared tier

    private mutating func lookUp(_ item: Int, at node: Int, after delay: Double) {
        self.count { $0.lookUps += 1 }
        self.schedule(.lookUpEnds, after: delay + self.settings.sharedRoundTrip, at: node, item: item)
    }

    /// Ends the flight if the shared tier has the item.
    private mutating func takeFromSharedTier(_ item: Int, at node: Int) -> Bool {
        guard let expiry = self.shared.expiry(of: item, at: self.now) else { return false }
        let bytes = self.catalogue.bytes[item]
        self.count {
            $0.sharedHits += 1
            $0.sharedBytes += bytes
        }
        self.endFlight(of: item, at: node, expiry: expiry)
        return true
    }

    private mutating func lookUpEnds(_ item: Int, at node: Int) {
        guard !self.takeFromSharedTier(item, at: node) else { return }
        if self.settings.sharing == .cacheAndLocks {
            self.count { $0.lockRequests += 1 }
            self.schedule(.lockAnswers, after: self.settings.sharedRoundTrip, at: node, item: item)
        } else {
            self.load(item, at: node)
        }
    }

    /// The request for a lock also returns the item if it has arrived since the look-up.
    private mutating func lockAnswers(_ item: Int, at node: Int) {
        guard !self.takeFromSharedTier(item, at: node) else { return }
        guard !self.locks.claim(item, for: self.claimant(node)) else {
            self.load(item, at: node)
            return
        }
        self.nodes[node].flights[item]?.phase = .waiting
        let serial = self.nodes[node].flights[item]?.serial ?? 0
        self.schedule(.waitEnds, after: self.settings.longestWait, at: node, item: item, serial: serial)
    }

    private mutating func waitEnds(_ event: Event) {
        guard let flight = self.nodes[event.node].flights[event.item] else { return }
        guard flight.serial == event.serial, flight.phase == .waiting else { return }
        self.count { $0.longWaits += 1 }
        self.nodes[event.node].flights[event.item]?.phase = .active
        self.load(event.item, at: event.node)
    }

    private mutating func storeEnds(_ event: Event) {
        self.shared.store(event.item, bytes: self.catalogue.bytes[event.item], expiry: event.expiry, at: self.now)
        self.outcome.mostSharedBytes = max(self.outcome.mostSharedBytes, self.shared.bytes)
        self.wake(self.locks.release(event.item, by: self.claimant(event.node)), item: event.item)
    }

    /// Lets waiters look the item up again.
    ///
    /// The news takes half a round trip.
    private mutating func wake(_ waiters: [LockTable.Claimant], item: Int) {
        for waiter in waiters where waiter == self.claimant(waiter.node) {
            guard self.nodes[waiter.node].flights[item]?.phase == .waiting else { continue }
            self.nodes[waiter.node].flights[item]?.phase = .active
            self.lookUp(item, at: waiter.node, after: self.settings.sharedRoundTrip / 2)
        }
    }

    private func claimant(_ node: Int) -> LockTable.Claimant {
        LockTable.Claimant(node: node, generation: self.nodes[node].generation)
    }

    // MARK: Loads

    private mutating func load(_ item: Int, at node: Int) {
        guard self.catalogue.isSource(item) else {
            self.obtainSource(ofResult: item, at: node)
            return
        }
        let isDuplicate = self.atOrigin[item] > 0 || self.freshUntil[item] > self.now
        self.atOrigin[item] += 1
        let atOnce = self.atOrigin[item]
        let bytes = self.catalogue.bytes[item]
        self.count {
            $0.originRequests += 1
            $0.duplicates += isDuplicate ? 1 : 0
            $0.mostAtOnce = max($0.mostAtOnce, atOnce)
            $0.originBytes += bytes
        }
        let second = Int(self.now)
        while self.outcome.originBySecond.count <= second { self.outcome.originBySecond.append(0) }
        self.outcome.originBySecond[second] += 1
        self.schedule(.originEnds, after: self.settings.origin.value(&self.generator), at: node, item: item)
    }

    private mutating func obtainSource(ofResult result: Int, at node: Int) {
        let source = self.catalogue.source(of: result)
        if let expiry = self.nodes[node].sources.expiry(of: source, at: self.now) {
            self.render(result, at: node, sourceExpiry: expiry)
        } else {
            if self.nodes[node].flights[source] == nil { self.startFlight(of: source, at: node) }
            self.nodes[node].flights[source]?.dependents.append(result)
        }
    }

    private mutating func render(_ result: Int, at node: Int, sourceExpiry: Double) {
        self.count { $0.renders += 1 }
        self.nodes[node].flights[result]?.sourceExpiry = sourceExpiry
        self.schedule(.renderEnds, after: self.settings.renderTime, at: node, item: result)
    }

    /// Answers the requests of a flight, and stores the item that this node has loaded or made.
    private mutating func publish(_ item: Int, at node: Int, expiry: Double) {
        if self.settings.sharing != .nothing {
            self.count { $0.stores += 1 }
            self.schedule(.storeEnds, after: self.settings.sharedRoundTrip, at: node, item: item, expiry: expiry)
        }
        self.endFlight(of: item, at: node, expiry: expiry)
    }

    private mutating func endFlight(of item: Int, at node: Int, expiry: Double) {
        guard let flight = self.nodes[node].flights.removeValue(forKey: item) else { return }
        let bytes = self.catalogue.bytes[item]
        if self.catalogue.isSource(item) {
            self.nodes[node].sources.store(item, bytes: bytes, expiry: expiry, at: self.now)
        } else {
            let localExpiry = min(expiry, self.now + self.settings.localLifetime)
            self.nodes[node].results.store(item, bytes: bytes, expiry: localExpiry, at: self.now)
        }
        for result in flight.dependents { self.render(result, at: node, sourceExpiry: expiry) }
    }

    // MARK: Events

    private mutating func handle(_ event: Event) {
        switch event.kind {
        case .nodeStops: self.stop(event.node)
        case .nodeStarts: self.balancer.setAlive(true, node: event.node)
        case .leaseEnds: self.wake(self.locks.expire(event.item, serial: event.serial), item: event.item)
        case .originEnds:
            // The origin answers a lost node as well.
            self.atOrigin[event.item] -= 1
            let expiry = self.now + self.settings.lifetime
            self.freshUntil[event.item] = expiry
            guard self.isCurrent(event) else { return }
            self.publish(event.item, at: event.node, expiry: expiry)
        case .lookUpEnds, .lockAnswers, .waitEnds, .renderEnds, .storeEnds:
            guard self.isCurrent(event) else { return }
            self.handleOfNode(event)
        }
    }

    private mutating func handleOfNode(_ event: Event) {
        switch event.kind {
        case .lookUpEnds: self.lookUpEnds(event.item, at: event.node)
        case .lockAnswers: self.lockAnswers(event.item, at: event.node)
        case .waitEnds: self.waitEnds(event)
        case .renderEnds:
            let expiry = self.nodes[event.node].flights[event.item]?.sourceExpiry ?? 0
            self.publish(event.item, at: event.node, expiry: expiry)
        case .storeEnds: self.storeEnds(event)
        case .nodeStops, .nodeStarts, .leaseEnds, .originEnds: break
        }
    }

    private func isCurrent(_ event: Event) -> Bool {
        self.nodes[event.node].generation == event.generation
    }

    /// Loses a node with its caches, flights and events.
    ///
    /// Its locks stay until their leases end.
    private mutating func stop(_ node: Int) {
        let owned = self.locks.locks(of: self.claimant(node))
        let requests = self.nodes[node].flights.values.reduce(0) { $0 + $1.requests }
        self.count { $0.lost += requests }
        let generation = self.nodes[node].generation + 1
        self.nodes[node] = FleetNode(self.settings)
        self.nodes[node].generation = generation
        self.balancer.setAlive(false, node: node)
        for lock in owned {
            self.schedule(.leaseEnds, after: self.settings.lease, at: node, item: lock.item, serial: lock.serial)
        }
    }
}
