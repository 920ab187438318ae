// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
import CTintypeCurl
import CTintypeShims
import Glibc
import TintypeConcurrency

/// A libcurl multi handle that is driven by events: sockets that are ready, and libcurl's own timer.
///
/// Connections, DNS answers and the trusted certificates belong to the multi handle; TLS sessions belong to
/// the share, since libcurl would keep them for each easy handle alone.
///
/// Not sendable: only the loop's thread touches it.
final class CurlMulti {
    /// The time for sockets, for timers or for resting transfers in one turn of the loop.
    ///
    /// A load waits for three or four turns, so a short turn keeps its latency low beside transfers that flood.
    static let turn = Duration.microseconds(250)
    /// The most bytes that the transfers above their share may take together in one turn of the loop.
    static let turnBytes = 64 << 10
    private static let leastShare = 32 << 10
    /// The bytes of bodies that failed which are given back to the system in one turn.
    private static let unmappedBytes = 2 << 20
    private static let hasGlobalState = Locked(false)

    let share: UnsafeMutableRawPointer
    let poll: SocketPoll
    private let multi: UnsafeMutableRawPointer
    /// When libcurl wants to be called without an event.
    private var timer: LoopInstant?
    /// Whether libcurl may have finished something since it was last asked.
    private var mayHaveFinished = false
    /// Whether there are transfers for which libcurl has yet to choose a connection.
    private var hasNew = false
    /// The time when libcurl was last called: what it hands over arrives then.
    private(set) var now = LoopInstant.now
    /// Counts the turns of the loop.
    var turnNumber: UInt64 { self.turnCount.pointee }
    /// Where TLS connections look; lives until the last of them is closed.
    private let turnCount: UnsafeMutablePointer<UInt64>
    /// Room for the record that an HTTP/2 connection looks at.
    private let record: UnsafeMutableRawBufferPointer
    private var resting = RestQueue<EasyHandle>(at: .now)
    /// Whether the last wait found nothing ready, and the loop has done nothing since.
    private var isIdle = false
    /// Whether there has been a transfer with a network policy of its own, so that what one made may be denied to others.
    var mixesPolicies = false
    /// Is told of a connection that was ended because it brought nothing but frames.
    var onFlood: ((CInt) -> Void)?

