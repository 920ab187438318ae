// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeDownloading

@Suite struct TransferDeadlinesTests {
    private let start = LoopInstant.now

    private func makeDeadlines() -> TransferDeadlines {
        TransferDeadlines(speedCheckInterval: .milliseconds(500), now: self.start)
    }

    @Test func `without appointments there is nothing to wait for`() {
        var deadlines = self.makeDeadlines()
        #expect(deadlines.next == nil)
        #expect(deadlines.takeTry(now: self.start + .seconds(1_000)) == nil)
        #expect(deadlines.takeEnd(now: self.start + .seconds(1_000)) == nil)
        let delay = deadlines.takeLook(now: self.start + .seconds(1_000))
        #expect(delay == nil)
    }

    @Test func `tries come in the order of their times, each when it is due`() {
        var deadlines = self.makeDeadlines()
        deadlines.addTry(of: 1, at: self.start + .seconds(3))
        deadlines.addTry(of: 2, at: self.start + .seconds(1))
        deadlines.addTry(of: 3, at: self.start + .seconds(2))
        #expect(deadlines.next == self.start + .seconds(1))
        #expect(deadlines.takeTry(now: self.start + .milliseconds(999)) == nil)
        #expect(deadlines.takeTry(now: self.start + .seconds(2)) == 2)
        #expect(deadlines.takeTry(now: self.start + .seconds(2)) == 3)
        #expect(deadlines.takeTry(now: self.start + .seconds(2)) == nil)
        #expect(deadlines.next == self.start + .seconds(3))
        #expect(deadlines.hasTries)
    }

    @Test func `an end that was moved away comes again`() {
        var deadlines = self.makeDeadlines()
        deadlines.addEnd(of: 1, at: self.start + .seconds(1))
        #expect(deadlines.takeEnd(now: self.start + .seconds(1)) == 1)
        deadlines.addEnd(of: 1, at: self.start + .seconds(5))
        #expect(deadlines.takeEnd(now: self.start + .seconds(4)) == nil)
        #expect(deadlines.takeEnd(now: self.start + .seconds(5)) == 1)
        #expect(deadlines.next == nil)
    }

    @Test func `ends of transfers that are over are removed once they outnumber the others`() {
        var deadlines = self.makeDeadlines()
        for id in UInt64(1)...1_024 { deadlines.addEnd(of: id, at: self.start + .seconds(Int(id))) }
        deadlines.removeOutdatedEnds(count: 0) { _ in false }
        #expect(deadlines.next == self.start + .seconds(1))
        deadlines.addEnd(of: 1_025, at: self.start + .seconds(1_025))
        deadlines.removeOutdatedEnds(count: 0) { $0 == 7 || $0 == 1_025 }
        #expect(deadlines.takeEnd(now: self.start + .seconds(2_000)) == 7)
        #expect(deadlines.takeEnd(now: self.start + .seconds(2_000)) == 1_025)
        #expect(deadlines.next == nil)
    }

    @Test func `the earliest look counts, and takes the others with it`() {
        var deadlines = self.makeDeadlines()
        deadlines.expectLook(at: self.start + .seconds(9))
        deadlines.expectLook(at: self.start + .seconds(4))
        deadlines.expectLook(at: self.start + .seconds(6))
        #expect(deadlines.next == self.start + .seconds(4))
        let early = deadlines.takeLook(now: self.start + .seconds(3))
        let late = deadlines.takeLook(now: self.start + .seconds(5))
        #expect(early == nil && late == .seconds(1))
        #expect(deadlines.next == nil)
    }

    @Test(arguments: [0, 1, 499, 500, 501, 999, 1_000, 86_400_000])
    func `speeds are looked at in steps from the start, the next one after the given time`(milliseconds: Int) {
        var deadlines = self.makeDeadlines()
        deadlines.expectSpeedCheck(after: self.start + .milliseconds(milliseconds))
        #expect(deadlines.next == self.start + .milliseconds((milliseconds / 500 + 1) * 500))
    }

    @Test func `transfers that start within one step share a look at speeds`() {
        var deadlines = self.makeDeadlines()
        for milliseconds in [10, 200, 300] {
            deadlines.expectSpeedCheck(after: self.start + .milliseconds(milliseconds))
        }
        let delay = deadlines.takeLook(now: self.start + .milliseconds(500))
        #expect(delay == .zero)
        #expect(deadlines.next == nil)
    }
}
