// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

@Suite(.waiting, .timeLimit(.minutes(5)))
struct CurlLoopTests {
    /// An actor with its own loop.
    private actor Worker {
        nonisolated let loop: CurlLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { self.loop.asUnownedSerialExecutor() }
        private(set) var count = 0

        init(didEnd: (@Sendable () -> Void)? = nil) {
            self.loop = CurlLoop(engine: TransferEngine(configuration: .init()), didEnd: didEnd)
        }

        func work() {
            self.preconditionIsolated()
            self.count += 1
        }

        /// Queues `count` jobs and stops the loop before it can run any of them.
        func stopAfterQueueing(_ count: Int) -> [Task<Void, Never>] {
            let tasks = (0..<count).map { _ in Task { self.work() } }
            self.loop.stop()
            return tasks
        }
    }

    @Test func `jobs that are queued when the loop stops still run`() async {
        let hasEnded = Gate()
        let worker = Worker(didEnd: { Task { await hasEnded.open() } })
        for task in await worker.stopAfterQueueing(1_000) { await task.value }
        await hasEnded.wait()
    }

    @Test func `no job is lost between threads`() async {
        let worker = Worker()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<5_000 { group.addTask { await worker.work() } }
        }
        #expect(await worker.count == 5_000)
        worker.loop.stop()
    }

    @Test func `a job for a stopped loop traps`() async {
        await #expect(processExitsWith: .failure) {
            let worker = Worker()
            worker.loop.stop()
            await worker.work()
        }
    }

    @Test func `code elsewhere is not isolated to the loop`() async {
        await #expect(processExitsWith: .failure) {
            Worker().loop.checkIsolated()
        }
    }
}
