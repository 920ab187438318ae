// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// A thread for blocking calls, so that they do not block Swift's own threads.
actor BlockingLane {
    /// The lane of the harness, which lives as long as the process.
    static let shared = BlockingLane()

    private let executor = ThreadExecutor(name: "bench-blocking")

    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Runs `body` on the lane's thread.
    func run<Result: Sendable>(_ body: @Sendable () throws -> Result) throws -> Result {
        try body()
    }
}
