// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

/// The state of one transfer: its phase, its response so far, and its time limits.
///
/// A value without I/O and without a clock. Each input is an event: libcurl hands bytes over, a reader has made room,
/// time has passed. ``transition(_:at:)`` returns the action that follows, which `Transfer` and `TransferDriver`
/// perform.
///
///     preparing ──▶ waiting ──▶ exchanging ──▶ judging ──▶ processing
///                      ▲      (sending, receiving a      │          │
///                      │       head or a body, paused,   │          │
///                      │       stopping)                 │          │
///                      └── redirect, retry, restart ─────┴──────────┘
///
/// A transfer may end from each phase, and does so once.
struct TransferMachine {
    typealias Instant = LoopInstant

    enum Phase {
        /// A hook changes the request, or the store looks for the first bytes of the body.
        case preparing
        case waiting(Wait)
        /// libcurl has the request.
        case exchanging
        /// libcurl has ended the request. The response is not judged yet.
        case judging
        /// Hooks have the response.
        case processing
        case ended
    }

    enum Wait {
        /// For a place among the active transfers.
        case turn
        /// For the time of another try.
        case retry(at: Instant)
        /// For memory. The request is sent again then.
        case memory(MemoryWait)
    }

    struct MemoryWait: Equatable {
        /// The number of bytes that the transfer needs in all.
        let wantedByteCount: Int
        let start: Instant
    }

    /// A request of libcurl, and its response so far.
    struct Exchange {
        let startTime: Instant
        /// The date at which the request was sent.
        let requestTime: Date
        /// Whether the request asks for the rest of a body.
        let asksForRest: Bool
        /// The time of the last progress.
        fileprivate(set) var lastProgress: Instant
        fileprivate(set) var stage = Stage.sending
        /// The bytes of all heads and trailers, with an overhead for each line.
        fileprivate(set) var headerBytes = 0
        fileprivate(set) var status: Int?
        fileprivate(set) var fields = HeaderFields()
        /// Whether the connection carries others as well.
        fileprivate(set) var isMultiplexed = false
        fileprivate(set) var hasTrailers = false
        /// Whether the last period brought almost no bytes.
        fileprivate(set) var isLagging = false
        fileprivate var progressWindow: Window

        /// The body, from the end of the head on.
        fileprivate(set) var body: Body?

        var stopReason: StopReason? {
            if case .stopping(let reason) = self.stage { reason } else { nil }
        }

        var pause: Pause? {
            if case .paused(let pause) = self.stage { pause } else { nil }
        }
    }

    enum Stage {
        /// Nothing has arrived yet.
        case sending
        case receivingHead
        case receivingBody
        case paused(Pause)
        /// The transfer refuses the rest, which libcurl will confirm.
        case stopping(StopReason)
    }

    enum Pause {
        /// A reader does not take more bytes now.
        case reader
        case memory(MemoryWait)
    }

    /// The reason why a transfer refuses the rest of a response.
    enum StopReason {
        case failure(DownloadError)
        /// The request must start anew: the response does not continue the earlier bytes.
        case restart
        /// The request is to be sent again when there is memory.
        case memory(MemoryWait)
        /// The body belongs to a status that the request does not accept, and is too long to read.
        case unwanted
    }

    /// A body on its way.
    struct Body {
        fileprivate(set) var plan: BodyPlan
        /// The start of the period for the minimum speed, and the bytes at that time.
        fileprivate var speedWindow: Window
        /// The number of discarded bytes.
        fileprivate(set) var discardedBytes = 0
    }

    /// The properties of the body by the head.
    struct BodyPlan {
        /// Whether the body is the requested one, and not the explanation of a failure.
        var isWanted = false
        /// Whether the response may have a body at all.
        var hasBody = true
        /// Whether bytes may come that are neither head nor body.
        var hasWatchedFraming = false
        var codings = ContentCodings.identity
        var expectedBytes: Int64?
        /// The number of bytes that must come over the network, before decoding; `nil` if the head does not declare it.
        var declaredBytes: Int64?
        /// The date at which the head was complete.
        var responseTime = Date.distantPast
    }

    struct Window {
        let start: Instant
        let bytes: Int64
    }

