// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeServer

/// The difference between stuck and idle lanes.
struct LivenessTests {
    private let liveness = Liveness()
    private let start = ContinuousClock.now

    private func isAlive(ended: Int, active: Int = 1, after seconds: Int) -> Bool {
        self.liveness.isAlive(ended: ended, active: active, at: self.start + .seconds(seconds))
    }

    @Test func `lanes with work that end no job for a minute are stuck until a job ends`() {
        #expect(self.isAlive(ended: 5, after: 0))
        #expect(self.isAlive(ended: 5, after: 59))
        #expect(!self.isAlive(ended: 5, after: 60))
        #expect(self.isAlive(ended: 6, after: 61))
        #expect(self.isAlive(ended: 6, after: 120))
    }

    @Test func `lanes without work are not stuck`() {
        for second in [0, 60, 600] { #expect(self.isAlive(ended: 5, active: 0, after: second)) }
        #expect(self.isAlive(ended: 5, after: 650))
    }
}
