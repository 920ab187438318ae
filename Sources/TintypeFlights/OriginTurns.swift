// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeDownloading

/// The right of flights to ask their origins.
///
/// Two flights whose bodies may get the same name on disk ask one after the other, so that the bodies are stored in the order
/// in which they come. Turns are granted to the most urgent flight first. No flight overtakes it: otherwise flights that
/// exclude each other less could keep it waiting. A pure value.
struct OriginTurns: Sendable {
    typealias ID = FlightTable.ID
    typealias Product = FlightTable.Product

    /// A flight that waits for its turn.
    struct Entry: Hashable, Sendable {
        let flight: ID
        let waiter: ID
        fileprivate(set) var product: Product
        fileprivate(set) var priority: DownloadPriority
    }

    private struct Origin {
        var holders: [ID: Product] = [:]
        var queue: [Entry] = []

        func excludes(_ product: Product) -> Bool {
            self.holders.values.contains { $0.excludes(product) }
        }
    }

    private var origins: [CacheKey: Origin] = [:]

    /// Whether no flight has a turn or waits for one.
    var isEmpty: Bool { self.origins.isEmpty }

    /// Returns the flights that wait for their turns, in the order in which they came.
    func queue(at origin: CacheKey) -> [Entry] { self.origins[origin]?.queue ?? [] }

    /// Returns the flights that have turns.
    func holders(at origin: CacheKey) -> [ID] { self.origins[origin]?.holders.keys.sorted() ?? [] }

    func hasTurn(_ id: ID, at origin: CacheKey) -> Bool { self.origins[origin]?.holders[id] != nil }

    /// Returns the priority of the most urgent flight that waits.
    func priority(at origin: CacheKey) -> DownloadPriority {
        self.origins[origin]?.queue.map(\.priority).max() ?? .veryLow
    }

    /// Gives a flight its turn if no other flight excludes it that has a turn or waits for one.
    ///
    /// - Returns: Whether it has its turn.
    mutating func take(_ id: ID, for product: Product) -> Bool {
        if let origin = self.origins[product.origin], origin.holders[id] == nil,
            origin.excludes(product) || origin.queue.contains(where: { $0.product.excludes(product) })
        {
            return false
        }
        self.origins[product.origin, default: Origin()].holders[id] = product
        return true
    }

    /// Lets a flight wait for its turn, behind the others.
    mutating func wait(_ id: ID, for product: Product, waiter: ID, priority: DownloadPriority) {
        let entry = Entry(flight: id, waiter: waiter, product: product, priority: priority)
        self.origins[product.origin, default: Origin()].queue.append(entry)
    }

    /// Changes the priority of a flight that waits.
    ///
    /// - Returns: Whether it waits.
    mutating func setPriority(_ priority: DownloadPriority, of id: ID, at origin: CacheKey) -> Bool {
        guard let index = self.index(of: id, at: origin) else { return false }
        self.origins[origin]?.queue[index].priority = priority
        return true
    }

    /// Removes a flight that waits.
    ///
    /// - Returns: Its waiter; `nil` if it does not wait.
    mutating func withdraw(_ id: ID, from origin: CacheKey) -> ID? {
        guard let index = self.index(of: id, at: origin) else { return nil }
        defer { self.forgetIfIdle(origin) }
        return self.origins[origin]?.queue.remove(at: index).waiter
    }

    /// Ends the turn of a flight.
    ///
    /// - Returns: Whether it had a turn.
    mutating func pass(_ id: ID, at origin: CacheKey) -> Bool {
        defer { self.forgetIfIdle(origin) }
        return self.origins[origin]?.holders.removeValue(forKey: id) != nil
    }

    /// Gives turns to the flights that need not wait any more.
    ///
    /// - Returns: The flights that have turns now.
    mutating func grant(at key: CacheKey) -> [Entry] {
        var granted: [Entry] = []
        while let origin = self.origins[key], let priority = origin.queue.map(\.priority).max(),
            let index = origin.queue.firstIndex(where: { $0.priority == priority }),
            !origin.excludes(origin.queue[index].product)
        {
            let next = origin.queue[index]
            self.origins[key]?.queue.remove(at: index)
            self.origins[key]?.holders[next.flight] = next.product
            granted.append(next)
        }
        return granted
    }

    private func index(of id: ID, at origin: CacheKey) -> Int? {
        self.origins[origin]?.queue.firstIndex { $0.flight == id }
    }

    private mutating func forgetIfIdle(_ key: CacheKey) {
        if let origin = self.origins[key], origin.holders.isEmpty, origin.queue.isEmpty { self.origins[key] = nil }
    }
}

extension FlightTable.Product {
    /// Returns whether the bodies of two flights for one origin may get the same name on disk.
    fileprivate func excludes(_ other: FlightTable.Product) -> Bool {
        self.source == other.source || self.usesHTTPKeys || other.usesHTTPKeys || self.isReplaced(by: other)
            || other.isReplaced(by: self)
    }

    /// Returns whether `reload` replaces its response on disk: a response to a request without header fields has the name
    /// under which loads by HTTP's rules find responses to requests with any.
    private func isReplaced(by reload: FlightTable.Product) -> Bool {
        reload.policy == .reload && self.source == self.origin
    }
}
