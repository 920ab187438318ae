import FoundationEssentials
import TintypeCaching
import TintypeDownloading

/// Which flights there are, what waits for them, how urgently, which may ask the origin, and which body of each source
/// is the newest.
///
/// A flight makes one product once for all that wait for it: callers, and flights that need it. Pure: no task, no
/// continuation, no clock. Each method changes the table and returns what its owner must do.
struct LoadTable: Sendable {
    /// Names a waiter or a flight; never used twice.
    typealias ID = UInt64

    /// What those that wait want beside the product: of a flight, all that any of them wants.
    struct Demand: Hashable, Sendable {
        var priority = DownloadPriority.veryLow
        var showsPreviews = false
        var keepsData = false
        var waitsForStore = false
        var storesBytes = false
        /// The tiers that keep the picture.
        var pictureTiers = CacheTiers.none

        mutating func formUnion(_ other: Demand) {
            self.priority = max(self.priority, other.priority)
            self.showsPreviews = self.showsPreviews || other.showsPreviews
            self.keepsData = self.keepsData || other.keepsData
            self.waitsForStore = self.waitsForStore || other.waitsForStore
            self.storesBytes = self.storesBytes || other.storesBytes
            self.pictureTiers.formUnion(other.pictureTiers)
        }
    }

    /// What holds an interest in a flight.
    enum Interest: Hashable, Sendable {
        case caller(Demand)
        /// A flight that needs the product; it wants what those want that wait for it.
        case flight(ID)
        /// Nothing waits, and the flight goes on all the same.
        case background
    }

    /// What a flight is told when it starts.
    struct Briefing: Hashable, Sendable {
        let demand: Demand
        /// Whether it may ask the origin; otherwise it waits for its turn first.
        let hasTurn: Bool
        /// The newest body of its source that is known.
        let newestBody: UInt64?
    }

    enum Action: Hashable, Sendable {
        case start(ID, Briefing)
        case wait(for: ID)
        case change(ID, Demand)
        case cancel(ID)
        case resume(waiter: ID)
        case dismiss(waiter: ID, from: ID?)
        /// A waiter's flight may ask the origin now.
        case grant(waiter: ID)
    }

    /// How a body came.
    enum Arrival: Sendable {
        /// The origin sent or confirmed it, and the disk has it where it is to be kept.
        case fetched
        /// It was read from the disk.
        case read
    }

    /// What a body changes that is the newest of its source.
    struct Succession: Hashable, Sendable {
        /// The pictures that were made of others, and may be in the cache.
        var obsolete: [CacheKey] = []
        /// The flights of the source, which must hear of it.
        var flights: Set<ID> = []
    }

    private struct Flight {
        let product: Product
        var waiters: [ID: Interest] = [:]
        var demand: Demand
        /// The waits of its own, for flights that it needs.
        var waits: Set<ID> = []
        /// Nothing waits for it any more, and its task has yet to end.
        var isAbandoned = false
        /// The origin has sent a body since it began: what it read may be older.
        var isOutdated = false
    }

    private struct Origin {
        /// The flight that may ask it: one at a time, so that bodies come and are stored one after the other.
        var turn: ID
        /// The flights that wait for their turns, and their waiters.
        var queue: [(flight: ID, waiter: ID)] = []
    }

    private struct Source {
        /// Those whose tasks have not ended.
        var flights: Set<ID> = []
        /// The newest body that is known, and when the origin sent or confirmed it.
        var body: UInt64?
        var date: Date?
        /// What is, or was, in the cache of that body.
        var pictures: Set<CacheKey> = []
        var lastUse: ID = 0

        /// What the pictures count towards the limit.
        var weight: Int { self.pictures.reduce(0) { $0 + LoadTable.weight(of: $1) } }
    }

    private var flights: [ID: Flight] = [:]
    private var flightOfProduct: [Product: ID] = [:]
    private var flightOfWaiter: [ID: ID] = [:]
    private var sources: [CacheKey: Source] = [:]
    private var origins: [CacheKey: Origin] = [:]
    private(set) var lastID: ID = 0
    /// The pictures of all sources, those with long keys several times.
    private var pictureCount = 0
    private let pictureLimit: Int

    /// Remembers up to `pictureLimit` pictures; one whose key is long counts as several.
    ///
    /// Beyond, the sources that were not loaded for longest are forgotten: a new body of theirs no longer
    /// makes their pictures obsolete, which live until they are evicted or stale.
    init(pictureLimit: Int = 32_768) {
        self.pictureLimit = pictureLimit
    }

