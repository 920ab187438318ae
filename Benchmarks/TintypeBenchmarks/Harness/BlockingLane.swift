import TintypeConcurrency

/// A thread for calls that block, so that none of Swift's own threads does.
actor BlockingLane {
    /// The lane of the harness; kept for the life of the process.
    static let shared = BlockingLane()

    private let executor = ThreadExecutor(name: "bench-blocking")

    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Runs `body` on the lane's thread.
    func run<Result: Sendable>(_ body: @Sendable () throws -> Result) throws -> Result {
        try body()
    }
}
