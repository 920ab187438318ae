// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCaching
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeFlights

private let origin = CacheKey("o")

@Suite(.computing) struct OriginTurnsTests {
    /// The flights of one origin, as lists.
    private struct Oracle {
        struct Flight {
            let id: FlightTable.ID
            let product: FlightTable.Product
            var priority: DownloadPriority

            func excludes(_ other: Flight) -> Bool {
                let replaces = [(self, other), (other, self)].contains { reload, plain in
                    reload.product.policy == .reload && plain.product.source == plain.product.origin
                }
                return replaces || self.product.source == other.product.source || self.product.usesHTTPKeys
                    || other.product.usesHTTPKeys
            }
        }

        var turns = OriginTurns()
        var holders: [Flight] = []
        /// The waiting flights, in the order of arrival.
        var queue: [Flight] = []
        var lastID: FlightTable.ID = 0
        private(set) var isRight = true

        mutating func check(_ condition: Bool) { self.isRight = self.isRight && condition }

        mutating func arrive(_ random: inout SeededGenerator) {
            self.lastID += 1
            let product = FlightTable.Product.bytes(
                ["o", "p", "q"].randomElement(using: &random) ?? "o",
                Int.random(in: 0..<3, using: &random) == 0 ? .reload : .neverRevalidate,
                origin: "o",
                usesHTTPKeys: Int.random(in: 0..<3, using: &random) == 0
            )
            let flight = Flight(id: self.lastID, product: product, priority: Self.priority(&random))
            let isExcluded = (self.holders + self.queue).contains { $0.excludes(flight) }
            self.check(self.turns.take(flight.id, for: product) == !isExcluded)
            guard isExcluded else { return self.holders.append(flight) }
            self.turns.wait(flight.id, for: product, waiter: flight.id + 1_000, priority: flight.priority)
            self.queue.append(flight)
        }

        mutating func changePriority(_ random: inout SeededGenerator) {
            let priority = Self.priority(&random)
            if let index = self.queue.indices.randomElement(using: &random) {
                self.queue[index].priority = priority
                self.check(self.turns.setPriority(priority, of: self.queue[index].id, at: origin))
            }
            for holder in self.holders { self.check(!self.turns.setPriority(priority, of: holder.id, at: origin)) }
        }

        mutating func withdraw(_ random: inout SeededGenerator) {
            guard let index = self.queue.indices.randomElement(using: &random) else { return }
            let id = self.queue.remove(at: index).id
            self.check(self.turns.withdraw(id, from: origin) == id + 1_000)
            self.check(self.turns.withdraw(id, from: origin) == nil)
            self.grant()
        }

        mutating func pass(_ random: inout SeededGenerator) {
            guard let index = self.holders.indices.randomElement(using: &random) else { return }
            let id = self.holders.remove(at: index).id
            self.check(self.turns.pass(id, at: origin))
            self.check(!self.turns.pass(id, at: origin))
            self.grant()
        }

        private mutating func grant() {
            for entry in self.turns.grant(at: origin) {
                let urgency = self.queue.map(\.priority).max()
                guard let index = self.queue.firstIndex(where: { $0.priority == urgency }) else {
                    return self.check(false)
                }
                let next = self.queue.remove(at: index)
                self.check(entry.flight == next.id && entry.waiter == next.id + 1_000)
                self.check(!self.holders.contains { $0.excludes(next) })
                self.holders.append(next)
            }
            // No flight waits without a reason.
            let urgency = self.queue.map(\.priority).max()
            guard let next = self.queue.first(where: { $0.priority == urgency }) else { return }
            self.check(self.holders.contains { $0.excludes(next) })
        }

        var agrees: Bool {
            self.turns.holders(at: origin) == self.holders.map(\.id).sorted()
                && self.turns.queue(at: origin).map(\.flight) == self.queue.map(\.id)
                && self.turns.priority(at: origin) == self.queue.map(\.priority).max() ?? .veryLow
                && self.holders.allSatisfy { self.turns.hasTurn($0.id, at: origin) }
        }

        private static func priority(_ random: inout SeededGenerator) -> DownloadPriority {
            DownloadPriority.allCases.randomElement(using: &random) ?? .normal
        }
    }

    /// Each argument is two thousand sequences.
    @Test(arguments: 0..<50)
    func `random sequences grant turns in order, and never to flights that exclude each other`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            var oracle = Oracle()
            for _ in 0..<Int.random(in: 4..<16, using: &random) {
                switch Int.random(in: 0..<8, using: &random) {
                case 0..<4: oracle.arrive(&random)
                case 4: oracle.changePriority(&random)
                case 5: oracle.withdraw(&random)
                default: oracle.pass(&random)
                }
            }
            let agrees = oracle.agrees
            for _ in 0..<20 { oracle.pass(&random) }
            guard agrees, oracle.isRight, oracle.queue.isEmpty, oracle.turns.isEmpty else {
                Issue.record("a turn was granted too early, too late or out of order, seed \(seed)")
                return
            }
        }
    }

    @Test func `sources take turns if their bodies may get the same name, and no flight is overtaken`() {
        var turns = OriginTurns()
        func product(_ source: String, usesHTTPKeys: Bool = false) -> FlightTable.Product {
            .bytes(source, .reload, origin: "o", usesHTTPKeys: usesHTTPKeys)
        }
        #expect(turns.take(1, for: product("de")) == true)
        #expect(turns.take(2, for: product("en")) == true)
        #expect(turns.take(3, for: product("fr", usesHTTPKeys: true)) == false)
        turns.wait(3, for: product("fr", usesHTTPKeys: true), waiter: 30, priority: .normal)
        #expect(turns.take(4, for: product("it")) == false)
        turns.wait(4, for: product("it"), waiter: 40, priority: .normal)
        func pass(_ id: FlightTable.ID) -> [FlightTable.ID] {
            #expect(turns.pass(id, at: origin) == true)
            return turns.grant(at: origin).map(\.waiter)
        }
        #expect(pass(1) == [])
        #expect(pass(2) == [30])
        #expect(pass(3) == [40])
        #expect(pass(4) == [])
        #expect(turns.isEmpty)
    }

    @Test(arguments: [false, true])
    func `a reload takes turns with loads without header fields, whose responses loads by HTTP's rules find`(
        isReloadFirst: Bool
    ) {
        var turns = OriginTurns()
        let reload = FlightTable.Product.bytes("de", .reload, origin: "o")
        let plain = FlightTable.Product.bytes("o", origin: "o")
        let other = FlightTable.Product.bytes("en", origin: "o")
        let (first, second) = isReloadFirst ? (reload, plain) : (plain, reload)
        #expect(turns.take(1, for: first) == true)
        #expect(turns.take(2, for: second) == false)
        #expect(turns.take(3, for: other) == true)
        turns.wait(2, for: second, waiter: 20, priority: .normal)
        #expect(turns.pass(1, at: origin) == true)
        #expect(turns.grant(at: origin).map(\.waiter) == [20])
    }
}