    /// Whether there is no flight and no waiter.
    var isEmpty: Bool {
        self.flights.isEmpty && self.flightOfProduct.isEmpty && self.flightOfWaiter.isEmpty && self.origins.isEmpty
            && self.sources.values.allSatisfy { $0.flights.isEmpty }
    }

    /// The number of sources that are loaded, or whose pictures are remembered.
    var sourceCount: Int { self.sources.count }

    mutating func makeID() -> ID {
        self.lastID += 1
        return self.lastID
    }

    /// The number of flights that make such a product.
    func flightCount(of kind: Product.Kind) -> Int {
        self.flights.values.count { $0.product.kind == kind && !$0.isAbandoned }
    }

    /// The number of callers and flights that wait for such a product.
    func waiterCount(of kind: Product.Kind) -> Int {
        self.flights.values.reduce(0) { $0 + ($1.product.kind == kind ? $1.waiters.count : 0) }
    }

    /// The number of callers and flights that wait for what flight `id` makes.
    func waiterCount(of id: ID) -> Int { self.flights[id]?.waiters.count ?? 0 }

    /// The number of flights that wait until they may ask `origin`.
    func queueCount(of origin: CacheKey) -> Int { self.origins[origin]?.queue.count ?? 0 }

    /// Whether a flight makes `product`.
    func makes(_ product: Product) -> Bool { self.flightOfProduct[product] != nil }

    /// What is wanted of a flight; `nil` for one that has ended or was abandoned.
    func demand(of id: ID) -> Demand? {
        self.flights[id].flatMap { $0.isAbandoned ? nil : $0.demand }
    }

    /// The flight that a waiter waits for.
    func flight(of waiter: ID) -> ID? { self.flightOfWaiter[waiter] }

    // MARK: Waiting

    /// Lets `waiter` wait for `product`, of a flight that is there or of a new one.
    mutating func join(_ product: Product, waiter: ID, interest: Interest) -> [Action] {
        // A flight that was abandoned needs nothing any more.
        if case .flight(let id) = interest, self.flights[id]?.isAbandoned ?? true {
            return [.dismiss(waiter: waiter, from: nil)]
        }
        let demand = self.demand(of: interest)
        if case .flight(let id) = interest { self.flights[id]?.waits.insert(waiter) }
        guard let id = self.flightOfProduct[product] else {
            return [self.start(product, waiter, interest, demand)]
        }
        self.flights[id]?.waiters[waiter] = interest
        self.flightOfWaiter[waiter] = id
        var actions: [Action] = [.wait(for: id)]
        var sum = self.flights[id]?.demand ?? demand
        sum.formUnion(demand)
        self.set(sum, of: id, &actions)
        return actions
    }

    /// Takes `waiter` out; a flight that the last one leaves is abandoned.
    ///
    /// A waiter that was resumed before is not there any more: nothing happens.
    mutating func leave(_ waiter: ID) -> [Action] {
        var actions: [Action] = []
        self.leave(waiter, &actions)
        return actions
    }

    /// Ends a flight, whose task is over, with a result for all that wait.
    mutating func finish(_ id: ID) -> [Action] {
        guard let flight = self.flights.removeValue(forKey: id) else { return [] }
        if self.flightOfProduct[flight.product] == id { self.flightOfProduct[flight.product] = nil }
        var actions: [Action] = []
        for waiter in flight.waiters.keys.sorted() {
            self.forget(waiter, flight.waiters[waiter])
            actions.append(.resume(waiter: waiter))
        }
        self.leaveAll(flight.waits, &actions)
        self.end(id, flight.product, &actions)
        return actions
    }

    /// Ends all flights for callers, as if each waiter had left.
    mutating func leaveAll() -> [Action] {
        var actions: [Action] = []
        for waiter in self.flightOfWaiter.keys.sorted() {
            guard let id = self.flightOfWaiter[waiter], let flight = self.flights[id] else { continue }
            if flight.waiters[waiter] != .background { self.leave(waiter, &actions) }
        }
        return actions
    }

    // MARK: Asking the origin

    /// Gives a flight the right to ask the origin, or lets it wait for that: a source fetches one body at a time.
    ///
    /// Once it has the right, what it reads is the newest there is.
    ///
    /// - Returns: Nothing where it has the right now. Otherwise what is to be done, because what has the right becomes
    ///   as urgent as what waits for it; `waiter` is granted it later, or dismissed.
    mutating func requestTurn(of id: ID, waiter: ID) -> [Action]? {
        guard let origin = self.flights[id]?.product.origin else { return nil }
        guard let holder = self.origins[origin]?.turn, holder != id else {
            if self.origins[origin] == nil { self.origins[origin] = Origin(turn: id) }
            self.flights[id]?.isOutdated = false
            return nil
        }
        self.origins[origin]?.queue.append((id, waiter))
        var actions: [Action] = []
        self.update(holder, &actions)
        return actions
    }

