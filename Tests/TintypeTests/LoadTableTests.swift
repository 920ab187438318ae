import FoundationEssentials
import TestSupport
import TestTraits
import Testing

@testable import Tintype

@Suite(.computing) struct LoadTableTests {
    typealias Table = LoadTable
    typealias Demand = LoadTable.Demand

    private static func bytes(_ name: String, _ policy: CachePolicy = .neverRevalidate) -> Table.Product {
        .init(kind: .bytes, key: CacheKey(name), source: CacheKey(name), origin: CacheKey(name), policy: policy)
    }

    /// A picture of the source that the first letter names.
    private static func picture(_ name: String, _ policy: CachePolicy = .neverRevalidate) -> Table.Product {
        {
            let source = CacheKey(String(name.prefix(1)))
            return .init(kind: .picture, key: CacheKey(name), source: source, origin: source, policy: policy)
        }()
    }

    /// What is plainly right: what waits for which product, and what runs.
    private struct Oracle {
        struct Wait {
            let product: Table.Product
            let interest: Table.Interest
        }

        var waits: [Table.ID: Wait] = [:]
        var running: [Table.ID: Table.Product] = [:]
        /// Those that nothing waits for any more, until their tasks end.
        var abandoned: Set<Table.ID> = []
        var demands: [Table.ID: Demand] = [:]
        var ended: Set<Table.ID> = []

        /// The sum over all waits, made anew.
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

        /// Cheaper than an expectation, of which there would be millions.
        mutating func check(_ condition: Bool) {
            self.isRight = self.isRight && condition
        }

