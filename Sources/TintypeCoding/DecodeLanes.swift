import TintypeConcurrency

/// A small set of lanes on which pictures are decoded, transformed and encoded.
///
/// Each lane is an actor on a serial executor with one thread of its own. A piece of work
/// runs whole on one lane, so at most as many pictures are worked on at once as there are
/// lanes, and the cooperative pool is never blocked.
public final class DecodeLanes: Sendable {
    private let lanes: [DecodeLane]
    /// The pieces of work that each lane has, running or waiting.
    private let loads: Locked<[Int]>

    /// Creates `count` lanes, at least one.
    ///
    /// Their threads start with their first work.
    public convenience init(count: Int) {
        self.init(count: count, startThread: POSIXThread.start)
    }

    init(count: Int, startThread: @escaping POSIXThread.Starter) {
        let count = max(1, count)
        self.lanes = (0..<count).map { DecodeLane(index: $0, startThread: startThread) }
        self.loads = Locked(Array(repeating: 0, count: count))
    }

    /// Runs `work` on the lane that has the least to do.
    ///
    /// Where the system refuses that lane its thread, the work goes to a lane that has one.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before the work begins,
    ///   `CodingError.Code.tooManyThreads` or `.outOfMemory` when no lane has a thread, or what the work throws.
    public func run<Result: Sendable>(_ work: @Sendable () throws -> Result) async throws -> Result {
        let index = try self.takeLane()
        defer { self.loads.withLock { $0[index] -= 1 } }
        return try await self.lanes[index].run(work)
    }

    private func takeLane() throws(CodingError) -> Int {
        let index = self.loads.withLock { loads in
            let index = Self.leastLoaded(loads)
            loads[index] += 1
            return index
        }
        do throws(ThreadError) {
            try self.lanes[index].start()
            return index
        } catch {
            let started = self.lanes.indices.filter { self.lanes[$0].isStarted }
            let other = self.loads.withLock { loads -> Int? in
                loads[index] -= 1
                guard let other = started.min(by: { loads[$0] < loads[$1] }) else { return nil }
                loads[other] += 1
                return other
            }
            guard let other else { throw CodingError(error) }
            return other
        }
    }

    /// The lane that has the least to do now, for work that stays on one lane for longer.
    ///
    /// Where the system refuses that lane its thread, it is one that has a thread, if there is any.
    var leastLoaded: DecodeLane {
        let lane = self.lanes[self.loads.withLock { Self.leastLoaded($0) }]
        do throws(ThreadError) {
            try lane.start()
            return lane
        } catch {
            return self.lanes.first { $0.isStarted } ?? lane
        }
    }

    private static func leastLoaded(_ loads: [Int]) -> Int {
        loads.indices.min { loads[$0] < loads[$1] } ?? 0
    }
}

/// One serial executor and the actor that is pinned to it.
actor DecodeLane {
    private nonisolated let executor: ThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    init(index: Int, startThread: @escaping POSIXThread.Starter) {
        self.executor = ThreadExecutor(name: "tintype-code-\(index)", startThread: startThread)
    }

    nonisolated func start() throws(ThreadError) { try self.executor.start() }
    nonisolated var isStarted: Bool { self.executor.isStarted }

    deinit {
        self.executor.shutdown()
    }

    func run<Result: Sendable>(_ work: @Sendable () throws -> Result) throws -> Result {
        try Task.checkCancellation()
        return try work()
    }
}
