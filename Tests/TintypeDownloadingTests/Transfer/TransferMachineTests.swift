// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP
import TintypeTestSupport

@testable import TintypeDownloading

@Suite struct TransferMachineTests {
    typealias Machine = TransferMachine
    typealias Instant = LoopInstant

    /// The limits, small enough for random sequences to reach them.
    private static let limits: TransferLimits = {
        var configuration = DownloadActor.Configuration()
        configuration.timeout = .seconds(15)
        configuration.firstByteTimeout = .seconds(30)
        configuration.totalTimeout = .seconds(100)
        configuration.minimumSpeed = DownloadActor.MinimumSpeed(bytesPerSecond: 500, period: .seconds(20))
        configuration.maximumHeaderSize = 300
        return TransferLimits(DownloadRequest(url: URL(filePath: "/")), configuration)
    }()

    private static func memory(_ now: Instant) -> Machine.MemoryWait { .init(wantedByteCount: 1, start: now) }

    private static let failure = DownloadError(code: .unexpected, message: "It failed.")

    // MARK: Random sequences

    /// A simple model of the machine, with loose variables that each count in some places only.
    private struct Oracle {
        enum Place: CaseIterable { case preparing, turn, delay, memory, sent, judging, processing, ended }
        enum Halt { case reader, memory, stopped, yielded }

        var place = Place.preparing
        var halt: Halt?
        var haltTime = Instant.now
        var hasStatus = false
        var isFinal = false
        var fieldCount = 0
        var hasHead = false
        var isWanted = false
        var discardedBytes = 0
        var headerBytes = 0
        var firstStart: Instant?
        var start = Instant.now
        var lastArrival = Instant.now
        var speedWindow = (start: Instant.now, bytes: Int64(0))
        var attempts = 1
        var endCount = 0

        mutating func answer(_ event: Machine.Event, _ now: Instant) -> Machine.Action {
            if case .end = event {
                guard self.place != .ended else { return .none }
                self.place = .ended
                self.endCount += 1
                return .finish
            }
            switch self.place {
            case .preparing, .delay:
                guard case .submit = event else { return Self.idle(event) }
                self.place = .turn
                return .enqueue
            case .memory:
                guard case .resume = event else { return Self.idle(event) }
                self.place = .turn
                self.firstStart? += now - self.haltTime
                return .enqueue
            case .turn:
                guard case .send = event else { return Self.idle(event) }
                return self.send(now)
            case .sent: return self.exchange(event, now)
            case .judging, .processing:
                switch event {
                case .sendAgain: self.place = .turn
                case .retry(let delay):
                    self.place = .delay
                    self.attempts += 1
                    return .submit(at: now + delay)
                case .process where self.place == .judging:
                    self.place = .processing
                    return .none
                default: return Self.idle(event)
                }
                return .enqueue
            case .ended: return Self.idle(event)
            }
        }

        /// libcurl delivers something that it must not deliver.
        static func idle(_ event: Machine.Event) -> Machine.Action {
            switch event {
            case .line, .bytes: .abort
            default: .none
            }
        }

        private mutating func send(_ now: Instant) -> Machine.Action {
            let old = self
            self = Oracle(place: .sent, firstStart: old.firstStart ?? now, start: now, lastArrival: now)
            self.attempts = old.attempts
            let total = (self.firstStart ?? now) + .seconds(100)
            return .look(at: min(now + .seconds(15), now + .seconds(30), total))
        }

