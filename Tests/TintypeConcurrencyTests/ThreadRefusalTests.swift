// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeConcurrency

/// An executor for which the system refuses to start a thread.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ThreadRefusalTests {
    @Test func `jobs run in order, one at a time, while there is no thread`() async {
        let refusals = ThreadRefusals(.max)
        let recorder = Recorder(name: "refused", startThread: refusals.start)
        let tasks = (0..<1_000).map { index in Task.immediate { await recorder.append(index) } }
        for task in tasks { await task.value }
        #expect(await recorder.values == Array(0..<1_000))
        #expect(await !recorder.threadNames.contains("refused"))
        recorder.executor.shutdown()
    }

    @Test(arguments: [1, 2, 10])
    func `jobs move to the thread as soon as there is one`(refused: Int) async {
        let refusals = ThreadRefusals(refused)
        let recorder = Recorder(name: "late", startThread: refusals.start)
        defer { recorder.executor.shutdown() }
        var count = 0
        while await !recorder.threadNames.contains("late") {
            await recorder.append(count)
            count += 1
        }
        #expect(await recorder.values == Array(0..<count))
    }

    @Test(arguments: [ThreadError.Code.tooManyThreads, .outOfMemory])
    func `a start says why there is no thread, and a later one tries again`(code: ThreadError.Code) async throws {
        let refusals = ThreadRefusals(2, code)
        let recorder = Recorder(name: "retried", startThread: refusals.start)
        for _ in 0..<2 {
            let error = #expect(throws: ThreadError.self) { try recorder.executor.start() }
            #expect(error?.code == code)
            #expect(!recorder.executor.isStarted)
        }
        try recorder.executor.start()
        try recorder.executor.start()
        await recorder.append(1)
        #expect(await recorder.threadNames == ["retried"])
        recorder.executor.shutdown()
        try recorder.executor.start()
    }

    @Test func `a thread that comes while a task runs jobs is told from it, then and later`() async {
        let refusals = ThreadRefusals(1)
        let hasBegun = Semaphore()
        let recorder = Recorder(startThread: { name, main throws(ThreadError) in
            try refusals.start(name: name) {
                hasBegun.signal()
                main()
            }
        })
        let executor = recorder.executor
        let isIsolated = await recorder.run { _ in
            try? executor.start()
            hasBegun.wait()
            // Let the thread proceed as far as it can.
            return (0..<1_000).allSatisfy { _ in
                sched_yield()
                return executor.isIsolatingCurrentContext() == true
            }
        }
        #expect(isIsolated)
        #expect(await recorder.run { _ in executor.isIsolatingCurrentContext() } == true)
        executor.shutdown()
    }

    @Test func `no job is lost while threads come and are refused`() async {
        for round in 0..<20 {
            let refusals = ThreadRefusals(round)
            let recorder = Recorder(startThread: refusals.start)
            await withTaskGroup { group in
                for _ in 0..<8 { group.addTask { for index in 0..<50 { await recorder.append(index) } } }
                group.addTask { for _ in 0..<30 { try? recorder.executor.start() } }
            }
            #expect(await recorder.values.count == 400)
            recorder.executor.shutdown()
        }
    }

    @Test func `jobs that wait for a pool's thread still run when the executor is shut down`() async {
        let refusals = ThreadRefusals(.max)
        let recorder = Recorder(startThread: refusals.start)
        let tasks = (0..<100).map { index in Task.immediate { await recorder.append(index) } }
        let isShutDown = Task { recorder.executor.shutdown() }
        for task in tasks { await task.value }
        await isShutDown.value
    }

    @Test func `an executor needs no descriptor`() async {
        await #expect(processExitsWith: .success) {
            let recorders = try await ProcessLimit.withOneDescriptor {
                let recorders = (0..<3).map { _ in Recorder() }
                for index in 0..<100 { for recorder in recorders { await recorder.append(index) } }
                return recorders
            }
            for recorder in recorders { try #require(await recorder.values == Array(0..<100)) }
        }
    }

    @Test(.enabled(if: !ThisProcess.isSanitized))
    func `a stack that would take the last memory is refused`() async {
        await #expect(processExitsWith: .success) {
            let error = await ProcessLimit.withMemory(atMost: 24 << 20) {
                #expect(throws: ThreadError.self) { try ThreadExecutor(name: "poor").start() }
            }
            try #require(error?.code == .outOfMemory)
        }
    }
}