        mutating func perform(_ actions: [Table.Action], of product: Table.Product? = nil) {
            var cancelled: [Table.ID] = []
            for action in actions {
                switch action {
                case .start(let id, let briefing):
                    self.check(self.running[id] == nil && !self.running.values.contains { $0 == product })
                    self.running[id] = product
                    self.demands[id] = briefing.demand
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

    // MARK: Bodies in order

    /// Whether HTTP's freshness counts for the loads of a sequence.
    private enum Mode: CaseIterable {
        case never, always, sometimes
    }

    /// Loads of three sources of one origin over a disk, which do their steps one by one in any order.
    private struct World {
        enum Phase {
            /// Of bytes: the disk is yet to be read.
            case reading
            case waitingForTurn
            case fetching(body: UInt64)
            case storing(body: UInt64)
            case ended(body: UInt64, LoadTable.Arrival)
            /// Of a picture: what it was made of is yet to be kept.
            case waiting
            case made(body: UInt64)
            case kept(body: UInt64)
            case abandoned
        }

        struct Entry {
            let body: UInt64
            /// The one source that selects it; `nil` for any.
            let selector: CacheKey?
        }

        static let origin = CacheKey("a")

        let mode: Mode
        var table = Table(pictureLimit: 1_000)
        var products: [Table.ID: Table.Product] = [:]
        var phases: [Table.ID: Phase] = [:]
        var hasTurn: Set<Table.ID> = []
        var newest: [Table.ID: UInt64] = [:]
        /// What callers and pictures wait for: the flight of a picture, or nothing for a caller.
        var waiters: [Table.ID: Table.ID?] = [:]
        var turns: [Table.ID: Table.ID] = [:]
        var disk: [CacheKey: Entry] = [:]
        var memory: [CacheKey: (body: UInt64, source: CacheKey)] = [:]
        /// Images that are read without a flight, and whether a body was accepted meanwhile.
        var readings: [(product: Table.Product, body: UInt64, isUnchanged: Bool)] = []
        /// Images on disk are made of these.
        var accepted: Set<UInt64> = []
        var lastBody: UInt64 = 0
        /// Whether responses vary now, and those that did.
        var varies = false
        var varying: Set<UInt64> = []
        /// Which bodies the disk refuses.
        var refuses: ((UInt64) -> Bool)?
        var isRight = true

        init(_ mode: Mode) { self.mode = mode }

        mutating func check(_ condition: Bool) { self.isRight = self.isRight && condition }

        mutating func join(_ product: Table.Product, for picture: Table.ID?) {
            let waiter = self.table.makeID()
            self.waiters[waiter] = .some(picture)
            let interest = picture.map { Table.Interest.flight($0) } ?? .caller(Demand())
            self.perform(self.table.join(product, waiter: waiter, interest: interest), product)
        }

        mutating func joinAny(_ random: inout SeededGenerator) {
            self.join(self.makeProduct(&random), for: nil)
        }

        private func makeProduct(_ random: inout SeededGenerator) -> Table.Product {
            let source = ["a", "ad", "ae"].randomElement(using: &random) ?? "a"
            var product = Table.Product(
                kind: .picture,
                key: CacheKey("\(source)\(Int.random(in: 0..<3, using: &random))"),
                source: CacheKey(source),
                origin: Self.origin,
                policy: Bool.random(using: &random) ? .reload : .neverRevalidate
            )
            product.usesHTTPKeys = self.mode == .always || self.mode == .sometimes && Bool.random(using: &random)
            return product
        }

        /// Begins to read an image of the body on disk, or ends such a reading.
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
                case .start(let id, let briefing):
                    self.products[id] = product
                    self.newest[id] = briefing.newestBody
                    if briefing.hasTurn { self.hasTurn.insert(id) }
                    self.phases[id] = product?.kind == .bytes ? .reading : .waiting
                    if let product, product.kind == .picture {
                        var bytes = Table.Product(
                            kind: .bytes,
                            key: product.source,
                            source: product.source,
                            origin: product.origin,
                            policy: product.policy
                        )
                        bytes.usesHTTPKeys = product.usesHTTPKeys
                        self.join(bytes, for: id)
                    }
                case .cancel(let id):
                    switch self.phases[id] {
                    // What is on its way into a cache gets there all the same.
                    case .storing, .ended(_, .fetched): continue
                    case .ended, .kept: break
                    default: self.phases[id] = .abandoned
                    }
                    self.perform(self.table.passTurn(of: id))
                case .resume(let waiter):
                    self.check(self.waiters[waiter] != nil)
                    if let picture = self.waiters.removeValue(forKey: waiter) ?? nil {
                        self.phases[picture] = .made(body: body)
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

        /// One step of one flight.
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
                    // No older picture replaces a newer one.
                    if self.mode != .sometimes { self.check(self.memory[product.key].map { $0.body <= body } ?? true) }
                    self.memory[product.key] = (body, source)
                    self.phases[id] = .kept(body: body)
                } else {
                    self.end(id, body: body)
                }
            case .kept(let body):
                if !self.table.keep(product.key, madeOf: body, by: id) { self.memory[product.key] = nil }
                self.end(id, body: body)
            case .abandoned: self.end(id, body: 0)
            }
        }

        /// Of loads that may store under the same name, one fetches at a time.
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
            guard self.table.demand(of: id) != nil else { return self.end(id, body: 0) }
            if let actions = self.table.requestTurn(of: id, waiter: waiter) {
                self.turns[waiter] = id
                self.phases[id] = .waitingForTurn
                self.perform(actions)
            } else {
                self.hasTurn.insert(id)
            }
        }

        /// What the disk has for a load.
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

        /// Puts a body on the disk, unless that refuses it, in place of what it replaces.
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

        /// Whether the pictures of each source are of one body, which is the one that its loads find on disk, if any.
        var hasOneBodyForEachSource: Bool {
            Dictionary(grouping: self.memory.values, by: \.source).allSatisfy { source, pictures in
                let bodies = Set(pictures.map(\.body))
                let stored: UInt64? =
                    switch self.mode {
                    case .never: self.disk[source]?.body
                    case .always: self.selected(by: source)?.1.body
                    // A load to which freshness means nothing leaves what is fresh to others.
                    case .sometimes: nil
                    }
                return bodies.count == 1 && (stored.map { bodies == [$0] } ?? true)
            }
        }
    }

    /// Each argument is two thousand sequences.
    @Test(arguments: 0..<50) func `no older body or picture ever replaces a newer one`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            var world = World(Mode.allCases.randomElement(using: &random) ?? .always)
            let salt = UInt64.random(in: 0..<1_000, using: &random)
            // One body in seven, of one sequence in two.
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

