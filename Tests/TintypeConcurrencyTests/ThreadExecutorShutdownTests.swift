// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct ThreadExecutorShutdownTests {
    @Test func `waits for the jobs that are queued`() async {
        let recorder = Recorder()
        let ran = Tally()
        let started = Gate()
        let release = Semaphore()
        let blocker = Task.immediate {
            await recorder.run { _ in
                Task { await started.open() }
                release.wait()
            }
        }
        await started.wait()
        let tasks = (0..<50).map { _ in
            Task.immediate { await recorder.run { _ in ran.add() } }
        }
        let stopper = POSIXThread(name: "stopper") { recorder.executor.shutdown() }
        release.signal()
        stopper.join()
        #expect(ran.count == 50)
        await blocker.value
        for task in tasks { await task.value }
    }

    @Test func `from its own thread returns and still runs what is queued`() async {
        let recorder = Recorder(name: "own-shutdown")
        let ran = Tally()
        let started = Gate()
        let release = Semaphore()
        let stopper = Task.immediate {
            await recorder.run { recorder in
                Task { await started.open() }
                release.wait()
                recorder.executor.shutdown()
                ran.add()
            }
        }
        await started.wait()
        let tasks = (0..<50).map { _ in
            Task.immediate { await recorder.run { _ in ran.add() } }
        }
        release.signal()
        await stopper.value
        for task in tasks { await task.value }
        #expect(ran.count == 51)
        await until { !ThisProcess.threadNames.contains("own-shutdown") }
    }

    @Test func `a second call does nothing`() async {
        let recorder = Recorder()
        await recorder.append(1)
        recorder.executor.shutdown()
        recorder.executor.shutdown()
    }

    @Test func `an executor that never started stops at once`() {
        let executor = ThreadExecutor(name: "never-started")
        executor.shutdown()
        executor.shutdown()
        #expect(!ThisProcess.threadNames.contains("never-started"))
    }

    @Test func `enqueueing after the end traps`() async {
        await #expect(processExitsWith: .failure) {
            let recorder = Recorder()
            await recorder.append(1)
            recorder.executor.shutdown()
            await recorder.append(2)
        }
    }

    @Test func `enqueueing on a stopped executor that never started traps`() async {
        await #expect(processExitsWith: .failure) {
            let recorder = Recorder()
            recorder.executor.shutdown()
            await recorder.append(1)
        }
    }

    /// Runs in a process of its own, so that no other test opens files or starts threads.
    @Test func `ended executors leave no threads or descriptors`() async {
        await #expect(processExitsWith: .success) {
            await createAndEndExecutors(10)
            let descriptors = ThisProcess.descriptorCount
            await createAndEndExecutors(300)
            // The runtime may close a descriptor of its own meanwhile, and a thread takes a moment to end.
            for _ in 0..<10_000 where ThisProcess.descriptorCount > descriptors { await Task.yield() }
            precondition(ThisProcess.descriptorCount <= descriptors + 2, "descriptors were left open")
            // A joined thread stays listed for a moment.
            await until { !ThisProcess.threadNames.contains("short-lived") }
        }
    }
}

private func createAndEndExecutors(_ count: Int) async {
    for index in 0..<count {
        let recorder = Recorder(name: "short-lived")
        if index % 3 != 0 { await recorder.append(index) }
        recorder.executor.shutdown()
    }
}

/// A number that any thread may increase.
final class Tally: Sendable {
    private let value = Atomic(0)

    var count: Int { self.value.load(ordering: .sequentiallyConsistent) }

    func add() {
        self.value.add(1, ordering: .sequentiallyConsistent)
    }
}
