// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Clients share the lanes.
@Suite(.waiting, .timeLimit(.minutes(10))) struct DecodeLanesClientTests {
    @Test func `a client with many jobs does not keep the lanes from another one`() async throws {
        let lanes = DecodeLanes(count: 2)
        let latches = [Latch(), Latch(), Latch(), Latch()]
        let started = Locked<[Int]>([])
        @Sendable func job(_ number: Int, of client: UInt128) -> Task<Void, any Error> {
            Task { @Sendable in
                try await WorkClient.$current.withValue(WorkClient(number: client)) {
                    try await lanes.run {
                        started.withLock { $0.append(number) }
                        latches[number].wait()
                    }
                }
            }
        }
        var jobs = [job(0, of: 1), job(1, of: 1)]
        await until { started.withLock { $0.count } == 2 }
        jobs.append(job(2, of: 1))
        await until { lanes.oldestWait(at: .now) > .zero }
        let other = job(3, of: 2)
        latches[3].open()
        await until { lanes.waitingCount == 2 }
        latches[0].open()
        // The job of the other client ends first, although the first client has a job on a lane and an older one waits.
        try await other.value
        #expect(started.withLock { $0 }.firstIndex(of: 3) == 2)
        for latch in latches { latch.open() }
        for job in jobs { try await job.value }
        #expect(lanes.oldestWait(at: .now) == .zero)
    }
}
