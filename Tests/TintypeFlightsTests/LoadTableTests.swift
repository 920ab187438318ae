// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCaching
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeFlights

@Suite(.computing) struct LoadTableTests {
    typealias Table = LoadTable

    // A debug build takes ten times as long; `make smoke` tests an optimised one.
    #if DEBUG
    private static let sequenceCount = 500
    #else
    private static let sequenceCount = 2_000
    #endif

    @Test(arguments: 0..<50) func `no older body or image ever replaces a newer one`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<Self.sequenceCount {
            var world = LoadWorld(LoadWorld.Mode.allCases.randomElement(using: &random) ?? .always)
            let salt = UInt64.random(in: 0..<1_000, using: &random)
            // In every second sequence, the disk refuses one body in seven.
            if salt.isMultiple(of: 2) { world.refuses = { ($0 &* 31 &+ salt).isMultiple(of: 7) } }
            for _ in 0..<Int.random(in: 6..<60, using: &random) {
                switch Int.random(in: 0..<14, using: &random) {
                case 0..<3: world.joinAny(&random)
                case 12..<14: world.read(&random)
                case 3:
                    let callers = world.waiters.filter { $0.value == nil }.keys.sorted()
                    if let waiter = callers.randomElement(using: &random) {
                        world.perform(world.table.leave(waiter))
                    }
                case 4 where salt.isMultiple(of: 3): world.varies.toggle()
                default:
                    if let id = world.phases.keys.sorted().randomElement(using: &random) { world.advance(id) }
                }
            }
            var steps = 0
            while !world.phases.isEmpty, steps < 10_000 {
                for id in world.phases.keys.sorted() { world.advance(id) }
                steps += 1
            }
            guard world.isRight, world.hasOneBodyForEachSource, world.waiters.isEmpty, world.turns.isEmpty,
                world.table.isEmpty
            else {
                Issue.record("something older or unended is left, seed \(seed), mode \(world.mode)")
                return
            }
        }
    }

    @Test func `what is made of an older body is obsolete, and nothing more joins it`() {
        var table = Table()
        func join(_ product: Table.Product, _ interest: FlightTable.Interest = .caller(Demand())) -> FlightTable.Action?
        {
            table.join(product, waiter: table.makeID(), interest: interest).first
        }
        func start(_ product: Table.Product) -> Table.ID {
            guard case .start(let id, _)? = join(product) else { return 0 }
            return id
        }
        let old = start(.image("a1"))
        let new = start(.image("a2"))
        let reload = start(.image("a3", .reload))
        let other = start(.image("b1"))
        let fetch = start(.bytes("a", .reload))
        for image in [new, reload] { _ = join(.bytes("a", .reload), .flight(image)) }
        let queued = start(.bytes("a"))
        #expect(table.requestTurn(of: queued, waiter: table.makeID()) != nil)
        // The succession holds the image made from the earlier body.
        let succession = table.accept(1, from: fetch, .fetched(as: CacheKey("a")), date: nil)
        #expect(succession.obsolete == [CacheKey("a1"): .all])
        #expect(join(.image("a2")) == .wait(for: new))
        #expect(join(.image("b1")) == .wait(for: other))
        #expect(join(.bytes("a")) == .wait(for: queued))
        for product: Table.Product in [.image("a1"), .image("a3", .reload)] {
            guard case .start(let id, _)? = join(product) else {
                Issue.record("a load joins an answer to an older question")
                continue
            }
            #expect(![old, reload].contains(id))
        }
    }

    @Test func `what has the turn is as urgent as what waits for it, and the most urgent comes next`() throws {
        var table = Table()
        func start(_ source: String, _ policy: CachePolicy, _ priority: DownloadPriority) -> Table.ID {
            let product = Table.Product.bytes(source, policy, origin: "origin", usesHTTPKeys: true)
            let actions = table.join(product, waiter: table.makeID(), interest: .caller(Demand(priority: priority)))
            guard case .start(let id, _)? = actions.first else { return 0 }
            #expect(table.hasTurn(id) == (policy == .neverRevalidate))
            return id
        }
        let holder = start("a", .neverRevalidate, .low)
        let (second, third) = (start("a", .reload, .normal), start("b", .reload, .high))
        let (one, other) = (table.makeID(), table.makeID())
        #expect(table.requestTurn(of: holder, waiter: one) == nil)
        #expect(table.requestTurn(of: second, waiter: one) == [.change(holder, Demand(priority: .normal))])
        #expect(table.requestTurn(of: third, waiter: other) == [.change(holder, Demand(priority: .high))])
        #expect(table.finish(holder).contains(.grant(waiter: other)))
        #expect(table.queueCount(of: CacheKey("origin")) == 1)
        #expect(table.finish(third).contains(.grant(waiter: one)))
        _ = table.finish(second)
        #expect(table.isEmpty)
    }

    @Test func `a flight that was abandoned passes its turn, and what it has read changes nothing`() throws {
        var table = Table()
        func start(_ waiter: Table.ID) -> (id: Table.ID, hasTurn: Bool) {
            let actions = table.join(.bytes("a"), waiter: waiter, interest: .caller(Demand()))
            guard case .start(let id, _)? = actions.first else { return (0, false) }
            return (id, table.hasTurn(id))
        }
        let waiter = table.makeID()
        let old = start(waiter)
        #expect(table.leave(waiter) == [.dismiss(waiter: waiter, from: old.id), .cancel(old.id)])
        let new = start(table.makeID())
        let turn = table.makeID()
        #expect(old.hasTurn && !new.hasTurn)
        #expect(table.requestTurn(of: new.id, waiter: turn) != nil)
        #expect(table.passTurn(of: old.id) == [.grant(waiter: turn)])
        #expect(table.passTurn(of: old.id) == [])
        let name = CacheKey("a")
        #expect(table.accept(2, from: new.id, .fetched(as: name), date: nil).flights == [old.id, new.id])
        #expect(table.accept(1, from: old.id, .read(as: name), date: nil) == .init())
        _ = table.finish(old.id)
        _ = table.finish(new.id)
        #expect(table.isEmpty)
    }
}
