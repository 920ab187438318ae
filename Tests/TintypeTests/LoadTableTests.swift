import TestSupport
import Testing

@testable import Tintype

@Suite struct LoadTableTests {
    typealias Table = LoadTable
    typealias Demand = LoadTable.Demand

    private static func bytes(_ name: String) -> Table.Product { .init(kind: .bytes, key: CacheKey(name)) }

    private static func picture(_ name: String) -> Table.Product { .init(kind: .picture, key: CacheKey(name)) }

    /// What is plainly right: what waits for which product, and what runs.
    private struct Oracle {
        struct Wait {
            let product: Table.Product
            let interest: Table.Interest
        }

        var waits: [Table.ID: Wait] = [:]
        var running: [Table.ID: Table.Product] = [:]
        var demands: [Table.ID: Demand] = [:]
        var ended: Set<Table.ID> = []

        /// The sum over all waits, made anew.
        func demand(of id: Table.ID) -> Demand? {
            guard let product = self.running[id] else { return nil }
            var sum = Demand()
            for wait in self.waits.values where wait.product == product {
                switch wait.interest {
                case .caller(let demand): sum.formUnion(demand)
                case .flight(let other): sum.formUnion(self.demand(of: other) ?? Demand())
                case .background: break
                }
            }
            return sum
        }

        private(set) var isRight = true

        /// Cheaper than an expectation, of which there would be millions.
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
                    cancelled.append(id)
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

        /// Whether the table says of each flight what the waits say.
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
            var product = Self.picture("\(source)\(Int.random(in: 0..<2, using: &random))")
            var interest = Table.Interest.caller(Self.demand(&random))
            let pictures = oracle.running.filter { $0.value.kind == .picture && $0.value.key.text.hasPrefix(source) }
            if Bool.random(using: &random) {
                product = Self.bytes(source)
                // A picture's flight waits for one thing at a time.
                let free = pictures.keys.filter { id in !oracle.waits.values.contains { $0.interest == .flight(id) } }
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
            // A result or a failure: the table does not tell them apart.
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
            pictureTiers: Bool.random(using: &random) ? .memory : .none
        )
    }

    @Test func `urgency and wants go through a picture's flight to the bytes that it waits for, both ways`() throws {
        var table = Table()
        let (a, b, c) = (table.makeID(), table.makeID(), table.makeID())
        let low = Demand(priority: .low)
        let all = Demand(priority: .veryHigh, showsPreviews: true, waitsForStore: true)
        guard
            case .start(let picture, low)? = table.join(Self.picture("1"), waiter: a, interest: .caller(low)).first,
            case .start(let bytes, low)? = table.join(Self.bytes("1"), waiter: b, interest: .flight(picture)).first
        else {
            Issue.record("nothing started")
            return
        }
        let joined = table.join(Self.picture("1"), waiter: c, interest: .caller(all))
        #expect(joined == [.wait(for: picture), .change(picture, all), .change(bytes, all)])
        #expect(table.leave(c) == [.dismiss(waiter: c, from: picture), .change(picture, low), .change(bytes, low)])
        #expect(
            table.leave(a) == [
                .dismiss(waiter: a, from: picture), .cancel(picture), .dismiss(waiter: b, from: bytes), .cancel(bytes),
            ]
        )
        #expect(table.isEmpty)
    }

    @Test func `an abandoned flight can wait for nothing more`() throws {
        var table = Table()
        let (a, b) = (table.makeID(), table.makeID())
        guard
            case .start(let picture, _)? = table.join(Self.picture("1"), waiter: a, interest: .caller(Demand())).first
        else {
            Issue.record("nothing started")
            return
        }
        _ = table.leave(a)
        let refused = table.join(Self.bytes("1"), waiter: b, interest: .flight(picture))
        #expect(refused == [.dismiss(waiter: b, from: nil)])
        #expect(table.isEmpty)
    }

    @Test func `what nothing waits for goes on when all loads are ended`() throws {
        var table = Table()
        let store = Table.Product(kind: .store(table.makeID()), key: CacheKey("1"))
        let (a, b) = (table.makeID(), table.makeID())
        let begun = table.join(store, waiter: a, interest: .background)
        guard case .start(let id, _)? = begun.first else {
            Issue.record("nothing started")
            return
        }
        _ = table.join(Self.picture("1"), waiter: b, interest: .caller(Demand()))
        #expect(!table.leaveAll().isEmpty && table.flight(of: b) == nil)
        #expect(table.makes(store))
        #expect(table.finish(id) == [.resume(waiter: a)])
        #expect(table.isEmpty)
    }
}
