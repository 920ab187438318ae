import Testing

@testable import TintypeDownloading

@Suite struct TransferQueueTests {
    private var queue = TransferQueue(maximumActive: 4, maximumPerOrigin: 2)

    private static func drain(_ queue: inout TransferQueue) -> [UInt64] {
        var ids: [UInt64] = []
        while let id = queue.next(isWanted: { _ in true }) { ids.append(id) }
        return ids
    }

    @Test func `first come, first served, within the limits`() {
        var queue = self.queue
        for id in 1...4 { queue.submit(UInt64(id), origin: "a") }
        for id in 5...8 { queue.submit(UInt64(id), origin: "b") }
        queue.submit(9, origin: "c")
        #expect(Self.drain(&queue) == [1, 2, 5, 6])
        queue.finish(origin: "a")
        #expect(Self.drain(&queue) == [9])
        queue.finish(origin: "c")
        #expect(Self.drain(&queue) == [3])
    }

    @Test func `those not wanted any more give their place away`() {
        var queue = self.queue
        for id in 1...4 { queue.submit(UInt64(id), origin: "a") }
        #expect(queue.next(isWanted: { $0 != 1 && $0 != 3 }) == 2)
        #expect(queue.next(isWanted: { $0 != 1 && $0 != 3 }) == 4)
        #expect(queue.next(isWanted: { _ in true }) == nil)
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

    @Test func `a queue gives back its elements in order`() {
        var fifo = FIFO<Int>()
        var next = 0
        for number in 0..<1_000 {
            fifo.append(number)
            if number % 3 != 0 {
                #expect(fifo.popFirst() == next)
                next += 1
            }
        }
        while let element = fifo.popFirst() {
            #expect(element == next)
            next += 1
        }
        #expect(next == 1_000)
        #expect(fifo.isEmpty)
    }
}
