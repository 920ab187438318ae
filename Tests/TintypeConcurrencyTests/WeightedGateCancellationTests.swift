// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct WeightedGateCancellationTests {
    @Test func `a cancelled waiter lets those behind it in`() async throws {
        let gate = WeightedGate(capacity: 10)
        let inside = Holder(gate, weight: 5)
        await inside.isInside()
        let heavy = Holder(gate, weight: 10)
        await until { gate.waiterCount == 1 }
        let light = Holder(gate, weight: 5)
        await until { gate.waiterCount == 2 }
        heavy.cancel()
        await #expect(throws: CancellationError.self) { try await heavy.leave() }
        await light.isInside()
        #expect(gate.usedWeight == 10)
        try await inside.leave()
        try await light.leave()
        #expect(gate.usedWeight == 0)
    }

    @Test func `a cancelled caller never enters`() async {
        let gate = WeightedGate(capacity: 1)
        let entries = Tally()
        let caller = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await gate.withWeight(1) { entries.add() }
        }
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(entries.count == 0)
        #expect(gate.usedWeight == 0)
    }

    @Test func `cancelling what is inside keeps its weight until it ends`() async throws {
        let gate = WeightedGate(capacity: 1)
        let holder = Holder(gate, weight: 1)
        await holder.isInside()
        holder.cancel()
        #expect(gate.usedWeight == 1)
        try await holder.leave()
        #expect(gate.usedWeight == 0)
    }

    @Test func `survives random cancellation`() async {
        let gate = WeightedGate(capacity: 10)
        let ended = Tally()
        await withTaskGroup { group in
            for index in 0..<3_000 {
                group.addTask {
                    let caller = Task {
                        try await gate.withWeight(index % 12) { await Task.yield() }
                    }
                    if index % 3 == 0 { caller.cancel() }
                    _ = await caller.result
                    ended.add()
                }
            }
        }
        #expect(ended.count == 3_000)
        #expect(gate.usedWeight == 0)
        #expect(gate.waiterCount == 0)
    }
}
