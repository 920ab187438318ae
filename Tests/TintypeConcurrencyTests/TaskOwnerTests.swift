// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct TaskOwnerTests {
    @Test func `tasks run to their end and are forgotten`() async {
        let owner = TaskOwner()
        let sum = Locked(0)
        for number in 1...100 { owner.run("add") { sum.withLock { $0 += number } } }
        await owner.waitForAll()
        #expect(sum.withLock { $0 } == 5_050)
        #expect(owner.count == 0)
    }

    @Test func `an owner that goes away cancels its tasks`() async {
        let started = Gate()
        let ended = Gate()
        do {
            let owner = TaskOwner()
            owner.run("wait") {
                await started.open()
                let (stream, _) = AsyncStream.makeStream(of: Void.self)
                // The stream is never finished, so only cancellation ends the loop.
                for await _ in stream {}
                await ended.open()
            }
            await started.wait()
        }
        await ended.wait()
    }
}
