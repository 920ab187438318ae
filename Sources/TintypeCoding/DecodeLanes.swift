// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// A small set of lanes on which images are decoded, transformed and encoded.
///
/// Each lane is an actor on a serial executor with one thread of its own. A job runs on one lane, so no more images are
/// processed at once than there are lanes, and the cooperative pool is never blocked. Idle lanes help with a large job.
package final class DecodeLanes: Sendable {
    private struct Load {
        /// The jobs of the lane, running or waiting.
        var count = 0
        /// The jobs that have ended on the lane.
        var endedCount = 0
        /// Whether the lane helps with a job of another lane.
        var help = Help.none

        var isIdle: Bool { self.count == 0 && self.help == .none }

        /// How long a new job would wait: help that has begun soon ends, but promised help may begin late.
        var order: Int { self.count * 2 + (self.help == .none ? 0 : self.help == .begun ? 1 : 2) }
    }

    private enum Help {
        case none
        case promised
        case begun
    }

    private let lanes: [DecodeLane]
    private let loads: Locked<[Load]>
    /// The turns of jobs with a ``WorkClient``.
    ///
    /// A lane runs its jobs in the order in which it got them, so it gets no job before a turn is free.
    private let turns: WeightedGate

    /// Creates `count` lanes, at least one.
    ///
    /// Their threads start with their first job.
    package convenience init(count: Int) {
        self.init(count: count, startThread: POSIXThread.start)
    }

    init(count: Int, startThread: @escaping POSIXThread.Starter) {
        let count = max(1, count)
        self.lanes = (0..<count).map { DecodeLane(index: $0, startThread: startThread) }
        self.loads = Locked(Array(repeating: Load(), count: count))
        self.turns = WeightedGate(capacity: count)
    }

    /// Runs `work` on the least loaded lane.
    ///
    /// If the system refuses a thread for that lane, another lane that has a thread runs the work.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before the work begins, `CodingError.Code.tooManyThreads`
    ///   or `.outOfMemory` if no lane has a thread, any error of the work.
    package func run<Result: Sendable>(_ work: @Sendable () throws -> Result) async throws -> Result {
        try await self.withTurn {
            let index = try self.takeLane()
            defer { self.leaveLane(index) }
            return try await self.lanes[index].run(work)
        }
    }

    /// The number of active jobs, which run or wait for their turn, and the number of ended jobs.
    ///
    /// Jobs without a client are never active.
    package var progress: (active: Int, ended: Int) {
        let ended = self.loads.withLock { loads in loads.reduce(0) { $0 + $1.endedCount } }
        return (self.turns.usedWeight + self.turns.waiterCount, ended)
    }

    /// Runs `operation` in its turn: the next free lane is for the client with the fewest jobs on lanes.
    private func withTurn<Result>(_ operation: () async throws -> Result) async throws -> Result {
        guard WorkClient.current != nil else { return try await operation() }
        return try await self.turns.withWeight(1) {
            LaneUse.current?.begin()
            return try await operation()
        }
    }

    /// Returns the time for which the oldest job with a client has waited for its turn.
    package func oldestWait(at time: ContinuousClock.Instant) -> Duration { self.turns.oldestWait(at: time) }

    /// The number of jobs with a client that wait for their turn.
    var waitingCount: Int { self.turns.waiterCount }

    /// The number of idle lanes.
    package var idleCount: Int {
        let loads = self.loads.withLock { $0 }
        return loads.indices.count { loads[$0].isIdle && self.lanes[$0].isIdle }
    }

    /// Runs `work` on the least loaded lane, and `help` on idle lanes at the same time.
    ///
    /// Returns when all of them have ended. An error of `work` cancels the helping tasks.
    ///
    /// - Parameters:
    ///   - helperCount: The most lanes that may help.
    ///   - reserve: Reserves the memory of a helping lane until its help has ended. If it returns `nil`, the lane does
    ///     not help.
    ///   - help: Runs on each helping lane, in a child task. Its closure returns `true` if other work waits for the
    ///     lane. Then `help` must return as soon as it can.
    ///   - work: Runs once, in a child task.
    /// - Returns: The result of `work`.
    /// - Throws: The same errors as ``run(_:)``.
    package func runTogether<Result: Sendable, Place: Sendable>(
        helperCount: Int,
        reserving reserve: () -> Place?,
        help: @escaping @Sendable (_ isWanted: () -> Bool) -> Void,
        _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await self.withTurn {
            let index = try self.takeLane()
            defer { self.leaveLane(index) }
            return try await withThrowingTaskGroup(of: Result?.self) { group in
                for helper in self.takeHelpers(atMost: helperCount) {
                    guard let place = reserve() else {
                        self.endHelp(of: helper)
                        continue
                    }
                    group.addTask {
                        defer { withExtendedLifetime(place) { self.endHelp(of: helper) } }
                        let lane = self.lanes[helper]
                        try await lane.run {
                            self.loads.withLock { $0[helper].help = .begun }
                            help { lane.hasWaitingWork || self.loads.withLock { $0[helper].count > 0 } }
                        }
                        return nil
                    }
                }
                group.addTask { try await self.lanes[index].run(work) }
                var result: Result?
                while let ended = try await group.next() { result = ended ?? result }
                // Helpers return `nil`; `work` returns a result or throws, so there is a result.
                guard let result else { throw CancellationError() }
                return result
            }
        }
    }

    private func takeHelpers(atMost count: Int) -> [Int] {
        var helpers: [Int] = []
        for index in self.lanes.indices where helpers.count < count && self.lanes[index].isIdle {
            let isTaken = self.loads.withLock { loads in
                guard loads[index].isIdle else { return false }
                loads[index].help = .promised
                return true
            }
            guard isTaken else { continue }
            // A lane without a thread would run on the cooperative pool.
            if (try? self.lanes[index].start()) == nil { self.endHelp(of: index) } else { helpers.append(index) }
        }
        return helpers
    }

    private func endHelp(of index: Int) {
        self.loads.withLock { $0[index].help = .none }
    }

    private func takeLane() throws(CodingError) -> Int {
        let index = self.loads.withLock { loads in
            let index = Self.leastLoaded(loads)
            loads[index].count += 1
            return index
        }
        do throws(ThreadError) {
            try self.lanes[index].start()
            return index
        } catch {
            let started = self.lanes.indices.filter { self.lanes[$0].isStarted }
            let other = self.loads.withLock { loads -> Int? in
                loads[index].count -= 1
                guard let other = started.min(by: { loads[$0].count < loads[$1].count }) else { return nil }
                loads[other].count += 1
                return other
            }
            guard let other else { throw CodingError(error) }
            return other
        }
    }

    private func leaveLane(_ index: Int) {
        self.loads.withLock { loads in
            loads[index].count -= 1
            loads[index].endedCount += 1
        }
    }

    /// The lane that is least loaded now, for an actor that stays on one lane for longer.
    ///
    /// If the system refuses a thread for that lane, it is another lane that has a thread, if there is one.
    package var leastLoaded: DecodeLane {
        let lane = self.lanes[self.loads.withLock { Self.leastLoaded($0) }]
        do throws(ThreadError) {
            try lane.start()
            return lane
        } catch {
            return self.lanes.first { $0.isStarted } ?? lane
        }
    }

    private static func leastLoaded(_ loads: [Load]) -> Int {
        loads.indices.min { loads[$0].order < loads[$1].order } ?? 0
    }
}

/// A serial executor and the actor that is pinned to it.
package actor DecodeLane {
    private nonisolated let executor: ThreadExecutor
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    init(index: Int, startThread: @escaping POSIXThread.Starter) {
        self.executor = ThreadExecutor(
            name: "tintype-code-\(index)",
            startThread: startThread,
            // Images in quick succession reuse the memory of earlier ones.
            pause: (milliseconds: 1_000, work: MemoryBudget.freeBlocks)
        )
    }

    nonisolated func start() throws(ThreadError) { try self.executor.start() }
    package nonisolated var isStarted: Bool { self.executor.isStarted }
    nonisolated var isIdle: Bool { self.executor.queue.isIdle }
    /// Whether work waits for the lane, including work of other actors that stay on it.
    nonisolated var hasWaitingWork: Bool { self.executor.queue.hasWaitingJobs }

    deinit {
        self.executor.shutdown()
    }

    package func run<Result: Sendable>(_ work: @Sendable () throws -> Result) throws -> Result {
        try Task.checkCancellation()
        return try work()
    }
}
