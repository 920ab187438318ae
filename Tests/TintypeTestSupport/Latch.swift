import CTintypeShims
import Glibc

/// A one-shot door for which threads wait; tests open it by hand.
///
/// ``Gate`` is its relative for tasks. This one works between a test and the blocking threads of ``FaultyOrigin``.
public final class Latch: Sendable {
    /// Readable once the door is open, so that it can stand in a `poll` beside sockets.
    let descriptor: CInt

    /// Creates a closed door.
    public init() {
        self.descriptor = cshims_eventfd()
        precondition(self.descriptor >= 0, "eventfd failed with errno \(errno)")
    }

    deinit {
        close(self.descriptor)
    }

    /// Whether the door is open.
    public var isOpen: Bool {
        var source = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&source, 1, 0) == 1
    }

    /// Blocks the thread until the door is open.
    public func wait() {
        var source = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&source, 1, -1) != 1 {}
    }

    /// Opens the door for threads that wait and those that come later.
    public func open() {
        var one: UInt64 = 1
        _ = write(self.descriptor, &one, MemoryLayout<UInt64>.size)
    }
}
