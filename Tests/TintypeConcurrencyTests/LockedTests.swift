// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct LockedTests {
    @Test func `excludes other threads`() async {
        let value = Locked(0)
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { @Sendable in
                    for _ in 0..<2_000 { value.withLock { $0 += 1 } }
                }
            }
        }
        #expect(value.withLock { $0 } == 16_000)
    }

    @Test func `is open again after an error`() {
        let value = Locked(1)
        #expect(throws: CancellationError.self) {
            try value.withLock { value throws(CancellationError) in
                value = 2
                throw CancellationError()
            }
        }
        #expect(value.withLock { $0 } == 2)
    }

    @Test func `releases its value`() {
        weak var released: Tally?
        do {
            let tally = Tally()
            released = tally
            let value = Locked(tally)
            value.withLock { $0.add() }
            #expect(tally.count == 1)
        }
        #expect(released == nil)
    }

    @Test func `a joined thread has done its work`() {
        let tally = Tally()
        let threads = (0..<10).map { _ in POSIXThread(name: "worker") { tally.add() } }
        for thread in threads { thread.join() }
        #expect(tally.count == 10)
    }
}
