// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeDownloading
import TintypeFlights
import TintypeRequests

/// The flights of a loader with their tasks, owned by its actor: performs the actions of the table.
struct Flights {
    private(set) var table = LoadTable()
    private var flights: [FlightTable.ID: any AnyFlight] = [:]
    private var tasks: [FlightTable.ID: Task<Void, Never>] = [:]
    /// The waits of flights for their turns.
    private var turnWaiters: [FlightTable.ID: FlightWaiter<Void>] = [:]
    /// The most revalidations at a time, and the most of them for one site.
    ///
    /// Beyond that, a stale product waits for a later request.
    private static let (revalidationLimit, siteLimit) = (256, 64)

    /// The waiters of revalidations, which have no callers, and the sites of their sources.
    private var revalidations: [FlightTable.ID: String] = [:]
    private var stores: Set<FlightTable.ID> = []
    /// Tells fetchers of new priorities: no caller waits until a fetcher has answered.
    let notices = TaskOwner()
    private let activities: ActivityCenter
    /// Tells images that are read without a flight of changes since the reading began.
    private let changes: KeyChanges

    init(_ activities: ActivityCenter, _ changes: KeyChanges) {
        self.activities = activities
        self.changes = changes
    }

    /// The tasks of all flights.
    var allTasks: some Collection<Task<Void, Never>> { self.tasks.values }

    /// The tasks that store images in the background.
    var storeTasks: [Task<Void, Never>] { self.stores.compactMap { self.tasks[$0] } }

    /// The tasks of revalidations.
    var revalidationTasks: [Task<Void, Never>] {
        self.revalidations.keys.compactMap { self.table.flights.flight(of: $0) }.compactMap { self.tasks[$0] }
    }

    // MARK: Waiting

    /// Lets a caller or a flight wait for a product, and starts the flight that makes it unless it is under way.
    ///
    /// The wish is the image that the waiter makes of the bytes.
    mutating func join<Output>(
        _ plan: FlightPlan<Output>,
        _ interest: FlightTable.Interest,
        observer: FlightState.Observer? = nil,
        wish: DecodeWish? = nil,
        start: (Flight<Output>) -> Task<Void, Never>
    ) -> FlightWaiter<Output> {
        let id = self.table.makeID()
        let actions = self.table.join(plan.product, waiter: id, interest: interest)
        let waiter: FlightWaiter<Output>
        switch actions.first {
        case .start(let flightID, let demand):
            waiter = FlightWaiter(id: id, wish: wish)
            let flight = Flight<Output>(
                FlightState(
                    id: flightID,
                    demand: demand,
                    hasTurn: self.table.hasTurn(flightID),
                    newestBody: self.table.newestBody(for: flightID)
                )
            )
            flight.add(waiter, observer: observer)
            self.flights[flightID] = flight
            self.tasks[flightID] = start(flight)
        case .wait(let flightID):
            // Products of one kind have outputs of one type.
            guard let flight = self.flights[flightID] as? Flight<Output> else { fallthrough }
            waiter = FlightWaiter(id: id, joinedFlight: flight.state, wish: wish)
            // Before the flight can end: the waiter may report this late.
            if let request = plan.request {
                self.activities.note(.joined, LoadActivity.Product(plan.product.kind), request, of: flight.state)
            }
            flight.add(waiter, observer: observer)
        default:
            // The flight that wants to wait was abandoned.
            waiter = FlightWaiter(id: id)
            waiter.end(with: .failure(CancellationError()))
        }
        self.perform(actions)
        return waiter
    }

    /// Starts a flight to which no caller listens, unless its product is being made, or too many such flights are under
    /// way.
    ///
    /// Its download waits for all that callers wait for.
    mutating func revalidate<Output>(
        _ plan: FlightPlan<Output>,
        _ demand: Demand,
        start: (Flight<Output>) -> Task<Void, Never>
    ) {
        guard !self.table.flights.makes(plan.product), self.revalidations.count < Self.revalidationLimit else { return }
        let url = plan.request?.source.url
        // One host has many spellings, and each must count for the same site.
        let host = url.flatMap { ConnectionTarget($0.absoluteString)?.host ?? $0.host() } ?? ""
        let site = Site.name(ofHost: host)
        guard self.revalidations.values.count(where: { $0 == site }) < Self.siteLimit else { return }
        var demand = demand
        demand.priority = min(demand.priority, .low)
        self.revalidations[self.join(plan, .caller(demand), start: start).id] = site
    }

    /// Starts a flight that stores an image of `source` in the background.
    mutating func store(
        _ key: CacheKey,
        of source: CacheKey,
        _ work: @escaping @Sendable (FlightState) async -> StoredEntry,
        start: (FlightPlan<StoredEntry>, Flight<StoredEntry>) -> Task<Void, Never>
    ) {
        let kind = FlightTable.Product.Kind.store(self.table.makeID())
        let product = FlightTable.Product(kind: kind, key: key, source: source, origin: source)
        let plan = FlightPlan(product: product, work: work)
        let waiter = self.join(plan, .background) { start(plan, $0) }
        if let id = self.table.flights.flight(of: waiter.id) { self.stores.insert(id) }
    }