    /// The time after which a transfer that brings almost no bytes gives its place to others, and continues beside
    /// them.
    static let laggingPeriod = Duration.seconds(2)
    /// The most bytes in one such period that count as almost none.
    private static let laggingBytes: Int64 = 16 << 10
    /// The most bytes of an unwanted body to read and discard, so that the connection can be used again.
    static let discardLimit = 32 << 10
    /// The overhead of a line in bytes (RFC 9113, 6.5.2): many short lines cost more than a few long ones.
    fileprivate static let lineOverhead = 32

    /// The number of fields that few responses exceed.
    fileprivate static let usualFieldCount = 12

    var limits: TransferLimits
    private(set) var phase = Phase.preparing {
        didSet {
            switch self.phase {
            case .exchanging, .judging, .processing: break
            case .preparing, .waiting, .ended: self.exchange = nil
            }
        }
    }
    /// The request that libcurl has, or had last, as long as its answer counts.
    ///
    /// It stands beside the phase, not in it, so that a line of a head changes it in place: phases are copied whole.
    private(set) var exchange: Exchange?
    /// The tries so far.
    private(set) var attempts = 1
    /// When libcurl first got the request, moved by the time that went by waiting for memory.
    private(set) var firstStartTime: Instant?

    init(limits: TransferLimits) {
        self.limits = limits
    }

    // MARK: State

    var isPaused: Bool {
        if case .exchanging = self.phase, self.exchange?.pause != nil { true } else { false }
    }

    /// The failure that stopped the request, if it was not libcurl's.
    var failure: DownloadError? {
        if case .failure(let error)? = self.exchange?.stopReason { error } else { nil }
    }

    /// Whether everything must be asked for again.
    var mustRestart: Bool {
        if case .restart? = self.exchange?.stopReason { true } else { false }
    }

    /// The wait for memory, if the transfer has one.
    var memoryWait: MemoryWait? {
        switch self.phase {
        case .waiting(.memory(let wait)): return wait
        case .exchanging:
            switch self.exchange?.stage {
            case .paused(.memory(let wait))?, .stopping(.memory(let wait))?: return wait
            default: return nil
            }
        default: return nil
        }
    }

    /// The end of all tries, if there is one and if it is known.
    var totalDeadline: Instant? {
        // The server is not at fault if memory is short: the time of the wait is added afterwards.
        guard let limit = self.limits.totalTimeout, let firstStartTime, self.memoryWait == nil else { return nil }
        return firstStartTime + limit
    }

    // MARK: Events

    /// Applies an event, and returns the action that follows.
    ///
    /// An event without a meaning in the current phase changes nothing: its action is ``Action/none``, or
    /// ``Action/abort`` if libcurl waits for an answer.
    mutating func transition(_ event: Event, at now: Instant) -> Action {
        switch event {
        case .submit: self.submit()
        case .send(let asksForRest, let date): self.send(asksForRest, date, now)
        case .line(let line, let byteCount, let isMultiplexed):
            self.isExchanging
                ? self.exchange?.receive(line, byteCount, isMultiplexed, self.limits, now) ?? .abort : .abort
        case .bytes(let count): self.isExchanging ? self.exchange?.receive(count, now) ?? .abort : .abort
        case .answerChallenge, .complete, .expect, .pause, .stop:
            self.isExchanging ? self.exchange?.direct(event) ?? .none : .none
        case .resume(let bodyBytes): self.resume(bodyBytes, now)
        case .look(let connectTime, let bodyBytes): self.look(connectTime, bodyBytes, now)
        case .finish: self.finish()
        case .sendAgain: self.sendAgain(.turn, .enqueue)
        case .retry(let delay): self.retry(now + delay)
        case .process: self.process()
        case .end: self.end()
        }
    }

    private mutating func submit() -> Action {
        switch self.phase {
        case .preparing, .waiting(.retry): break
        default: return .none
        }
        self.phase = .waiting(.turn)
        return .enqueue
    }

    private mutating func send(_ asksForRest: Bool, _ date: Date, _ now: Instant) -> Action {
        guard case .waiting(.turn) = self.phase else { return .none }
        self.firstStartTime = self.firstStartTime ?? now
        self.exchange = Exchange(
            startTime: now,
            requestTime: date,
            asksForRest: asksForRest,
            lastProgress: now,
            progressWindow: Window(start: now, bytes: 0)
        )
        self.phase = .exchanging
        let head = now + min(self.limits.timeout, self.limits.firstByteTimeout ?? self.limits.timeout)
        return .look(at: self.totalDeadline.map { min($0, head) } ?? head)
    }

