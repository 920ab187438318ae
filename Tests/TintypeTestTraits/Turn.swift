// SPDX-License-Identifier: Apache-2.0

import Glibc
public import Testing
import TintypeConcurrency

/// The time at which a suite runs, its threads, and the suites that may run at the same time.
///
/// Swift Testing starts the tests of all suites at once, on the few threads of the cooperative pool. Tests that compute
/// or block would hold up the tests that wait, until their time limits are over. So a suite waits for its turn before
/// its first test starts and before any time limit counts. Then it runs its tests one after the other. Suites of pure
/// functions that take milliseconds need no turn.
public struct Turn: SuiteTrait, TestScoping {
    fileprivate enum Kind {
        case computing
        case waiting
        case alone
    }

    private static let processors = max(2, sysconf(CInt(_SC_NPROCESSORS_ONLN)))
    private static let computing = WeightedGate(capacity: Self.processors)
    private static let waiting = WeightedGate(capacity: 3 * Self.processors)
    /// One thread more than suites that compute at once, because the timers of their time limits need a thread as well.
    private static let threads = ComputingThreads(count: Self.processors + 1)

    private let kind: Kind

    fileprivate init(_ kind: Kind) {
        self.kind = kind
    }

    public func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        switch self.kind {
        case .computing:
            try await Self.computing.withWeight(1) {
                try await withTaskExecutorPreference(Self.threads) {
                    try await Self.inOrder(test, testCase, function)
                }
            }
        case .waiting:
            // On threads of their own, these tests would start before the suites without a turn, which keep the pool and
            // so the tested code busy at first; their time limits would be over by then.
            try await Self.waiting.withWeight(1) { try await Self.inOrder(test, testCase, function) }
        case .alone:
            try await Self.computing.withWeight(.max) {
                try await Self.waiting.withWeight(.max) { try await Self.inOrder(test, testCase, function) }
            }
        }
    }

    /// Runs a test like `.serialized`, which would otherwise have to accompany each turn.
    private static func inOrder(
        _ test: Test,
        _ testCase: Test.Case?,
        _ function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let serialized: ParallelizationTrait = .serialized
        try await serialized.provideScope(for: test, testCase: testCase, performing: function)
    }
}

extension Trait where Self == Turn {
    /// The tests compute or block their thread, and run on threads that no other kind of test needs.
    public static var computing: Turn { Turn(.computing) }

    /// The tests wait for sockets, processes, files or other tasks, and do little meanwhile.
    public static var waiting: Turn { Turn(.waiting) }

    /// The tests use or measure the whole process or machine, so no other suite with a turn runs at the same time.
    public static var alone: Turn { Turn(.alone) }
}
