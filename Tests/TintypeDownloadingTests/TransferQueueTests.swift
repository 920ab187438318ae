import Testing

@testable import TintypeDownloading

@Suite struct TransferQueueTests {
    private var queue = TransferQueue(maximumActive: 4, maximumPerOrigin: 2)

    private static func drain(_ queue: inout TransferQueue) -> [UInt64] {
        var ids: [UInt64] = []
        while let id = queue.next(now: .now) { ids.append(id) }
        return ids
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
}
