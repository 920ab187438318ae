// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

@Suite(.computing) struct TransferQueueTests {
    private var queue = TransferQueue(maximumActive: 4, maximumPerOrigin: 2)

    private static func drain(_ queue: inout TransferQueue) -> [UInt64] {
        var ids: [UInt64] = []
        while let id = queue.next(now: .now) { ids.append(id) }
        return ids
    }

    private static func setLagging(_ queue: inout TransferQueue, _ isLagging: Bool) -> Bool {
        queue.setLagging(isLagging)
    }

    /// Returns the transfer that may start at `now`.
    private static func next(_ queue: inout TransferQueue, _ now: LoopInstant = .now) -> UInt64? {
        queue.next(now: now)
    }

    @Test func `first come, first served, within the limits`() {
        var queue = self.queue
        for id in 1...4 { queue.submit(UInt64(id), origin: "a") }
        for id in 5...8 { queue.submit(UInt64(id), origin: "b") }
        queue.submit(9, origin: "c")
        #expect(Self.drain(&queue) == [1, 2, 5, 6])
        queue.finish(origin: "a")
        #expect(Self.drain(&queue) == [3])
        queue.finish(origin: "a")
        #expect(Self.drain(&queue) == [4])
        queue.finish(origin: "b")
        #expect(Self.drain(&queue) == [7])
        queue.finish(origin: "a")
        #expect(Self.drain(&queue) == [9])
    }

    /// Returns the transfers of origin `a` in the order in which they start, one at a time.
    private static func order(_ queue: inout TransferQueue) -> [UInt64] {
        var ids: [UInt64] = []
        while let id = queue.next(now: .now) {
            ids.append(id)
            queue.finish(origin: "a")
        }
        return ids
    }

    private static let clients = (0..<3).map { WorkClient(number: $0) }

