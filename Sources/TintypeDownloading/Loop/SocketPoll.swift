// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import TintypeConcurrency

/// The sockets that libcurl watches, in one epoll set.
///
/// A wait costs time for each ready socket, not for each open one. The set compares libcurl's wishes with the state of
/// the kernel only before a wait: on a reused connection the two are mostly equal, and the kernel needs no call.
///
/// Not sendable, except for ``wakeup``: only the loop's thread touches it.
final class SocketPoll {
    private struct Socket {
        /// The events that libcurl wants.
        var wanted: CInt = 0
        var registered: CInt = 0
        /// Whether libcurl tells of its closing.
        ///
        /// The kernel must forget others at once, since the number may come back as another socket.
        var isConnection = false
        var isChanged = false
        /// Whether the peer may send nothing while nothing is asked for: HTTP/1.1 without more under way.
        var mustStaySilent = false
        /// The transfer that has the connection for itself, or 0.
        var user: UInt64 = 0
        /// The transfers that share the connection, which carries many at once.
        var sharerCount = 0
        /// The bytes that may have been read: what its transfers were given, and as much again, and some.
        var allowedBytes = 0
        /// The cost of a turn in nanoseconds: a mean in which the latest turn counts half.
        var cost = 0
        /// The frames of the connection, if it speaks HTTP/2.
        var frames: ConnectionFrames?
    }

    /// The sockets whose frames are or were watched.
    private var framed: [CInt] = []

    /// The bytes of frames that are no content, and of TLS, that a shared connection may bring while it is used.
    private static let frameAllowance = 512 << 10
    /// The most bytes that may still arrive of a body that no caller wants: a stream's window in libcurl.
    private static let brokenAllowance = 32 << 20

    private let epoll: EpollSet
    /// The time when the last of the sockets that are ready was handed over.
    private(set) var now = LoopInstant.now
    var wakeup: EpollSet.Wakeup { self.epoll.wakeup }
    /// By the number of the descriptor.
    private var sockets: [Socket] = []
    private var changed: [CInt] = []
    private var names = SocketNames()
    /// Whether the kernel refused to watch a socket, for want of memory; it is asked again.
    private var hasRefused = false

    /// The descriptors that a loop takes: an epoll set, what wakes it, and what wakes libcurl.
    private static let neededDescriptors: CInt = 4

    /// - Throws: ``LoopStartError`` if the system refuses a descriptor, or few would be left.
    init() throws(LoopStartError) {
        do throws(EpollError) {
            self.epoll = try EpollSet(descriptorCount: Self.neededDescriptors)
        } catch {
            throw LoopStartError(refused: error.code)
        }
    }