    /// - Throws: ``LoopStartError``; another try may succeed.
    init(maximumConnectionsPerHost: Int, maximumConnections: Int) throws(LoopStartError) {
        // Thread-safe only from libcurl 7.84 on, and a failure may be over the next time.
        let hasGlobalState = Self.hasGlobalState.withLock { hasGlobalState in
            hasGlobalState = hasGlobalState || curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK
            return hasGlobalState
        }
        guard hasGlobalState else { throw .outOfMemory }
        self.poll = try SocketPoll()
        guard let share = curl_share_init() else { throw .outOfMemory }
        guard let multi = curl_multi_init() else {
            curl_share_cleanup(share)
            throw .outOfMemory
        }
        // Not before: an object that is not whole has no deinit.
        self.turnCount = .allocate(capacity: 1)
        self.turnCount.initialize(to: 0)
        self.record = .allocate(byteCount: ConnectionFrames.recordSize, alignment: 64)
        self.multi = multi
        self.share = share
        ccurl_share_data(share, CURL_LOCK_DATA_SSL_SESSION)
        ccurl_multi_setopt_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, maximumConnectionsPerHost)
        ccurl_multi_setopt_long(multi, CURLMOPT_MAXCONNECTS, maximumConnections)
        self.setCallbacks()
    }

    deinit {
        // Closes the connections, which still call back.
        curl_multi_cleanup(self.multi)
        curl_share_cleanup(self.share)
        self.turnCount.deallocate()
        self.record.deallocate()
        BlockPool.shared.unmap(atMost: .max)
    }

    func add(_ easy: UnsafeMutableRawPointer) -> Bool {
        self.hasNew = true
        return curl_multi_add_handle(self.multi, easy) == CURLM_OK
    }

    func remove(_ easy: UnsafeMutableRawPointer) {
        curl_multi_remove_handle(self.multi, easy)
    }

    /// Lets libcurl do what its timer is due for; a transfer that was added starts here.
    ///
    /// libcurl leaves a transfer whose server sends faster than it is read after some megabytes, and sets the timer
    /// to now: without an end here, the others would wait for that server.
    func runTimer() {
        var end: LoopInstant?
        while let timer {
            self.now = .now
            guard timer <= self.now, end.map({ self.now < $0 }) ?? true else { return }
            end = end ?? self.now + Self.turn
            self.timer = nil
            if self.hasNew { self.poll.lookAtIdleFrames() }
            self.hasNew = false
            self.act(on: CURL_SOCKET_TIMEOUT, 0)
        }
    }

    /// The bytes that one TLS connection may read in a turn.
    private static let readShare = 128 << 10

    /// Bounds what a TLS connection reads in a turn: frames that are about nothing come in without an end, and libcurl
    /// goes on for as long as there are any.
    func limitReads(of tls: UnsafeMutableRawPointer) {
        ccrypto_limit_reads(tls, self.turnCount, Self.readShare)
    }

    /// The HTTP/2 connections with a record that libcurl may have left unread, in the order in which they are served.
    private var unread: [CInt] = []

    /// Lets libcurl read one more record of a connection with several streams in the same call.
    ///
    /// Each call for a socket makes libcurl 7.88 ask the kernel once for each stream of the connection. A stream whose record
    /// has come is served without such a call, and reads the next record as well. One stream alone gains nothing, and
    /// libcurl would drop its trailers if the record after them is the end of the connection.
    func lookAhead(_ frames: ConnectionFrames, on descriptor: CInt) {
        guard frames.tracker.openCount > 1 else { return }
        frames.look()
        self.queueUnread(descriptor)
    }

    /// Queues a connection if libcurl has left a record unread, because the kernel does not report that again.
    func queueUnread(_ descriptor: CInt) {
        if self.hasUnread(descriptor), !self.unread.contains(descriptor) { self.unread.append(descriptor) }
    }

    private func hasUnread(_ descriptor: CInt) -> Bool {
        self.poll.frames(of: descriptor)?.hasUnread ?? false
    }

    /// Lets libcurl read the records that it has left unread, for as long as a turn is.
    ///
    /// - Returns: Whether there were any.
    func readLeftRecords() -> Bool {
        guard !self.unread.isEmpty else { return false }
        self.now = .now
        let end = self.now + Self.turn
        // A connection that brings further records queues behind the others.
        for _ in self.unread.indices where self.now < end {
            let descriptor = self.unread.removeFirst()
            guard self.hasUnread(descriptor) else { continue }
            self.act(on: descriptor, CURL_CSELECT_IN)
            self.now = .now
        }
        return true
    }

    /// The frames of the HTTP/2 connection of `tls`, which are watched from now on; `nil` if there is no memory.
    func watchFrames(of tls: UnsafeMutableRawPointer, _ descriptor: CInt) -> ConnectionFrames? {
        let frames = ConnectionFrames(
            tls: tls,
            descriptor: descriptor,
            turn: self.turnCount,
            limit: Self.readShare,
            record: self.record
        )
        if let frames { self.poll.setFrames(frames, of: descriptor) }
        return frames
    }

    /// The bytes that one transfer may take in this turn of the loop.
    private(set) var turnShare = CurlMulti.turnBytes

    /// Begins a turn of the loop.
    ///
    /// - Returns: The number of resting transfers that may continue in it.
    func beginTurn() -> Int {
        self.turnCount.pointee &+= 1
        BlockPool.shared.unmap(atMost: Self.unmappedBytes)
        let count = self.resting.beginTurn(isIdle: self.isIdle, at: .now)
        self.isIdle = false
        // One alone has a large share, which is cheaper.
        self.turnShare = max(Self.leastShare, Self.turnBytes / (count + 1))
        return min(count, Self.turnBytes / self.turnShare)
    }

    /// Takes out the transfer that continues next.
    func popResting() -> EasyHandle? {
        guard let handle = self.resting.popFirst(at: .now) else { return nil }
        handle.isResting = false
        return handle
    }

    /// Forgets the resting transfers.
    func dropResting() {
        self.resting = RestQueue(at: .now)
    }

    /// Lets a transfer wait for another turn.
    func rest(_ handle: EasyHandle) {
        guard !handle.isResting else { return }
        handle.isResting = true
        handle.restCount += 1
        self.resting.insert(handle, restCount: handle.restCount)
    }

    /// Forgets a transfer that has ended.
    func endRest(of handle: EasyHandle) {
        guard handle.isResting else { return }
        handle.isResting = false
        self.resting.remove(handle)
    }

    /// Waits until libcurl has something to do, at most until `deadline`, and lets it.
    ///
    /// With queued jobs the loop is not idle, whatever the sockets do.
    ///
    /// - Returns: Whether a socket was ready, or the wait was ended from outside.
    @discardableResult
    func wait(until deadline: LoopInstant?, hasJobs: Bool = false) -> Bool {
        let end = LoopInstant.earlier(self.timer, deadline)
        var limit = end.map { min(($0 - .now).wholeMilliseconds, Int(Int32.max)) } ?? -1
        if !self.resting.isEmpty || !self.unread.isEmpty || BlockPool.shared.hasDiscarded { limit = 0 }
        let isAnyReady = self.poll.wait(milliseconds: limit, turn: Self.turn) { descriptor, events in
            self.now = self.poll.now
            let mask =
                (events & CInt(CSHIMS_READABLE) != 0 ? CURL_CSELECT_IN : 0)
                | (events & CInt(CSHIMS_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0)
                | (events & CInt(CSHIMS_BROKEN) != 0 ? CURL_CSELECT_ERR : 0)
            self.actWithLook(on: descriptor, mask)
            guard self.poll.isFlooded(descriptor) else { return }
            self.poll.end(descriptor)
            self.onFlood?(descriptor)
        }
        self.isIdle =
            !isAnyReady && !hasJobs && self.unread.isEmpty && self.timer.map { .now < $0 } ?? true
        return isAnyReady
    }

    /// A transfer that libcurl is done with.
    func nextFinished() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
        guard self.mayHaveFinished else { return nil }
        var pending: CInt = 0
        while let message = curl_multi_info_read(self.multi, &pending) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            return (easy, ccurl_msg_result(message))
        }
        self.mayHaveFinished = false
        return nil
    }

    private func actWithLook(on descriptor: curl_socket_t, _ mask: CInt) {
        guard let frames = self.poll.frames(of: descriptor) else {
            self.act(on: descriptor, mask)
            return
        }
        frames.look()
        self.act(on: descriptor, mask)
        // libcurl reads nothing if the socket can only be written.
        self.queueUnread(descriptor)
    }

    private func act(on descriptor: curl_socket_t, _ mask: CInt) {
        var running: CInt = 0
        curl_multi_socket_action(self.multi, descriptor, mask, &running)
        self.mayHaveFinished = true
    }

    private func setCallbacks() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        ccurl_multi_set_socket_callback(
            self.multi,
            { _, descriptor, what, context, _ in
                guard let context else { return 0 }
                let events =
                    switch what {
                    case CURL_POLL_IN: CSHIMS_READABLE
                    case CURL_POLL_OUT: CSHIMS_WRITABLE
                    case CURL_POLL_INOUT: CSHIMS_READABLE | CSHIMS_WRITABLE
                    default: 0
                    }
                CurlMulti.of(context).poll.want(CInt(events), of: descriptor)
                return 0
            },
            context
        )
        ccurl_multi_set_timer_callback(
            self.multi,
            { _, milliseconds, context in
                guard let context else { return 0 }
                let multi = CurlMulti.of(context)
                switch milliseconds {
                case ..<0: multi.timer = nil
                // Mostly: it is due, whatever the time is.
                case 0: multi.timer = multi.now
                default: multi.timer = .now + .milliseconds(milliseconds)
                }
                return 0
            },
            context
        )
    }

    /// Lets a transfer go on that was paused; see ``EasyHandle/unpause()``.
    func unpause(_ easy: UnsafeMutableRawPointer) -> CURLcode {
        self.now = .now
        return curl_easy_pause(easy, CURLPAUSE_CONT)
    }

    /// Lets the poll know which sockets of `easy` are connections, and when they close.
    func watchSockets(of easy: UnsafeMutableRawPointer) {
        let context = Unmanaged.passUnretained(self.poll).toOpaque()
        ccurl_set_sockopt_callback(
            easy,
            { context, descriptor, _ in
                // A program that is started meanwhile must not keep the connection open.
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                if let context { Unmanaged<SocketPoll>.fromOpaque(context).takeUnretainedValue().didOpen(descriptor) }
                return CInt(CURL_SOCKOPT_OK)
            },
            context
        )
        ccurl_set_closesocket_callback(
            easy,
            { context, descriptor in
                if let context { Unmanaged<SocketPoll>.fromOpaque(context).takeUnretainedValue().willClose(descriptor) }
                return close(descriptor)
            },
            context
        )
    }

    private static func of(_ context: UnsafeMutableRawPointer) -> CurlMulti {
        Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue()
    }
}