    @Test func `a body that another process has stored is news, and one that was read too early is not`() throws {
        var table = Table()
        func start(_ product: Table.Product) -> Table.ID {
            let actions = table.join(product, waiter: table.makeID(), interest: .caller(Demand()))
            guard case .start(let id, _)? = actions.first else { return 0 }
            return id
        }
        let (key, fetch) = (CacheKey("a1"), start(Self.bytes("a", .reload)))
        let early = start(Self.bytes("a"))
        let picture = start(Self.picture("a1"))
        _ = table.join(Self.bytes("a", .reload), waiter: table.makeID(), interest: .flight(picture))
        let (fetched, read) = (Table.Arrival.fetched(as: CacheKey("a")), Table.Arrival.read(as: CacheKey("a")))
        func accept(_ body: UInt64, _ id: Table.ID, _ arrival: Table.Arrival, at time: Double) -> Table.Succession {
            table.accept(body, from: id, arrival, date: Date(timeIntervalSince1970: time))
        }
        #expect(accept(1, fetch, fetched, at: 10) == .init(flights: [fetch, early, picture]))
        #expect(table.keep(key, madeOf: 1, by: picture) == true)
        // Read before the body came.
        #expect(accept(7, early, read, at: 20) == .init())
        #expect(table.keep(key, madeOf: 7, by: picture) == false)
        let late = start(Self.bytes("a", .honorFreshness))
        #expect(accept(1, late, read, at: 10) == .init())
        // The disk has refused the newest, and has an older one.
        #expect(accept(8, late, read, at: 9) == .init())
        let all: Set<Table.ID> = [fetch, early, picture, late]
        #expect(accept(2, late, read, at: 30) == .init(obsolete: [key: .all], flights: all))
        #expect(table.keep(key, madeOf: 1, by: picture) == false)
        #expect(table.keep(key, madeOf: 2, by: picture) == true)
    }

