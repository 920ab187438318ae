// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCaching
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeFlights

@Suite(.computing) struct BodyOrderTests {
    typealias ID = FlightTable.ID

    /// All events of one source, from which each answer is derived again.
    private struct History {
        enum Event {
            case begin(ID, FlightTable.Product)
            case restart(ID)
            case news(UInt64, ID, isFetched: Bool, Date?, obsolete: [CacheKey: CacheTiers])
            case cleared(ID, [CacheKey: CacheTiers])
            case keep(CacheKey, UInt64)
            case end(ID)
        }

        struct Summary {
            var flights: [ID: FlightTable.Product] = [:]
            var outdated: Set<ID> = []
            var body: UInt64?
            var date: Date?
            var images: Set<CacheKey> = []
            var clearings: [ID: [CacheKey: CacheTiers]] = [:]
        }

        let source: CacheKey
        var events: [Event] = []

        var summary: Summary {
            self.events.reduce(into: Summary()) { summary, event in
                switch event {
                case .begin(let id, let product): summary.flights[id] = product
                case .restart(let id): summary.outdated.remove(id)
                case .news(let body, let id, let isFetched, let date, let obsolete):
                    if isFetched { summary.outdated.formUnion(summary.flights.keys.filter { $0 != id }) }
                    if body != summary.body { summary.images = [] }
                    (summary.body, summary.date) = (body, date)
                    if !obsolete.isEmpty { summary.clearings[id] = obsolete }
                case .cleared(let id, let images): summary.clearings[id] = images
                case .keep(let image, let body):
                    summary.body = body
                    summary.images.insert(image)
                case .end(let id):
                    summary.flights[id] = nil
                    summary.outdated.remove(id)
                    summary.clearings[id] = nil
                    if summary.flights.isEmpty, summary.images.isEmpty { (summary.body, summary.date) = (nil, nil) }
                }
            }
        }

        mutating func accept(
            _ body: UInt64,
            _ id: ID,
            isFetched: Bool,
            _ date: Date?,
            awaiting: Set<ID>
        ) -> BodyOrder.Succession {
            let before = self.summary
            var succession = BodyOrder.Succession()
            let isLater = before.date.map { known in date.map { $0 > known } ?? false } ?? true
            let isNews = isFetched || !before.outdated.contains(id) && isLater
            if isNews, before.body != body {
                succession.flights = Set(before.flights.keys)
                succession.closed = succession.flights.subtracting(awaiting).subtracting([id])
                let made = succession.closed.compactMap { before.flights[$0] }.filter { $0.kind == .image }.map(\.key)
                for image in before.images.union(made) {
                    succession.obsolete[image] = image == self.source ? .memory : .all
                }
            }
            for clearing in before.clearings.values { succession.obsolete.merge(clearing) { $0.union($1) } }
            if isNews {
                self.events.append(.news(body, id, isFetched: isFetched, date, obsolete: succession.obsolete))
            } else if !succession.obsolete.isEmpty {
                self.events.append(.cleared(id, succession.obsolete))
            }
            return succession
        }

        mutating func keep(_ image: CacheKey, _ body: UInt64, _ id: ID) -> Bool {
            let before = self.summary
            guard before.body == body || before.body == nil && !before.outdated.contains(id) else { return false }
            self.events.append(.keep(image, body))
            return true
        }
    }

    /// Two sources and their flights.
    private struct Oracle {
        var order = BodyOrder(limit: 1_000)
        var histories = ["a", "b"].map { History(source: CacheKey($0)) }
        var lastID: ID = 0
        private(set) var isRight = true

        mutating func check(_ condition: Bool) { self.isRight = self.isRight && condition }

        mutating func begin(_ random: inout SeededGenerator) {
            self.lastID += 1
            let index = Int.random(in: 0..<2, using: &random)
            let source = self.histories[index].source.text
            let product: FlightTable.Product =
                Bool.random(using: &random)
                ? .bytes(source) : .image("\(source)\(["", "1", "2"].randomElement(using: &random) ?? "")")
            self.order.begin(self.lastID, product)
            self.histories[index].events.append(.begin(self.lastID, product))
        }

