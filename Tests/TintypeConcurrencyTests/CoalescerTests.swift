import TestSupport
import TestTraits
import Testing
import TintypeConcurrency

@Suite(.waiting, .timeLimit(.minutes(10))) struct CoalescerTests {
    let coalescer = Coalescer<String, Int, Int>()

    @Test(arguments: [1, 2, 100, 1_000])
    func runsOneOperationForManyCallers(callers: Int) async throws {
        let gate = Gate()
        let starts = Tally()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<callers {
                group.addTask {
                    try await self.coalescer.value(for: "a") { _ in
                        starts.add()
                        await gate.wait()
                        return 7
                    }
                }
            }
            await until { self.coalescer.waiterCount == callers }
            #expect(self.coalescer.count == 1)
            await gate.open()
            for try await value in group { #expect(value == 7) }
        }
        #expect(starts.count == 1)
        #expect(self.coalescer.count == 0)
        #expect(self.coalescer.waiterCount == 0)
    }

    @Test func differentKeysRunSideBySide() async throws {
        let gate = Gate()
        async let first = self.coalescer.value(for: "a") { _ in
            await gate.wait()
            return 1
        }
        async let second = self.coalescer.value(for: "b") { _ in
            await gate.wait()
            return 2
        }
        await until { self.coalescer.count == 2 }
        await gate.open()
        #expect(try await [first, second] == [1, 2])
    }

    @Test func everyCallerGetsTheError() async {
        let gate = Gate()
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    do {
                        _ = try await self.coalescer.value(for: "a") { _ in
                            await gate.wait()
                            throw Failure(reason: "no pictures today")
                        }
                        return false
                    } catch {
                        return error as? Failure == Failure(reason: "no pictures today")
                    }
                }
            }
            await until { self.coalescer.waiterCount == 20 }
            await gate.open()
            for await gotTheError in group { #expect(gotTheError) }
        }
        #expect(self.coalescer.count == 0)
    }

    @Test func aFinishedKeyRunsAgain() async throws {
        for value in 0..<3 {
            #expect(try await self.coalescer.value(for: "a") { _ in value } == value)
        }
    }

    @Test func anErrorLeavesTheKeyFree() async throws {
        await #expect(throws: Failure.self) {
            try await self.coalescer.value(for: "a") { _ in throw Failure(reason: "once") }
        }
        #expect(try await self.coalescer.value(for: "a") { _ in 5 } == 5)
    }
}

private struct Failure: Error, Equatable {
    let reason: String
}