    @Test func `what is made of an older body is obsolete, and nothing more joins it`() {
        var table = Table()
        func join(_ product: Table.Product, _ interest: Table.Interest = .caller(Demand())) -> Table.Action? {
            table.join(product, waiter: table.makeID(), interest: interest).first
        }
        func start(_ product: Table.Product) -> Table.ID {
            guard case .start(let id, _)? = join(product) else { return 0 }
            return id
        }
        let old = start(Self.picture("a1"))
        let new = start(Self.picture("a2"))
        let reload = start(Self.picture("a3", .reload))
        let other = start(Self.picture("b1"))
        let fetch = start(Self.bytes("a", .reload))
        for picture in [new, reload] { _ = join(Self.bytes("a", .reload), .flight(picture)) }
        let queued = start(Self.bytes("a"))
        #expect(table.requestTurn(of: queued, waiter: table.makeID()) != nil)
        // It holds what the body before was made into.
        let succession = table.accept(1, from: fetch, .fetched(as: CacheKey("a")), date: nil)
        #expect(succession.obsolete == [CacheKey("a1"): .all])
        #expect(join(Self.picture("a2")) == .wait(for: new))
        #expect(join(Self.picture("b1")) == .wait(for: other))
        #expect(join(Self.bytes("a")) == .wait(for: queued))
        for product in [Self.picture("a1"), Self.picture("a3", .reload)] {
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
            let product = Table.Product(
                kind: .bytes,
                key: CacheKey(source),
                source: CacheKey(source),
                origin: CacheKey("origin"),
                policy: policy,
                usesHTTPKeys: true
            )
            let actions = table.join(product, waiter: table.makeID(), interest: .caller(Demand(priority: priority)))
            guard case .start(let id, let briefing)? = actions.first else { return 0 }
            #expect(briefing.hasTurn == (policy == .neverRevalidate))
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

    @Test func `sources take turns where their bodies may get the same name, and none is overtaken`() throws {
        var table = Table()
        func start(_ source: String, usesHTTPKeys: Bool = false) -> (id: Table.ID, hasTurn: Bool) {
            let product = Table.Product(
                kind: .bytes,
                key: CacheKey(source),
                source: CacheKey(source),
                origin: CacheKey("origin"),
                policy: .reload,
                usesHTTPKeys: usesHTTPKeys
            )
            let actions = table.join(product, waiter: table.makeID(), interest: .caller(Demand()))
            guard case .start(let id, let briefing)? = actions.first else { return (0, false) }
            return (id, briefing.hasTurn)
        }
        let (german, english) = (start("de"), start("en"))
        #expect(german.hasTurn && english.hasTurn)
        let (first, second) = (table.makeID(), table.makeID())
        let varying = start("fr", usesHTTPKeys: true)
        #expect(table.requestTurn(of: varying.id, waiter: first) == [])
        let late = start("it")
        #expect(!varying.hasTurn && !late.hasTurn)
        #expect(table.requestTurn(of: late.id, waiter: second) == [])
        #expect(!table.finish(german.id).contains(.grant(waiter: first)))
        #expect(table.finish(english.id).contains(.grant(waiter: first)))
        #expect(table.finish(varying.id).contains(.grant(waiter: second)))
        _ = table.finish(late.id)
        #expect(table.isEmpty)
    }

    @Test(arguments: [false, true])
    func `a reload takes turns with loads without header fields, whose responses loads by HTTP's rules find`(
        isReloadFirst: Bool
    ) throws {
        var table = Table()
        func start(_ source: String, _ policy: CachePolicy) -> (id: Table.ID, hasTurn: Bool) {
            let product = Table.Product(
                kind: .bytes,
                key: CacheKey(source),
                source: CacheKey(source),
                origin: CacheKey("origin"),
                policy: policy
            )
            let actions = table.join(product, waiter: table.makeID(), interest: .caller(Demand()))
            guard case .start(let id, let briefing)? = actions.first else { return (0, false) }
            return (id, briefing.hasTurn)
        }
        func startReload() -> (id: Table.ID, hasTurn: Bool) { start("de", .reload) }
        func startPlain() -> (id: Table.ID, hasTurn: Bool) { start("origin", .neverRevalidate) }
        let first = isReloadFirst ? startReload() : startPlain()
        let second = isReloadFirst ? startPlain() : startReload()
        let other = start("en", .neverRevalidate)
        #expect(first.hasTurn && !second.hasTurn && other.hasTurn)
        let waiter = table.makeID()
        #expect(table.requestTurn(of: second.id, waiter: waiter) == [])
        #expect(table.finish(first.id).contains(.grant(waiter: waiter)))
        for id in [second.id, other.id] { _ = table.finish(id) }
        #expect(table.isEmpty)
    }

    @Test func `a flight that was abandoned passes its turn, and what it has read changes nothing`() throws {
        var table = Table()
        func start(_ waiter: Table.ID) -> (id: Table.ID, hasTurn: Bool) {
            let actions = table.join(Self.bytes("a"), waiter: waiter, interest: .caller(Demand()))
            guard case .start(let id, let briefing)? = actions.first else { return (0, false) }
            return (id, briefing.hasTurn)
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

    @Test(arguments: [false, true])
    func `pictures of other sources are obsolete where these select the response that is replaced`(isVarying: Bool) {
        var table = Table()
        func name(_ source: String) -> CacheKey { CacheKey(isVarying ? "a|\(source)" : "a") }
        func start(_ kind: Table.Product.Kind, _ source: String) -> Table.ID {
            let product = Table.Product(
                kind: kind,
                key: CacheKey(source),
                source: CacheKey(source),
                origin: CacheKey("a"),
                policy: .reload,
                usesHTTPKeys: true
            )
            let actions = table.join(product, waiter: table.makeID(), interest: .caller(Demand()))
            guard case .start(let id, _)? = actions.first else { return 0 }
            return id
        }
        func load(_ source: String, _ body: UInt64) -> [CacheKey: CacheTiers] {
            let bytes = start(.bytes, source)
            let obsolete = table.accept(body, from: bytes, .fetched(as: name(source)), date: nil).obsolete
            let picture = start(.picture, source)
            let isKept = table.keep(CacheKey(source), madeOf: body, by: picture)
            #expect(isKept)
            for id in [bytes, picture] { _ = table.finish(id) }
            return obsolete
        }
        #expect(load("ad", 1) == [:])
        // Under the source's own key the disk may have its bytes.
        #expect(load("ae", 2) == (isVarying ? [:] : [CacheKey("ad"): .memory]))
        #expect(load("ae", 3)[CacheKey("ae")] == .memory)
        #expect(table.sourceCount == (isVarying ? 2 : 1))
    }

    @Test func `a load that brings the same new body ends only after what that replaces is gone`() {
        var table = Table()
        func start(_ kind: Table.Product.Kind, _ policy: CachePolicy) -> Table.ID {
            let key = CacheKey("a")
            let product = Table.Product(kind: kind, key: key, source: key, origin: key, policy: policy)
            let actions = table.join(product, waiter: table.makeID(), interest: .caller(Demand()))
            guard case .start(let id, _)? = actions.first else { return 0 }
            return id
        }
        let picture = start(.picture, .neverRevalidate)
        #expect(table.keep(CacheKey("a"), madeOf: 1, by: picture) == true)
        _ = table.finish(picture)
        let (fetch, read) = (start(.bytes, .reload), start(.bytes, .neverRevalidate))
        let replaced: [CacheKey: CacheTiers] = [CacheKey("a"): .memory]
        // The disk has the body before the fetch has ended.
        #expect(table.accept(2, from: read, .read(as: CacheKey("a")), date: nil).obsolete == replaced)
        #expect(table.accept(2, from: fetch, .fetched(as: CacheKey("a")), date: nil).obsolete == replaced)
        for id in [read, fetch] { _ = table.finish(id) }
        let last = start(.bytes, .reload)
        #expect(table.accept(2, from: last, .fetched(as: CacheKey("a")), date: nil).obsolete == [:])
        _ = table.finish(last)
        #expect(table.isEmpty)
    }

    @Test func `sources that nothing loads are forgotten beyond the limit, long keys first of all`() {
        var table = Table(pictureLimit: 10)
        func load(_ source: String, _ picture: String, body: UInt64) {
            let product = Table.Product(
                kind: .picture,
                key: CacheKey(picture),
                source: CacheKey(source),
                origin: CacheKey(source)
            )
            let actions = table.join(product, waiter: table.makeID(), interest: .caller(Demand()))
            guard case .start(let id, _)? = actions.first else { return }
            #expect(table.keep(product.key, madeOf: body, by: id) == true)
            _ = table.finish(id)
        }
        for index in 0..<1_000 { load("source \(index)", "source \(index)", body: UInt64(index)) }
        #expect(table.sourceCount <= 10)
        for index in 0..<100 { load("source 999", "at \(index)", body: 999) }
        #expect(table.sourceCount <= 10)
        load("long", String(repeating: "x", count: 100 << 10), body: 1)
        #expect(table.sourceCount <= 1)
        #expect(table.isEmpty)
    }

    @Test func `urgency and wants go through a picture's flight to the bytes that it waits for, both ways`() throws {
        var table = Table()
        let (a, b, c) = (table.makeID(), table.makeID(), table.makeID())
        let low = Demand(priority: .low)
        let all = Demand(priority: .veryHigh, showsPreviews: true, waitsForStore: true)
        guard
            case .start(let picture, _)? = table.join(Self.picture("1"), waiter: a, interest: .caller(low)).first,
            case .start(let bytes, _)? = table.join(Self.bytes("1"), waiter: b, interest: .flight(picture)).first
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
        #expect(table.demand(of: picture) == nil && !table.isEmpty)
        #expect(table.finish(picture) == [])
        #expect(table.finish(bytes) == [])
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
        #expect(table.finish(picture) == [])
        #expect(table.isEmpty)
    }

    @Test func `what nothing waits for goes on when all loads are ended`() throws {
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
        _ = table.join(Self.picture("1"), waiter: b, interest: .caller(Demand()))
        let picture = table.flight(of: b)
        #expect(!table.leaveAll().isEmpty && table.flight(of: b) == nil)
        #expect(table.makes(store))
        #expect(table.finish(id) == [.resume(waiter: a)])
        #expect(table.finish(picture ?? 0) == [])
        #expect(table.isEmpty)
    }
}
