import TestSupport
import TestTraits
import Testing
import TintypeConcurrency

@Suite(.waiting, .timeLimit(.minutes(10))) struct CoalescerCancellationTests {
    let coalescer = Coalescer<String, Int, Int>()

    @Test(arguments: [0, 1, 2])
    func aCancelledCallerLeavesTheOthers(cancelled: Int) async throws {
        let gate = Gate()
        let callers = (0..<3).map { _ in
            Task {
                try await self.coalescer.value(for: "a") { _ in
                    await gate.wait()
                    try Task.checkCancellation()
                    return 7
                }
            }
        }
        await until { self.coalescer.waiterCount == 3 }
        callers[cancelled].cancel()
        await #expect(throws: CancellationError.self) { try await callers[cancelled].value }
        #expect(self.coalescer.waiterCount == 2)
        await gate.open()
        for (index, caller) in callers.enumerated() where index != cancelled {
            #expect(try await caller.value == 7)
        }
    }

    @Test func theLastOneOutCancelsTheOperation() async {
        let started = Gate()
        let ended = Gate()
        let callers = (0..<2).map { _ in
            Task {
                try await self.coalescer.value(for: "a") { _ in
                    await started.open()
                    await untilCancelled()
                    await ended.open()
                    return 0
                }
            }
        }
        await started.wait()
        await until { self.coalescer.waiterCount == 2 }
        for caller in callers { caller.cancel() }
        for caller in callers {
            await #expect(throws: CancellationError.self) { try await caller.value }
        }
        #expect(self.coalescer.count == 0)
        await ended.wait()
    }

    @Test func theKeyOfACancelledFlightIsFreeAtOnce() async throws {
        let started = Gate()
        let gate = Gate()
        let seen = Locked<[Int]>([])
        let abandoned = Task {
            try await self.coalescer.value(for: "a") { report in
                await started.open()
                await gate.wait()
                // What an abandoned flight still reports reaches no caller.
                report(1)
                return 1
            }
        }
        await started.wait()
        abandoned.cancel()
        await #expect(throws: CancellationError.self) { try await abandoned.value }
        let second = Gate()
        let caller = Task { @Sendable in
            try await self.coalescer.value(for: "a", observer: { update in seen.withLock { $0.append(update) } }) { _ in
                await second.wait()
                return 2
            }
        }
        await until { self.coalescer.waiterCount == 1 }
        await gate.open()
        await second.open()
        #expect(try await caller.value == 2)
        #expect(seen.withLock { $0 } == [])
    }

    @Test func aCancelledCallerNeverStartsWork() async {
        let starts = Tally()
        let caller = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await self.coalescer.value(for: "a") { _ in
                starts.add()
                return 1
            }
        }
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(starts.count == 0)
        #expect(self.coalescer.count == 0)
    }

    @Test func cancellingAllEndsEveryFlightAndItsCallers() async {
        let ended = Tally()
        let callers = (0..<12).map { index in
            Task {
                try await self.coalescer.value(for: "key \(index % 3)") { _ in
                    await untilCancelled()
                    ended.add()
                    return 0
                }
            }
        }
        await until { self.coalescer.waiterCount == 12 }
        self.coalescer.cancelAll()
        for caller in callers {
            await #expect(throws: CancellationError.self) { try await caller.value }
        }
        #expect(self.coalescer.count == 0)
        await until { ended.count == 3 }
    }

    @Test func cancellingAllWithNothingInFlightDoesNothing() async throws {
        self.coalescer.cancelAll()
        #expect(try await self.coalescer.value(for: "a") { _ in 3 } == 3)
    }

    @Test func survivesRandomCancellation() async {
        let results = Locked((values: 0, cancelled: 0, wrong: 0))
        await withTaskGroup { group in
            for index in 0..<5_000 {
                group.addTask { @Sendable in
                    let key = index % 8
                    let caller = Task {
                        try await self.coalescer.value(for: "key \(key)") { report in
                            report(key)
                            await Task.yield()
                            return key
                        }
                    }
                    if index % 3 == 0 { caller.cancel() }
                    let result = await caller.result
                    results.withLock { results in
                        switch result {
                        case .success(key): results.values += 1
                        case .success: results.wrong += 1
                        case .failure(is CancellationError): results.cancelled += 1
                        case .failure: results.wrong += 1
                        }
                    }
                }
            }
        }
        let (values, cancelled, wrong) = results.withLock { $0 }
        #expect(values + cancelled == 5_000)
        #expect(wrong == 0)
        #expect(values >= 3_333, "only cancelled callers may be cancelled")
        #expect(self.coalescer.count == 0)
        #expect(self.coalescer.waiterCount == 0)
    }
}

/// Returns once the task is cancelled.
private func untilCancelled() async {
    await until { Task.isCancelled }
}