    // MARK: Orders of libcurl

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
        self.names.didOpen(descriptor)
    }

    /// The kernel forgets a socket that is closed.
    func willClose(_ descriptor: CInt) {
        guard self.sockets.indices.contains(Int(descriptor)) else { return }
        self.names.willClose(descriptor)
        self.sockets[Int(descriptor)] = Socket(isChanged: self.sockets[Int(descriptor)].isChanged)
    }

    // MARK: Connections of one transfer at a time

    /// Gives a transfer a connection for itself, unless unrequested bytes have come over it.
    ///
    /// These bytes would pass for the answer; libcurl 7.88 only looks for the end of the connection. A new connection
    /// cannot have bytes for another request.
    ///
    /// - Returns: The socket; -1 if several sockets may be meant and none has bytes; `nil` to use another connection.
    func claim(
        localPort: Int,
        remotePort: Int,
        remoteAddress: UnsafePointer<CChar>?,
        isNew: Bool,
        by user: UInt64
    ) -> CInt? {
        let candidates = self.names.descriptors(
            localPort: localPort,
            remotePort: remotePort,
            remoteAddress: remoteAddress,
            isNew: isNew
        )
        // Unix-domain sockets have no ports to tell them apart: one without a user is meant.
        let meant = candidates.count == 1 ? candidates : candidates.filter { self.sockets[Int($0)].user == 0 }
        guard isNew || !meant.isEmpty && meant.allSatisfy(Self.isSilent) else { return nil }
        guard meant.count == 1, let descriptor = meant.first else { return -1 }
        self.sockets[Int(descriptor)].mustStaySilent = true
        self.sockets[Int(descriptor)].user = user
        return descriptor
    }

    // MARK: Connections of many transfers

    /// Lets a transfer share a connection; returns its socket, or -1 if it is not known.
    func share(localPort: Int, remotePort: Int, remoteAddress: UnsafePointer<CChar>?, isNew: Bool) -> CInt {
        let candidates = self.names.descriptors(
            localPort: localPort,
            remotePort: remotePort,
            remoteAddress: remoteAddress,
            isNew: isNew
        )
        guard candidates.count == 1, let descriptor = candidates.first else { return -1 }
        let index = Int(descriptor)
        if self.sockets[index].sharerCount == 0 {
            // Frames that came between two uses are not counted.
            let least = Int(max(0, cshims_bytes_read(descriptor))) + Self.frameAllowance
            self.sockets[index].allowedBytes = max(self.sockets[index].allowedBytes, least)
        }
        self.sockets[index].sharerCount += 1
        return descriptor
    }

    /// Ends what ``share(localPort:remotePort:remoteAddress:isNew:)`` began.
    func endSharing(_ descriptor: CInt, isWhole: Bool) {
        guard self.sockets.indices.contains(Int(descriptor)) else { return }
        let index = Int(descriptor)
        // The connection may have been closed, and its number be another's.
        self.sockets[index].sharerCount = max(0, self.sockets[index].sharerCount - 1)
        if !isWhole { self.sockets[index].allowedBytes += Self.brokenAllowance }
    }

    /// Counts what a transfer was given, of its head or its body.
    func allow(_ count: Int, on descriptor: CInt) {
        self.sockets[Int(descriptor)].allowedBytes += 2 * count
    }

    /// Whether a shared connection brought more that is no content than anything needs.
    ///
    /// libcurl neither limits nor shows the frames that are about nothing: pings, settings, priorities, empty ones.
    func isFlooded(_ descriptor: CInt) -> Bool {
        let socket = self.sockets[Int(descriptor)]
        guard socket.sharerCount > 0 else { return false }
        return cshims_bytes_read(descriptor) > socket.allowedBytes
    }

    /// The frames of a connection that speaks HTTP/2, or `nil` if nobody has watched them from the start.
    func frames(of descriptor: CInt) -> ConnectionFrames? { self.sockets[Int(descriptor)].frames }

    func setFrames(_ frames: ConnectionFrames, of descriptor: CInt) {
        self.sockets[Int(descriptor)].frames = frames
        if !self.framed.contains(descriptor) { self.framed.append(descriptor) }
    }

    /// Looks at the HTTP/2 connections without a stream, before libcurl chooses one for a new transfer.
    ///
    /// libcurl takes a connection for dead if its socket is readable and brings nothing, for example the rest of a body
    /// that was cancelled.
    func lookAtIdleFrames() {
        guard !self.framed.isEmpty else { return }
        self.framed.removeAll { self.sockets[Int($0)].frames == nil }
        // One call asks for all of them: a read of each would take longer than the turn of a transfer.
        var idle = self.framed.filter { self.sockets[Int($0)].frames?.tracker.openCount == 0 }
            .map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard !idle.isEmpty, poll(&idle, nfds_t(idle.count), 0) > 0 else { return }
        for socket in idle where socket.revents != 0 { self.sockets[Int(socket.fd)].frames?.look() }
    }

    /// Ends a connection; libcurl sees it at its next look.
    func end(_ descriptor: CInt) {
        shutdown(descriptor, CInt(SHUT_RDWR))
    }

    // MARK: One transfer at a time

    /// Ends what ``claim(localPort:remotePort:remoteAddress:isNew:by:)`` began; from now on whatever comes is surplus.
    func release(_ descriptor: CInt, by user: UInt64) {
        let index = Int(descriptor)
        guard self.sockets.indices.contains(index), self.sockets[index].user == user else { return }
        self.sockets[index].user = 0
        guard self.sockets[index].registered & CInt(CSHIMS_READABLE) == 0 else { return }
        _ = self.epoll.set(descriptor, events: CInt(CSHIMS_READABLE))
        self.sockets[index].registered = CInt(CSHIMS_READABLE)
    }

    /// Whether there is nothing to read, not even the end of the connection.
    private static func isSilent(_ descriptor: CInt) -> Bool {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, CInt(MSG_PEEK | MSG_DONTWAIT))
        return count < 0 && (errno == EAGAIN || errno == EINTR)
    }

    /// Makes an idle connection one that libcurl takes for dead when it looks for one to use.
    private func retire(_ descriptor: CInt) {
        shutdown(descriptor, CInt(SHUT_RDWR))
        // libcurl sees the end only if no bytes stand before it. The claim sees larger surplus.
        _ = recv(descriptor, nil, 1 << 20, CInt(MSG_TRUNC | MSG_DONTWAIT))
    }

    // MARK: Waiting

    /// Waits at most so long and hands over sockets that are ready, for as long as a turn is.
    ///
    /// The cheapest come first, by what their last turns cost (shortest job first, with exponential averaging): a peer
    /// that floods keeps others waiting for one turn of its own at most. One that is passed over counts for half of
    /// its cost the next time, and so has its turn after a few.
    ///
    /// - Returns: Whether a socket was ready, or the wait was ended from outside.
    func wait(milliseconds: Int, turn: Duration, _ body: (_ descriptor: CInt, _ events: CInt) -> Void) -> Bool {
        self.applyChanges()
        let milliseconds = self.hasRefused && !(0...100).contains(milliseconds) ? 100 : milliseconds
        var isAnyReady = false
        self.epoll.wait(milliseconds: milliseconds) { ready in
            isAnyReady = true
            var ready = ready
            if ready.count > 1 { ready.sort { self.cost(of: $0) < self.cost(of: $1) } }
            self.serve(ready, turn: turn, body)
        }
        return isAnyReady
    }

    private func serve(
        _ ready: UnsafeMutableBufferPointer<cshims_event>,
        turn: Duration,
        _ body: (_ descriptor: CInt, _ events: CInt) -> Void
    ) {
        self.now = .now
        let end = self.now + turn
        for (index, event) in ready.enumerated() {
            guard index == 0 || self.now < end else {
                if event.descriptor != self.wakeup.descriptor { self.sockets[Int(event.descriptor)].cost /= 2 }
                continue
            }
            self.serve(event, body)
            let start = self.now
            self.now = .now
            guard event.descriptor != self.wakeup.descriptor else { continue }
            let cost = Int((self.now - start).components.attoseconds / 1_000_000_000)
            self.sockets[Int(event.descriptor)].cost = (self.sockets[Int(event.descriptor)].cost + cost) / 2
        }
    }

    private func cost(of event: cshims_event) -> Int {
        event.descriptor == self.wakeup.descriptor ? 0 : self.sockets[Int(event.descriptor)].cost
    }

    private func serve(_ event: cshims_event, _ body: (_ descriptor: CInt, _ events: CInt) -> Void) {
        guard event.descriptor != self.wakeup.descriptor else { return }
        let socket = self.sockets[Int(event.descriptor)]
        guard socket.wanted == 0 else {
            body(event.descriptor, event.events)
            return
        }
        // An idle connection that its server closed, or that brings what was not asked for.
        if socket.isConnection, socket.mustStaySilent, socket.user == 0 { self.retire(event.descriptor) }
        // libcurl takes an idle connection for dead if there is something to read that it does not get.
        socket.frames?.look()
        self.apply(Int(event.descriptor))
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

    /// Registers the wanted events of a socket with the kernel; returns false if the kernel has no memory for them.
    @discardableResult
    private func apply(_ index: Int) -> Bool {
        guard self.sockets[index].wanted != self.sockets[index].registered else { return true }
        // Fails otherwise only for a socket that is closed already, which the kernel has forgotten.
        let code = self.epoll.set(CInt(index), events: self.sockets[index].wanted)
        if [ENOMEM, ENOSPC].contains(code) { return false }
        self.sockets[index].registered = self.sockets[index].wanted
        return true
    }

    private func makeRoom(for descriptor: CInt) {
        let missing = Int(descriptor) + 1 - self.sockets.count
        if missing > 0 { self.sockets.append(contentsOf: repeatElement(Socket(), count: missing)) }
    }
}
