// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct ByteBudgetTests {
    private let budget = ByteBudget(limit: 100)

    @Test func `claims count until they go away`() {
        do {
            let claim = ByteClaim(self.budget)
            claim.set(70)
            #expect(claim.grow(to: 100))
            #expect(!claim.grow(to: 101))
            #expect(self.budget.status.usedBytes == 100)
            claim.set(130)
            #expect(self.budget.status.usedBytes == 130)
            claim.set(20)
            #expect(self.budget.status.usedBytes == 20)
        }
        #expect(self.budget.status.usedBytes == 0)
        #expect(self.budget.status.peakBytes == 130)
    }

    @Test func `what is given back twice comes back once`() {
        let claim = ByteClaim(self.budget)
        claim.set(40)
        claim.hold()
        claim.hold()
        #expect(self.budget.status.heldCount == 1)
        claim.giveBack()
        claim.giveBack()
        #expect(self.budget.status.usedBytes == 0)
        #expect(self.budget.status.heldCount == 0)
        #expect(self.budget.status.returnCount == 1)
    }

    @Test func `a watcher hears of the first return after each look`() {
        let calls = Locked(0)
        self.budget.setWatcher { calls.withLock { $0 += 1 } }
        let claim = ByteClaim(self.budget)
        claim.set(40)
        claim.set(30)
        #expect(calls.withLock { $0 } == 0)
        self.budget.watch()
        claim.set(20)
        claim.set(10)
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func `readers wait for bytes to come back`() async throws {
        let claim = ByteClaim(self.budget)
        claim.set(100)
        let order = Locked([Int]())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<3 {
                group.addTask { @Sendable [budget] in
                    try await budget.beginRead()
                    order.withLock { $0.append(number) }
                    // Each reader takes the whole budget.
                    let own = ByteClaim(budget)
                    own.set(100)
                    budget.endRead()
                    own.giveBack()
                }
                await until { self.budget.waiterCount == number + 1 }
            }
            claim.giveBack()
            try await group.waitForAll()
        }
        #expect(order.withLock { $0 }.sorted() == [0, 1, 2])
        #expect(self.budget.status.usedBytes == 0)
    }

    @Test func `no more than a few readers of unknown length are inside`() async throws {
        for _ in 0..<8 { try await self.budget.beginRead() }
        let task = Task { [budget] in try await budget.beginRead() }
        await until { self.budget.waiterCount == 1 }
        self.budget.endRead()
        try await task.value
        for _ in 0..<8 { self.budget.endRead() }
    }

    @Test func `a reader that is cancelled leaves`() async throws {
        let claim = ByteClaim(self.budget)
        claim.set(100)
        let task = Task { [budget] in try await budget.beginRead() }
        await until { self.budget.waiterCount == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(self.budget.waiterCount == 0)
        claim.giveBack()
        try await self.budget.beginRead()
        self.budget.endRead()
    }
}