    /// Removes a waiter whose task was cancelled; does nothing for one that has its result.
    mutating func leave(_ waiter: FlightTable.ID) {
        self.perform(self.table.leave(waiter))
    }

    /// Removes all callers: each of them gets a `CancellationError`.
    mutating func leaveAll() {
        self.perform(self.table.leaveAll())
    }

    /// Lets a flight wait for its turn to ask the origin; returns `nil` if it has its turn.
    ///
    /// - Throws: `CancellationError` if the flight was abandoned.
    mutating func requestTurn(of flight: FlightTable.ID) throws(CancellationError) -> FlightWaiter<Void>? {
        guard self.table.flights.demand(of: flight) != nil else { throw CancellationError() }
        let waiter = FlightWaiter<Void>(id: self.table.makeID())
        guard let actions = self.table.requestTurn(of: flight, waiter: waiter.id) else { return nil }
        self.turnWaiters[waiter.id] = waiter
        self.perform(actions)
        return waiter
    }

    // MARK: Ends

    /// Ends a flight whose work is done, or returns the images that must leave the cache first.
    ///
    /// If it returns images, the flight has not ended: remove them, and call again with `isCleared`.
    mutating func conclude<Output>(
        _ flight: Flight<Output>,
        _ product: FlightTable.Product,
        _ result: Result<Output, any Error>,
        isCleared: Bool
    ) -> [CacheKey: CacheTiers] {
        let id = flight.state.id
        if !isCleared {
            var obsolete: [CacheKey: CacheTiers] = [:]
            if case .success(let output) = result {
                obsolete = self.obsolete(by: flight.state, product, output.effect)
            }
            let preview = RequestKeys.preview(of: product.key)
            if flight.state.endKeepingPreviews(), !self.table.bodies.keep(preview: preview, by: id) {
                obsolete[preview] = .memory
            }
            guard obsolete.isEmpty else { return obsolete }
        }
        self.tasks[id] = nil
        self.stores.remove(id)
        self.flights[id] = nil
        let actions = self.table.finish(id)
        let waiters = actions.compactMap { if case .resume(let waiter) = $0 { waiter } else { nil } }
        for waiter in waiters { self.revalidations[waiter] = nil }
        flight.resume(waiters, with: result)
        self.perform(actions)
        return [:]
    }

    private mutating func obsolete(
        by flight: FlightState,
        _ product: FlightTable.Product,
        _ effect: FlightEffect
    ) -> [CacheKey: CacheTiers] {
        switch effect {
        case .none: return [:]
        case .brought(let body, let arrival, let date, let fetched):
            self.changes.note(product.origin)
            let succession = self.table.accept(body, from: flight.id, arrival, date: date)
            if arrival.isFetched, let fetched {
                for id in self.table.bodies.flights(of: product.origin) { self.flights[id]?.state.note(fetched) }
            }
            for id in succession.flights { self.flights[id]?.state.note(newestBody: body) }
            return succession.obsolete
        case .kept(let body):
            guard !self.table.bodies.keep(product.key, madeOf: body, by: flight.id) else { return [:] }
            return [product.key: BodyOrder.tiers(of: product.key, source: product.source)]
        case .stored(let key, let body): return flight.admits(body) ? [:] : [key: .all]
        }
    }

    /// Decides about an image that was read without a flight, and runs `keep` if the cache may have it.
    ///
    /// A body that is accepted later makes the image obsolete. `mark` records the changes of the origin before the read.
    mutating func admit(
        _ product: FlightTable.Product,
        madeOf body: UInt64,
        since mark: KeyChanges.Mark,
        keep: () -> Void
    ) -> ReadyEncoded.Admission {
        guard self.table.admits(body, of: product.source) else { return .refused }
        // A source without flights and images is forgotten with its newest body, so a change alone is a reason.
        guard self.changes.isUnchanged(since: mark) else { return .served }
        self.table.keep(product, madeOf: body)
        keep()
        return .kept
    }

    // MARK: Actions

    private mutating func perform(_ actions: [FlightTable.Action]) {
        for action in actions {
            switch action {
            case .start, .wait, .resume: break
            case .change(let id, let demand):
                guard let flight = self.flights[id]?.state, let fetch = flight.change(demand) else { continue }
                // The fetcher reads the priority when it is notified, because two notices may arrive out of order.
                self.notices.run("urgency") {
                    await fetch.fetcher.priorityDidChange(of: fetch.request) { flight.demand.priority }
                }
            case .cancel(let id):
                let keepsNothing = self.flights[id]?.state.abandon() ?? false
                // The flight is removed when its task has ended.
                self.tasks[id]?.cancel()
                if keepsNothing { self.perform(self.table.passTurn(of: id)) }
            case .grant(let waiter): self.turnWaiters.removeValue(forKey: waiter)?.end(with: .success(()))
            case .dismiss(let waiter, from: let id?):
                self.revalidations[waiter] = nil
                self.flights[id]?.dismiss(waiter)
            case .dismiss(let waiter, from: nil):
                self.turnWaiters.removeValue(forKey: waiter)?.end(with: .failure(CancellationError()))
            }
        }
    }
}
