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
    public init(count: Int) {
        let count = max(1, count)
        self.lanes = (0..<count).map { DecodeLane(index: $0) }
        self.loads = Locked(Array(repeating: 0, count: count))
    }

    /// Runs `work` on the lane that has the least to do.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before the work begins, or
    ///   what the work throws.
    public func run<Result: Sendable>(_ work: @Sendable () throws -> Result) async throws -> Result {
        let index = self.loads.withLock { loads in
            let index = Self.leastLoaded(loads)
            loads[index] += 1
            return index
        }
        defer { self.loads.withLock { $0[index] -= 1 } }
        return try await self.lanes[index].run(work)
    }
}

extension DecodeLanes {
    /// The lane that has the least to do now, for work that stays on one lane for longer.
    var leastLoaded: DecodeLane {
        self.lanes[self.loads.withLock { Self.leastLoaded($0) }]
    }

    private static func leastLoaded(_ loads: [Int]) -> Int {
        loads.indices.min { loads[$0] < loads[$1] } ?? 0
    }
}

/// One serial executor and the actor that is pinned to it.
actor DecodeLane {
    private let executor: ThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    init(index: Int) {
        self.executor = ThreadExecutor(name: "tintype-code-\(index)")
    }

    deinit {
        self.executor.shutdown()
    }

    func run<Result: Sendable>(_ work: @Sendable () throws -> Result) throws -> Result {
        try Task.checkCancellation()
        return try work()
    }
}