    private var isExchanging: Bool {
        if case .exchanging = self.phase { true } else { false }
    }

    private mutating func resume(_ bodyBytes: Int64, _ now: Instant) -> Action {
        switch self.phase {
        case .waiting(.memory(let wait)):
            self.addTime(since: wait, now)
            self.phase = .waiting(.turn)
            return .enqueue
        case .exchanging:
            guard let pause = self.exchange?.pause else { return .none }
            if case .memory(let wait) = pause { self.addTime(since: wait, now) }
            self.exchange?.stage = .receivingBody
            self.exchange?.forgetTime(until: now, bodyBytes: bodyBytes)
            return .unpause
        default: return .none
        }
    }

    /// Moves the limit of all tries by a wait that was not the server's.
    private mutating func addTime(since wait: MemoryWait, _ now: Instant) {
        self.firstStartTime? += now - wait.start
    }

    private mutating func finish() -> Action {
        guard self.isExchanging else { return .none }
        guard case .memory(let wait)? = self.exchange?.stopReason else {
            self.phase = .judging
            return .judge
        }
        self.phase = .waiting(.memory(wait))
        return .yield
    }

    private mutating func sendAgain(_ wait: Wait, _ action: Action) -> Action {
        switch self.phase {
        case .judging, .processing: break
        default: return .none
        }
        self.phase = .waiting(wait)
        return action
    }

    private mutating func retry(_ time: Instant) -> Action {
        let action = self.sendAgain(.retry(at: time), .submit(at: time))
        if action != .none { self.attempts += 1 }
        return action
    }

    private mutating func process() -> Action {
        guard case .judging = self.phase else { return .none }
        self.phase = .processing
        return .none
    }

    private mutating func end() -> Action {
        if case .ended = self.phase { return .none }
        self.phase = .ended
        return .finish
    }

    // MARK: Time

    /// Returns the action for a transfer that takes too long.
    ///
    /// libcurl's own limits of time and speed are means over seconds, so they are not exact, and they count slow
    /// readers. Therefore this checks speed and progress in every ``TransferLimits/speedCheckInterval(_:)``.
    private mutating func look(_ connectTime: Duration, _ bodyBytes: Int64, _ now: Instant) -> Action {
        guard self.isExchanging, var exchange = self.exchange else { return .none }
        let total = self.totalDeadline
        if let total, now >= total { return .expire(.total) }
        if exchange.pause != nil { exchange.forgetTime(until: now, bodyBytes: bodyBytes) }
        exchange.noteProgress(bodyBytes, now)
        defer { self.exchange = exchange }
        // Connecting has a limit of its own, so its time does not count. A connection that is made before the next
        // check is not overdue then.
        let lastProgress =
            connectTime > .zero ? max(exchange.lastProgress, exchange.startTime + connectTime) : now
        var next = lastProgress + self.limits.timeout
        guard now < next else { return .expire(.silence) }
        if let total { next = min(next, total) }
        if let limit = self.limits.firstByteTimeout, exchange.body == nil {
            guard now < exchange.startTime + limit else { return .expire(.firstByte) }
            next = min(next, exchange.startTime + limit)
        }
        if let speed = self.limits.minimumSpeed, !exchange.isFastEnough(speed, bodyBytes, now) {
            return .expire(.speed)
        }
        return .look(at: next)
    }
}

