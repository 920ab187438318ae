// SPDX-License-Identifier: Apache-2.0

import TintypeDownloading

/// The flights of a loader, their waiters, and the demand of each flight.
///
/// A flight makes one product once for all of its waiters: callers, and flights that need the product. The table is a pure
/// value. Each method changes it and returns the actions that its owner must perform.
package struct FlightTable: Sendable {
    /// Names a waiter or a flight; never used twice.
    package typealias ID = UInt64

    /// The reason for a wait.
    package enum Interest: Hashable, Sendable {
        case caller(Demand)
        /// A load that needs another product at its end, and does not fail without it.
        case follower(Demand)
        /// A flight that needs the product. It hands on the demand of its own waiters.
        case flight(ID)
        /// A flight that runs although no caller waits for it.
        case background
    }

    package enum Action: Hashable, Sendable {
        case start(ID, Demand)
        /// The waiter has joined a flight that was under way.
        case wait(for: ID)
        case change(ID, Demand)
        case cancel(ID)
        case resume(waiter: ID)
        case dismiss(waiter: ID, from: ID?)
        /// The waiter's flight may ask the origin now.
        case grant(waiter: ID)
    }

    private struct Flight {
        let product: Product
        var waiters: [ID: Interest]
        var demand: Demand
        /// The waits of the flight itself, for flights that it needs.
        var waits: Set<ID> = []
        /// The priority of the flights that wait until this one has asked the origin.
        var inheritedPriority = DownloadPriority.veryLow
        /// Whether the last waiter has left, although the task has not ended.
        var isAbandoned = false
        /// Whether the flight goes on for the cache after its last waiter has left.
        var isFinishing = false

        init(product: Product, waiters: [ID: Interest], demand: Demand) {
            self.product = product
            self.waiters = waiters
            self.demand = demand
            self.noteFinishing()
        }

        mutating func noteFinishing() {
            guard self.product.kind == .bytes, self.demand.finishesDownload, self.demand.storesBytes else { return }
            self.isFinishing = true
        }
    }

    private var flights: [ID: Flight] = [:]
    /// The flights that new waiters may join.
    private var flightOfProduct: [Product: ID] = [:]
    private var flightOfWaiter: [ID: ID] = [:]
    package private(set) var lastID: ID = 0

    /// Whether there is no flight and no waiter.
    var isEmpty: Bool { self.flights.isEmpty && self.flightOfProduct.isEmpty && self.flightOfWaiter.isEmpty }

    mutating func makeID() -> ID {
        self.lastID += 1
        return self.lastID
    }

    // MARK: Look-ups

    /// Returns the number of flights that make products of `kind`.
    package func flightCount(of kind: Product.Kind) -> Int {
        self.flights.values.count { $0.product.kind == kind && !$0.isAbandoned }
    }

    /// Returns the number of callers and flights that wait for products of `kind`.
    package func waiterCount(of kind: Product.Kind) -> Int {
        self.flights.values.reduce(0) { $0 + ($1.product.kind == kind ? $1.waiters.count : 0) }
    }

    /// Returns whether a flight makes `product`.
    package func makes(_ product: Product) -> Bool { self.flightOfProduct[product] != nil }

    /// Returns the product of a flight that has not ended.
    func product(of id: ID) -> Product? { self.flights[id]?.product }

    /// Returns the demand of a flight; `nil` if it has ended or was abandoned.
    package func demand(of id: ID) -> Demand? {
        self.flights[id].flatMap { $0.isAbandoned ? nil : $0.demand }
    }

    /// Returns the flight for which a waiter waits.
    package func flight(of waiter: ID) -> ID? { self.flightOfWaiter[waiter] }

    /// Returns the flights that wait for the product of flight `id`.
    func flightsWaiting(for id: ID) -> Set<ID> {
        (self.flights[id]?.waiters.values).map { interests in
            interests.reduce(into: []) { if case .flight(let other) = $1 { $0.insert(other) } }
        } ?? []
    }

    /// Returns the flights that wait for any of `ids`, or for flights that do.
    func flightsDepending(on ids: Set<ID>) -> Set<ID> {
        var found: Set<ID> = []
        var rest = Array(ids)
        while let id = rest.popLast() {
            for other in self.flightsWaiting(for: id) where found.insert(other).inserted { rest.append(other) }
        }
        return found
    }

    // MARK: Changes

    /// Lets `waiter` wait for `product`: joins the flight that makes it, or starts one.
    mutating func join(_ product: Product, waiter: ID, interest: Interest) -> [Action] {
        // An abandoned flight needs nothing any more.
        if case .flight(let id) = interest, self.flights[id]?.isAbandoned ?? true {
            return [.dismiss(waiter: waiter, from: nil)]
        }
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

    /// Removes `waiter`, and abandons its flight if it was the last one.
    ///
    /// Does nothing for a waiter that was resumed before.
    mutating func leave(_ waiter: ID) -> [Action] {
        var actions: [Action] = []
        self.leave(waiter, &actions)
        return actions
    }

    /// Removes a flight whose task has ended, and resumes its waiters.
    mutating func finish(_ id: ID) -> [Action] {
        self.close(id)
        guard let flight = self.flights.removeValue(forKey: id) else { return [] }
        var actions: [Action] = []
        for waiter in flight.waiters.keys.sorted() {
            self.forget(waiter, flight.waiters[waiter])
            actions.append(.resume(waiter: waiter))
        }
        self.leaveAll(flight.waits, &actions)
        return actions
    }

    /// Removes all callers, and abandons the flights that need no waiter to go on.
    mutating func leaveAll() -> [Action] {
        var actions: [Action] = []
        for waiter in self.flightOfWaiter.keys.sorted() {
            guard let id = self.flightOfWaiter[waiter], let interest = self.flights[id]?.waiters[waiter] else {
                continue
            }
            switch interest {
            case .caller, .follower: self.leave(waiter, &actions)
            // Flights leave what they need when they are abandoned themselves.
            case .flight, .background: break
            }
        }
        for id in self.flights.keys.sorted() {
            if let flight = self.flights[id], flight.isFinishing, flight.waiters.isEmpty { self.abandon(id, &actions) }
        }
        return actions
    }

    /// Lets no new waiter join a flight, so that the next one starts another flight.
    mutating func close(_ id: ID) {
        guard let product = self.flights[id]?.product, self.flightOfProduct[product] == id else { return }
        self.flightOfProduct[product] = nil
    }

    /// Makes a flight at least as urgent as the flights that wait until it has asked the origin.
    mutating func inherit(_ priority: DownloadPriority, by id: ID) -> [Action] {
        guard let flight = self.flights[id], flight.inheritedPriority != priority else { return [] }
        var actions: [Action] = []
        self.flights[id]?.inheritedPriority = priority
        self.updateDemand(of: id, hasLess: priority < flight.inheritedPriority, &actions)
        return actions
    }

    // MARK: Steps

    private mutating func leave(_ waiter: ID, _ actions: inout [Action]) {
        guard let id = self.flightOfWaiter[waiter] else { return }
        self.forget(waiter, self.flights[id]?.waiters.removeValue(forKey: waiter))
        actions.append(.dismiss(waiter: waiter, from: id))
        guard let flight = self.flights[id], flight.waiters.isEmpty, !flight.isFinishing else {
            self.updateDemand(of: id, hasLess: true, &actions)
            return
        }
        self.abandon(id, &actions)
    }

    private mutating func leaveAll(_ waits: Set<ID>, _ actions: inout [Action]) {
        for wait in waits.sorted() { self.leave(wait, &actions) }
    }

    private mutating func forget(_ waiter: ID, _ interest: Interest?) {
        self.flightOfWaiter[waiter] = nil
        if case .flight(let id) = interest { self.flights[id]?.waits.remove(waiter) }
    }

    private mutating func abandon(_ id: ID, _ actions: inout [Action]) {
        guard let flight = self.flights[id], !flight.isAbandoned else { return }
        self.close(id)
        self.flights[id]?.isAbandoned = true
        actions.append(.cancel(id))
        self.leaveAll(flight.waits, &actions)
    }

    private func demand(of interest: Interest) -> Demand {
        switch interest {
        case .caller(let demand), .follower(let demand): demand
        case .flight(let id): self.flights[id]?.demand ?? Demand()
        case .background: Demand()
        }
    }

    /// Sums up the demand of a flight.
    ///
    /// If the demand can only have become less (`hasLess`), the loop ends as soon as the first waiters ask for as much as all
    /// did. Then a thousand waiters that leave do not take a million steps.
    private mutating func updateDemand(of id: ID, hasLess: Bool = false, _ actions: inout [Action]) {
        guard let flight = self.flights[id], !flight.isAbandoned else { return }
        var sum = Demand()
        sum.priority = flight.inheritedPriority
        sum.finishesDownload = flight.isFinishing
        sum.storesBytes = flight.isFinishing
        for interest in flight.waiters.values {
            sum.formUnion(self.demand(of: interest))
            if hasLess, sum == flight.demand { return }
        }
        self.set(sum, of: id, &actions)
    }

    /// Changes the demand of a flight, and of the flights for which it waits.
    private mutating func set(_ demand: Demand, of id: ID, _ actions: inout [Action]) {
        guard let flight = self.flights[id], demand != flight.demand else { return }
        self.flights[id]?.demand = demand
        self.flights[id]?.noteFinishing()
        actions.append(.change(id, demand))
        for wait in flight.waits.sorted() {
            if let other = self.flightOfWaiter[wait] { self.updateDemand(of: other, &actions) }
        }
    }
}
