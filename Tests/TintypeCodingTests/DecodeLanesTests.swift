// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCodingSamples
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

@Suite(.waiting, .timeLimit(.minutes(10))) struct DecodeLanesTests {
    @Test(arguments: [1, 2, 4]) func `work runs on lane threads`(lanes: Int) async throws {
        let decodeLanes = DecodeLanes(count: lanes)
        let names = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await decodeLanes.run { ThisProcess.threadName } } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(names.isSubset(of: Set((0..<lanes).map { "tintype-code-\($0)" })))
        #expect(!ThisProcess.threadName.hasPrefix("tintype-code"))
    }

    @Test(arguments: [1, 2, 3]) func `at most one piece runs on a lane`(lanes: Int) async throws {
        let decodeLanes = DecodeLanes(count: lanes)
        let running = Locked((now: 0, most: 0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask { @Sendable in
                    try await decodeLanes.run {
                        running.withLock {
                            $0.now += 1
                            $0.most = max($0.most, $0.now)
                        }
                        _ = ThisProcess.threadName
                        running.withLock { $0.now -= 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(running.withLock { $0.most } <= lanes)
    }

    /// Each job waits for the others, so they only end if each has its own lane.
    @Test(arguments: [2, 3]) func `work spreads over the lanes`(lanes: Int) async throws {
        let decodeLanes = DecodeLanes(count: lanes)
        for _ in 0..<5 {
            let names = Locked<Set<String>>([])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<lanes {
                    group.addTask { @Sendable in
                        try await decodeLanes.run {
                            names.withLock { _ = $0.insert(ThisProcess.threadName) }
                            while names.withLock({ $0.count }) < lanes { yieldThread() }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(names.withLock { $0.count } == lanes)
        }
    }

    // MARK: Help

    /// Each part waits for the others, so they only end if each has its own lane.
    @Test(arguments: [2, 3]) func `lanes that have nothing to do help`(lanes: Int) async throws {
        let decodeLanes = DecodeLanes(count: lanes)
        for _ in 0..<5 {
            await until { decodeLanes.idleCount == lanes }
            let parts = Locked<[String: Bool]>([:])
            @Sendable func take(isHelper: Bool) {
                parts.withLock { $0[ThisProcess.threadName] = isHelper }
                while parts.withLock({ $0.count }) < lanes { yieldThread() }
            }
            try await decodeLanes.runTogether(
                helperCount: 9,
                reserving: { 0 },
                help: { isWanted in
                    take(isHelper: true)
                    #expect(!isWanted())
                },
                { take(isHelper: false) }
            )
            #expect(parts.withLock { $0.count } == lanes)
            #expect(parts.withLock { $0.values.count { !$0 } } == 1)
        }
    }

    @Test func `lanes that are busy, and those that nothing is reserved for, do not help`() async throws {
        let lanes = DecodeLanes(count: 3)
        await until { lanes.idleCount == 3 }
        let isReleased = Locked(false)
        let blocker = Task { @Sendable in
            try await lanes.run { while !isReleased.withLock({ $0 }) { yieldThread() } }
        }
        await until { lanes.idleCount == 2 }
        let parts = Locked(0)
        func count(helpers: Int, _ reserve: () -> Int?) async throws -> Int {
            await until { lanes.idleCount == 2 }
            parts.withLock { $0 = 0 }
            try await lanes.runTogether(
                helperCount: helpers,
                reserving: reserve,
                help: { _ in parts.withLock { $0 += 1 } },
                { parts.withLock { $0 += 1 } }
            )
            return parts.withLock { $0 }
        }
        #expect(try await count(helpers: 9) { 0 } == 2)
        #expect(try await count(helpers: 0) { 0 } == 1)
        #expect(try await count(helpers: 9) { nil } == 1)
        isReleased.withLock { $0 = true }
        try await blocker.value
    }

    @Test(arguments: [false, true])
    func `a lane that helps is told of other work, which it gets next`(isOfActor: Bool) async throws {
        let lanes = DecodeLanes(count: 2)
        let helper = Locked<String?>(nil)
        async let together: Void = lanes.runTogether(
            helperCount: 1,
            reserving: { 0 },
            help: { isWanted in
                helper.withLock { $0 = ThisProcess.threadName }
                while !isWanted() { yieldThread() }
            },
            {
                while helper.withLock({ $0 }) == nil { yieldThread() }
                while helper.withLock({ $0 }) != "" { yieldThread() }
            }
        )
        await until { helper.withLock { $0 } != nil }
        // The job on the other lane ends after this one.
        let name =
            isOfActor
            ? try await lanes.leastLoaded.run { ThisProcess.threadName }
            : try await lanes.run { ThisProcess.threadName }
        #expect(name == helper.withLock { $0 })
        helper.withLock { $0 = "" }
        try await together
    }

    @Test func `an error of the work ends the help`() async throws {
        let lanes = DecodeLanes(count: 2)
        for _ in 0..<10 {
            await until { lanes.idleCount == 2 }
            await #expect(throws: CodingError.self) {
                try await lanes.runTogether(
                    helperCount: 1,
                    reserving: { 0 },
                    help: { _ in while !Task.isCancelled { yieldThread() } },
                    { throw CodingError(code: .corrupt, message: "It is damaged.") }
                )
            }
        }
        await until { lanes.idleCount == 2 }
    }

    @Test(arguments: [0, -3]) func `there is always a lane`(count: Int) async throws {
        #expect(try await DecodeLanes(count: count).run { ThisProcess.threadName } == "tintype-code-0")
    }

    @Test func `queued work that is cancelled never starts`() async throws {
        let decodeLanes = DecodeLanes(count: 1)
        let isReleased = Locked(false)
        let started = Locked(0)
        let blocker = Task { @Sendable in
            try await decodeLanes.run {
                started.withLock { $0 += 1 }
                while !isReleased.withLock({ $0 }) { yieldThread() }
            }
        }
        await until { started.withLock { $0 } == 1 }
        // Immediate tasks queue their jobs before the loop below cancels them.
        let queued = (0..<10).map { _ in
            Task.immediate { @Sendable in
                try await decodeLanes.run { started.withLock { $0 += 1 } }
            }
        }
        for task in queued { task.cancel() }
        isReleased.withLock { $0 = true }
        try await blocker.value
        for task in queued {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(started.withLock { $0 } == 1)
    }

    @Test func `an error of the work is thrown and the lane goes on`() async throws {
        let decodeLanes = DecodeLanes(count: 1)
        await #expect(throws: CodingError.self) {
            try await decodeLanes.run { throw CodingError(code: .corrupt, message: "It is damaged.") }
        }
        #expect(try await decodeLanes.run { 7 } == 7)
    }

    @Test func `the task of the work is the callers`() async throws {
        let decodeLanes = DecodeLanes(count: 1)
        let isCancelled = Task {
            try await decodeLanes.run {
                withUnsafeCurrentTask { $0?.cancel() }
                return Task.isCancelled
            }
        }
        #expect(try await isCancelled.value)
        #expect(isCancelled.isCancelled)
    }

    /// Runs in a process of its own, so that no other test creates lanes.
    @Test func `the threads end with the lanes`() async {
        await #expect(processExitsWith: .success) {
            for _ in 0..<20 {
                let decodeLanes = DecodeLanes(count: 4)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<16 { group.addTask { try await decodeLanes.run {} } }
                    try await group.waitForAll()
                }
            }
            await until { !ThisProcess.threadNames.contains { $0.hasPrefix("tintype-code") } }
        }
    }
}
