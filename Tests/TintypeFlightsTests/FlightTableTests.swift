// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCaching
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeFlights

@Suite(.computing) struct FlightTableTests {
    typealias Table = FlightTable

    /// The waits and the running flights, without any shortcut.
    private struct Oracle {
        struct Wait {
            let product: Table.Product
            let interest: Table.Interest
        }

        var waits: [Table.ID: Wait] = [:]
        var running: [Table.ID: Table.Product] = [:]
        /// The flights without waiters whose tasks have not ended.
        var abandoned: Set<Table.ID> = []
        var demands: [Table.ID: Demand] = [:]
        var ended: Set<Table.ID> = []

        /// Returns the demand of a flight, summed over all waits.
        func demand(of id: Table.ID) -> Demand? {
            guard let product = self.running[id] else { return nil }
            var sum = Demand()
            for wait in self.waits.values where wait.product == product {
                switch wait.interest {
                case .caller(let demand), .follower(let demand): sum.formUnion(demand)
                case .flight(let other): sum.formUnion(self.demand(of: other) ?? Demand())
                case .background: break
                }
            }
            return sum
        }

        private(set) var isRight = true

        /// Records whether a condition holds.
        ///
        /// Millions of expectations would be slow.
        mutating func check(_ condition: Bool) {
            self.isRight = self.isRight && condition
        }

        mutating func perform(_ actions: [Table.Action], of product: Table.Product? = nil) {
            var cancelled: [Table.ID] = []
            for action in actions {
                switch action {
                case .start(let id, let demand):
                    self.check(self.running[id] == nil && !self.running.values.contains { $0 == product })
                    self.running[id] = product
                    self.demands[id] = demand
                case .wait(let id): self.check(self.running[id] != nil && self.running[id] == product)
                case .change(let id, let demand):
                    self.check(self.demands[id] != nil && self.demands[id] != demand)
                    self.demands[id] = demand
                case .cancel(let id):
                    self.check(self.running.removeValue(forKey: id) != nil)
                    self.demands[id] = nil
                    self.abandoned.insert(id)
                    cancelled.append(id)
                case .grant: self.check(false)
                case .resume(let waiter):
                    self.check(self.ended.insert(waiter).inserted)
                    self.check(self.waits.removeValue(forKey: waiter) != nil)
                case .dismiss(let waiter, _):
                    self.check(self.ended.insert(waiter).inserted)
                    self.check(self.waits.removeValue(forKey: waiter) != nil)
                }
            }
            self.check(!self.waits.values.contains { wait in cancelled.contains { wait.interest == .flight($0) } })
        }

        /// Returns whether the table agrees with the waits about each flight.
        func agrees(with table: Table) -> Bool {
            self.running.allSatisfy { id, product in
                table.makes(product) && table.demand(of: id) == self.demand(of: id)
                    && self.demands[id] == self.demand(of: id)
                    && self.waits.values.contains { $0.product == product }
            }
        }
    }

