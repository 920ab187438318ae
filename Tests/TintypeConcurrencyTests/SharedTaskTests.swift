// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct SharedTaskTests {
    let task = SharedTask<Int>()

    @Test(arguments: [1, 2, 100, 1_000])
    func `one operation runs for many callers`(callers: Int) async throws {
        let gate = Gate()
        let starts = Tally()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<callers {
                group.addTask {
                    try await self.task.value {
                        starts.add()
                        await gate.wait()
                        return 7
                    }
                }
            }
            await until { self.task.waiterCount == callers }
            await gate.open()
            for try await value in group { #expect(value == 7) }
        }
        #expect(starts.count == 1)
        #expect(self.task.waiterCount == 0)
    }

    @Test func `every caller gets the error, and the next one starts anew`() async throws {
        let gate = Gate()
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    do {
                        _ = try await self.task.value {
                            await gate.wait()
                            throw Failure(reason: "no images today")
                        }
                        return false
                    } catch {
                        return error as? Failure == Failure(reason: "no images today")
                    }
                }
            }
            await until { self.task.waiterCount == 20 }
            await gate.open()
            for await gotTheError in group { #expect(gotTheError) }
        }
        for value in 0..<3 { #expect(try await self.task.value { value } == value) }
    }

    @Test(arguments: [0, 1, 2])
    func `a cancelled caller leaves the others`(cancelled: Int) async throws {
        let gate = Gate()
        let callers = (0..<3).map { _ in
            Task {
                try await self.task.value {
                    await gate.wait()
                    try Task.checkCancellation()
                    return 7
                }
            }
        }
        await until { self.task.waiterCount == 3 }
        callers[cancelled].cancel()
        await #expect(throws: CancellationError.self) { try await callers[cancelled].value }
        #expect(self.task.waiterCount == 2)
        await gate.open()
        for (index, caller) in callers.enumerated() where index != cancelled {
            #expect(try await caller.value == 7)
        }
    }

    @Test func `the last caller that leaves cancels the operation`() async {
        let started = Gate()
        let ended = Gate()
        let callers = (0..<2).map { _ in
            Task {
                try await self.task.value {
                    await started.open()
                    await until { Task.isCancelled }
                    await ended.open()
                    return 0
                }
            }
        }
        await started.wait()
        await until { self.task.waiterCount == 2 }
        for caller in callers { caller.cancel() }
        for caller in callers {
            await #expect(throws: CancellationError.self) { try await caller.value }
        }
        #expect(self.task.waiterCount == 0)
        await ended.wait()
    }

    @Test func `a new operation starts while a cancelled one ends`() async throws {
        let started = Gate()
        let gate = Gate()
        let abandoned = Task {
            try await self.task.value {
                await started.open()
                await gate.wait()
                return 1
            }
        }
        await started.wait()
        abandoned.cancel()
        await #expect(throws: CancellationError.self) { try await abandoned.value }
        let second = Gate()
        let caller = Task {
            try await self.task.value {
                await second.wait()
                return 2
            }
        }
        await until { self.task.waiterCount == 1 }
        await gate.open()
        await second.open()
        #expect(try await caller.value == 2)
    }

    @Test func `a cancelled caller never starts work`() async {
        let starts = Tally()
        let caller = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await self.task.value {
                starts.add()
                return 1
            }
        }
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(starts.count == 0)
    }

    @Test func `only cancelled callers are cancelled in a storm of cancellations`() async {
        let results = Locked((values: 0, cancelled: 0, wrong: 0))
        await withTaskGroup { group in
            for index in 0..<5_000 {
                group.addTask { @Sendable in
                    let caller = Task {
                        try await self.task.value {
                            await Task.yield()
                            return 8
                        }
                    }
                    if index % 3 == 0 { caller.cancel() }
                    let result = await caller.result
                    results.withLock { results in
                        switch result {
                        case .success(8): results.values += 1
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
        #expect(values >= 3_333)
        #expect(self.task.waiterCount == 0)
    }
}

private struct Failure: Error, Equatable {
    let reason: String
}
