// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct WeightedGateTests {
    @Test(arguments: [1, 7, 100])
    func `never lets in more than its capacity`(capacity: Int) async throws {
        let gate = WeightedGate(capacity: capacity)
        let inside = Locked((now: 0, most: 0))
        var generator = SeededGenerator(seed: 7)
        let weights = (0..<500).map { _ in Int.random(in: 0...capacity + 3, using: &generator) }
        try await withThrowingTaskGroup { group in
            for weight in weights {
                group.addTask { @Sendable in
                    try await gate.withWeight(weight) {
                        inside.withLock {
                            $0.now += min(weight, capacity)
                            $0.most = max($0.most, $0.now)
                        }
                        await Task.yield()
                        inside.withLock { $0.now -= min(weight, capacity) }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(inside.withLock { $0.most } <= capacity)
        #expect(inside.withLock { $0.now } == 0)
        #expect(gate.usedWeight == 0)
        #expect(gate.waiterCount == 0)
    }

    @Test func `returns what the operation returns`() async throws {
        #expect(try await WeightedGate(capacity: 3).withWeight(2) { "in" } == "in")
    }

    @Test(arguments: [(-5, 0), (0, 0), (4, 4), (10, 10), (11, 10), (Int.max, 10)])
    func `weighs at least nothing and at most the capacity`(weight: Int, used: Int) async throws {
        let gate = WeightedGate(capacity: 10)
        #expect(try await gate.withWeight(weight) { gate.usedWeight } == used)
        #expect(gate.usedWeight == 0)
    }

    @Test func `lets into a gate without capacity one at a time`() async throws {
        #expect(try await WeightedGate(capacity: 0).withWeight(5) { true })
    }

    @Test func `lets in in the order of arrival`() async throws {
        let gate = WeightedGate(capacity: 10)
        let order = Locked<[Int]>([])
        let holder = Holder(gate, weight: 10)
        await holder.isInside()
        var tasks: [Task<Void, any Error>] = []
        for index in 0..<20 {
            tasks.append(
                Task { @Sendable in
                    try await gate.withWeight(10) { order.withLock { $0.append(index) } }
                }
            )
            await until { gate.waiterCount == index + 1 }
        }
        try await holder.leave()
        for task in tasks { try await task.value }
        #expect(order.withLock { $0 } == Array(0..<20))
    }

    @Test func `a heavy one is not overtaken by lighter ones`() async throws {
        let gate = WeightedGate(capacity: 10)
        let holder = Holder(gate, weight: 6)
        await holder.isInside()
        let heavy = Holder(gate, weight: 10)
        await until { gate.waiterCount == 1 }
        // The light one would fit beside the first, but the heavy one came before it.
        let light = Holder(gate, weight: 1)
        await until { gate.waiterCount == 2 }
        #expect(gate.usedWeight == 6)
        try await holder.leave()
        await heavy.isInside()
        #expect(gate.usedWeight == 10)
        #expect(gate.waiterCount == 1)
        try await heavy.leave()
        await light.isInside()
        try await light.leave()
    }

    @Test func `what is heavier than the capacity runs alone`() async throws {
        let gate = WeightedGate(capacity: 10)
        let light = Holder(gate, weight: 1)
        await light.isInside()
        let huge = Holder(gate, weight: 1_000)
        await until { gate.waiterCount == 1 }
        try await light.leave()
        await huge.isInside()
        let next = Holder(gate, weight: 1)
        await until { gate.waiterCount == 1 }
        #expect(gate.usedWeight == 10)
        try await huge.leave()
        try await next.leave()
        #expect(gate.usedWeight == 0)
    }

    @Test func `an error gives the weight back`() async {
        let gate = WeightedGate(capacity: 2)
        for _ in 0..<5 {
            await #expect(throws: Failure.self) { try await gate.withWeight(2) { throw Failure() } }
        }
        #expect(gate.usedWeight == 0)
    }
}

private struct Failure: Error {
    @Test func `a suspended gate lets nobody in until it resumes`() async throws {
        let gate = WeightedGate(capacity: 2)
        gate.suspend()
        async let first: Void = gate.withWeight(1) {}
        async let second: Void = gate.withWeight(1) {}
        await until { gate.waiterCount == 2 }
        #expect(gate.usedWeight == 0)
        #expect(gate.isSuspended)
        gate.resume()
        try await first
        try await second
        #expect(gate.usedWeight == 0)
    }

    @Test func `a place is taken at once or not at all, and given back with its object`() async throws {
        let gate = WeightedGate(capacity: 10)
        var place = gate.placeIfFree(for: 7)
        #expect(place?.weight == 7)
        #expect(gate.placeIfFree(for: 4) == nil)
        #expect(gate.placeIfFree(for: 11) == nil)
        #expect(gate.usedWeight == 7)
        #expect(try await gate.withWeight(3) { gate.usedWeight } == 10)
        place = nil
        #expect(gate.usedWeight == 0)
        gate.suspend()
        #expect(gate.placeIfFree(for: 1) == nil)
    }
}