    // MARK: Bodies in order

    /// Takes note of a body that a flight brought; what was made of another one before is obsolete.
    ///
    /// What was read while the origin sent another one is older, and changes nothing. Read at another time, another
    /// body is one that another process has stored, if its `date` is a later one: the disk may have refused the newest.
    mutating func accept(_ body: UInt64, from id: ID, _ arrival: Arrival, date: Date?) -> Succession {
        guard let flight = self.flights[id], let source = self.sources[flight.product.source] else {
            return Succession()
        }
        let isLater = source.date.map { known in date.map { $0 > known } ?? false } ?? true
        if arrival == .fetched {
            for other in source.flights where other != id { self.flights[other]?.isOutdated = true }
        } else if flight.isOutdated || !isLater {
            return Succession()
        }
        self.sources[flight.product.source]?.date = date
        // A reload that comes now asks by itself.
        for other in source.flights where self.flights[other]?.product.policy == .reload {
            if self.waited(by: other).contains(id) { self.close(other) }
        }
        guard source.body != body else { return Succession() }
        // What is being made of an older body is none of those that come now, and may be in the cache already.
        var obsolete = source.pictures
        for other in source.flights where other != id && !self.awaitsBody(of: id, other) {
            self.close(other)
            if let product = self.flights[other]?.product, product.kind == .picture { obsolete.insert(product.key) }
        }
        self.pictureCount -= source.weight
        self.sources[flight.product.source]?.pictures = []
        self.sources[flight.product.source]?.body = body
        return Succession(obsolete: obsolete.sorted { $0.text < $1.text }, flights: source.flights)
    }

    /// Takes note of a picture in the cache that flight `id` made of `body`.
    ///
    /// - Returns: Whether it may stay there: no newer body has come.
    mutating func keep(_ picture: CacheKey, madeOf body: UInt64, by id: ID) -> Bool {
        guard let name = self.flights[id]?.product.source, let newest = self.sources[name].map(\.body),
            newest == nil || newest == body, var source = self.sources.removeValue(forKey: name)
        else { return false }
        source.body = body
        source.lastUse = id
        let isNew = source.pictures.insert(picture).inserted
        self.sources[name] = source
        if isNew {
            self.pictureCount += Self.weight(of: picture)
            if self.pictureCount > self.pictureLimit { self.forgetOldest() }
        }
        return true
    }

    // MARK: Parts

    private mutating func start(
        _ product: Product,
        _ waiter: ID,
        _ interest: Interest,
        _ demand: Demand
    ) -> Action {
        let id = self.makeID()
        self.flights[id] = Flight(product: product, waiters: [waiter: interest], demand: demand)
        self.flightOfProduct[product] = id
        self.flightOfWaiter[waiter] = id
        var source = self.sources.removeValue(forKey: product.source) ?? Source()
        source.flights.insert(id)
        source.lastUse = id
        let hasTurn = product.kind == .bytes && self.origins[product.origin] == nil
        if hasTurn { self.origins[product.origin] = Origin(turn: id) }
        let briefing = Briefing(demand: demand, hasTurn: hasTurn, newestBody: source.body)
        self.sources[product.source] = source
        return .start(id, briefing)
    }

    private mutating func leave(_ waiter: ID, _ actions: inout [Action]) {
        guard let id = self.flightOfWaiter[waiter] else { return }
        self.forget(waiter, self.flights[id]?.waiters.removeValue(forKey: waiter))
        actions.append(.dismiss(waiter: waiter, from: id))
        guard let flight = self.flights[id], flight.waiters.isEmpty else {
            self.update(id, hasLess: true, &actions)
            return
        }
        self.flights[id]?.isAbandoned = true
        if self.flightOfProduct[flight.product] == id { self.flightOfProduct[flight.product] = nil }
        actions.append(.cancel(id))
        self.leaveAll(flight.waits, &actions)
        self.leaveQueue(id, flight.product.origin, &actions)
    }

    private mutating func leaveQueue(_ id: ID, _ origin: CacheKey, _ actions: inout [Action]) {
        guard let index = self.origins[origin]?.queue.firstIndex(where: { $0.flight == id }),
            let entry = self.origins[origin]?.queue.remove(at: index), let holder = self.origins[origin]?.turn
        else { return }
        actions.append(.dismiss(waiter: entry.waiter, from: nil))
        self.update(holder, hasLess: true, &actions)
    }

