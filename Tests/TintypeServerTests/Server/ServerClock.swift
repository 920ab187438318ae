// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// A clock of a server's caches that tests move by hand.
final class ServerClock: Sendable {
    private let state = Locked(Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down)))

    var now: Date { self.state.withLock { $0 } }

    func advance(by seconds: Double) {
        self.state.withLock { $0 += seconds }
    }
}
