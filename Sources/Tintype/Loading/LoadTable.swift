import TintypeCaching
import TintypeDownloading

/// Which flights there are, what waits for them, how urgently, and what is to be kept of them.
///
/// A flight makes one product once for all that wait for it: callers, and flights that need it. Pure: no task, no
/// continuation, no clock. Each method changes the table and returns what its owner must do.
struct LoadTable: Sendable {
    /// Names a waiter or a flight; never used twice.
    typealias ID = UInt64

    /// What a flight makes.
    ///
    /// Loads that may be answered from the same places share it.
    struct Product: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case bytes
            case picture
            /// An entry on disk, which nothing waits for; each has a number of its own.
            case store(ID)
        }

        let kind: Kind
        let key: CacheKey
        /// The tiers that may answer: those for the bytes, and those for the picture.
        var queries: [CacheTiers] = []
        var policy = CachePolicy.neverRevalidate
        var usesHTTPKeys = false
        var mayServeStale = true
        /// The bytes of which a picture is there already.
        var held: UInt64?
    }

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

    enum Action: Hashable, Sendable {
        case start(ID, Demand)
        case wait(for: ID)
        case change(ID, Demand)
        case cancel(ID)
        case resume(waiter: ID)
        case dismiss(waiter: ID, from: ID?)
    }

    private struct Flight {
        let product: Product
        var waiters: [ID: Interest] = [:]
        var demand: Demand
        /// The waits of its own, for flights that it needs.
        var waits: Set<ID> = []
    }

    private var flights: [ID: Flight] = [:]
    private var flightOfProduct: [Product: ID] = [:]
    private var flightOfWaiter: [ID: ID] = [:]
    private var lastID: ID = 0

    var isEmpty: Bool { self.flights.isEmpty && self.flightOfProduct.isEmpty && self.flightOfWaiter.isEmpty }

    mutating func makeID() -> ID {
        self.lastID += 1
        return self.lastID
    }

    /// The number of flights that make such a product.
    func flightCount(of kind: Product.Kind) -> Int {
        self.flights.values.count { $0.product.kind == kind }
    }

    /// The number of callers and flights that wait for such a product.
    func waiterCount(of kind: Product.Kind) -> Int {
        self.flights.values.reduce(0) { $0 + ($1.product.kind == kind ? $1.waiters.count : 0) }
    }

    /// Whether a flight makes `product`.
    func makes(_ product: Product) -> Bool { self.flightOfProduct[product] != nil }

    /// What is wanted of a flight; `nil` for one that has ended.
    func demand(of id: ID) -> Demand? { self.flights[id]?.demand }

    /// The flight that a waiter waits for.
    func flight(of waiter: ID) -> ID? { self.flightOfWaiter[waiter] }

    // MARK: Waiting

    /// Lets `waiter` wait for `product`, of a flight that is there or of a new one.
    mutating func join(_ product: Product, waiter: ID, interest: Interest) -> [Action] {
        // A flight that was abandoned needs nothing any more.
        if case .flight(let id) = interest, self.flights[id] == nil { return [.dismiss(waiter: waiter, from: nil)] }
        let demand = self.demand(of: interest)
        if case .flight(let id) = interest { self.flights[id]?.waits.insert(waiter) }
        guard let id = self.flightOfProduct[product] else {
            let id = self.makeID()
            self.flights[id] = Flight(product: product, waiters: [waiter: interest], demand: demand)
            self.flightOfProduct[product] = id
            self.flightOfWaiter[waiter] = id
            return [.start(id, demand)]
        }
        self.flights[id]?.waiters[waiter] = interest
        self.flightOfWaiter[waiter] = id
        var actions: [Action] = [.wait(for: id)]
        var sum = self.flights[id]?.demand ?? demand
        sum.formUnion(demand)
        self.set(sum, of: id, &actions)
        return actions
    }

    /// Takes `waiter` out; the last one of a flight takes the flight along.
    ///
    /// A waiter that was resumed before is not there any more: nothing happens.
    mutating func leave(_ waiter: ID) -> [Action] {
        var actions: [Action] = []
        self.leave(waiter, &actions)
        return actions
    }

    /// Ends a flight with a result for all that wait; does nothing for one that was abandoned.
    mutating func finish(_ id: ID) -> [Action] {
        guard let flight = self.flights.removeValue(forKey: id) else { return [] }
        self.flightOfProduct[flight.product] = nil
        var actions: [Action] = []
        for waiter in flight.waiters.keys.sorted() {
            self.forget(waiter, flight.waiters[waiter])
            actions.append(.resume(waiter: waiter))
        }
        self.leaveAll(flight.waits, &actions)
        return actions
    }

    /// Ends all flights that make bytes or pictures, as if each waiter had left.
    mutating func leaveAll() -> [Action] {
        var actions: [Action] = []
        for waiter in self.flightOfWaiter.keys.sorted() {
            guard let id = self.flightOfWaiter[waiter], let kind = self.flights[id]?.product.kind else { continue }
            if kind == .bytes || kind == .picture { self.leave(waiter, &actions) }
        }
        return actions
    }

    // MARK: Parts

    private mutating func leave(_ waiter: ID, _ actions: inout [Action]) {
        guard let id = self.flightOfWaiter[waiter] else { return }
        self.forget(waiter, self.flights[id]?.waiters.removeValue(forKey: waiter))
        actions.append(.dismiss(waiter: waiter, from: id))
        guard let flight = self.flights[id], flight.waiters.isEmpty else {
            self.update(id, hasLess: true, &actions)
            return
        }
        self.flights[id] = nil
        self.flightOfProduct[flight.product] = nil
        actions.append(.cancel(id))
        self.leaveAll(flight.waits, &actions)
    }

    private mutating func leaveAll(_ waits: Set<ID>, _ actions: inout [Action]) {
        for wait in waits.sorted() { self.leave(wait, &actions) }
    }

    private mutating func forget(_ waiter: ID, _ interest: Interest?) {
        self.flightOfWaiter[waiter] = nil
        if case .flight(let id) = interest { self.flights[id]?.waits.remove(waiter) }
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
        guard let flight = self.flights[id] else { return }
        var sum = Demand()
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
    }
}