        mutating func step(_ random: inout SeededGenerator) {
            let index = Int.random(in: 0..<2, using: &random)
            let summary = self.histories[index].summary
            guard let id = summary.flights.keys.sorted().randomElement(using: &random),
                let product = summary.flights[id]
            else { return }
            let body = UInt64.random(in: 1..<4, using: &random)
            switch (product.kind, Int.random(in: 0..<4, using: &random)) {
            case (_, 0): self.end(id, at: index)
            case (.bytes, 1):
                self.order.restart(id)
                self.histories[index].events.append(.restart(id))
            case (.bytes, let number):
                let date = Bool.random(using: &random) ? Date(timeIntervalSince1970: Double(body)) : nil
                let awaiting = summary.flights.keys.filter { $0 > id && $0.isMultiple(of: 3) }
                let name = product.source
                let succession = self.order.accept(
                    body,
                    from: id,
                    number == 2 ? .fetched(as: name) : .read(as: name),
                    date: date,
                    awaiting: Set(awaiting)
                )
                self.check(
                    succession
                        == self.histories[index].accept(
                            body,
                            id,
                            isFetched: number == 2,
                            date,
                            awaiting: Set(awaiting)
                        )
                )
            default:
                let isKept = self.order.keep(product.key, madeOf: body, by: id)
                self.check(isKept == self.histories[index].keep(product.key, body, id))
            }
            self.check(self.order.newestBody(of: product.source) == self.histories[index].summary.body)
            self.check(self.order.flights(of: product.source) == Set(self.histories[index].summary.flights.keys))
        }

        private mutating func end(_ id: ID, at index: Int) {
            self.order.end(id)
            self.histories[index].events.append(.end(id))
        }

        mutating func endAll() {
            for index in self.histories.indices {
                for id in self.histories[index].summary.flights.keys.sorted() { self.end(id, at: index) }
            }
            let remembered = self.histories.count { !$0.summary.images.isEmpty }
            self.check(self.order.isEmpty && self.order.sourceCount == remembered)
        }
    }

