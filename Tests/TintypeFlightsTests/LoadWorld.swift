// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeTestSupport

@testable import TintypeFlights

/// Loads of three sources of one origin over a disk.
///
/// They take their steps one by one, in any order.
struct LoadWorld {
    /// The frequency of loads that follow HTTP's freshness in a sequence.
    enum Mode: CaseIterable {
        case never, always, sometimes
    }

    enum Phase {
        /// A flight for bytes that has not searched the disk yet.
        case reading
        case waitingForTurn
        case fetching(body: UInt64)
        case storing(body: UInt64)
        case ended(body: UInt64, BodyOrder.Arrival)
        /// A flight for an image that waits for its bytes.
        case waiting
        case made(body: UInt64)
        case kept(body: UInt64)
        case abandoned
    }

    struct Entry {
        let body: UInt64
        /// The only source that selects the entry, or `nil` if any source does.
        let selector: CacheKey?
    }

    static let origin = CacheKey("a")

    typealias Table = LoadTable

    let mode: Mode
    var table = Table(imageLimit: 1_000)
    var products: [Table.ID: Table.Product] = [:]
    var phases: [Table.ID: Phase] = [:]
    var hasTurn: Set<Table.ID> = []
    var newest: [Table.ID: UInt64] = [:]
    /// The waiters.
    ///
    /// The value is the flight of an image that waits, or `nil` for a caller.
    var waiters: [Table.ID: Table.ID?] = [:]
    var turns: [Table.ID: Table.ID] = [:]
    var disk: [CacheKey: Entry] = [:]
    var memory: [CacheKey: (body: UInt64, source: CacheKey)] = [:]
    /// Images that are being read without a flight.
    ///
    /// `isUnchanged` is false if a body was accepted meanwhile.
    var readings: [(product: Table.Product, body: UInt64, isUnchanged: Bool)] = []
    /// The bodies whose images may be on disk.
    var accepted: Set<UInt64> = []
    var lastBody: UInt64 = 0
    /// Whether responses vary now, and the bodies of responses that varied.
    var varies = false
    var varying: Set<UInt64> = []
    /// Returns whether the disk refuses a body.
    var refuses: ((UInt64) -> Bool)?
    var isRight = true

    init(_ mode: Mode) { self.mode = mode }

    mutating func check(_ condition: Bool) { self.isRight = self.isRight && condition }

    mutating func join(_ product: Table.Product, for image: Table.ID?) {
        let waiter = self.table.makeID()
        self.waiters[waiter] = .some(image)
        let interest = image.map { FlightTable.Interest.flight($0) } ?? .caller(Demand())
        self.perform(self.table.join(product, waiter: waiter, interest: interest), product)
    }

    mutating func joinAny(_ random: inout SeededGenerator) {
        self.join(self.makeProduct(&random), for: nil)
    }

    private func makeProduct(_ random: inout SeededGenerator) -> Table.Product {
        let source = ["a", "ad", "ae"].randomElement(using: &random) ?? "a"
        return Table.Product(
            kind: .image,
            key: CacheKey("\(source)\(Int.random(in: 0..<3, using: &random))"),
            source: CacheKey(source),
            origin: Self.origin,
            policy: Bool.random(using: &random) ? .reload : .neverRevalidate,
            usesHTTPKeys: self.mode == .always || self.mode == .sometimes && Bool.random(using: &random)
        )
    }

    /// Begins to read an image of the body on disk without a flight, or ends such a reading.
    mutating func read(_ random: inout SeededGenerator) {
        if Bool.random(using: &random), let index = self.readings.indices.randomElement(using: &random) {
            let reading = self.readings.remove(at: index)
            guard self.table.admits(reading.body, of: reading.product.source), reading.isUnchanged else { return }
            self.table.keep(reading.product, madeOf: reading.body)
            self.memory[reading.product.key] = (reading.body, reading.product.source)
        } else {
            let product = self.makeProduct(&random)
            guard let entry = self.entry(for: product)?.1, self.accepted.contains(entry.body) else { return }
            self.readings.append((product, entry.body, true))
        }
    }

    mutating func perform(_ actions: [Table.Action], _ product: Table.Product? = nil, body: UInt64 = 0) {
        for action in actions {
            switch action {
            case .start(let id, _):
                self.products[id] = product
                self.newest[id] = self.table.newestBody(for: id)
                if self.table.hasTurn(id) { self.hasTurn.insert(id) }
                self.phases[id] = product?.kind == .bytes ? .reading : .waiting
                if let product, product.kind == .image {
                    let bytes = Table.Product(
                        kind: .bytes,
                        key: product.source,
                        source: product.source,
                        origin: product.origin,
                        policy: product.policy,
                        usesHTTPKeys: product.usesHTTPKeys
                    )
                    self.join(bytes, for: id)
                }
            case .cancel(let id):
                switch self.phases[id] {
                // A store that has begun continues.
                case .storing: continue
                case .ended(_, let arrival) where arrival.isFetched: continue
                case .ended, .kept: break
                default: self.phases[id] = .abandoned
                }
                self.perform(self.table.passTurn(of: id))
            case .resume(let waiter):
                self.check(self.waiters[waiter] != nil)
                if let image = self.waiters.removeValue(forKey: waiter) ?? nil {
                    self.phases[image] = .made(body: body)
                }
            case .dismiss(let waiter, _):
                self.check(
                    self.waiters.removeValue(forKey: waiter) != nil || self.turns.removeValue(forKey: waiter) != nil
                )
            case .grant(let waiter):
                guard let id = self.turns.removeValue(forKey: waiter) else { return self.check(false) }
                self.hasTurn.insert(id)
                self.phases[id] = .reading
            case .wait, .change: break
            }
        }
    }

