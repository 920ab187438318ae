// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TintypeConcurrency

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

    /// Returns the nice value of a thread, or of the calling one.
    private static func niceValue(of thread: pid_t = 0) -> CInt {
        getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(thread))
    }

    @discardableResult
    private static func setNiceValue(_ value: CInt) -> Bool {
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, value) == 0
    }

    /// The nice value of the main thread.
    private static var usualValue: CInt { Self.niceValue(of: getpid()) }

    /// Returns whether a thread may have a nice value 5 below that of the main thread.
    private static func mayRaisePriority() throws -> Bool {
        try Self.onThread { Self.setNiceValue(Self.usualValue - 5) }
    }

    @Test(.enabled(if: try Self.mayRaisePriority(), "the system gives no right to raise priorities"))
    func `threads do not inherit a raised priority`() throws {
        let (own, resets, new) = try Self.onThread {
            POSIXThread.raisePriority()
            // SCHED_RESET_ON_FORK.
            let resets = sched_getscheduler(0) & 0x4000_0000 != 0
            return (Self.niceValue(), resets, try? Self.onThread { Self.niceValue() })
        }
        #expect(own == Self.usualValue - 5)
        #expect(resets)
        #expect(new == Self.usualValue)
    }

    @Test(.enabled(if: try Self.mayRaisePriority(), "the system gives no right to raise priorities"))
    func `new threads have the priority of the process, and not the one of their creator`() throws {
        let new = try Self.onThread {
            Self.setNiceValue(Self.usualValue - 4)
            return try? Self.onThread { Self.niceValue() }
        }
        #expect(new == Self.usualValue)
    }
}
