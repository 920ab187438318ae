// SPDX-License-Identifier: Apache-2.0

package import CTintypeShims
import Glibc

/// An epoll set for an event loop, whose wait another thread can end.
///
/// Not sendable: only the loop's thread may use it, except for ``wakeup``.
package final class EpollSet {
    /// Ends a wait.
    ///
    /// Safe from any thread. It may outlive the set.
    package final class Wakeup: Sendable {
        package let descriptor: CInt

        fileprivate init() throws(EpollError) {
            self.descriptor = cshims_eventfd()
            if self.descriptor < 0 { throw EpollError(code: errno) }
        }

        deinit {
            if self.descriptor >= 0 { close(self.descriptor) }
        }

        /// Ends the current wait, or the next one.
        package func wake() {
            var one: UInt64 = 1
            _ = write(self.descriptor, &one, 8)
        }

        /// Waits only for ``wake()``.
        ///
        /// May return at once because of an earlier call that has ended another wait.
        package func wait() {
            var value: UInt64 = 0
            while read(self.descriptor, &value, 8) < 0, errno == EINTR {}
        }
    }

    package let wakeup: Wakeup
    private let epoll: CInt
    private var ready = [cshims_event](repeating: cshims_event(), count: 256)

    /// Creates a set.
    ///
    /// - Parameter descriptorCount: The descriptors that the loop needs, including the two of the set.
    /// - Throws: ``EpollError`` if the system refuses a descriptor, or if too few would be left.
    package init(descriptorCount: CInt) throws(EpollError) {
        guard cshims_has_descriptors(descriptorCount) != 0 else { throw EpollError(code: errno) }
        self.wakeup = try Wakeup()
        self.epoll = cshims_epoll_create()
        // Each write to it is a new event, so the loop need not read it.
        let events = CInt(CSHIMS_READABLE | CSHIMS_ONCE_EACH)
        guard self.epoll >= 0, cshims_epoll_add(self.epoll, self.wakeup.descriptor, events) == 0 else {
            throw EpollError(code: errno)
        }
    }

    deinit {
        if self.epoll >= 0 { close(self.epoll) }
    }

    /// Adds a descriptor that is not in the set; returns false if the system refuses it.
    package func add(_ descriptor: CInt, events: CInt) -> Bool {
        cshims_epoll_add(self.epoll, descriptor, events) == 0
    }

    /// Changes the events of a descriptor, or adds the descriptor; `events` of 0 removes it.
    ///
    /// Returns 0, or an `errno` if the system refuses the change.
    package func set(_ descriptor: CInt, events: CInt) -> CInt {
        cshims_epoll_set(self.epoll, descriptor, events) == 0 ? 0 : errno
    }

    /// Waits for at most `milliseconds` (-1: without limit), and lends the events of the ready descriptors to `body`.
    package func wait(milliseconds: Int, _ body: (UnsafeMutableBufferPointer<cshims_event>) -> Void) {
        let count = Int(cshims_epoll_wait(self.epoll, &self.ready, CInt(self.ready.count), CInt(milliseconds)))
        precondition(count >= 0, "the event loop cannot wait: \(String(cString: strerror(errno)))")
        guard count > 0 else { return }
        // A slice of the array would be a copy.
        self.ready.withUnsafeMutableBufferPointer { body(UnsafeMutableBufferPointer(rebasing: $0[..<count])) }
    }
}

/// The reason why an event loop cannot start: an `errno`.
package struct EpollError: Error {
    package let code: CInt
}