        private mutating func exchange(_ event: Machine.Event, _ now: Instant) -> Machine.Action {
            let isStopped = self.halt == .stopped || self.halt == .yielded
            switch event {
            case .line(let line, let count, _): return self.receive(line, count, now)
            case .bytes(let count):
                if !self.hasHead || isStopped { return .abort }
                if self.halt != nil { return .hold }
                self.lastArrival = now
                if self.isWanted { return .take }
                self.discardedBytes += count
                if self.discardedBytes <= 32 << 10 { return .discard }
                self.halt = .stopped
                return .abort
            case .expect(let plan):
                guard self.hasHead, self.halt == nil else { return .none }
                self.isWanted = plan.isWanted
                return .proceed
            case .answerChallenge:
                guard self.hasHead, self.halt == nil else { return .none }
                (self.hasHead, self.hasStatus, self.fieldCount, self.isWanted) = (false, false, 0, false)
                return .proceed
            case .complete(let fields):
                guard self.hasHead, self.halt == nil else { return .none }
                self.fieldCount = fields.count
                return .proceed
            case .pause(let pause):
                guard self.hasHead, self.halt == nil else { return .none }
                if case .memory = pause { self.halt = .memory } else { self.halt = .reader }
                self.haltTime = now
                return .hold
            case .resume(let bytes):
                guard let halt, !isStopped else { return .none }
                if halt == .memory { self.firstStart? += now - self.haltTime }
                self.halt = nil
                self.lastArrival = now
                self.speedWindow = (now, bytes)
                return .unpause
            case .stop(let reason):
                guard !isStopped else { return .none }
                if case .memory = reason { self.halt = .yielded } else { self.halt = .stopped }
                self.haltTime = now
                return .abort
            case .look(let connectTime, let bytes): return self.look(connectTime, bytes, now)
            case .finish:
                self.place = self.halt == .yielded ? .memory : .judging
                return self.halt == .yielded ? .yield : .judge
            default: return .none
            }
        }

        private mutating func receive(_ line: HeaderLine, _ count: Int, _ now: Instant) -> Machine.Action {
            self.lastArrival = now
            self.headerBytes += count + 32
            if self.headerBytes > 300 { return .refuseHead }
            if self.halt == .stopped || self.halt == .yielded { return .abort }
            if self.hasHead {
                if case .status = line { return .refuseResponse }
                return .proceed
            }
            switch line {
            case .status(let status):
                (self.hasStatus, self.isFinal, self.fieldCount) = (true, status >= 200, 0)
            case .field: self.fieldCount += 1
            case .end where self.hasStatus && self.isFinal:
                (self.hasHead, self.isWanted, self.discardedBytes) = (true, false, 0)
                self.speedWindow = (now, 0)
                return .readHead
            default: break
            }
            return .proceed
        }

        private mutating func look(_ connectTime: Duration, _ bytes: Int64, _ now: Instant) -> Machine.Action {
            let isShort = self.halt == .memory || self.halt == .yielded
            let total = (self.firstStart ?? now) + .seconds(100)
            if !isShort, now >= total { return .expire(.total) }
            if self.halt == .memory || self.halt == .reader {
                self.lastArrival = now
                self.speedWindow = (now, bytes)
            }
            let isConnected = connectTime > .zero
            let idle = (isConnected ? max(self.lastArrival, self.start + connectTime) : now) + .seconds(15)
            if now >= idle { return .expire(.silence) }
            if !self.hasHead, now >= self.start + .seconds(30) { return .expire(.firstByte) }
            if self.hasHead, now >= self.speedWindow.start + .seconds(20) {
                let seconds = (now - self.speedWindow.start) / .seconds(1)
                if Double(bytes - self.speedWindow.bytes) < 500 * seconds { return .expire(.speed) }
                // The speed window does not advance while the body is refused.
                if self.halt == nil { self.speedWindow = (now, bytes) }
            }
            let head = self.hasHead ? idle : self.start + .seconds(30)
            return .look(at: min(idle, head, isShort ? idle : total))
        }

        func agrees(with machine: Machine) -> Bool {
            let exchange = machine.exchange
            let hasExchange = [.sent, .judging, .processing].contains(self.place)
            let isShort = self.place == .sent && (self.halt == .memory || self.halt == .yielded)
            return hasExchange == (exchange != nil) && self.attempts == machine.attempts
                && machine.isPaused == (self.place == .sent && (self.halt == .reader || self.halt == .memory))
                && (machine.memoryWait != nil) == (isShort || self.place == .memory)
                && exchange.map { exchange in
                    exchange.fields.count == self.fieldCount && (exchange.body != nil) == self.hasHead
                        && (exchange.status != nil) == self.hasStatus && exchange.headerBytes == self.headerBytes
                        && exchange.body?.plan.isWanted ?? false == self.isWanted
                } ?? true
        }
    }

