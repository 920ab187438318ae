import Testing
import TintypeConcurrency
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct ThreadExecutorIsolationTests {
    @Test func isolationIsTrueInAJobAndFalseElsewhere() async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        #expect(recorder.executor.isIsolatingCurrentContext() == false)
        #expect(await recorder.run { $0.executor.isIsolatingCurrentContext() } == true)
        #expect(recorder.executor.isIsolatingCurrentContext() == false)
    }

    @Test func anotherExecutorsThreadIsNotIsolated() async {
        let recorder = Recorder()
        let other = Recorder()
        defer {
            recorder.executor.shutdown()
            other.executor.shutdown()
        }
        await recorder.append(1)
        #expect(await other.run { _ in recorder.executor.isIsolatingCurrentContext() } == false)
    }

    @Test func checkIsolatedPassesInAJob() async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        await recorder.run { $0.executor.checkIsolated() }
    }

    @Test func aSynchronousHelperMayAssumeIsolation() async {
        let recorder = Recorder()
        defer { recorder.executor.shutdown() }
        await recorder.run { appendAssumingIsolation(7, to: $0) }
        #expect(await recorder.values == [7])
    }

    @Test func checkIsolatedTrapsElsewhere() async {
        await #expect(processExitsWith: .failure) {
            let recorder = Recorder()
            await recorder.append(1)
            recorder.executor.checkIsolated()
        }
    }

    @Test func assumingIsolationTrapsElsewhere() async {
        await #expect(processExitsWith: .failure) {
            let recorder = Recorder()
            await recorder.append(1)
            appendAssumingIsolation(7, to: recorder)
        }
    }
}

/// `assumeIsolated` is unavailable in async code, exit-test bodies included.
private func appendAssumingIsolation(_ value: Int, to recorder: Recorder) {
    recorder.assumeIsolated { $0.append(value) }
}
