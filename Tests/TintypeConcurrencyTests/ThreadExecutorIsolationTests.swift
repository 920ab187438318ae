// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct ThreadExecutorIsolationTests {
    @Test func `isolation is true in a job and false elsewhere`() async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        #expect(recorder.executor.isIsolatingCurrentContext() == false)
        #expect(await recorder.run { $0.executor.isIsolatingCurrentContext() } == true)
        #expect(recorder.executor.isIsolatingCurrentContext() == false)
    }

    @Test func `another executors thread is not isolated`() async {
        let recorder = Recorder()
        let other = Recorder()
        defer {
            recorder.executor.shutdown()
            other.executor.shutdown()
        }
        await recorder.append(1)
        #expect(await other.run { _ in recorder.executor.isIsolatingCurrentContext() } == false)
    }

    @Test func `check isolated passes in a job`() async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        await recorder.run { $0.executor.checkIsolated() }
    }

    @Test func `a synchronous helper may assume isolation`() async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        await recorder.run { appendAssumingIsolation(7, to: $0) }
        #expect(await recorder.values == [7])
    }

    @Test func `check isolated traps elsewhere`() async {
        await #expect(processExitsWith: .failure) {
            let recorder = Recorder()
            await recorder.append(1)
            recorder.executor.checkIsolated()
        }
    }

    @Test func `assuming isolation traps elsewhere`() async {
        await #expect(processExitsWith: .failure) {
            let recorder = Recorder()
            await recorder.append(1)
            appendAssumingIsolation(7, to: recorder)
        }
    }
}

/// Calls `assumeIsolated`, which is unavailable in async code including the bodies of exit tests.
private func appendAssumingIsolation(_ value: Int, to recorder: Recorder) {
    recorder.assumeIsolated { $0.append(value) }
}