    private mutating func leaveAll(_ waits: Set<ID>, _ actions: inout [Action]) {
        for wait in waits.sorted() { self.leave(wait, &actions) }
    }

    private mutating func forget(_ waiter: ID, _ interest: Interest?) {
        self.flightOfWaiter[waiter] = nil
        if case .flight(let id) = interest { self.flights[id]?.waits.remove(waiter) }
    }

    /// Only the end of its task ends a flight's turn: one that was abandoned may still be storing.
    private mutating func end(_ id: ID, _ product: Product, _ actions: inout [Action]) {
        if var source = self.sources.removeValue(forKey: product.source) {
            source.flights.remove(id)
            if !source.flights.isEmpty || !source.pictures.isEmpty { self.sources[product.source] = source }
        }
        guard self.origins[product.origin]?.turn == id, var origin = self.origins.removeValue(forKey: product.origin)
        else { return }
        // The most urgent one, and of several the first.
        let urgencies = origin.queue.map { self.flights[$0.flight]?.demand.priority ?? .veryLow }
        guard let most = urgencies.max(), let index = urgencies.firstIndex(of: most) else { return }
        let next = origin.queue.remove(at: index)
        origin.turn = next.flight
        self.origins[product.origin] = origin
        self.flights[next.flight]?.isOutdated = false
        actions.append(.grant(waiter: next.waiter))
        self.update(next.flight, &actions)
    }

    /// Lets nothing more join a flight.
    private mutating func close(_ id: ID) {
        guard let product = self.flights[id]?.product, self.flightOfProduct[product] == id else { return }
        self.flightOfProduct[product] = nil
    }

    /// Whether a flight is going to have the body that flight `id` has brought, or a newer one.
    private func awaitsBody(of id: ID, _ other: ID) -> Bool {
        // Before its turn it looks once more.
        if self.isQueued(other) { return true }
        return self.waited(by: other).contains { $0 == id || self.awaitsBody(of: id, $0) }
    }

    private func isQueued(_ id: ID) -> Bool {
        guard let origin = self.flights[id]?.product.origin else { return false }
        return self.origins[origin]?.queue.contains { $0.flight == id } ?? false
    }

    /// The flights that a flight waits for.
    private func waited(by id: ID) -> [ID] {
        self.flights[id]?.waits.compactMap { self.flightOfWaiter[$0] } ?? []
    }

    private func demand(of interest: Interest) -> Demand {
        switch interest {
        case .caller(let demand): demand
        case .flight(let id): self.flights[id]?.demand ?? Demand()
        case .background: Demand()
        }
    }

    /// Sums up what is wanted of a flight.
    ///
    /// With `hasLess` it can only have become less: mostly the first of those that are left wants as much as all did,
    /// and a thousand that leave cost no million looks.
    private mutating func update(_ id: ID, hasLess: Bool = false, _ actions: inout [Action]) {
        guard let flight = self.flights[id], !flight.isAbandoned else { return }
        var sum = Demand()
        if let origin = self.origins[flight.product.origin], origin.turn == id {
            for entry in origin.queue {
                sum.priority = max(sum.priority, self.flights[entry.flight]?.demand.priority ?? .veryLow)
            }
        }
        for interest in flight.waiters.values {
            sum.formUnion(self.demand(of: interest))
            if hasLess, sum == flight.demand { return }
        }
        self.set(sum, of: id, &actions)
    }

    /// A change goes on to the flights that the flight waits for.
    private mutating func set(_ demand: Demand, of id: ID, _ actions: inout [Action]) {
        guard let flight = self.flights[id], demand != flight.demand else { return }
        self.flights[id]?.demand = demand
        actions.append(.change(id, demand))
        for wait in flight.waits.sorted() {
            if let other = self.flightOfWaiter[wait] { self.update(other, &actions) }
        }
        if let origin = self.origins[flight.product.origin], origin.turn != id,
            origin.queue.contains(where: { $0.flight == id })
        {
            self.update(origin.turn, &actions)
        }
    }

    /// One for each begun KiB of a key: URLs that others choose may be as long as they like.
    private static func weight(of key: CacheKey) -> Int {
        1 + key.text.utf8.count >> 10
    }

    /// Forgets half of the pictures, so that this is seldom done.
    private mutating func forgetOldest() {
        for (key, source) in self.sources.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
            guard self.pictureCount > self.pictureLimit / 2 else { return }
            self.pictureCount -= source.weight
            // Loads that go on still need their order.
            if source.flights.isEmpty { self.sources[key] = nil } else { self.sources[key]?.pictures = [] }
        }
    }
}
