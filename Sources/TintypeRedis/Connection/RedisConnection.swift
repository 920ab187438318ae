// SPDX-License-Identifier: Apache-2.0

import CTintypeHiredis
import CTintypeShims
import Glibc
import TintypeConcurrency

/// A connection to a server, on hiredis' asynchronous interface.
///
/// Only the thread of the loop uses it. The functions that hiredis calls only record what has happened: the engine
/// looks at ``takeOutcomes()``, ``takeMessages()`` and ``phase`` afterwards.
final class RedisConnection {
    enum Phase: Equatable {
        /// The socket is being connected.
        case connecting
        /// The server answers the greeting.
        case greeting
        /// The server takes commands.
        case ready
        case closed
    }

    /// The end of a call on this connection: a reply, or `nil` if the connection was lost before.
    struct Outcome {
        let call: RedisCall
        let reply: RedisReply?
    }

    /// The most replies that the server may owe, so that a server that pauses does not fill the memory.
    private static let owedLimit = 1_024
    /// The bytes of replies that the server may owe, estimated from earlier replies.
    ///
    /// More would wait in the buffers of the sockets, which makes each reply cost up to twice the processor time.
    private static let owedBytes = 512 << 10
    /// The number of replies that the server may owe, even if they are long.
    private static let leastOwed = 8
    /// The most bytes that wait to be written when a further command is added.
    private static let unwrittenLimit = 256 << 10
    /// The size of the buffer that the reader keeps for the next reply, instead of 16 KiB.
    private static let keptBuffer = 1 << 20
    /// The most bytes of a reply that is not complete.
    private static let longestReply = Int(CHIREDIS_MOST_BYTES)
    /// The longest line of a reply; a longer text comes with its length.
    private static let longestLine = 64 << 10
    /// The most reads in a row, so that large replies do not keep other connections waiting.
    private static let readsInRow = 16

    let descriptor: CInt
    private(set) var phase = Phase.connecting
    /// Whether the server has answered the greeting, even if the connection was closed since.
    private(set) var wasReady = false
    /// Whether the client closed the connection because it no longer needs it.
    private(set) var isRetired = false
    /// The reason why the connection was closed.
    private(set) var failure = "The connection was closed."
    /// The number of calls whose replies have not come.
    private(set) var owedCount = 0
    /// The moment of the last bytes, or of the first command after a time without commands.
    private(set) var lastProgress: Int64
    private(set) var sentCount: UInt64 = 0
    /// The number of subscriptions that the server has not confirmed.
    private(set) var owedConfirmations = 0
    /// The moment at which the connection attempt began.
    let start: Int64

    private let loop: SocketLoop
    private var context: UnsafeMutablePointer<redisAsyncContext>?
    /// Allocated, because hiredis keeps its address until the context is freed.
    private let replyGuard: UnsafeMutablePointer<chiredis_guard>
    private var outcomes: [Outcome] = []
    /// The values of callers, which are woken at the end of a read.
    private var values: [(call: RedisCall, value: RedisValue)] = []
    private var messages: [Message] = []
    private var scratch: [UInt8] = []
    /// The moving average of the lengths of replies.
    private var usualLength = 0
    private var wantsWrite = false
    private var watchedEvents: CInt = 0
    /// Whether bytes have passed since ``lastProgress`` was set.
    private var hasProgress = false

