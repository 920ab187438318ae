// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

/// The order in which clients enter a gate.
@Suite(.waiting, .timeLimit(.minutes(10))) struct WeightedGateClientTests {
    private let first = WorkClient(number: 1)
    private let second = WorkClient(number: 2)

    /// Starts a task that waits before the gate.
    private func waiter(_ gate: WeightedGate, weight: Int = 1, _ client: WorkClient?) async -> Holder {
        let count = gate.waiterCount
        let holder = Holder(gate, weight: weight, client: client)
        await until { gate.waiterCount == count + 1 }
        return holder
    }

    @Test func `a client with nothing inside goes before the waiters of another one`() async throws {
        let gate = WeightedGate(capacity: 2)
        let inside = [Holder(gate, weight: 1, client: self.first), Holder(gate, weight: 1, client: self.first)]
        for holder in inside { await holder.isInside() }
        let others = [await self.waiter(gate, self.first), await self.waiter(gate, self.first)]
        let second = await self.waiter(gate, self.second)
        try await inside[0].leave()
        await second.isInside()
        #expect(gate.waiterCount == 2)
        // Both clients have one inside now, and the oldest waiter is next.
        try await inside[1].leave()
        await others[0].isInside()
        try await second.leave()
        await others[1].isInside()
        for holder in others { try await holder.leave() }
        #expect(gate.usedWeight == 0)
    }

    @Test func `a client alone has the whole gate`() async throws {
        let gate = WeightedGate(capacity: 3)
        let holders = (0..<3).map { _ in Holder(gate, weight: 1, client: self.first) }
        for holder in holders { await holder.isInside() }
        for holder in holders { try await holder.leave() }
    }

    @Test func `a heavy waiter of one client holds up no other client, and is not held up for ever`() async throws {
        let gate = WeightedGate(capacity: 10)
        let inside = Holder(gate, weight: 6, client: self.first)
        await inside.isInside()
        let heavy = await self.waiter(gate, weight: 10, self.first)
        let light = Holder(gate, weight: 1, client: self.second)
        await light.isInside()
        // Both clients have one operation inside now, so a second light one must not overtake the heavy one.
        let later = await self.waiter(gate, weight: 1, self.second)
        try await inside.leave()
        #expect(gate.waiterCount == 2)
        try await light.leave()
        await heavy.isInside()
        try await heavy.leave()
        await later.isInside()
        try await later.leave()
    }

    @Test func `a waiter that is cancelled leaves no count behind`() async throws {
        let gate = WeightedGate(capacity: 1)
        let inside = Holder(gate, weight: 1, client: self.first)
        await inside.isInside()
        let cancelled = await self.waiter(gate, self.second)
        let (old, new) = (await self.waiter(gate, self.first), await self.waiter(gate, self.second))
        cancelled.cancel()
        await until { gate.waiterCount == 2 }
        try await inside.leave()
        await old.isInside()
        try await old.leave()
        await new.isInside()
        try await new.leave()
        #expect(gate.usedWeight == 0)
    }

    @Test func `the oldest wait is that of the waiter who came first`() async throws {
        let gate = WeightedGate(capacity: 1)
        #expect(gate.oldestWait(at: .now) == .zero)
        let inside = Holder(gate, weight: 1)
        await inside.isInside()
        let time = ContinuousClock.now + .seconds(3_600)
        let first = await self.waiter(gate, nil)
        let wait = gate.oldestWait(at: time)
        #expect(wait > .zero)
        let second = await self.waiter(gate, nil)
        #expect(gate.oldestWait(at: time) == wait)
        try await inside.leave()
        await first.isInside()
        #expect(gate.oldestWait(at: time) < wait)
        try await first.leave()
        await second.isInside()
        #expect(gate.oldestWait(at: .now) == .zero)
        try await second.leave()
    }
}
