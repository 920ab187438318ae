import FoundationEssentials
import TintypeHTTP

/// The way of one transfer: what it may do in which phase, and for how long.
///
/// A value without I/O and without a clock. Whatever happens is an event: libcurl hands something over, a reader has
/// made room, time has passed. What follows is the action that ``transition(_:at:)`` returns; `Transfer` and
/// `TransferEngine` perform it.
///
///     preparing ──▶ waiting ──▶ exchanging ──▶ judging ──▶ processing
///                      ▲      (sending, receiving a      │          │
///                      │       head or a body, paused,   │          │
///                      │       stopping)                 │          │
///                      └── redirect, retry, restart ─────┴──────────┘
///
/// From each of them a transfer may end, and does so once.
struct TransferMachine {
    typealias Instant = LoopInstant

    enum Phase {
        /// A hook changes the request, or the first bytes of the body are looked for.
        case preparing
        case waiting(Wait)
        /// libcurl has the request.
        case exchanging
        /// libcurl is done with the request, or has lost it; what came is yet to be judged.
        case judging
        /// Hooks have the response.
        case processing
        case ended
    }

    enum Wait {
        /// For a place among those that run.
        case turn
        /// For the time of another try.
        case retry(at: Instant)
        /// For memory, to be sent again then.
        case memory(MemoryWait)
    }

    struct MemoryWait: Equatable {
        /// The bytes that are wanted in all.
        let wantedByteCount: Int
        let start: Instant
    }

    /// One request that libcurl has, and what has come of its answer.
    struct Exchange {
        let startTime: Instant
        /// When the request was sent, in the time that people use.
        let requestTime: Date
        /// Whether it asked for the rest of a body, of which some is here.
        let asksForRest: Bool
        /// When something last arrived.
        fileprivate(set) var lastProgress: Instant
        fileprivate(set) var stage = Stage.sending
        /// The bytes of all heads and trailers, and what their lines cost besides.
        fileprivate(set) var headerBytes = 0
        fileprivate(set) var status: Int?
        fileprivate(set) var fields = HeaderFields()
        /// Whether the connection carries others as well.
        fileprivate(set) var isMultiplexed = false
        fileprivate(set) var hasTrailers = false
        /// Whether the last period brought next to nothing.
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
        /// Nothing has come yet.
        case sending
        case receivingHead
        case receivingBody
        case paused(Pause)
        /// The rest is refused, which libcurl will confirm.
        case stopping(StopReason)
    }

    enum Pause {
        /// A reader has more than it takes.
        case reader
        case memory(MemoryWait)
    }

    /// Why the rest of an answer is refused.
    enum StopReason {
        case failure(DownloadError)
        /// Everything must be asked for again: what came does not continue what is here.
        case restart
        /// The request is to be sent again when there is memory.
        case memory(MemoryWait)
        /// It is the body of a status that was not asked for, and longer than is worth reading.
        case unwanted
    }

    /// A body on its way.
    struct Body {
        fileprivate(set) var plan: BodyPlan
        /// From when on its bytes are counted for the minimum speed, and those that were here then.
        fileprivate var speedWindow: Window
        /// The bytes that were read and thrown away.
        fileprivate(set) var discardedBytes = 0
    }

    /// What the head says of the body.
    struct BodyPlan {
        /// Whether it is what was asked for, and not the explanation of a failure.
        var isWanted = false
        /// Whether the response may have a body at all.
        var hasBody = true
        /// Whether bytes may come that are neither head nor body.
        var hasWatchedFraming = false
        var codings = ContentCodings.identity
        var expectedBytes: Int64?
        /// The bytes that must come over the network, before codings are undone; `nil` if the head does not say it.
        var declaredBytes: Int64?
        /// When the head was complete, in the time that people use.
        var responseTime = Date.distantPast
    }

    struct Window {
        let start: Instant
        let bytes: Int64
    }

    enum Event {
        /// It may be sent: it is prepared, or the time of the next try has come.
        case submit
        /// libcurl gets the request.
        case send(asksForRest: Bool, date: Date)
        /// A line of a head has come, or of what follows a body.
        case line(HeaderLine, byteCount: Int, isMultiplexed: Bool)
        /// libcurl has answered a challenge, and the head of the real response begins.
        case answerChallenge
        /// These are the fields of the whole, of which only the rest has come.
        case complete(HeaderFields)
        /// The head has been read, and says so of the body.
        case expect(BodyPlan)
        /// Bytes of the body have come, as they are on the network.
        case bytes(Int)
        /// They can't be taken now.
        case pause(Pause)
        /// A reader has room again, or there is memory; so many bytes of the body have come on the network.
        case resume(bodyBytes: Int64)
        case stop(StopReason)
        /// It took so long until the request could be sent, zero before that, and so many bytes of the body have come.
        case look(connectTime: Duration, bodyBytes: Int64)
        /// libcurl has the request no more.
        case finish
        /// The request goes to another address, or asks for everything instead of the rest.
        case sendAgain
        /// It failed, and is tried once more.
        case retry(after: Duration)
        /// Hooks get the response.
        case process
        case end
    }