    /// Begins to connect; `address` is an IP address.
    ///
    /// Returns `nil`, and sets `failure`, if that fails at once.
    init?(address: String, port: Int, loop: SocketLoop, now: Int64, failure: inout String) {
        guard let context = redisAsyncConnect(address, CInt(port)) else {
            failure = "There is no memory for a connection."
            return nil
        }
        guard context.pointee.err == 0 else {
            failure = Self.text(context.pointee.errstr)
            redisAsyncFree(context)
            return nil
        }
        self.loop = loop
        self.context = context
        self.descriptor = context.pointee.c.fd
        self.lastProgress = now
        self.start = now
        self.replyGuard = .allocate(capacity: 1)
        self.replyGuard.initialize(to: chiredis_guard())
        chiredis_install(self.replyGuard, context)
        context.pointee.c.reader.pointee.maxbuf = Self.keptBuffer
        _ = fcntl(self.descriptor, F_SETFD, FD_CLOEXEC)
        var one: CInt = 1
        setsockopt(self.descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
        self.addHooks(to: context)
        guard self.updateWatch() else {
            failure = "The system refuses to watch the connection: \(String(cString: strerror(errno)))."
            self.close(failure)
            return nil
        }
    }

    deinit {
        self.close(self.failure)
        self.replyGuard.deallocate()
    }

    /// Lets hiredis call this connection, which frees the context before its own end.
    private func addHooks(to context: UnsafeMutablePointer<redisAsyncContext>) {
        let this = Unmanaged.passUnretained(self).toOpaque()
        context.pointee.data = this
        context.pointee.ev.data = this
        context.pointee.ev.addWrite = { this in RedisConnection.from(this)?.wantsWrite = true }
        context.pointee.ev.delWrite = { this in RedisConnection.from(this)?.wantsWrite = false }
        // The loop always waits for input, which also reports a connection that the server closes.
        context.pointee.ev.addRead = { _ in }
        context.pointee.ev.delRead = { _ in }
        context.pointee.ev.cleanup = { this in RedisConnection.from(this)?.forgetContext() }
        redisAsyncSetConnectCallback(context) { context, status in
            guard status == REDIS_OK, let this = context?.pointee.data else { return }
            RedisConnection.from(this)?.phase = .greeting
        }
    }

    private static func from(_ pointer: UnsafeMutableRawPointer?) -> RedisConnection? {
        pointer.map { Unmanaged<RedisConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String {
        pointer.map { String(cString: $0) } ?? "unknown error"
    }

    /// hiredis calls this before it frees the context, after all replies were reported as lost.
    private func forgetContext() {
        guard let context = self.context else { return }
        self.context = nil
        if context.pointee.err != 0 {
            self.failure =
                if self.replyGuard.pointee.isTooLarge != 0 {
                    "The server sent a reply of too many bytes or elements."
                } else if self.replyGuard.pointee.refused != 0 {
                    "The server sent a reply that no command expects."
                } else {
                    Self.text(context.pointee.errstr)
                }
        }
        self.phase = .closed
        _ = self.loop.watch(self.descriptor, events: 0)
    }

    /// Closes the connection; the calls without replies become outcomes.
    func close(_ reason: String) {
        guard let context = self.context else { return }
        self.failure = reason
        redisAsyncFree(context)
    }

    /// Closes a working connection that the client no longer needs.
    func retire(_ reason: String) {
        self.isRetired = true
        self.close(reason)
    }

    // MARK: Commands

    /// Whether the server takes a further command now.
    var hasRoom: Bool {
        guard self.phase == .ready, self.owedCount < Self.owedLimit, let context = self.context else { return false }
        guard self.owedCount < Self.leastOwed || self.owedCount * self.usualLength < Self.owedBytes else {
            return false
        }
        return chiredis_unwritten(context) < Self.unwrittenLimit
    }

    /// Whether no command waits for a reply.
    var isIdle: Bool { self.owedCount == 0 }

    /// Takes commands from now on: the server has answered the greeting.
    func becomeReady() {
        guard self.phase == .greeting else { return }
        self.phase = .ready
        self.wasReady = true
    }

    /// Adds a command to the ones that ``flush()`` writes.
    func send(_ call: RedisCall, _ command: RedisCommand, now: Int64) {
        guard let context = self.context else { return self.outcomes.append(Outcome(call: call, reply: nil)) }
        if self.owedCount == 0 { self.lastProgress = now }
        var scratch: [UInt8] = []
        swap(&scratch, &self.scratch)
        var isFirst = true
        command.encode(with: &scratch) { piece in
            let bytes = piece.assumingMemoryBound(to: CChar.self)
            if isFirst {
                isFirst = false
                // hiredis calls the function once: with the reply, or without one before it frees the context.
                let retained = Unmanaged.passRetained(call)
                let code = redisAsyncFormattedCommand(
                    context,
                    { context, reply, pointer in
                        guard let pointer else { return }
                        let owner = RedisConnection.from(context?.pointee.data)
                        let call = Unmanaged<RedisCall>.fromOpaque(pointer).takeRetainedValue()
                        owner?.receive(reply?.assumingMemoryBound(to: redisReply.self), for: call)
                    },
                    retained.toOpaque(),
                    bytes.baseAddress,
                    bytes.count
                )
                guard code == REDIS_OK else {
                    retained.release()
                    return self.outcomes.append(Outcome(call: call, reply: nil))
                }
                self.owedCount += 1
                self.sentCount += 1
            } else {
                withUnsafeMutablePointer(to: &context.pointee.c) { context in
                    _ = redisAppendFormattedCommand(context, bytes.baseAddress, bytes.count)
                }
            }
        }
        swap(&scratch, &self.scratch)
        // A command that was added in part would shift all later replies.
        if context.pointee.c.err != 0 { self.close("There is no memory for a command.") }
    }

    /// Records a reply, except that it settles the call of a caller at once if that needs no further decision.
    private func receive(_ reply: UnsafeMutablePointer<redisReply>?, for call: RedisCall) {
        self.owedCount -= 1
        guard let reply else { return self.outcomes.append(Outcome(call: call, reply: nil)) }
        self.usualLength += (Self.length(of: reply.pointee) - self.usualLength) / 8
        // A late reply is dropped without a copy.
        guard !call.isSettled else { return }
        let result = RedisReply(taking: reply)
        if call.purpose == .caller, case .value(let value) = result { return self.values.append((call, value)) }
        self.outcomes.append(Outcome(call: call, reply: result))
    }

    /// The length of a reply in bytes, without the contents of nested arrays.
    private static func length(of reply: redisReply) -> Int {
        guard reply.type == REDIS_REPLY_ARRAY else { return reply.len }
        return (0..<reply.elements).reduce(0) { $0 + (reply.element[$1]?.pointee.len ?? 0) }
    }

    // MARK: Messages

    /// A message of a channel, or the confirmation of its subscription.
    enum Message: Equatable {
        case subscribed(channel: String)
        case message(channel: String, RedisValue)
    }

    /// Subscribes to the channels, or asks again for a confirmation of each.
    func subscribe(_ channels: [String], now: Int64) {
        guard let context = self.context, !channels.isEmpty else { return }
        if self.owedConfirmations == 0 { self.lastProgress = now }
        let command = RedisCommand("SUBSCRIBE", arguments: channels.map { .text($0) })
        self.change(context, command)
        self.owedConfirmations += channels.count
    }

    func unsubscribe(_ channel: String) {
        guard let context = self.context else { return }
        self.change(context, RedisCommand("UNSUBSCRIBE", .text(channel)))
    }

    private func change(_ context: UnsafeMutablePointer<redisAsyncContext>, _ command: RedisCommand) {
        command.encode(with: &self.scratch) { piece in
            let bytes = piece.assumingMemoryBound(to: CChar.self)
            _ = redisAsyncFormattedCommand(
                context,
                { context, reply, _ in
                    guard let reply else { return }
                    let owner = RedisConnection.from(context?.pointee.data)
                    owner?.receiveMessage(reply.assumingMemoryBound(to: redisReply.self))
                },
                nil,
                bytes.baseAddress,
                bytes.count
            )
        }
    }

    private func receiveMessage(_ reply: UnsafeMutablePointer<redisReply>) {
        self.hasProgress = true
        guard case .value(.array(let elements)) = RedisReply(taking: reply), elements.count >= 3,
            let channel = elements[1].text
        else { return }
        switch elements[0].text {
        case "message": self.messages.append(.message(channel: channel, elements[2]))
        case "subscribe":
            self.owedConfirmations -= 1
            self.messages.append(.subscribed(channel: channel))
        default: break
        }
    }

    // MARK: Sockets

    /// Reads and writes as far as the socket permits.
    func serve(_ events: CInt, now: Int64) {
        if events & CInt(CSHIMS_WRITABLE) != 0 || self.phase == .connecting {
            // The server has read a part of a long command.
            self.hasProgress = true
            self.write()
        }
        if self.phase != .connecting, events & CInt(CSHIMS_READABLE | CSHIMS_BROKEN) != 0 { self.read() }
        if self.hasProgress {
            self.hasProgress = false
            self.lastProgress = now
        }
        _ = self.updateWatch()
    }

    /// Writes the commands that were added, in one system call.
    func flush() {
        guard self.wantsWrite, self.phase != .connecting else { return }
        // A socket that takes no more reports when it does again.
        if self.watchedEvents & CInt(CSHIMS_WRITABLE) == 0 { self.write() }
        _ = self.updateWatch()
    }

    private func write() {
        if let context = self.context { redisAsyncHandleWrite(context) }
    }

    private func read() {
        for _ in 0..<Self.readsInRow {
            guard let context = self.context else { return }
            let before = (context.pointee.c.reader.pointee.len, self.owedCount)
            redisAsyncHandleRead(context)
            // Further replies, or the rest of a long one, are likely to be there already.
            guard self.context != nil else { break }
            let length = context.pointee.c.reader.pointee.len
            guard length <= Self.longestReply, chiredis_has_endless_line(context, Self.longestLine) == 0 else {
                self.close("The server sent a reply of more than \(Self.longestReply) bytes, or a line without an end.")
                break
            }
            guard before != (length, self.owedCount) else { break }
            self.hasProgress = true
            if self.owedCount == 0 { break }
        }
        // Waking callers together costs fewer system calls.
        for (call, value) in self.values { call.settle(.success(value)) }
        self.values.removeAll(keepingCapacity: true)
    }

    private func updateWatch() -> Bool {
        guard self.context != nil else { return false }
        let events = CInt(CSHIMS_READABLE) | (self.wantsWrite ? CInt(CSHIMS_WRITABLE) : 0)
        guard events != self.watchedEvents else { return true }
        self.watchedEvents = events
        return self.loop.watch(self.descriptor, events: events)
    }

    // MARK: Results

    func takeOutcomes() -> [Outcome] {
        guard !self.outcomes.isEmpty else { return [] }
        defer { self.outcomes = [] }
        return self.outcomes
    }

    func takeMessages() -> [Message] {
        guard !self.messages.isEmpty else { return [] }
        defer { self.messages = [] }
        return self.messages
    }
}