    /// Each argument is two thousand sequences.
    @Test(arguments: 0..<50) func `random sequences agree with the whole history of each source`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            var oracle = Oracle()
            for _ in 0..<Int.random(in: 4..<16, using: &random) {
                if Int.random(in: 0..<3, using: &random) == 0 { oracle.begin(&random) } else { oracle.step(&random) }
            }
            oracle.endAll()
            guard oracle.isRight else {
                Issue.record("the order and the history disagree, seed \(seed)")
                return
            }
        }
    }

    @Test func `a body that another process has stored is news, and one that was read too early is not`() {
        var order = BodyOrder(limit: 100)
        let (fetch, early, image, late): (ID, ID, ID, ID) = (1, 2, 3, 4)
        let key = CacheKey("a1")
        order.begin(fetch, .bytes("a", .reload))
        order.begin(early, .bytes("a"))
        order.begin(image, .image("a1"))
        let (fetched, read) = (BodyOrder.Arrival.fetched(as: CacheKey("a")), BodyOrder.Arrival.read(as: CacheKey("a")))
        func accept(_ body: UInt64, _ id: ID, _ arrival: BodyOrder.Arrival, at time: Double) -> BodyOrder.Succession {
            let date = Date(timeIntervalSince1970: time)
            let awaiting: Set<ID> = id == fetch ? [image] : []
            return order.accept(body, from: id, arrival, date: date, awaiting: awaiting)
        }
        #expect(accept(1, fetch, fetched, at: 10) == .init(flights: [fetch, early, image], closed: [early]))
        #expect(order.keep(key, madeOf: 1, by: image) == true)
        // The early flight read its body before the newer one arrived.
        #expect(accept(7, early, read, at: 20) == .init())
        #expect(order.keep(key, madeOf: 7, by: image) == false)
        order.begin(late, .bytes("a", .honorFreshness))
        #expect(accept(1, late, read, at: 10) == .init())
        // The disk has refused the newest body, and has an older one.
        #expect(accept(8, late, read, at: 9) == .init())
        #expect(
            accept(2, late, read, at: 30)
                == .init(obsolete: [key: .all], flights: [fetch, early, image, late], closed: [fetch, early, image])
        )
        #expect(order.keep(key, madeOf: 1, by: image) == false)
        #expect(order.keep(key, madeOf: 2, by: image) == true)
    }

    @Test(arguments: [false, true])
    func `images of other sources are obsolete if these select the response that is replaced`(isVarying: Bool) {
        var order = BodyOrder(limit: 100)
        var lastID: ID = 0
        func load(_ source: String, _ body: UInt64) -> [CacheKey: CacheTiers] {
            lastID += 2
            let (bytes, image) = (lastID, lastID + 1)
            let name = CacheKey(isVarying ? "a|\(source)" : "a")
            order.begin(bytes, .bytes(source, .reload, origin: "a", usesHTTPKeys: true))
            let obsolete = order.accept(body, from: bytes, .fetched(as: name), date: nil).obsolete
            order.begin(image, .image(source, .reload, of: source, origin: "a", usesHTTPKeys: true))
            let isKept = order.keep(CacheKey(source), madeOf: body, by: image)
            #expect(isKept)
            for id in [bytes, image] { order.end(id) }
            return obsolete
        }
        #expect(load("ad", 1) == [:])
        // The disk may have the bytes under the source's own key.
        #expect(load("ae", 2) == (isVarying ? [:] : [CacheKey("ad"): .memory]))
        #expect(load("ae", 3)[CacheKey("ae")] == .memory)
        #expect(order.sourceCount == (isVarying ? 2 : 1))
    }

    @Test func `a load that brings the same new body ends only after the images that it replaces are gone`() {
        var order = BodyOrder(limit: 100)
        let (image, fetch, read, last): (ID, ID, ID, ID) = (1, 2, 3, 4)
        let key = CacheKey("a")
        order.begin(image, .image("a"))
        #expect(order.keep(key, madeOf: 1, by: image) == true)
        order.end(image)
        order.begin(fetch, .bytes("a", .reload))
        order.begin(read, .bytes("a"))
        let replaced: [CacheKey: CacheTiers] = [key: .memory]
        // The disk has the body before the fetch has ended.
        #expect(order.accept(2, from: read, .read(as: key), date: nil).obsolete == replaced)
        #expect(order.accept(2, from: fetch, .fetched(as: key), date: nil).obsolete == replaced)
        for id in [read, fetch] { order.end(id) }
        order.begin(last, .bytes("a", .reload))
        #expect(order.accept(2, from: last, .fetched(as: key), date: nil).obsolete == [:])
        order.end(last)
        #expect(order.isEmpty)
    }

    @Test func `sources that are not loaded are forgotten beyond the limit, long keys first of all`() {
        var order = BodyOrder(limit: 10)
        var lastID: ID = 0
        func load(_ source: String, _ image: String, body: UInt64) {
            lastID += 1
            order.begin(lastID, .image(image, of: source))
            #expect(order.keep(CacheKey(image), madeOf: body, by: lastID) == true)
            order.end(lastID)
        }
        for index in 0..<1_000 { load("source \(index)", "source \(index)", body: UInt64(index)) }
        #expect(order.sourceCount <= 10)
        for index in 0..<100 { load("source 999", "at \(index)", body: 999) }
        #expect(order.sourceCount <= 10)
        load("long", String(repeating: "x", count: 100 << 10), body: 1)
        #expect(order.sourceCount <= 1)
        #expect(order.isEmpty)
    }
}
