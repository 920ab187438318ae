// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// A clock that tests move by hand.
final class TestClock: Sendable {
    private let state: Locked<Date>

    /// Creates a clock that stands at a whole second.
    init(_ date: Date = Date()) {
        self.state = Locked(Date(timeIntervalSince1970: date.timeIntervalSince1970.rounded(.down)))
    }

    var now: Date { self.state.withLock { $0 } }

    func advance(by seconds: Double) {
        self.state.withLock { $0 += seconds }
    }
}
