import TestSupport
import TestTraits
import Testing
import TintypeConcurrency

@Suite(.waiting, .timeLimit(.minutes(10))) struct CoalescerUpdateTests {
    let coalescer = Coalescer<String, Int, Int>()

    @Test func everyObserverSeesTheUpdatesInOrder() async throws {
        let gate = Gate()
        let logs = (0..<5).map { _ in Log() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for log in logs {
                group.addTask {
                    _ = try await self.coalescer.value(for: "a", observer: { log.append($0) }) { report in
                        await gate.wait()
                        for update in 1...10 { report(update) }
                        return 0
                    }
                }
            }
            await until { self.coalescer.waiterCount == 5 }
            await gate.open()
            try await group.waitForAll()
        }
        for log in logs { #expect(log.updates == Array(1...10)) }
    }

    @Test func aLateJoinerIsShownTheNewestUpdateAndWhatFollows() async throws {
        let reported = Gate()
        let finish = Gate()
        let late = Log()
        let first = Task {
            try await self.coalescer.value(for: "a") { report in
                for update in 1...3 { report(update) }
                await reported.open()
                await finish.wait()
                report(4)
                return 0
            }
        }
        await reported.wait()
        let second = Task {
            try await self.coalescer.value(for: "a", observer: { late.append($0) }) { _ in -1 }
        }
        await until { late.updates == [3] }
        await finish.open()
        #expect(try await first.value == 0)
        #expect(try await second.value == 0)
        #expect(late.updates == [3, 4])
    }

    @Test func aJoinerBeforeTheFirstUpdateIsShownNothing() async throws {
        let gate = Gate()
        let log = Log()
        let callers = (0..<2).map { _ in
            Task {
                try await self.coalescer.value(for: "a", observer: { log.append($0) }) { _ in
                    await gate.wait()
                    return 0
                }
            }
        }
        await until { self.coalescer.waiterCount == 2 }
        await gate.open()
        for caller in callers { _ = try await caller.value }
        #expect(log.updates.isEmpty)
    }

    @Test func aCallerThatLeftSeesNoMoreUpdates() async throws {
        let gate = Gate()
        let left = Log()
        let operation: @Sendable (@escaping @Sendable (Int) -> Void) async throws -> Int = { report in
            await gate.wait()
            report(1)
            return 0
        }
        let leaver = Task {
            try await self.coalescer.value(for: "a", observer: { left.append($0) }, operation: operation)
        }
        let stayer = Task { try await self.coalescer.value(for: "a", operation: operation) }
        await until { self.coalescer.waiterCount == 2 }
        leaver.cancel()
        await #expect(throws: CancellationError.self) { try await leaver.value }
        await gate.open()
        _ = try await stayer.value
        #expect(left.updates.isEmpty)
    }
}

/// What an observer was shown.
private final class Log: Sendable {
    private let entries = Locked<[Int]>([])

    var updates: [Int] { self.entries.withLock { $0 } }

    func append(_ update: Int) {
        self.entries.withLock { $0.append(update) }
    }
}