    /// Each argument is two thousand sequences.
    @Test(arguments: 0..<50) func `random sequences end each wait once and leave nothing`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            var table = Table()
            var oracle = Oracle()
            for _ in 0..<Int.random(in: 4..<13, using: &random) { Self.step(&table, &oracle, &random) }
            guard oracle.isRight, oracle.agrees(with: table) else {
                Issue.record("the table and the waits disagree, seed \(seed)")
                return
            }
            if Bool.random(using: &random) { oracle.perform(table.leaveAll()) }
            for waiter in oracle.waits.keys.sorted() where oracle.waits[waiter] != nil {
                oracle.perform(table.leave(waiter))
            }
            for id in oracle.abandoned { oracle.check(table.finish(id).isEmpty) }
            guard oracle.isRight, oracle.waits.isEmpty, oracle.running.isEmpty, table.isEmpty else {
                Issue.record("something is left, seed \(seed)")
                return
            }
        }
    }

    private static func step(_ table: inout Table, _ oracle: inout Oracle, _ random: inout SeededGenerator) {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5:
            let source = ["a", "b"].randomElement(using: &random) ?? "a"
            let waiter = table.makeID()
            var product = Table.Product.image("\(source)\(Int.random(in: 0..<2, using: &random))")
            var interest = Table.Interest.caller(Self.demand(&random))
            let images = oracle.running.filter { $0.value.kind == .image && $0.value.key.text.hasPrefix(source) }
            if Bool.random(using: &random) {
                product = .bytes(source)
                // The flight of an image waits for one product at a time.
                let free = images.keys.filter { id in !oracle.waits.values.contains { $0.interest == .flight(id) } }
                if let id = free.sorted().randomElement(using: &random) { interest = .flight(id) }
            }
            oracle.waits[waiter] = .init(product: product, interest: interest)
            oracle.perform(table.join(product, waiter: waiter, interest: interest), of: product)
        case 5..<7:
            guard let waiter = oracle.waits.keys.sorted().randomElement(using: &random) else { return }
            oracle.perform(table.leave(waiter))
            oracle.check(oracle.waits[waiter] == nil)
            oracle.check(table.leave(waiter).isEmpty)
        default:
            // The flight ends with a result or a failure. The table does not distinguish them.
            guard let id = oracle.running.keys.sorted().randomElement(using: &random) else { return }
            let actions = table.finish(id)
            let ended = oracle.running.removeValue(forKey: id)
            oracle.demands[id] = nil
            oracle.perform(actions)
            oracle.check(!oracle.waits.values.contains { $0.product == ended })
            oracle.check(table.finish(id).isEmpty)
        }
    }

    private static func demand(_ random: inout SeededGenerator) -> Demand {
        Demand(
            priority: DownloadPriority.allCases.randomElement(using: &random) ?? .normal,
            showsPreviews: Bool.random(using: &random),
            waitsForStore: Int.random(in: 0..<4, using: &random) == 0,
            storesBytes: Bool.random(using: &random),
            imageTiers: Bool.random(using: &random) ? .memory : .none
        )
    }

    @Test func `demand goes through the flight of an image to the bytes that it waits for, up and down`() throws {
        var table = Table()
        let (a, b, c) = (table.makeID(), table.makeID(), table.makeID())
        let low = Demand(priority: .low)
        let all = Demand(priority: .veryHigh, showsPreviews: true, waitsForStore: true)
        guard
            case .start(let image, _)? = table.join(.image("1"), waiter: a, interest: .caller(low)).first,
            case .start(let bytes, _)? = table.join(.bytes("1"), waiter: b, interest: .flight(image)).first
        else {
            Issue.record("nothing started")
            return
        }
        let joined = table.join(.image("1"), waiter: c, interest: .caller(all))
        #expect(joined == [.wait(for: image), .change(image, all), .change(bytes, all)])
        #expect(table.leave(c) == [.dismiss(waiter: c, from: image), .change(image, low), .change(bytes, low)])
        #expect(
            table.leave(a) == [
                .dismiss(waiter: a, from: image), .cancel(image), .dismiss(waiter: b, from: bytes), .cancel(bytes),
            ]
        )
        #expect(table.demand(of: image) == nil && !table.isEmpty)
        #expect(table.finish(image) == [])
        #expect(table.finish(bytes) == [])
        #expect(table.isEmpty)
    }

    @Test func `an abandoned flight can wait for nothing more`() throws {
        var table = Table()
        let (a, b) = (table.makeID(), table.makeID())
        guard
            case .start(let image, _)? = table.join(.image("1"), waiter: a, interest: .caller(Demand())).first
        else {
            Issue.record("nothing started")
            return
        }
        _ = table.leave(a)
        let refused = table.join(.bytes("1"), waiter: b, interest: .flight(image))
        #expect(refused == [.dismiss(waiter: b, from: nil)])
        #expect(table.finish(image) == [])
        #expect(table.isEmpty)
    }

    @Test func `a flight in the background goes on when all callers leave`() throws {
        var table = Table()
        let store = Table.Product(
            kind: .store(table.makeID()),
            key: CacheKey("1"),
            source: CacheKey("1"),
            origin: CacheKey("1")
        )
        let (a, b) = (table.makeID(), table.makeID())
        let begun = table.join(store, waiter: a, interest: .background)
        guard case .start(let id, _)? = begun.first else {
            Issue.record("nothing started")
            return
        }
        _ = table.join(.image("1"), waiter: b, interest: .caller(Demand()))
        let image = table.flight(of: b)
        #expect(!table.leaveAll().isEmpty && table.flight(of: b) == nil)
        #expect(table.makes(store))
        #expect(table.finish(id) == [.resume(waiter: a)])
        #expect(table.finish(image ?? 0) == [])
        #expect(table.isEmpty)
    }
}