    enum Action: Equatable {
        case none
        /// Let it wait for a place.
        case enqueue
        /// Submit it at that time.
        case submit(at: Instant)
        /// Look at its limits at that time.
        case look(at: Instant)
        /// A limit has passed: libcurl must lose the request.
        case expire(TimeLimit)
        /// Go on.
        case proceed
        /// Read the head, which is complete.
        case readHead
        /// The head is too long.
        case refuseHead
        /// Another response begins within the body.
        case refuseResponse
        /// Take the bytes.
        case take
        /// Throw the bytes away.
        case discard
        /// Let libcurl keep the bytes.
        case hold
        /// Let libcurl give the request up.
        case abort
        /// Let libcurl go on.
        case unpause
        /// Find out what the answer means.
        case judge
        /// Leave behind what takes memory.
        case yield
        /// Tell the callers that wait.
        case finish
    }

    enum TimeLimit {
        case total
        case silence
        case firstByte
        case speed
    }

    /// How long a transfer may bring next to nothing before it gives its place to others, and goes on beside them.
    static let laggingPeriod = Duration.seconds(2)
    /// Next to nothing, in one such period.
    private static let laggingBytes: Int64 = 16 << 10
    /// The bytes that are read and thrown away of a body that is not wanted, so that the connection can be used again.
    static let discardLimit = 32 << 10
    /// What a line counts for beside its bytes (RFC 9113, 6.5.2): many short ones cost more than a few long ones.
    fileprivate static let lineOverhead = 32

    /// The fields that most responses have no more of.
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

    // MARK: What is known

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

    /// What it waits for, if memory is short.
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

    /// The end of all tries, if there is one and it is known.
    var totalDeadline: Instant? {
        // That there is no memory is not the server's fault, and the time is added when it is over.
        guard let limit = self.limits.totalTimeout, let firstStartTime, self.memoryWait == nil else { return nil }
        return firstStartTime + limit
    }

    // MARK: Events

    /// Moves on, and says what is to be done.
    ///
    /// An event that has no meaning in the present phase changes nothing: its action is ``Action/none``, or
    /// ``Action/abort`` where libcurl waits for an answer.
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

    /// The wait was not the server's: the limit of all tries goes on where it stood.
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

    /// Whether the transfer takes too long.
    ///
    /// libcurl's own limits on time and speed are means over seconds and so not exact, and know nothing of readers
    /// that lag. Speed and progress are looked at besides, in every ``TransferLimits/speedCheckInterval(_:)``.
    private mutating func look(_ connectTime: Duration, _ bodyBytes: Int64, _ now: Instant) -> Action {
        guard self.isExchanging, var exchange = self.exchange else { return .none }
        let total = self.totalDeadline
        if let total, now >= total { return .expire(.total) }
        if exchange.pause != nil { exchange.forgetTime(until: now, bodyBytes: bodyBytes) }
        exchange.noteProgress(bodyBytes, now)
        defer { self.exchange = exchange }
        // Connecting has a limit of its own, so the time in which it went on does not count. Looked at again in one
        // timeout, a connection made in between is not overdue yet.
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
    /// Takes a line of a head, or of what follows a body.
    fileprivate mutating func receive(
        _ line: HeaderLine,
        _ byteCount: Int,
        _ isMultiplexed: Bool,
        _ limits: TransferLimits,
        _ now: LoopInstant
    ) -> TransferMachine.Action {
        self.lastProgress = now
        // Informational responses and trailers count in: there is no end to them otherwise.
        self.headerBytes += byteCount + TransferMachine.lineOverhead
        guard self.headerBytes <= limits.maximumHeaderSize else { return .refuseHead }
        switch self.stage {
        case .sending: self.stage = .receivingHead
        case .receivingHead: break
        case .receivingBody, .paused:
            // libcurl sends a request again over HTTP/1.1 if a server asks for that, even in the middle of a body.
            if case .status = line { return .refuseResponse }
            // Trailers, which were not asked for.
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

    /// Does what a reader of the answer has decided.
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

    /// Forgets the time that has passed: it was not the server's.
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

    /// Whether the body came fast enough; begins a new window if one was.
    fileprivate mutating func isFastEnough(
        _ speed: MinimumSpeed,
        _ bodyBytes: Int64,
        _ now: LoopInstant
    ) -> Bool {
        guard let window = self.body?.speedWindow, now >= window.start + speed.period else { return true }
        let needed = Double(speed.bytesPerSecond) * ((now - window.start) / .seconds(1))
        guard Double(bodyBytes - window.bytes) >= needed else { return false }
        self.setSpeedWindow(TransferMachine.Window(start: now, bytes: bodyBytes))
        return true
    }

    /// A body that is stopped is not measured any more.
    private mutating func setSpeedWindow(_ window: TransferMachine.Window) {
        switch self.stage {
        case .receivingBody, .paused: self.body?.speedWindow = window
        case .sending, .receivingHead, .stopping: break
        }
    }
}
