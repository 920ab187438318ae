// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeCluster

@Suite struct CircuitTests {
    private let start = ContinuousClock.now

    private func open() -> Circuit {
        var circuit = Circuit()
        for _ in 0..<Circuit.failureLimit { _ = circuit.fail(at: self.start) }
        return circuit
    }

    @Test func `a circuit opens after failures in a row`() {
        var circuit = Circuit()
        for index in 1...Circuit.failureLimit {
            let admits = circuit.admits(at: self.start)
            let opens = circuit.fail(at: self.start)
            #expect(admits && opens == (index == Circuit.failureLimit))
        }
        #expect(circuit.isOpen)
        let admits = circuit.admits(at: self.start)
        #expect(!admits)
    }

    @Test func `a success between failures keeps a circuit closed`() {
        var circuit = Circuit()
        for _ in 0..<10 {
            let (opens, closes) = (circuit.fail(at: self.start), circuit.succeed())
            #expect(!opens && !closes)
        }
        #expect(!circuit.isOpen)
    }

    @Test func `one call tries the store after a pause, and closes the circuit`() {
        var circuit = self.open()
        let later = self.start + Circuit.shortestPause
        let calls = [circuit.admits(at: later), circuit.admits(at: later)]
        let closes = circuit.succeed()
        #expect(calls == [true, false] && closes && !circuit.isOpen)
    }

    @Test func `the pause doubles with each failure up to a limit`() {
        var circuit = self.open()
        var now = self.start
        var pause = Circuit.shortestPause
        for _ in 0..<10 {
            let early = circuit.admits(at: now + pause - .milliseconds(1))
            now += pause
            let (admits, opens) = (circuit.admits(at: now), circuit.fail(at: now))
            #expect(!early && admits && !opens)
            pause = min(pause * 2, Circuit.longestPause)
        }
        #expect(pause == Circuit.longestPause)
    }

    @Test func `a cancelled try lets another call try`() {
        var circuit = self.open()
        let later = self.start + Circuit.shortestPause
        let first = circuit.admits(at: later)
        circuit.abandon(at: later)
        let second = circuit.admits(at: later)
        #expect(first && second)
    }

    @Test func `failures of calls that began before change nothing`() {
        var circuit = self.open()
        let opens = circuit.fail(at: self.start + .seconds(1))
        let admits = circuit.admits(at: self.start + Circuit.shortestPause)
        #expect(!opens && admits)
    }
}
