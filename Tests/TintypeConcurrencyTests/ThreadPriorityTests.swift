// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TintypeConcurrency
import TintypeTestSupport

/// The priority of threads that should wait less for others.
@Suite struct ThreadPriorityTests {
    /// Runs `body` on a new thread, and returns its result.
    private static func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) throws -> Result {
        let result = Locked<Result?>(nil)
        try POSIXThread.start(name: "priority") {
            let value = body()
            result.withLock { $0 = value }
        }.join()
        return try #require(result.withLock { $0 })
    }

    @Test(.enabled(if: ThisProcess.mayRaisePriority, "the system gives no right to raise priorities"))
    func `a raised priority is a nice value 5 lower, which other threads do not inherit`() throws {
        let (own, resets) = try Self.onThread {
            POSIXThread.raisePriority()
            // SCHED_RESET_ON_FORK.
            return (ThisProcess.niceValue(), sched_getscheduler(0) & 0x4000_0000 != 0)
        }
        #expect(own == ThisProcess.usualNiceValue - 5)
        #expect(resets)
    }

    @Test(.enabled(if: ThisProcess.mayRaisePriority, "the system gives no right to raise priorities"))
    func `new threads do not inherit a nice value below that of the process`() throws {
        let usual = min(ThisProcess.usualNiceValue, 0)
        let new = try Self.onThread {
            ThisProcess.setNiceValue(usual - 4)
            return try? Self.onThread { ThisProcess.niceValue() }
        }
        #expect(new == usual)
    }

    @Test(.enabled(if: ThisProcess.mayRaisePriority, "the system gives no right to raise priorities"))
    func `new threads keep the positive nice value of their creator`() throws {
        let new = try Self.onThread {
            ThisProcess.setNiceValue(19)
            return try? Self.onThread { ThisProcess.niceValue() }
        }
        #expect(new == 19)
    }
}