    /// Takes one step of one flight.
    mutating func advance(_ id: Table.ID) {
        guard let product = self.products[id], let phase = self.phases[id] else { return }
        let source = product.source
        switch phase {
        case .waiting, .waitingForTurn: break
        case .reading:
            if product.policy != .reload, let (name, entry) = self.entry(for: product) {
                self.phases[id] = .ended(body: entry.body, .read(as: name))
            } else if self.hasTurn.contains(id) {
                self.checkIsAlone(product)
                self.lastBody += 1
                if self.varies { self.varying.insert(self.lastBody) }
                self.phases[id] = .fetching(body: self.lastBody)
            } else {
                self.requestTurn(of: id)
            }
        case .fetching(let body): self.phases[id] = .storing(body: body)
        case .storing(let body): self.phases[id] = .ended(body: body, .fetched(as: self.store(body, of: product)))
        case .ended(let body, let arrival):
            let date = Date(timeIntervalSince1970: Double(body))
            let succession = self.table.accept(body, from: id, arrival, date: date)
            self.accepted.insert(body)
            for index in self.readings.indices { self.readings[index].isUnchanged = false }
            for flight in succession.flights { self.newest[flight] = body }
            for key in succession.obsolete.keys { self.memory[key] = nil }
            self.end(id, body: body)
        case .made(let body):
            if self.newest[id] == nil || self.newest[id] == body {
                // An older image never replaces a newer one.
                if self.mode != .sometimes { self.check(self.memory[product.key].map { $0.body <= body } ?? true) }
                self.memory[product.key] = (body, source)
                self.phases[id] = .kept(body: body)
            } else {
                self.end(id, body: body)
            }
        case .kept(let body):
            if !self.table.bodies.keep(product.key, madeOf: body, by: id) { self.memory[product.key] = nil }
            self.end(id, body: body)
        case .abandoned: self.end(id, body: 0)
        }
    }

    /// Checks that loads which may store under the same name fetch one at a time.
    private mutating func checkIsAlone(_ product: Table.Product) {
        for (other, phase) in self.phases {
            switch (phase, self.products[other]) {
            case (.fetching, let other?), (.storing, let other?):
                let mayMeet = other.source == product.source || other.usesHTTPKeys || product.usesHTTPKeys
                let isReplaced = [(other, product), (product, other)].contains { reload, plain in
                    reload.policy == .reload && plain.source == Self.origin
                }
                self.check(!mayMeet && !isReplaced)
            default: break
            }
        }
    }

    private mutating func requestTurn(of id: Table.ID) {
        let waiter = self.table.makeID()
        guard self.table.flights.demand(of: id) != nil else { return self.end(id, body: 0) }
        if let actions = self.table.requestTurn(of: id, waiter: waiter) {
            self.turns[waiter] = id
            self.phases[id] = .waitingForTurn
            self.perform(actions)
        } else {
            self.hasTurn.insert(id)
        }
    }

    /// Returns the name and the entry that a load finds on disk.
    func entry(for product: Table.Product) -> (CacheKey, Entry)? {
        guard product.usesHTTPKeys else { return self.disk[product.source].map { (product.source, $0) } }
        return self.selected(by: product.source)
    }

    func selected(by source: CacheKey) -> (CacheKey, Entry)? {
        if let entry = self.disk[Self.origin], entry.selector == nil || entry.selector == source {
            return (Self.origin, entry)
        }
        let name = CacheKey("\(source.text)|vary")
        return self.disk[name].map { (name, $0) }
    }

    /// Stores a body on disk instead of the entries that it replaces, unless the disk refuses it.
    private mutating func store(_ body: UInt64, of product: Table.Product) -> CacheKey {
        let source = product.source
        var name = source
        let isVarying = self.varying.contains(body)
        if product.usesHTTPKeys {
            name = isVarying && source != Self.origin ? CacheKey("\(source.text)|vary") : Self.origin
        }
        // No older body replaces a newer one.
        self.check(self.disk[name].map { $0.body < body } ?? true)
        if product.usesHTTPKeys, name != source { self.disk[source] = nil }
        if source != Self.origin, product.usesHTTPKeys || product.policy == .reload,
            let (other, entry) = self.selected(by: source), other != name
        {
            self.check(entry.body < body)
            self.disk[other] = nil
        }
        if product.usesHTTPKeys, name == Self.origin { self.disk[CacheKey("\(source.text)|vary")] = nil }
        let isRefused = self.refuses?(body) ?? false
        let hasSelector = isVarying && name == Self.origin
        self.disk[name] = isRefused ? nil : Entry(body: body, selector: hasSelector ? source : nil)
        return name
    }

    private mutating func end(_ id: Table.ID, body: UInt64) {
        self.phases[id] = nil
        self.products[id] = nil
        self.hasTurn.remove(id)
        self.perform(self.table.finish(id), body: max(body, 1))
    }

    /// Whether all images of each source have one body: the body that its loads find on disk, if any.
    var hasOneBodyForEachSource: Bool {
        Dictionary(grouping: self.memory.values, by: \.source).allSatisfy { source, images in
            let bodies = Set(images.map(\.body))
            let stored: UInt64? =
                switch self.mode {
                case .never: self.disk[source]?.body
                case .always: self.selected(by: source)?.1.body
                // A load that ignores freshness leaves fresh entries to other loads.
                case .sometimes: nil
                }
            return bodies.count == 1 && (stored.map { bodies == [$0] } ?? true)
        }
    }
}
