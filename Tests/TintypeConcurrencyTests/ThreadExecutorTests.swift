// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct ThreadExecutorTests {
    @Test(arguments: [1, 2, 100, 2_000])
    func `runs every job once and in order`(count: Int) async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        // An immediate task runs here until its first suspension, so the jobs are enqueued in this order.
        let tasks = (0..<count).map { index in Task.immediate { await recorder.append(index) } }
        for task in tasks { await task.value }
        #expect(await recorder.values == Array(0..<count))
    }

    @Test(arguments: [("short", "short"), ("a-name-that-is-too-long", "a-name-that-is-")])
    func `runs all jobs on one named thread`(name: String, shown: String) async {
        let recorder = Recorder(name: name)
        defer { recorder.executor.shutdown() }
        for index in 0..<20 { await recorder.append(index) }
        #expect(await recorder.threadNames == [shown])
        #expect(ThisProcess.threadNames.filter { $0 == shown }.count == 1)
    }

    @Test func `starts its thread with the first job`() async {
        let recorder = Recorder(name: "lazy-thread")
        defer { recorder.executor.shutdown() }
        #expect(!ThisProcess.threadNames.contains("lazy-thread"))
        await recorder.append(1)
        #expect(ThisProcess.threadNames.contains("lazy-thread"))
    }

    @Test func `runs the work of a pause on its thread, each time that the jobs have ended`() async {
        let (pauses, continuation) = AsyncStream.makeStream(of: String.self)
        let recorder = Recorder(
            name: "pausing",
            pause: (milliseconds: 1, { continuation.yield(ThisProcess.threadName) })
        )
        defer { recorder.executor.shutdown() }
        var iterator = pauses.makeAsyncIterator()
        for index in 0..<3 {
            await recorder.append(index)
            let name = await iterator.next()
            #expect(name == "pausing")
        }
        #expect(await recorder.values == [0, 1, 2])
    }

    @Test(arguments: [2, 8])
    func `keeps the order of each producer`(producers: Int) async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        let perProducer = 500
        await withTaskGroup { group in
            for producer in 0..<producers {
                group.addTask {
                    for index in 0..<perProducer { await recorder.append(producer * perProducer + index) }
                }
            }
        }
        let values = await recorder.values
        #expect(values.count == producers * perProducer)
        for producer in 0..<producers {
            let own = values.filter { $0 / perProducer == producer }
            #expect(own == (0..<perProducer).map { producer * perProducer + $0 })
        }
    }

    @Test func `jobs of many threads all run`() async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        let ran = Locked(0)
        await withTaskGroup { group in
            for _ in 0..<5_000 {
                group.addTask { @Sendable in
                    await recorder.run { _ in ran.withLock { $0 += 1 } }
                }
            }
        }
        #expect(ran.withLock { $0 } == 5_000)
    }

    @Test func `several actors share one thread`() async {
        let first = Recorder(name: "shared-thread")
        defer { first.executor.shutdown() }
        let names = await withTaskGroup(of: String.self) { group in
            for _ in 0..<10 { group.addTask { await Guest(executor: first.executor).threadName } }
            return await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(names == ["shared-thread"])
    }
}

/// An actor on the executor of another actor.
private actor Guest {
    private let executor: ThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    init(executor: ThreadExecutor) {
        self.executor = executor
    }

    var threadName: String { ThisProcess.threadName }
}