extension TransferMachine.Exchange {
    /// Takes a line of a head or of trailers.
    fileprivate mutating func receive(
        _ line: HeaderLine,
        _ byteCount: Int,
        _ isMultiplexed: Bool,
        _ limits: TransferLimits,
        _ now: LoopInstant
    ) -> TransferMachine.Action {
        self.lastProgress = now
        // Informational responses and trailers count, too, because they have no limit otherwise.
        self.headerBytes += byteCount + TransferMachine.lineOverhead
        guard self.headerBytes <= limits.maximumHeaderSize else { return .refuseHead }
        switch self.stage {
        case .sending: self.stage = .receivingHead
        case .receivingHead: break
        case .receivingBody, .paused:
            // libcurl repeats a request over HTTP/1.1 if a server demands that, even in the middle of a body.
            if case .status = line { return .refuseResponse }
            // Trailers, which the request does not want.
            self.hasTrailers = true
            return .proceed
        case .stopping: return .abort
        }
        switch line {
        case .status(let status):
            self.status = status
            self.fields.removeAll(keepingCapacity: true)
            self.fields.reserveCapacity(TransferMachine.usualFieldCount)
            self.isMultiplexed = isMultiplexed
        case .field(let name, let value): self.fields.append(value, for: name)
        case .continuation(let value): self.fields.fold(value)
        case .end:
            guard let status = self.status, status >= 200 else { return .proceed }
            self.stage = .receivingBody
            self.body = TransferMachine.Body(
                plan: TransferMachine.BodyPlan(),
                speedWindow: TransferMachine.Window(start: now, bytes: 0)
            )
            return .readHead
        case .malformed: break
        }
        return .proceed
    }

    /// Takes bytes of a body.
    fileprivate mutating func receive(_ count: Int, _ now: LoopInstant) -> TransferMachine.Action {
        switch self.stage {
        case .receivingBody: break
        case .paused: return .hold
        case .sending, .receivingHead, .stopping: return .abort
        }
        self.lastProgress = now
        guard self.body?.plan.isWanted != true else { return .take }
        self.body?.discardedBytes += count
        guard self.body.map({ $0.discardedBytes > TransferMachine.discardLimit }) ?? true else { return .discard }
        self.stage = .stopping(.unwanted)
        return .abort
    }

    /// Applies a decision of the transfer about the response.
    fileprivate mutating func direct(_ event: TransferMachine.Event) -> TransferMachine.Action {
        switch (event, self.stage) {
        case (_, .stopping): return .none
        case (.answerChallenge, .receivingBody):
            self.stage = .receivingHead
            self.body = nil
            self.status = nil
            self.fields.removeAll(keepingCapacity: true)
            return .proceed
        case (.complete(let fields), .receivingBody):
            self.fields = fields
            return .proceed
        case (.expect(let plan), .receivingBody):
            self.body?.plan = plan
            return .proceed
        case (.pause(let pause), .receivingBody):
            self.stage = .paused(pause)
            return .hold
        case (.stop(let reason), _):
            self.stage = .stopping(reason)
            return .abort
        default: return .none
        }
    }

    /// Restarts the time windows, because the time that has passed was not the server's.
    fileprivate mutating func forgetTime(until now: LoopInstant, bodyBytes: Int64) {
        self.lastProgress = now
        self.setSpeedWindow(TransferMachine.Window(start: now, bytes: bodyBytes))
        self.progressWindow = TransferMachine.Window(start: now, bytes: bodyBytes + Int64(self.headerBytes))
    }

    fileprivate mutating func noteProgress(_ bodyBytes: Int64, _ now: LoopInstant) {
        guard now - self.progressWindow.start >= TransferMachine.laggingPeriod else { return }
        let received = bodyBytes + Int64(self.headerBytes)
        self.isLagging = received - self.progressWindow.bytes < TransferMachine.laggingBytes
        self.progressWindow = TransferMachine.Window(start: now, bytes: received)
    }

    /// Returns whether the body came fast enough, and begins a new window after each full one.
    fileprivate mutating func isFastEnough(
        _ speed: DownloadActor.MinimumSpeed,
        _ bodyBytes: Int64,
        _ now: LoopInstant
    ) -> Bool {
        guard let window = self.body?.speedWindow, now >= window.start + speed.period else { return true }
        let needed = Double(speed.bytesPerSecond) * ((now - window.start) / .seconds(1))
        guard Double(bodyBytes - window.bytes) >= needed else { return false }
        self.setSpeedWindow(TransferMachine.Window(start: now, bytes: bodyBytes))
        return true
    }

    /// Starts a window for the minimum speed, unless the body is stopped.
    private mutating func setSpeedWindow(_ window: TransferMachine.Window) {
        switch self.stage {
        case .receivingBody, .paused: self.body?.speedWindow = window
        case .sending, .receivingHead, .stopping: break
        }
    }
}
