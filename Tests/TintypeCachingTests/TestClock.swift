// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// A clock that stands still until a test advances it.
final class TestClock: Sendable {
    private let date = Locked(Date(timeIntervalSince1970: 1_700_000_000))

    var now: Date { self.date.withLock { $0 } }

    func advance(by seconds: Double) {
        self.date.withLock { $0 = $0.addingTimeInterval(seconds) }
    }
}
