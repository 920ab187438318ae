// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeServer

/// Stuck lanes, told from slow origins.
struct LivenessTests {
    private let liveness = Liveness()
    private let start = ContinuousClock.now

    private func isAlive(ended: Int, fed: Int, active: Int = 1, after seconds: Int) -> Bool {
        self.liveness.isAlive(ended: ended, fed: fed, active: active, at: self.start + .seconds(seconds))
    }

    @Test func `lanes that receive bytes but finish nothing for a minute are stuck until they do`() {
        #expect(self.isAlive(ended: 5, fed: 9, after: 0))
        #expect(self.isAlive(ended: 5, fed: 12, after: 59))
        #expect(!self.isAlive(ended: 5, fed: 12, after: 60))
        #expect(self.isAlive(ended: 6, fed: 12, after: 61))
    }

    @Test func `images that wait for slow origins are no sign of stuck lanes`() {
        for second in [0, 60, 600] { #expect(self.isAlive(ended: 5, fed: 9, after: second)) }
    }

    @Test func `lanes without work are not stuck`() {
        for second in [0, 60, 600] { #expect(self.isAlive(ended: 5, fed: second, active: 0, after: second)) }
        #expect(self.isAlive(ended: 5, fed: 700, after: 650))
    }
}