    @Test func `clients take turns at an origin`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        for id in UInt64(1)...4 { queue.submit(id, origin: "a", client: Self.clients[0]) }
        for id in UInt64(5)...6 { queue.submit(id, origin: "a", client: Self.clients[1]) }
        queue.submit(7, origin: "a", client: Self.clients[2])
        queue.submit(8, origin: "a", priority: .high, client: Self.clients[0])
        // 2 is the oldest at the fourth start.
        #expect(Self.order(&queue) == [8, 1, 5, 2, 7, 6, 3, 4])
    }

    @Test func `an urgent transfer does not advance the rounds of others`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        for id in UInt64(1)...3 { queue.submit(id, origin: "a", client: Self.clients[0]) }
        queue.submit(4, origin: "a", client: Self.clients[0])
        queue.setPriority(.high, of: 4)
        #expect(Self.drain(&queue) == [4])
        queue.submit(5, origin: "a", client: Self.clients[1])
        queue.finish(origin: "a")
        #expect(Self.order(&queue) == [1, 5, 2, 3])
    }

    @Test func `an endless row of new clients does not keep others from a second turn`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        for id in UInt64(1)...3 { queue.submit(id, origin: "a", client: Self.clients[0]) }
        var started: [UInt64] = []
        for id in UInt64(4)..<20 {
            queue.submit(id, origin: "a", client: WorkClient(number: UInt128(id)))
            started += Self.drain(&queue)
            queue.finish(origin: "a")
        }
        #expect(Array(started.prefix(9)) == [1, 4, 5, 2, 6, 7, 8, 3, 9])
    }

    @Test func `the oldest transfer does not start before a more urgent one`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        for id in UInt64(1)...2 { queue.submit(id, origin: "a", client: Self.clients[0]) }
        for id in UInt64(3)...6 { queue.submit(id, origin: "a", priority: .high) }
        #expect(Self.order(&queue) == [3, 4, 5, 6, 1, 2])
    }

    @Test func `a transfer whose priority changes to and fro leaves no tickets behind`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        for id in UInt64(1)...3 { queue.submit(id, origin: "a", client: Self.clients[0]) }
        for _ in 0..<1_000 { for priority in [DownloadPriority.low, .normal] { queue.setPriority(priority, of: 3) } }
        #expect(queue.ticketCount < 100)
        #expect(Self.order(&queue) == [1, 2, 3])
    }

    @Test func `clients are equal again when no transfer waits`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        queue.submit(1, origin: "a", client: Self.clients[0])
        #expect(Self.drain(&queue) == [1])
        queue.submit(2, origin: "a", client: Self.clients[0])
        queue.submit(3, origin: "a", client: Self.clients[1])
        queue.finish(origin: "a")
        #expect(Self.order(&queue) == [2, 3])
    }

    @Test func `if the last that came is first, clients do not take turns`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1, order: .lastInFirstOut)
        for id in UInt64(1)...3 { queue.submit(id, origin: "a", client: Self.clients[0]) }
        #expect(Self.order(&queue) == [3, 2, 1])
    }

    @Test func `the transfers of one client start in the order of their arrival, also while others end`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        for id in UInt64(1)...4 { queue.submit(id, origin: "a", client: Self.clients[0]) }
        #expect(Self.drain(&queue) == [1])
        queue.finish(origin: "a")
        #expect(Self.drain(&queue) == [2])
        queue.submit(5, origin: "a", client: Self.clients[0])
        queue.finish(origin: "a")
        #expect(Self.order(&queue) == [3, 4, 5])
    }

    @Test func `origins take turns in the order of arrival, whatever their rounds are`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        for id in UInt64(1)...3 { queue.submit(id, origin: "a", client: Self.clients[0]) }
        queue.submit(4, origin: "b", client: Self.clients[1])
        var started: [UInt64] = []
        while let id = Self.next(&queue) {
            started.append(id)
            queue.finish(origin: id == 4 ? "b" : "a")
        }
        #expect(started == [1, 2, 3, 4])
    }

    @Test func `those that left give their place away`() {
        var queue = self.queue
        for id in 1...4 { queue.submit(UInt64(id), origin: "a") }
        queue.remove(1)
        queue.remove(3)
        #expect(Self.drain(&queue) == [2, 4])
    }

    @Test func `an origin that multiplexes is limited only by the total`() {
        var queue = self.queue
        for id in 1...6 { queue.submit(UInt64(id), origin: "a") }
        #expect(Self.drain(&queue) == [1, 2])
        queue.setMultiplexes(origin: "a")
        #expect(Self.drain(&queue) == [3, 4])
        for _ in 1...4 { queue.finish(origin: "a") }
        #expect(Self.drain(&queue) == [5, 6])
    }

    @Test func `cancelled ones take no token`() {
        let limit = RateLimit(requestsPerSecond: 1, burst: 1)
        var queue = TransferQueue(maximumActive: 8, maximumPerOrigin: 8, rateLimit: limit)
        let start = LoopInstant.now
        for id in 1...4 { queue.submit(UInt64(id), origin: "a") }
        #expect(Self.next(&queue, start) == 1)
        #expect(Self.next(&queue, start) == nil)
        #expect(queue.nextTokenTime == start + .seconds(1))
        queue.remove(2)
        queue.remove(3)
        #expect(Self.next(&queue, start + .milliseconds(999)) == nil)
        #expect(Self.next(&queue, start + .milliseconds(1_001)) == 4)
        #expect(queue.waitingCount == 0)
    }

    @Test func `one origin without tokens holds up no other`() {
        let limit = RateLimit(requestsPerSecond: 1, burst: 1)
        var queue = TransferQueue(maximumActive: 8, maximumPerOrigin: 8, rateLimit: limit)
        let start = LoopInstant.now
        for (id, origin) in [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b")] {
            queue.submit(UInt64(id), origin: origin)
        }
        var ids: [UInt64] = []
        while let id = queue.next(now: start) { ids.append(id) }
        #expect(ids == [1, 3])
        // An origin that leaves and comes back does not get new tokens.
        for origin in ["a", "b"] { queue.finish(origin: origin) }
        #expect(Self.next(&queue, start + .milliseconds(500)) == nil)
        #expect(Self.next(&queue, start + .milliseconds(1_001)) == 2)
    }

    @Test func `those that leave behind an origin that hangs do not pile up`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1)
        queue.submit(1, origin: "a")
        #expect(Self.next(&queue, .now) == 1)
        for id in UInt64(2)...20_000 {
            queue.submit(id, origin: id % 2 == 0 ? "a" : "b\(id)", priority: id % 3 == 0 ? .high : .normal)
            queue.remove(id)
        }
        queue.submit(30_000, origin: "a")
        queue.submit(30_001, origin: "c")
        queue.finish(origin: "a")
        #expect(Self.next(&queue, .now) == 30_000)
        queue.finish(origin: "a")
        #expect(Self.next(&queue, .now) == 30_001)
        #expect(queue.ticketCount <= 256)
        #expect(queue.originCount <= 2)
    }

    @Test func `limits that would overflow are brought into bounds`() throws {
        var configuration = DownloadActor.Configuration()
        var rate = RateLimit(requestsPerSecond: 1, burst: 1)
        (rate.requestsPerSecond, rate.burst) = (0, 0)
        var speed = DownloadActor.MinimumSpeed(bytesPerSecond: 1)
        speed.period = .zero
        (configuration.rateLimit, configuration.minimumSpeed) = (rate, speed)
        let sanitized = configuration.sanitized
        #expect(sanitized.rateLimit == RateLimit(requestsPerSecond: 0, burst: 0))
        #expect(try #require(sanitized.rateLimit).requestsPerSecond > 0)
        #expect(try #require(sanitized.minimumSpeed).period > .zero)
    }

    @Test func `the newest first of a long line costs no more than the line`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1_000_000, order: .lastInFirstOut)
        queue.submit(1, origin: "a")
        #expect(Self.next(&queue, .now) == 1)
        for id in UInt64(2)...5_000 { queue.submit(id, origin: "a") }
        queue.remove(2_500)
        #expect(queue.ticketCount <= queue.waitingCount + 64)
        for id in UInt64(4_000)...5_000 { queue.remove(id) }
        queue.finish(origin: "a")
        #expect(Self.next(&queue, .now) == 3_999)
    }

    @Test func `a transfer costs no more if thousands of its origin came before`() {
        var queue = TransferQueue(maximumActive: 64, maximumPerOrigin: 64)
        for id in UInt64(1)...100 { queue.submit(id, origin: "a") }
        _ = Self.drain(&queue)
        for id in UInt64(101)...5_000 {
            queue.submit(id, origin: "a")
            queue.finish(origin: "a")
            #expect(Self.drain(&queue).count == 1)
        }
        #expect(queue.ticketCount <= queue.waitingCount + 4)
    }

    /// Checks an order that takes the newest first: new transfers start before the older ones.
    @Test func `last in, first out, with more coming meanwhile`() {
        var queue = TransferQueue(maximumActive: 1, maximumPerOrigin: 1, order: .lastInFirstOut)
        queue.submit(1, origin: "a")
        var ids = [Self.next(&queue)]
        for id in UInt64(2)...7 { queue.submit(id, origin: "a") }
        while queue.waitingCount > 0 {
            queue.finish(origin: "a")
            ids.append(Self.next(&queue))
            if ids.last == 7 { for id in UInt64(8)...14 { queue.submit(id, origin: "a") } }
        }
        #expect(ids == [1, 7, 14, 13, 12, 11, 10, 9, 8, 6, 5, 4, 3, 2])
    }

    @Test(arguments: [DownloadActor.Order.firstInFirstOut, .lastInFirstOut])
    func `any mix of orders is as a sort has it`(order: DownloadActor.Order) {
        var generator = SeededGenerator(seed: 7)
        var queue = TransferQueue(maximumActive: 1_000, maximumPerOrigin: 1_000, order: order)
        var expected: [(id: UInt64, priority: DownloadPriority)] = []
        for id in UInt64(1)...500 {
            let priority = DownloadPriority.allCases.randomElement(using: &generator) ?? .normal
            queue.submit(id, origin: "\(id % 7)", priority: priority)
            expected.append((id, priority))
            if id % 3 == 0, let index = expected.indices.randomElement(using: &generator) {
                expected[index].priority = .veryHigh
                queue.setPriority(.veryHigh, of: expected[index].id)
            }
            if id % 5 == 0 { queue.remove(expected.remove(at: expected.count / 2).id) }
        }
        expected.sort {
            if $0.priority != $1.priority { return $0.priority > $1.priority }
            return order == .firstInFirstOut ? $0.id < $1.id : $0.id > $1.id
        }
        #expect(Self.drain(&queue) == expected.map(\.id))
    }

    // MARK: Shares

    @Test func `the last places are for origins and sites that have none`() {
        var queue = TransferQueue(maximumActive: 16, maximumPerOrigin: 16)
        for id in UInt64(1)...20 { queue.submit(id, origin: "http://a.example:80") }
        #expect(Self.drain(&queue).count == 14)
        // Another host of the same owner gets one of the two places, and another owner gets the other.
        for id in UInt64(21)...40 { queue.submit(id, origin: "http://b.a.example:80") }
        #expect(Self.drain(&queue) == [21])
        for id in UInt64(41)...50 { queue.submit(id, origin: "http://c.a.example:80") }
        #expect(Self.drain(&queue).isEmpty)
        for id in UInt64(51)...60 { queue.submit(id, origin: "http://other.test:80") }
        #expect(Self.drain(&queue) == [51])
        queue.finish(origin: "http://other.test:80")
        #expect(Self.drain(&queue) == [52])
        // Unreserved places go to the best waiting transfers, first come, first served.
        for _ in 0..<4 { queue.finish(origin: "http://a.example:80") }
        #expect(Self.drain(&queue) == [15, 16, 41])
    }

    @Test func `a kept place is given to an origin that has none any more`() {
        var queue = TransferQueue(maximumActive: 16, maximumPerOrigin: 16)
        for id in UInt64(1)...20 { queue.submit(id, origin: "http://a.example:80") }
        #expect(Self.drain(&queue).count == 14)
        for id in UInt64(21)...24 { queue.submit(id, origin: "http://b.test:80") }
        #expect(Self.drain(&queue) == [21])
        queue.finish(origin: "http://b.test:80")
        #expect(Self.drain(&queue) == [22])
        for _ in 0..<14 { queue.finish(origin: "http://a.example:80") }
        #expect(Self.drain(&queue) == [15, 16, 17, 18, 19, 20, 23, 24])
    }

    @Test func `all places are given in the end, and nothing is kept of it`() {
        var generator = SeededGenerator(seed: 11)
        var queue = TransferQueue(maximumActive: 24, maximumPerOrigin: 6)
        var (running, lagging): ([String], [String]) = ([], [])
        var origins: [UInt64: String] = [:]
        var started = 0
        for id in UInt64(1)...3_000 {
            let origin = "http://h\(Int.random(in: 0..<40, using: &generator)).s\(id % 5).test:80"
            origins[id] = origin
            queue.submit(id, origin: origin)
            while let next = queue.next(now: .now) {
                running.append(origins[next] ?? "")
                started += 1
            }
            #expect(running.count <= 24)
            #expect(lagging.count <= 24)
            if id % 3 == 0, !running.isEmpty, queue.setLagging(true) { lagging.append(running.removeFirst()) }
            if id % 2 == 0, !running.isEmpty {
                queue.finish(origin: running.remove(at: Int.random(in: 0..<running.count, using: &generator)))
            }
            if id % 7 == 0, !lagging.isEmpty { queue.finish(origin: lagging.removeFirst(), isLagging: true) }
        }
        while !running.isEmpty || !lagging.isEmpty {
            if !lagging.isEmpty { queue.finish(origin: lagging.removeFirst(), isLagging: true) }
            if !running.isEmpty { queue.finish(origin: running.removeFirst()) }
            while let next = queue.next(now: .now) {
                running.append(origins[next] ?? "")
                started += 1
            }
        }
        #expect(started == 3_000)
        #expect(queue.waitingCount == 0)
        #expect(queue.originCount == 0)
        #expect(queue.siteCount == 0)
    }

    @Test func `candidates of origins that wait aside do not pile up, however often they may take part again`() {
        var queue = TransferQueue(maximumActive: 16, maximumPerOrigin: 16)
        for id in UInt64(1)...20 { queue.submit(id, origin: "http://a.example:80") }
        #expect(Self.drain(&queue).count == 14)
        let names = (0..<300).map { "http://h\($0).b.test:80" }
        for id in UInt64(100)..<1_000 { queue.submit(id, origin: names[Int(id) % names.count]) }
        // The reserved place serves one transfer at a time. When it ends, the queue considers all others of its site
        // again.
        for id in UInt64(100)..<400 {
            #expect(Self.drain(&queue) == [id])
            queue.finish(origin: names[Int(id) % names.count])
            #expect(queue.ticketCount <= queue.waitingCount + 2 * queue.originCount + 1_024)
        }
    }

    @Test func `those that lag go on beside the places, as many as there are`() {
        var queue = TransferQueue(maximumActive: 8, maximumPerOrigin: 100)
        for id in UInt64(1)...40 { queue.submit(id, origin: "http://h\(id).s\(id).test:80") }
        #expect(Self.drain(&queue).count == 8)
        for _ in 0..<8 { #expect(Self.setLagging(&queue, true)) }
        #expect(Self.drain(&queue).count == 8)
        #expect(!Self.setLagging(&queue, true))
        #expect(!Self.setLagging(&queue, false))
        queue.finish(origin: "http://h1.s1.test:80", isLagging: true)
        #expect(Self.setLagging(&queue, true))
        #expect(Self.drain(&queue).count == 1)
    }

    @Test func `a limit of a few at once is kept exactly`() {
        var queue = self.queue
        for id in UInt64(1)...8 { queue.submit(id, origin: "\(id)") }
        #expect(Self.drain(&queue) == [1, 2, 3, 4])
        #expect(!Self.setLagging(&queue, true))
    }

    @Test(arguments: [
        ("http://127.0.0.1:80", "127.0.0.1"), ("https://[2001:db8::1]:443", "2001:db8::/64"),
        ("https://[2001:db8:0:0:9::1]:8443", "2001:db8::/64"), ("http://0x7f.1:80", "127.0.0.1"),
        ("https://a.b.example.com:443", "example.com"), ("https://example.com:443", "example.com"),
        ("https://a.example.co.uk:443", "example.co.uk"), ("https://localhost:443", "localhost"),
        ("https://a.example.com.:443", "example.com"), ("https://[::ffff:1.2.3.4]:443", "1.2.3.4"),
    ])
    func `an origin belongs to a site`(origin: String, site: String) {
        #expect(Site.name(ofOrigin: origin) == site)
    }
}
