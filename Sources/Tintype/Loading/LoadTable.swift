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
        var keepsPreviews = false
        var keepsData = false
        var waitsForStore = false
        /// Whether a failure that is remembered is no reason not to try.
        var retriesFailed = false
        /// Whether bytes that come are to be completed for the cache when no caller waits any more.
        var finishesDownload = false
        var storesBytes = false
        /// The tiers that keep the picture.
        var pictureTiers = CacheTiers.none
        /// The tiers that keep the encoded picture.
        var encodedTiers = CacheTiers.none

        mutating func formUnion(_ other: Demand) {
            self.priority = max(self.priority, other.priority)
            self.showsPreviews = self.showsPreviews || other.showsPreviews
            self.keepsPreviews = self.keepsPreviews || other.keepsPreviews
            self.keepsData = self.keepsData || other.keepsData
            self.waitsForStore = self.waitsForStore || other.waitsForStore
            self.retriesFailed = self.retriesFailed || other.retriesFailed
            self.finishesDownload = self.finishesDownload || other.finishesDownload
            self.storesBytes = self.storesBytes || other.storesBytes
            self.pictureTiers.formUnion(other.pictureTiers)
            self.encodedTiers.formUnion(other.encodedTiers)
        }
    }

    /// What holds an interest in a flight.
    enum Interest: Hashable, Sendable {
        case caller(Demand)
        /// A load under way that needs something else at its end, and no longer for its product.
        case follower(Demand)
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

    /// How a body came, and its name on disk, whether or not it is kept there.
    enum Arrival: Hashable, Sendable {
        /// The origin sent or confirmed it, and the disk has it where it is to be kept.
        case fetched(as: CacheKey)
        /// It was read from the disk.
        case read(as: CacheKey)
    }

    /// What a body changes that is the newest of its source.
    struct Succession: Hashable, Sendable {
        /// The pictures that were made of others, and the tiers of the cache that may have them.
        var obsolete: [CacheKey: CacheTiers] = [:]
        /// The flights that must hear of it: those of the source, and of others that may select it as well.
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
        /// It goes on for the cache when nothing waits for it any more, since a load has wanted that.
        var isFinishing = false
        /// The origin has sent a body since it began: what it read may be older.
        var isOutdated = false
    }

    private struct Origin {
        /// The flights that may ask it: of those whose bodies may get the same name on disk, one at a time, so that such
        /// bodies come and are stored one after the other.
        var turns: Set<ID> = []
        /// The flights that wait for their turns, and their waiters.
        var queue: [(flight: ID, waiter: ID)] = []
        /// The sources that are known of it, but for the one of its own name.
        var sources: Set<CacheKey> = []
    }

    private struct Source {
        let origin: CacheKey
        /// Those whose tasks have not ended.
        var flights: Set<ID> = []
        /// The newest body that is known, and when the origin sent or confirmed it.
        var body: UInt64?
        var date: Date?
        /// The name of that body on disk; `nil` where it may be any of the origin's.
        var name: CacheKey?
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
    /// The pictures that flights are about to remove from the cache, having brought a body that replaces theirs.
    private var clearings: [ID: (origin: CacheKey, pictures: [CacheKey: CacheTiers])] = [:]
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
        self.flights.isEmpty && self.flightOfProduct.isEmpty && self.flightOfWaiter.isEmpty && self.clearings.isEmpty
            && self.origins.allSatisfy { origin in
                origin.value.turns.isEmpty && origin.value.queue.isEmpty
                    && origin.value.sources.allSatisfy { self.sources[$0]?.origin == origin.key }
            } && self.sources.values.allSatisfy { $0.flights.isEmpty }
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

    /// The callers and flights that wait for what flight `id` makes.
    func waiters(of id: ID) -> Set<ID> { Set((self.flights[id]?.waiters ?? [:]).keys) }

    /// The number of flights that wait until they may ask `origin`.
    func queueCount(of origin: CacheKey) -> Int { self.origins[origin]?.queue.count ?? 0 }

    /// Whether a flight makes `product`.
    func makes(_ product: Product) -> Bool { self.flightOfProduct[product] != nil }

    /// What is wanted of a flight; `nil` for one that has ended or was abandoned.
    func demand(of id: ID) -> Demand? {
        self.flights[id].flatMap { $0.isAbandoned ? nil : $0.demand }
    }

    /// The flights of all sources that may select the same response as others of `origin`.
    func flights(of origin: CacheKey) -> Set<ID> {
        let sources = self.origins[origin]?.sources.union([origin]) ?? [origin]
        return sources.reduce(into: []) { $0.formUnion(self.sources[$1]?.flights ?? []) }
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
        self.clearings[id] = nil
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
            guard let id = self.flightOfWaiter[waiter], let interest = self.flights[id]?.waiters[waiter] else {
                continue
            }
            switch interest {
            case .caller, .follower: self.leave(waiter, &actions)
            // Flights leave what they need when they are abandoned, and hear of that first.
            case .flight, .background: break
            }
        }
        for id in self.flights.keys.sorted() {
            if let flight = self.flights[id], flight.isFinishing, flight.waiters.isEmpty { self.abandon(id, &actions) }
        }
        return actions
    }

    // MARK: Asking the origin

    /// Gives a flight the right to ask the origin, or lets it wait for that: bodies that may get the same name on disk
    /// are fetched one at a time.
    ///
    /// Once it has the right, what it reads is the newest there is.
    ///
    /// - Returns: Nothing where it has the right now. Otherwise what is to be done, because what has the right becomes
    ///   as urgent as what waits for it; `waiter` is granted it later, or dismissed.
    mutating func requestTurn(of id: ID, waiter: ID) -> [Action]? {
        guard let product = self.flights[id]?.product else { return nil }
        guard !self.hasTurn(id, product.origin), self.mustWait(product) else {
            self.giveTurn(to: id, product)
            return nil
        }
        self.origins[product.origin]?.queue.append((id, waiter))
        var actions: [Action] = []
        self.updateTurns(of: product.origin, &actions)
        return actions
    }

    /// Takes its turn from a flight that was abandoned, and that will store nothing, although its task has yet to end.
    ///
    /// A fetcher that does not hear of its cancellation holds up no later load.
    mutating func passTurn(of id: ID) -> [Action] {
        var actions: [Action] = []
        if let product = self.flights[id]?.product { self.passTurn(of: id, product.origin, &actions) }
        return actions
    }

    // MARK: Bodies in order

    /// Takes note of a body that a flight brought; what was made of another one before is obsolete.
    ///
    /// What was read while the origin sent another one is older, and changes nothing. Read at another time, another
    /// body is one that another process has stored, if its `date` is a later one: the disk may have refused the newest.
    ///
    /// What another flight of the origin is about to remove is obsolete for this one as well, until that has ended: its
    /// callers must not find it either.
    mutating func accept(_ body: UInt64, from id: ID, _ arrival: Arrival, date: Date?) -> Succession {
        var succession = self.succession(body, from: id, arrival, date: date)
        guard let origin = self.flights[id]?.product.origin else { return succession }
        for clearing in self.clearings.values where clearing.origin == origin {
            succession.obsolete.merge(clearing.pictures) { $0.union($1) }
        }
        if !succession.obsolete.isEmpty { self.clearings[id] = (origin, succession.obsolete) }
        return succession
    }

    private mutating func succession(
        _ body: UInt64,
        from id: ID,
        _ arrival: Arrival,
        date: Date?
    ) -> Succession {
        guard let flight = self.flights[id], let source = self.sources[flight.product.source] else {
            return Succession()
        }
        let (key, name) = (flight.product.source, arrival.name)
        let isLater = source.date.map { known in date.map { $0 > known } ?? false } ?? true
        guard arrival.isFetched || !flight.isOutdated && isLater else { return Succession() }
        // A reload that comes now asks by itself.
        for other in source.flights where self.flights[other]?.product.policy == .reload {
            if self.waited(by: other).contains(id) { self.close(other) }
        }
        var succession = Succession()
        let sources =
            source.body == body ? [key] : [key] + self.sources(selecting: name, without: body, besides: flight.product)
        if arrival.isFetched { for key in sources { self.outdateFlights(of: key, but: id) } }
        if source.body != body { for key in sources { self.replaceBody(of: key, by: id, &succession) } }
        self.sources[key]?.body = body
        self.sources[key]?.date = date
        self.sources[key]?.name = name
        return succession
    }

    /// Takes note of a picture in the cache that flight `id` made of `body`.
    ///
    /// - Returns: Whether it may stay there: no newer body has come.
    mutating func keep(_ picture: CacheKey, madeOf body: UInt64, by id: ID) -> Bool {
        guard let flight = self.flights[id], let newest = self.sources[flight.product.source].map(\.body),
            newest == body || newest == nil && !flight.isOutdated,
            var source = self.sources.removeValue(forKey: flight.product.source)
        else { return false }
        source.lastUse = id
        self.put(picture, madeOf: body, in: &source, flight.product.source)
        return true
    }

    /// Returns whether no other body than `body` is known to be the newest of a source.
    func admits(_ body: UInt64, of source: CacheKey) -> Bool {
        self.sources[source]?.body.map { $0 == body } ?? true
    }

    /// Records the product in the cache, made of a body that is admitted, which was found without a flight.
    mutating func keep(_ product: Product, madeOf body: UInt64) {
        if self.sources[product.source]?.pictures.contains(product.key) ?? false {
            self.sources[product.source]?.lastUse = self.lastID
            return
        }
        var source = self.takeSource(of: product)
        source.lastUse = self.lastID
        self.put(product.key, madeOf: body, in: &source, product.source)
    }

    private mutating func put(_ picture: CacheKey, madeOf body: UInt64, in source: inout Source, _ key: CacheKey) {
        source.body = body
        let isNew = source.pictures.insert(picture).inserted
        self.sources[key] = source
        guard isNew else { return }
        self.pictureCount += Self.weight(of: picture)
        if self.pictureCount > self.pictureLimit { self.forgetOldest() }
    }

    /// Takes a source out of the table, or makes it, for its owner to change it and to put it back.
    private mutating func takeSource(of product: Product) -> Source {
        var source =
            self.sources.removeValue(forKey: product.source) ?? Source(origin: product.origin, name: product.source)
        // It may select what another source has stored.
        if product.usesHTTPKeys, source.name == product.source { source.name = nil }
        if source.origin != product.source {
            self.origins[source.origin, default: Origin()].sources.insert(product.source)
        }
        return source
    }

    /// The tiers that may have a picture of `source`: under the source's own key the disk has its bytes.
    static func tiers(of picture: CacheKey, source: CacheKey) -> CacheTiers {
        picture == source ? .memory : .all
    }

    /// The other sources of an origin whose newest body may be the one that `name` had before.
    ///
    /// Responses that vary are kept apart by their names; each replaces the one that did not vary, and is replaced by it.
    /// Where HTTP's freshness does not count, each source has a name of its own, and its pictures answer all the same
    /// where it does.
    private func sources(selecting name: CacheKey, without body: UInt64, besides product: Product) -> [CacheKey] {
        let (origin, usesHTTP) = (product.origin, product.usesHTTPKeys)
        guard usesHTTP || name == origin else { return [] }
        return (self.origins[origin]?.sources.union([origin]) ?? [origin]).filter { key in
            guard key != product.source, let source = self.sources[key], source.body != body else { return false }
            let isKnown = source.name != nil && source.name != name
            return !isKnown || usesHTTP && (name == origin || source.name == origin || source.name == key)
        }
    }

    /// Takes note that what is being read was there before a fetched body.
    private mutating func outdateFlights(of source: CacheKey, but id: ID) {
        for other in self.sources[source]?.flights ?? [] where other != id { self.flights[other]?.isOutdated = true }
    }

    /// Makes obsolete what was made of the body of a source, because flight `id` has brought a newer one.
    private mutating func replaceBody(of key: CacheKey, by id: ID, _ succession: inout Succession) {
        guard let source = self.sources[key] else { return }
        var obsolete = source.pictures
        // What is being made of an older body is none of those that come now, and may be in the cache already.
        for other in source.flights where other != id && !self.awaitsBody(of: id, other) {
            self.close(other)
            if let product = self.flights[other]?.product, product.isOfBody { obsolete.insert(product.key) }
        }
        for picture in obsolete { succession.obsolete[picture] = Self.tiers(of: picture, source: key) }
        succession.flights.formUnion(source.flights)
        self.pictureCount -= source.weight
        guard !source.flights.isEmpty else { return self.forget(source: key) }
        self.sources[key]?.pictures = []
        self.sources[key]?.body = nil
        self.sources[key]?.date = nil
        self.sources[key]?.name = nil
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
        self.noteFinishing(id)
        self.flightOfProduct[product] = id
        self.flightOfWaiter[waiter] = id
        var source = self.takeSource(of: product)
        source.flights.insert(id)
        source.lastUse = id
        let hasTurn = product.kind == .bytes && !self.mustWait(product)
        if hasTurn { self.giveTurn(to: id, product) }
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
        if flight.isFinishing { self.update(id, &actions) } else { self.abandon(id, &actions) }
    }

    private mutating func abandon(_ id: ID, _ actions: inout [Action]) {
        guard let flight = self.flights[id], !flight.isAbandoned else { return }
        self.flights[id]?.isAbandoned = true
        if self.flightOfProduct[flight.product] == id { self.flightOfProduct[flight.product] = nil }
        actions.append(.cancel(id))
        self.leaveAll(flight.waits, &actions)
        self.leaveQueue(id, flight.product.origin, &actions)
    }

    private mutating func leaveQueue(_ id: ID, _ origin: CacheKey, _ actions: inout [Action]) {
        guard let index = self.origins[origin]?.queue.firstIndex(where: { $0.flight == id }),
            let entry = self.origins[origin]?.queue.remove(at: index)
        else { return }
        actions.append(.dismiss(waiter: entry.waiter, from: nil))
        self.grantTurns(of: origin, &actions)
        self.updateTurns(of: origin, hasLess: true, &actions)
    }

    private mutating func leaveAll(_ waits: Set<ID>, _ actions: inout [Action]) {
        for wait in waits.sorted() { self.leave(wait, &actions) }
    }

    private mutating func forget(_ waiter: ID, _ interest: Interest?) {
        self.flightOfWaiter[waiter] = nil
        if case .flight(let id) = interest { self.flights[id]?.waits.remove(waiter) }
    }

    private mutating func end(_ id: ID, _ product: Product, _ actions: inout [Action]) {
        self.sources[product.source]?.flights.remove(id)
        if let source = self.sources[product.source], source.flights.isEmpty, source.pictures.isEmpty {
            self.forget(source: product.source)
        }
        self.passTurn(of: id, product.origin, &actions)
    }

    private mutating func forget(source key: CacheKey) {
        guard let origin = self.sources.removeValue(forKey: key)?.origin else { return }
        self.origins[origin]?.sources.remove(key)
        self.forgetIfIdle(origin)
    }

    private mutating func forgetIfIdle(_ key: CacheKey) {
        guard let origin = self.origins[key], origin.turns.isEmpty, origin.queue.isEmpty, origin.sources.isEmpty
        else { return }
        self.origins[key] = nil
    }

    // MARK: Turns

    private func hasTurn(_ id: ID, _ origin: CacheKey) -> Bool {
        self.origins[origin]?.turns.contains(id) ?? false
    }

    /// Whether a flight must wait for its turn: what asks now, or was there before, may store under the same name.
    private func mustWait(_ product: Product) -> Bool {
        guard let origin = self.origins[product.origin] else { return false }
        return origin.turns.contains { self.excludes($0, product) }
            || origin.queue.contains { self.excludes($0.flight, product) }
    }

    /// Returns whether a flight and another one of the same origin must not ask at once.
    private func excludes(_ id: ID, _ product: Product) -> Bool {
        guard let other = self.flights[id]?.product else { return false }
        return other.source == product.source || other.usesHTTPKeys || product.usesHTTPKeys
            || other.isReplaced(by: product) || product.isReplaced(by: other)
    }

    private mutating func giveTurn(to id: ID, _ product: Product) {
        self.origins[product.origin, default: Origin()].turns.insert(id)
        // It looks once more.
        if product.kind == .bytes { self.flights[id]?.isOutdated = false }
    }

    private mutating func passTurn(of id: ID, _ origin: CacheKey, _ actions: inout [Action]) {
        guard self.origins[origin]?.turns.remove(id) != nil else { return }
        self.grantTurns(of: origin, &actions)
        self.forgetIfIdle(origin)
    }

    /// Lets those ask whose turns have come: the most urgent one first, and of several the first.
    private mutating func grantTurns(of key: CacheKey, _ actions: inout [Action]) {
        while let origin = self.origins[key] {
            let urgencies = origin.queue.map { self.flights[$0.flight]?.demand.priority ?? .veryLow }
            guard let most = urgencies.max(), let index = urgencies.firstIndex(of: most) else { return }
            let next = origin.queue[index]
            // None overtakes it: those that exclude each other less would keep it waiting.
            guard let product = self.flights[next.flight]?.product,
                !origin.turns.contains(where: { self.excludes($0, product) })
            else { return }
            self.origins[key]?.queue.remove(at: index)
            self.giveTurn(to: next.flight, product)
            actions.append(.grant(waiter: next.waiter))
            self.update(next.flight, &actions)
        }
    }

    /// Makes what has a turn as urgent as what waits for it.
    private mutating func updateTurns(of origin: CacheKey, hasLess: Bool = false, _ actions: inout [Action]) {
        for id in self.origins[origin]?.turns.sorted() ?? [] { self.update(id, hasLess: hasLess, &actions) }
    }

    /// Lets nothing more join a flight.
    private mutating func close(_ id: ID) {
        guard let product = self.flights[id]?.product, self.flightOfProduct[product] == id else { return }
        self.flightOfProduct[product] = nil
    }

    /// Whether a flight is going to have the body that flight `id` has brought, or a newer one.
    private func awaitsBody(of id: ID, _ other: ID) -> Bool {
        // Before its turn it looks once more; a picture is made by then, and is yet to be stored.
        if self.flights[other]?.product.kind == .bytes, self.isQueued(other) { return true }
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
        case .caller(let demand), .follower(let demand): demand
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
        sum.finishesDownload = flight.isFinishing
        sum.storesBytes = flight.isFinishing
        if let origin = self.origins[flight.product.origin], origin.turns.contains(id) {
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
        self.noteFinishing(id)
        actions.append(.change(id, demand))
        for wait in flight.waits.sorted() {
            if let other = self.flightOfWaiter[wait] { self.update(other, &actions) }
        }
        if self.isQueued(id) { self.updateTurns(of: flight.product.origin, &actions) }
    }

    /// Takes note that a load wants the bytes of a flight completed for the cache.
    private mutating func noteFinishing(_ id: ID) {
        guard let flight = self.flights[id], flight.product.kind == .bytes else { return }
        if flight.demand.finishesDownload, flight.demand.storesBytes { self.flights[id]?.isFinishing = true }
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
            if source.flights.isEmpty { self.forget(source: key) } else { self.sources[key]?.pictures = [] }
        }
    }
}

extension LoadTable.Arrival {
    fileprivate var name: CacheKey {
        switch self {
        case .fetched(let name), .read(let name): name
        }
    }

    fileprivate var isFetched: Bool {
        if case .fetched = self { true } else { false }
    }
}