    /// Each argument stands for two thousand sequences.
    @Test(arguments: 0..<50) func `random sequences end once, and no byte is taken outside of a body`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            var machine = Machine(limits: Self.limits)
            var oracle = Oracle()
            var now = Instant.now
            for _ in 0..<Int.random(in: 4..<24, using: &random) {
                let steps: [Duration] = [.zero, .milliseconds(1), .seconds(1), .seconds(7), .seconds(31)]
                now += steps[Int.random(in: 0..<5, using: &random)]
                let event = Self.event(oracle, now, &random)
                let before = oracle
                let expected = oracle.answer(event, now)
                let action = machine.transition(event, at: now)
                guard action == expected, oracle.agrees(with: machine) else {
                    Issue.record("seed \(seed): \(event) was answered by \(action), not \(expected), in \(before)")
                    return
                }
            }
            let isOver = machine.transition(.end, at: now) == .none
            guard oracle.endCount == (isOver ? 1 : 0), machine.transition(.end, at: now) == .none else {
                Issue.record("seed \(seed): it ended \(oracle.endCount) times")
                return
            }
        }
    }

    private static func event(
        _ oracle: Oracle,
        _ now: Instant,
        _ random: inout SeededGenerator
    ) -> Machine.Event {
        let isAny = Int.random(in: 0..<8, using: &random) == 0
        let places = Oracle.Place.allCases
        switch isAny ? places[Int.random(in: 0..<places.count, using: &random)] : oracle.place {
        case .preparing, .delay: return .submit
        case .turn: return .send(asksForRest: Bool.random(using: &random), date: .distantPast)
        case .memory: return .resume(bodyBytes: 0)
        case .sent: return self.exchangeEvent(oracle, now, &random)
        case .judging, .processing:
            switch Int.random(in: 0..<4, using: &random) {
            case 0: return .sendAgain
            case 1: return .retry(after: .seconds(Int.random(in: 0..<3, using: &random)))
            case 2: return .process
            default: return .end
            }
        case .ended: return .end
        }
    }

    private static func exchangeEvent(
        _ oracle: Oracle,
        _ now: Instant,
        _ random: inout SeededGenerator
    ) -> Machine.Event {
        let bodyBytes = Int64(Int.random(in: 0..<40_000, using: &random))
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<6 where !oracle.hasHead:
            let statuses = [100, 200, 200, 404]
            let lines: [HeaderLine] = [
                .status(statuses[Int.random(in: 0..<4, using: &random)]), .field(name: "a", value: "b"), .end, .end,
                .continuation("c"), .malformed,
            ]
            let line = lines[Int.random(in: 0..<lines.count, using: &random)]
            return .line(oracle.hasStatus ? line : lines[0], byteCount: 8, isMultiplexed: false)
        case 0..<4: return .expect(Machine.BodyPlan(isWanted: Bool.random(using: &random)))
        case 4..<9: return .bytes(Int.random(in: 0..<30_000, using: &random))
        case 9: return .answerChallenge
        case 10: return .complete(["a": "b", "c": "d"])
        case 11: return .pause(.reader)
        case 12: return .pause(.memory(self.memory(now)))
        case 13: return .resume(bodyBytes: bodyBytes)
        case 14: return .stop(Bool.random(using: &random) ? .restart : .failure(self.failure))
        case 15: return .stop(.memory(self.memory(now)))
        case 16, 17:
            let connectTime = Duration.milliseconds(Int.random(in: 0..<3, using: &random))
            return .look(connectTime: connectTime, bodyBytes: bodyBytes)
        case 18:
            let line = Bool.random(using: &random) ? HeaderLine.status(200) : .field(name: "a", value: "b")
            return .line(line, byteCount: 4, isMultiplexed: false)
        default: return .finish
        }
    }

    // MARK: One at a time

    /// Returns a machine that has sent its request.
    private static func sent(_ now: Instant) -> Machine {
        var machine = Machine(limits: Self.limits)
        #expect(machine.transition(.submit, at: now) == .enqueue)
        let look = machine.transition(.send(asksForRest: false, date: .distantPast), at: now)
        #expect(look == .look(at: now + .seconds(15)))
        return machine
    }

    /// Returns a machine that receives a body.
    private static func receiving(_ now: Instant) -> Machine {
        var machine = Self.sent(now)
        for line in [HeaderLine.status(200), .field(name: "a", value: "b")] {
            #expect(machine.transition(.line(line, byteCount: 4, isMultiplexed: false), at: now) == .proceed)
        }
        #expect(machine.transition(.line(.end, byteCount: 2, isMultiplexed: false), at: now) == .readHead)
        #expect(machine.transition(.expect(.init(isWanted: true)), at: now) == .proceed)
        return machine
    }

    @Test func `a paused transfer takes nothing, and its server is not to blame for the time`() {
        let start = Instant.now
        var machine = Self.receiving(start)
        #expect(machine.transition(.bytes(10), at: start) == .take)
        #expect(machine.transition(.pause(.reader), at: start) == .hold)
        for seconds in stride(from: 1, to: 99, by: 14) {
            let now = start + .seconds(seconds)
            #expect(machine.transition(.bytes(10), at: now) == .hold)
            let next = machine.transition(.look(connectTime: .milliseconds(1), bodyBytes: 10), at: now)
            #expect(next == .look(at: min(now + .seconds(15), start + .seconds(100))))
        }
        #expect(machine.transition(.resume(bodyBytes: 10), at: start + .seconds(99)) == .unpause)
        #expect(machine.transition(.bytes(10), at: start + .seconds(99)) == .take)
        let end = machine.transition(.look(connectTime: .milliseconds(1), bodyBytes: 10), at: start + .seconds(100))
        #expect(end == .expire(.total))
    }

    @Test func `a wait for memory does not count for the time of all tries`() {
        let start = Instant.now
        var machine = Self.receiving(start)
        _ = machine.transition(.pause(.memory(Self.memory(start + .seconds(10)))), at: start + .seconds(10))
        #expect(machine.totalDeadline == nil)
        let look = Machine.Event.look(connectTime: .milliseconds(1), bodyBytes: 0)
        #expect(machine.transition(look, at: start + .seconds(500)) == .look(at: start + .seconds(515)))
        #expect(machine.transition(.resume(bodyBytes: 0), at: start + .seconds(510)) == .unpause)
        #expect(machine.totalDeadline == start + .seconds(600))
    }

    @Test func `a request that was given up for want of memory is sent again when there is some`() {
        let start = Instant.now
        var machine = Self.receiving(start)
        #expect(machine.transition(.stop(.memory(Self.memory(start))), at: start) == .abort)
        #expect(machine.transition(.bytes(1), at: start) == .abort)
        #expect(machine.transition(.finish, at: start) == .yield)
        #expect(machine.transition(.submit, at: start) == .none)
        #expect(machine.transition(.resume(bodyBytes: 0), at: start + .seconds(3)) == .enqueue)
        #expect(machine.totalDeadline == start + .seconds(103))
        #expect(machine.attempts == 1)
    }

    @Test func `another try starts with nothing of the last one`() {
        let start = Instant.now
        var machine = Self.receiving(start)
        #expect(machine.transition(.bytes(1), at: start) == .take)
        #expect(machine.transition(.stop(.failure(Self.failure)), at: start) == .abort)
        #expect(machine.transition(.finish, at: start) == .judge)
        #expect(machine.transition(.retry(after: .seconds(2)), at: start) == .submit(at: start + .seconds(2)))
        #expect(machine.exchange == nil)
        let now = start + .seconds(2)
        #expect(machine.transition(.submit, at: now) == .enqueue)
        _ = machine.transition(.send(asksForRest: true, date: .distantPast), at: now)
        #expect(machine.attempts == 2)
        let exchange = machine.exchange
        #expect(exchange?.status == nil && exchange?.body == nil && exchange?.stopReason == nil)
        #expect(exchange?.fields.isEmpty == true && exchange?.headerBytes == 0 && exchange?.asksForRest == true)
        #expect(exchange?.startTime == now && exchange?.lastProgress == now)
        // The total deadline applies to all tries together.
        #expect(machine.totalDeadline == start + .seconds(100))
    }

    @Test func `what is not wanted is read for a while, so that the connection stays of use`() {
        let start = Instant.now
        var machine = Self.receiving(start)
        _ = machine.transition(.expect(.init(isWanted: false)), at: start)
        #expect(machine.transition(.bytes(Machine.discardLimit), at: start) == .discard)
        #expect(machine.transition(.bytes(1), at: start) == .abort)
        #expect(machine.transition(.finish, at: start) == .judge)
    }

    /// libcurl repeats a request over HTTP/1.1 if a server demands that, even in the middle of a body.
    @Test(arguments: [true, false], [100, 200, 206, 304, 421, 404])
    func `a second head within a body is refused and changes nothing`(isPaused: Bool, status: Int) {
        let start = Instant.now
        var machine = Self.receiving(start)
        #expect(machine.transition(.bytes(10), at: start) == .take)
        if isPaused { #expect(machine.transition(.pause(.reader), at: start) == .hold) }
        // HTTP/1.1 carries one response at a time.
        let line = Machine.Event.line(.status(status), byteCount: 15, isMultiplexed: false)
        #expect(machine.transition(line, at: start) == .refuseResponse)
        #expect(machine.exchange?.status == 200)
        #expect(machine.exchange?.fields == ["a": "b"])
        #expect(machine.exchange?.body?.plan.isWanted == true)
        #expect(machine.exchange?.hasTrailers == false)
        // The transfer stops with a failure, and takes no byte of the second body.
        #expect(machine.transition(.stop(.failure(Self.failure)), at: start) == .abort)
        #expect(machine.transition(.line(.end, byteCount: 2, isMultiplexed: false), at: start) == .abort)
        #expect(machine.transition(.bytes(10), at: start) == .abort)
        #expect(machine.transition(.finish, at: start) == .judge)
        #expect(machine.failure?.code == Self.failure.code)
    }

    @Test func `fields within a body are trailers, and a head after a challenge is a new one`() {
        let start = Instant.now
        var machine = Self.receiving(start)
        #expect(machine.transition(.bytes(10), at: start) == .take)
        let field = Machine.Event.line(.field(name: "c", value: "d"), byteCount: 6, isMultiplexed: false)
        #expect(machine.transition(field, at: start) == .proceed)
        #expect(machine.exchange?.hasTrailers == true)
        #expect(machine.exchange?.fields == ["a": "b"])
        machine = Self.receiving(start)
        #expect(machine.transition(.answerChallenge, at: start) == .proceed)
        let line = Machine.Event.line(.status(404), byteCount: 15, isMultiplexed: false)
        #expect(machine.transition(line, at: start) == .proceed)
        #expect(machine.exchange?.status == 404)
        #expect(machine.exchange?.fields.isEmpty == true)
    }

    @Test func `nothing follows the end`() {
        let start = Instant.now
        var machine = Self.receiving(start)
        #expect(machine.transition(.end, at: start) == .finish)
        let events: [Machine.Event] = [
            .submit, .finish, .sendAgain, .retry(after: .zero), .process, .resume(bodyBytes: 0), .pause(.reader), .end,
            .send(asksForRest: false, date: .distantPast), .look(connectTime: .zero, bodyBytes: 0), .stop(.restart),
        ]
        for event in events { #expect(machine.transition(event, at: start + .seconds(1_000)) == .none) }
        #expect(machine.transition(.bytes(1), at: start) == .abort)
        #expect(machine.transition(.line(.end, byteCount: 2, isMultiplexed: false), at: start) == .abort)
    }
}
