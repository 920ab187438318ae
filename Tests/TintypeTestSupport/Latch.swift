// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc

/// A one-shot latch that tests open, and that threads wait for.
///
/// It connects tests with the blocking threads of ``FaultyOrigin``. Tasks use a ``Gate`` instead.
public final class Latch: Sendable {
    /// The event descriptor, which is readable when the latch is open and can be polled together with sockets.
    let descriptor: CInt

    /// Creates a closed latch.
    public init() {
        self.descriptor = cshims_eventfd()
        precondition(self.descriptor >= 0, "eventfd failed with errno \(errno)")
    }

    deinit {
        close(self.descriptor)
    }

    /// Whether the latch is open.
    public var isOpen: Bool {
        var source = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&source, 1, 0) == 1
    }

    /// Blocks the thread until the latch is open.
    public func wait() {
        var source = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&source, 1, -1) != 1 {}
    }

    /// Opens the latch for current and future waiters.
    public func open() {
        var one: UInt64 = 1
        _ = write(self.descriptor, &one, MemoryLayout<UInt64>.size)
    }
}
