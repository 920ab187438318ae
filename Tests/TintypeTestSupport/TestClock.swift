// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import TintypeConcurrency

/// A clock that tests move by hand, and that begins at a whole second.
public final class TestClock: Sendable {
    private let state = Locked(Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down)))

    public init() {}

    public var now: Date { self.state.withLock { $0 } }

    public func advance(by seconds: Double) {
        self.state.withLock { $0 += seconds }
    }
}
