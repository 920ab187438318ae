// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import TintypeCaching
import TintypeDownloading

/// The flights of a loader, their turns at the origins, and the order of the bodies that they bring.
///
/// The three are values of their own, which know nothing of each other. The table tells each of them the events of the
/// others. A pure value: its methods return the actions that its owner must perform.
package struct LoadTable: Sendable {
    package typealias ID = FlightTable.ID
    package typealias Product = FlightTable.Product
    package typealias Action = FlightTable.Action

    package private(set) var flights = FlightTable()
    private var turns = OriginTurns()
    /// The newest bodies, and the products in the cache that were made of them.
    package var bodies: BodyOrder

    /// Creates a table that remembers up to `imageLimit` images; see ``BodyOrder``.
    package init(imageLimit: Int = 16_384) {
        self.bodies = BodyOrder(limit: imageLimit)
    }

    /// Whether there is no flight and no waiter.
    var isEmpty: Bool { self.flights.isEmpty && self.turns.isEmpty && self.bodies.isEmpty }

    /// The number of sources that are loaded, or whose images are remembered.
    package var sourceCount: Int { self.bodies.sourceCount }

    /// Returns the number of flights that wait until they may ask `origin`.
    package func queueCount(of origin: CacheKey) -> Int { self.turns.queue(at: origin).count }

    /// Returns whether a flight may ask the origin without waiting for its turn.
    package func hasTurn(_ id: ID) -> Bool {
        self.flights.product(of: id).map { self.turns.hasTurn(id, at: $0.origin) } ?? false
    }

    /// Returns the newest known body of a flight's source.
    package func newestBody(for id: ID) -> UInt64? {
        self.flights.product(of: id).flatMap { self.bodies.newestBody(of: $0.source) }
    }

    package mutating func makeID() -> ID { self.flights.makeID() }

    // MARK: Waiting

    /// Lets `waiter` wait for `product`: joins the flight that makes it, or starts one.
    ///
    /// A new flight for bytes gets its turn at once if no other flight excludes it.
    package mutating func join(_ product: Product, waiter: ID, interest: FlightTable.Interest) -> [Action] {
        let actions = self.flights.join(product, waiter: waiter, interest: interest)
        guard case .start(let id, _)? = actions.first else { return self.settled(actions) }
        if product.kind == .bytes { _ = self.turns.take(id, for: product) }
        self.bodies.begin(id, product)
        return actions
    }

    /// Removes `waiter`, and abandons its flight if it was the last one.
    package mutating func leave(_ waiter: ID) -> [Action] {
        self.settled(self.flights.leave(waiter))
    }

    /// Removes all callers, as if each of them had left.
    package mutating func leaveAll() -> [Action] {
        self.settled(self.flights.leaveAll())
    }

    /// Removes a flight whose task has ended, and resumes its waiters.
    package mutating func finish(_ id: ID) -> [Action] {
        guard let origin = self.flights.product(of: id)?.origin else { return [] }
        var actions = self.flights.finish(id)
        self.bodies.end(id)
        actions += self.withdraw(id, from: origin)
        if self.turns.pass(id, at: origin) { actions += self.grantTurns(at: origin) }
        return self.settled(actions)
    }

    // MARK: Turns

    /// Gives a flight its turn to ask the origin, or lets it wait for the turn.
    ///
    /// - Returns: `nil` if the flight has its turn now. Otherwise the actions to perform; a later one grants or dismisses
    ///   `waiter`.
    package mutating func requestTurn(of id: ID, waiter: ID) -> [Action]? {
        guard let product = self.flights.product(of: id) else { return nil }
        guard !self.turns.take(id, for: product) else {
            self.bodies.restart(id)
            return nil
        }
        let priority = self.flights.demand(of: id)?.priority ?? .veryLow
        self.turns.wait(id, for: product, waiter: waiter, priority: priority)
        return self.settled(self.handOnPriority(at: product.origin))
    }

    /// Ends the turn of an abandoned flight that will store nothing, although its task has not ended.
    ///
    /// A fetcher that ignores its cancellation does not hold up later loads.
    package mutating func passTurn(of id: ID) -> [Action] {
        guard let origin = self.flights.product(of: id)?.origin, self.turns.pass(id, at: origin) else { return [] }
        return self.settled(self.grantTurns(at: origin))
    }

    // MARK: Bodies

    /// Records a body that a flight has brought, and lets no waiter join the flights that make their products of older ones.
    package mutating func accept(
        _ body: UInt64,
        from id: ID,
        _ arrival: BodyOrder.Arrival,
        date: Date?
    ) -> BodyOrder.Succession {
        guard let origin = self.flights.product(of: id)?.origin else { return BodyOrder.Succession() }
        // A flight that waits for its turn looks at the disk once more before it asks. An image is made by then.
        let queue = self.turns.queue(at: origin).filter { $0.product.kind == .bytes }
        let queued = Set(queue.map(\.flight))
        let succession = self.bodies.accept(
            body,
            from: id,
            arrival,
            date: date,
            waiting: self.flights.flightsWaiting(for: id),
            awaiting: self.flights.flightsDepending(on: queued.union([id])).union(queued)
        )
        for other in succession.closed { self.flights.close(other) }
        return succession
    }

    /// Returns whether no other body than `body` is known to be the newest of a source.
    package func admits(_ body: UInt64, of source: CacheKey) -> Bool {
        self.bodies.newestBody(of: source).map { $0 == body } ?? true
    }

    /// Records a product in the cache that was found without a flight, made of a body that is admitted.
    package mutating func keep(_ product: Product, madeOf body: UInt64) {
        self.bodies.keep(product, madeOf: body, after: self.flights.lastID)
    }

    // MARK: Steps

    /// Tells the turns what has happened to flights, and returns the actions that follow as well.
    private mutating func settled(_ actions: [Action]) -> [Action] {
        var actions = actions
        var index = 0
        while index < actions.count {
            switch actions[index] {
            case .change(let id, let demand):
                if let origin = self.flights.product(of: id)?.origin,
                    self.turns.setPriority(demand.priority, of: id, at: origin)
                {
                    actions += self.handOnPriority(at: origin)
                }
            case .cancel(let id):
                if let origin = self.flights.product(of: id)?.origin { actions += self.withdraw(id, from: origin) }
            case .start, .wait, .resume, .dismiss, .grant: break
            }
            index += 1
        }
        return actions
    }

    private mutating func withdraw(_ id: ID, from origin: CacheKey) -> [Action] {
        guard let waiter = self.turns.withdraw(id, from: origin) else { return [] }
        return [.dismiss(waiter: waiter, from: nil)] + self.grantTurns(at: origin)
    }

    private mutating func grantTurns(at origin: CacheKey) -> [Action] {
        let granted = self.turns.grant(at: origin)
        for entry in granted { self.bodies.restart(entry.flight) }
        return granted.map { .grant(waiter: $0.waiter) } + self.handOnPriority(at: origin)
    }

    /// Makes the flights that have turns as urgent as the most urgent one that waits.
    private mutating func handOnPriority(at origin: CacheKey) -> [Action] {
        let priority = self.turns.priority(at: origin)
        var actions: [Action] = []
        for id in self.turns.holders(at: origin) { actions += self.flights.inherit(priority, by: id) }
        return actions
    }
}
