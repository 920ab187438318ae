import CShims
import Glibc

/// The sockets that libcurl wants to hear of, in one epoll set.
///
/// A wait costs by the sockets that are ready, not by those that are open. What libcurl wants is compared
/// with what the kernel knows only before a wait: on a connection that is used again and again the two are
/// mostly the same, and the kernel need not be told anything.
///
/// Not sendable, except for ``wake()``: only the loop's thread touches it.
final class SocketPoll {
    private struct Socket {
        /// What libcurl wants, and what the kernel knows.
        var wanted: CInt = 0
        var registered: CInt = 0
        /// Whether libcurl tells of its closing.
        ///
        /// The kernel must forget others at once, since the number may come back as another socket.
        var isConnection = false
        var isChanged = false
    }

    private let epoll: CInt
    private let wakeup: CInt
    /// By the number of the descriptor.
    private var sockets: [Socket] = []
    private var changed: [CInt] = []
    private var ready = [cshims_event](repeating: cshims_event(), count: 256)
    /// Whether the kernel refused to watch a socket, for want of memory; it is asked again.
    private var hasRefused = false

    /// - Throws: ``LoopStartError`` where the system refuses a descriptor.
    init() throws(LoopStartError) {
        self.epoll = cshims_epoll_create()
        let code = errno
        self.wakeup = self.epoll >= 0 ? cshims_eventfd() : -1
        guard self.wakeup >= 0 else {
            throw LoopStartError(refused: self.epoll >= 0 ? errno : code)
        }
        guard cshims_epoll_set(self.epoll, self.wakeup, CInt(CSHIMS_READABLE)) == 0 else {
            throw LoopStartError(refused: errno)
        }
    }

    deinit {
        if self.epoll >= 0 { close(self.epoll) }
        if self.wakeup >= 0 { close(self.wakeup) }
    }

    // MARK: What libcurl says

    /// Waits for `events` of a socket from now on; 0 is for nothing.
    func want(_ events: CInt, of descriptor: CInt) {
        self.makeRoom(for: descriptor)
        let index = Int(descriptor)
        self.sockets[index].wanted = events
        if events == 0, !self.sockets[index].isConnection {
            self.apply(index)
        } else if !self.sockets[index].isChanged {
            self.sockets[index].isChanged = true
            self.changed.append(descriptor)
        }
    }

    func didOpen(_ descriptor: CInt) {
        self.makeRoom(for: descriptor)
        self.sockets[Int(descriptor)] = Socket(isConnection: true, isChanged: self.sockets[Int(descriptor)].isChanged)
    }

    /// The kernel forgets a socket that is closed.
    func willClose(_ descriptor: CInt) {
        guard self.sockets.indices.contains(Int(descriptor)) else { return }
        self.sockets[Int(descriptor)] = Socket(isChanged: self.sockets[Int(descriptor)].isChanged)
    }

    // MARK: Waiting

    /// Waits at most so long and hands over each socket that is ready.
    func wait(milliseconds: Int, _ body: (_ descriptor: CInt, _ events: CInt) -> Void) {
        self.applyChanges()
        let milliseconds = self.hasRefused && !(0...100).contains(milliseconds) ? 100 : milliseconds
        let count = cshims_epoll_wait(self.epoll, &self.ready, CInt(self.ready.count), CInt(milliseconds))
        precondition(count >= 0, "the download loop can't wait: \(String(cString: strerror(errno)))")
        for event in self.ready[..<Int(count)] {
            guard event.descriptor != self.wakeup else {
                var value: UInt64 = 0
                _ = read(self.wakeup, &value, 8)
                continue
            }
            // An idle connection that its server closed: libcurl finds out when it wants to use it.
            if self.sockets[Int(event.descriptor)].wanted == 0 {
                self.apply(Int(event.descriptor))
            } else {
                body(event.descriptor, event.events)
            }
        }
    }

    /// Ends the wait that goes on, or the next one; safe from any thread.
    func wake() {
        var one: UInt64 = 1
        _ = write(self.wakeup, &one, 8)
    }

    private func applyChanges() {
        var refused: [CInt] = []
        for descriptor in self.changed {
            let index = Int(descriptor)
            self.sockets[index].isChanged = false
            // One that nothing is wanted of is left in the set: it will be used again soon.
            let (wanted, registered) = (self.sockets[index].wanted, self.sockets[index].registered)
            if wanted != 0, wanted != registered, !self.apply(index) { refused.append(descriptor) }
        }
        self.changed.removeAll(keepingCapacity: true)
        self.hasRefused = !refused.isEmpty
        for descriptor in refused {
            self.sockets[Int(descriptor)].isChanged = true
            self.changed.append(descriptor)
        }
    }

    /// Tells the kernel what is wanted of a socket; false where it has no memory for that.
    @discardableResult
    private func apply(_ index: Int) -> Bool {
        guard self.sockets[index].wanted != self.sockets[index].registered else { return true }
        // Fails otherwise only for a socket that is closed already, which the kernel has forgotten.
        if cshims_epoll_set(self.epoll, CInt(index), self.sockets[index].wanted) != 0, [ENOMEM, ENOSPC].contains(errno)
        {
            return false
        }
        self.sockets[index].registered = self.sockets[index].wanted
        return true
    }

    private func makeRoom(for descriptor: CInt) {
        let missing = Int(descriptor) + 1 - self.sockets.count
        if missing > 0 { self.sockets.append(contentsOf: repeatElement(Socket(), count: missing)) }
    }
}
