// SPDX-License-Identifier: Apache-2.0

package import TintypeCoding
package import TintypeConcurrency
import TintypeImage

/// The decode lanes, and the memory that all work on them may take together.
package struct GatedLanes: Sendable {
    /// The bytes from which on work must find room in the cgroup too.
    ///
    /// Reading that takes as long as writing half a megabyte.
    private static let largeByteCount = 64 << 20

    /// The most bytes of a decode that needs no second visit to a lane.
    private static let smallByteCount = 4 << 20

    package let lanes: DecodeLanes
    /// Bounds the bytes of pixels that all work holds together.
    package let gate: WeightedGate
    /// The memory that the process may use.
    private let memory: MemoryBudget
    /// Whether idle lanes help with large images.
    private let usesIdleLanes: Bool

    package init(
        _ lanes: DecodeLanes,
        gate: WeightedGate,
        memory: MemoryBudget = MemoryBudget(),
        usesIdleLanes: Bool
    ) {
        self.lanes = lanes
        self.gate = gate
        self.memory = memory
        self.usesIdleLanes = usesIdleLanes
    }

    /// Returns how long the oldest waiting work has waited: for memory, or for a lane if it has a client.
    package func oldestWait(at time: ContinuousClock.Instant) -> Duration {
        max(self.gate.oldestWait(at: time), self.lanes.oldestWait(at: time))
    }

    /// The number of active jobs, and the number of jobs that have ended.
    ///
    /// A job that waits for memory is active. A job with a client is also active while it runs or waits for a lane.
    package var progress: (active: Int, ended: Int) {
        let progress = self.lanes.progress
        return (progress.active + self.gate.waiterCount, progress.ended)
    }

    // MARK: Work without weight

    /// Runs `work` on a lane, and reports the wait for the lane.
    func run<Result: Sendable>(
        _ observer: (any RenderingObserver)? = nil,
        _ work: @Sendable () throws -> Result
    ) async throws -> Result {
        guard let observer else { return try await self.lanes.run(work) }
        let start = ContinuousClock.now
        return try await self.lanes.run {
            observer.didEnd(.lane, since: start)
            return try work()
        }
    }

    // MARK: Work with weight

    /// Waits until the gate admits `byteCount` bytes, and runs `work` inside the gate.
    func withWeight<Result: Sendable>(
        _ byteCount: Int,
        _ observer: (any RenderingObserver)?,
        _ work: () async throws -> Result
    ) async throws -> Result {
        let start = ContinuousClock.now
        return try await self.gate.withWeight(byteCount) {
            observer?.didEnd(.gate, since: start)
            return try await work()
        }
    }

    /// Runs `work` on a lane when there is room for its memory.
    func run<Result: Sendable>(
        taking byteCount: Int,
        _ observer: (any RenderingObserver)? = nil,
        _ work: @Sendable () throws -> Result
    ) async throws -> Result {
        try await self.run(taking: byteCount, orAtLeast: byteCount, observer) { _ in try work() }
    }

    /// Runs `work` on a lane when the gate has room for its memory, and tells it whether the process has that much.
    ///
    /// If it has not, the process has at least `leastByteCount` bytes.
    func run<Result: Sendable>(
        taking byteCount: Int,
        orAtLeast leastByteCount: @autoclosure @Sendable () -> Int,
        _ observer: (any RenderingObserver)?,
        _ work: @Sendable (_ hasRoom: Bool) throws -> Result
    ) async throws -> Result {
        try await self.withWeight(byteCount, observer) {
            try await self.run(observer) {
                let hasRoom = self.hasRoom(for: byteCount)
                if !hasRoom { try self.requireRoom(leastByteCount()) }
                return try work(hasRoom)
            }
        }
    }

    /// Plans work in a visit to a lane, and carries it out in another one when there is room for its memory.
    package func run<Plan: Sendable, Result: Sendable>(
        planning plan: @Sendable () throws -> Plan,
        byteCount: (Plan) -> Int,
        _ work: @Sendable (Plan) throws -> Result
    ) async throws -> Result {
        let plan = try await self.run(nil, plan)
        return try await self.run(taking: byteCount(plan)) { try work(plan) }
    }

    /// Fails unless the process may take so many bytes, under a limit of its own and in its cgroup.
    ///
    /// - Throws: `ImageError.Code.outOfMemory`.
    func requireRoom(_ byteCount: Int) throws(ImageError) {
        guard self.hasRoom(for: byteCount) else { throw .outOfMemory(byteCount) }
    }

    private func hasRoom(for byteCount: Int) -> Bool {
        MemoryRoom.has(byteCount)
            && (byteCount < Self.largeByteCount || self.memory.hasRoom(for: byteCount))
    }

    // MARK: Decodes

    /// Runs a decode on a lane, with the help of idle lanes if the coder can share it with them.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - byteCount: The memory of the decode, which the gate has admitted. Each lane that helps takes more.
    ///   - observer: Receives the wait for the lane.
    ///   - decode: Carries out the plan that it receives.
    /// - Returns: The result of `decode`.
    /// - Throws: `ImageError.Code.outOfMemory`, `CodingError` without a thread, `CancellationError`, or the error of `decode`.
    func run<Result: Sendable>(
        _ plan: DecodePlan,
        taking byteCount: Int,
        _ observer: (any RenderingObserver)?,
        _ decode: @escaping @Sendable (DecodePlan) throws -> Result
    ) async throws -> Result {
        guard self.usesIdleLanes, self.lanes.idleCount > 1, let (plan, parallel) = plan.parallel() else {
            return try await self.run(observer) {
                try self.requireRoom(byteCount)
                return try decode(plan)
            }
        }
        let start = ContinuousClock.now
        return try await self.lanes.runTogether(
            helperCount: parallel.helperCount,
            reserving: { self.gate.placeIfFree(for: parallel.helperByteCount) },
            help: parallel.help,
            {
                observer?.didEnd(.lane, since: start)
                try self.requireRoom(byteCount)
                return try decode(plan)
            }
        )
    }

    /// Carries out a plan on the current lane if its weight is small and the gate has room for it at once; `nil` if not, or if
    /// idle lanes can help.
    func decodeIfSmall(_ plan: DecodePlan, _ observer: (any RenderingObserver)?) throws -> Image? {
        let byteCount = plan.byteCount
        guard byteCount <= Self.smallByteCount,
            !(self.usesIdleLanes && self.lanes.idleCount > 0 && plan.parallel() != nil),
            let place = self.gate.placeIfFree(for: byteCount)
        else { return nil }
        defer { withExtendedLifetime(place) {} }
        try self.requireRoom(byteCount)
        return try plan.decode(observer)
    }
}
