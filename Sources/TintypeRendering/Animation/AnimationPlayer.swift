import TintypeCoding
import TintypeConcurrency
public import TintypeImage

/// Plays an animation in time: a sequence of frames, each given when its moment has come.
///
/// It keeps to the clock: frames are decoded before their moments, and those whose time is over when a frame is asked for are
/// lost, so that a reader that is slow, or a slow decode, loses frames and not time. The last frame of the last loop is
/// never lost: what is shown rests on it, or on a frame of one's choice. A still image is given once, whatever the
/// limit of loops says: nothing would follow it.
/// Iterate it from one task; steer it from any.
public final class AnimationPlayer: AsyncSequence, Sendable {
    /// The order in which frames are shown.
    public enum Mode: Sendable, Hashable, CaseIterable {
        /// From the first to the last, again and again.
        case normal
        /// From the last to the first, again and again.
        case reverse
        /// To the last and back to the first; each way is a loop.
        case bounce
        /// From the last to the first and back to the last; each way is a loop.
        case reverseBounce
    }

    /// A frame whose moment has come.
    public struct Element: Sendable {
        /// The image.
        public let image: Image
        /// Its index in the source.
        public let index: Int
        /// The loops that were complete before it.
        public let loop: Int
        /// The frames before it that were lost, because their time was over.
        public let lostFrameCount: Int
    }

    public typealias Failure = any Error

    /// A clock from one of its instants on, whatever its instants are.
    private struct Timeline: Sendable {
        let elapsed: @Sendable () -> Duration
        let sleep: @Sendable (_ until: Duration) async throws -> Void

        init(_ clock: some Clock<Duration>) {
            let start = clock.now
            self.elapsed = { start.duration(to: clock.now) }
            self.sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
        }
    }

    /// What is given next, unless it is steered otherwise before.
    private struct Turn {
        enum Kind {
            case frame(Int, loop: Int, lost: Int)
            /// The last frame's time is over then.
            case end
        }

        let kind: Kind
        /// When its time begins; `nil` for at once.
        var moment: Duration?
        /// What was steered, and how long was paused, when it was chosen.
        let seekCount: Int
        let pausedTime: Duration
    }

    private struct State {
        var playback: PlaybackState
        var rate: Double
        /// The frame that is shown, and when its time began.
        var shown: (index: Int, start: Duration)?
        var hasRested = false
        var seekCount = 0
        /// Whether the next frame was sought, and can't be lost.
        var isSought = false
        var pauseStart: Duration?
        /// How long was paused, in all pauses that are over.
        var pausedTime = Duration.zero
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let source: FrameSource
    private let restingFrame: Int?
    /// How long each frame is shown at the stored rate.
    private let durations: [Duration]
    private let timeline: Timeline
    private let state: Locked<State>

    /// Creates a player that stands before its first frame.
    ///
    /// - Parameters:
    ///   - source: The frames.
    ///   - mode: The order in which they are shown.
    ///   - rate: How much faster than stored; default 1.
    ///   - loopLimit: How often they are shown, 0 for ever, a negative number as 1; `nil` as the source says.
    ///   - restingFrame: The frame that is given when the time of the last one is over, for the image to rest on; `nil`, or
    ///     one that does not exist, gives none: the last frame stays.
    ///   - clock: What moments are measured by.
    public init(
        _ source: FrameSource,
        mode: Mode = .normal,
        rate: Double = 1,
        loopLimit: Int? = nil,
        restingFrame: Int? = nil,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.source = source
        self.restingFrame = restingFrame.flatMap { (0..<source.frameCount).contains($0) ? $0 : nil }
        // A coder may be a user's, and give durations that never were looked at.
        self.durations = source.durations.map { .milliseconds(AnimationTiming.shownDuration($0)) }
        self.timeline = Timeline(clock)
        self.state = Locked(
            State(
                playback: PlaybackState(
                    frameCount: source.frameCount,
                    mode: mode,
                    loopLimit: source.frameCount > 1 ? loopLimit ?? source.loopCount : 1
                ),
                rate: Self.valid(rate)
            )
        )
    }

    // MARK: Steering

    /// Whether no frame comes until ``resume()``.
    public var isPaused: Bool { self.state.withLock { $0.pauseStart != nil } }

    /// How much faster than stored the frames follow each other, from the next one on.
    public var rate: Double {
        get { self.state.withLock { $0.rate } }
        set {
            let rate = Self.valid(newValue)
            self.state.withLock { $0.rate = rate }
        }
    }

    /// Holds the next frame back; time stands still.
    public func pause() {
        let now = self.timeline.elapsed()
        self.state.withLock { state in
            if state.pauseStart == nil { state.pauseStart = now }
        }
    }

    /// Lets frames come again.
    public func resume() {
        let now = self.timeline.elapsed()
        let waiter = self.state.withLock { state in
            if let start = state.pauseStart.take() { state.pausedTime += Swift.max(.zero, now - start) }
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Makes `index` the next frame, after the end one of the last loop; an index that does not exist is ignored.
    public func seek(to index: Int) {
        self.state.withLock { state in
            guard state.playback.seek(to: index) else { return }
            state.seekCount += 1
            state.isSought = true
            state.hasRested = false
        }
    }

    // MARK: AsyncSequence

    public func makeAsyncIterator() -> AsyncIterator {
        // What begins anew has lost nothing meanwhile.
        self.state.withLock { $0.shown = nil }
        return AsyncIterator(player: self)
    }

    /// Gives the frames when their moments have come.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let player: AnimationPlayer

        fileprivate init(player: AnimationPlayer) {
            self.player = player
        }

        public mutating func next() async throws -> Element? {
            try await self.player.next()
        }
    }

    private func next() async throws -> Element? {
        while true {
            try await self.waitWhilePaused()
            let turn = self.chooseTurn()
            switch turn.kind {
            case .frame(let index, let loop, let lost):
                let image = try await self.source.frame(at: index)
                guard try await self.wait(for: turn) else { continue }
                self.begin(index, turn)
                return Element(image: image, index: index, loop: loop, lostFrameCount: lost)
            case .end:
                guard try await self.wait(for: turn) else { continue }
                return try await self.rest()
            }
        }
    }

    /// The frame that is next when it is asked for now, without those whose time is over.
    private func chooseTurn() -> Turn {
        let now = self.timeline.elapsed()
        return self.state.withLock { state in
            let (seekCount, pausedTime) = (state.seekCount, state.pausedTime)
            var moment = state.shown.map { $0.start + self.duration(of: $0.index, state.rate) }
            let wasSought = state.isSought
            state.isSought = false
            guard var index = state.playback.next() else {
                return Turn(kind: .end, moment: moment, seekCount: seekCount, pausedTime: pausedTime)
            }
            var lost = 0
            if wasSought {
                moment = moment.map { Swift.max($0, now - pausedTime) }
            } else if let first = moment {
                let late = now - pausedTime - first
                var (start, count) = self.passCycles(&state.playback, late, state.rate)
                start += first
                // The last one is shown however late it is.
                while start + self.duration(of: index, state.rate) <= now - pausedTime {
                    var ahead = state.playback
                    guard let next = ahead.next() else { break }
                    start += self.duration(of: index, state.rate)
                    state.playback = ahead
                    index = next
                    count += 1
                }
                (moment, lost) = (start, count)
            }
            let kind = Turn.Kind.frame(index, loop: state.playback.loop, lost: lost)
            return Turn(kind: kind, moment: moment, seekCount: seekCount, pausedTime: pausedTime)
        }
    }

    /// Passes over whole loops, of which a day may have millions.
    private func passCycles(
        _ playback: inout PlaybackState,
        _ late: Duration,
        _ rate: Double
    ) -> (time: Duration, frameCount: Int) {
        guard late > .zero else { return (.zero, 0) }
        let cycle = playback.cycle
        let length = cycle.reduce(Duration.zero) { $0 + self.duration(of: $1, rate) }
        guard length > .zero, late > length else { return (.zero, 0) }
        let count = playback.passCycles(Int(Swift.min(late / length, 1e15)))
        // A clock may jump by any time.
        return (length * count, Swift.min(cycle.count.saturatingMultiplied(by: count), .max / 2))
    }

    /// Waits until the moment of a turn; `false` where it was steered otherwise meanwhile.
    private func wait(for turn: Turn) async throws -> Bool {
        var waited: Duration?
        while true {
            try await self.waitWhilePaused()
            let (seekCount, pausedTime) = self.state.withLock { ($0.seekCount, $0.pausedTime) }
            guard seekCount == turn.seekCount else { return false }
            guard let moment = turn.moment.map({ $0 + pausedTime }), moment != waited,
                moment > self.timeline.elapsed()
            else { return true }
            try await self.timeline.sleep(moment)
            waited = moment
        }
    }

    /// Takes note of a frame that is given now; its time began when it should have.
    private func begin(_ index: Int, _ turn: Turn) {
        let now = self.timeline.elapsed()
        self.state.withLock { $0.shown = (index, turn.moment ?? now - $0.pausedTime) }
    }

    private func rest() async throws -> Element? {
        let loop = self.state.withLock { state -> Int? in
            defer { state.hasRested = true }
            return state.hasRested ? nil : state.playback.loop
        }
        guard let restingFrame, let loop else { return nil }
        let image = try await self.source.frame(at: restingFrame)
        return Element(image: image, index: restingFrame, loop: loop, lostFrameCount: 0)
    }

    /// How long a frame is shown; a still for no time, because nothing follows it.
    private func duration(of index: Int, _ rate: Double) -> Duration {
        self.durations.count > 1 && self.durations.indices.contains(index) ? self.durations[index] / rate : .zero
    }

    private func waitWhilePaused() async throws {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isHeld = self.state.withLock { state -> Bool in
                    guard state.pauseStart != nil, !Task.isCancelled else { return false }
                    precondition(state.waiter == nil, "an animation player is iterated by two tasks at once")
                    state.waiter = continuation
                    return true
                }
                if !isHeld { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiter.take() }?.resume()
        }
        try Task.checkCancellation()
    }

    /// A rate that moves; what is not above 0 stands still, which is what pausing is for.
    private static func valid(_ rate: Double) -> Double {
        rate.isFinite && rate > 0 ? Swift.min(Swift.max(rate, 0.001), 1_000) : 1
    }
}

/// Which frame is shown next.
///
/// Pure: a player asks it, and it never waits.
struct PlaybackState {
    /// The order in which frames are shown.
    enum Direction: Int {
        case forward = 1
        case backward = -1

        var opposite: Direction { self == .forward ? .backward : .forward }
    }

    let frameCount: Int
    let mode: AnimationPlayer.Mode
    /// How often the frames are shown; 0 is forever.
    let loopLimit: Int
    private(set) var loop = 0
    private var index: Int?
    private var direction: Direction

    init(frameCount: Int, mode: AnimationPlayer.Mode, loopLimit: Int) {
        self.frameCount = frameCount
        self.mode = mode
        self.loopLimit = loopLimit < 0 ? 1 : loopLimit
        self.direction = mode == .reverse || mode == .reverseBounce ? .backward : .forward
    }

    /// Moves to the next frame and returns it; `nil` after the last loop.
    mutating func next() -> Int? {
        guard self.frameCount > 0, self.loopLimit == 0 || self.loop < self.loopLimit else { return nil }
        guard let index = self.index else {
            self.index = self.first
            return self.index
        }
        let next = index + self.direction.rawValue
        if (0..<self.frameCount).contains(next) {
            self.index = next
        } else {
            guard self.beginNextLoop() else { return nil }
        }
        return self.index
    }

    /// Makes `index` the next frame; `false` for one that does not exist.
    @discardableResult
    mutating func seek(to index: Int) -> Bool {
        guard (0..<self.frameCount).contains(index) else { return false }
        if self.loopLimit > 0 { self.loop = min(self.loop, self.loopLimit - 1) }
        self.index = index - self.direction.rawValue
        // Before the first frame of the direction there is none to step from.
        if !(0..<self.frameCount).contains(index - self.direction.rawValue) {
            self.index = nil
            self.start = index
        }
        return true
    }

    /// The frames of the fewest loops after which all is as it was, in any order.
    var cycle: [Int] {
        let all = Array(0..<self.frameCount)
        // The frames at the turns are shown once.
        return self.bounces ? all + all.dropFirst().dropLast() : all
    }

    /// Passes over whole cycles, up to `count` and as many as leave a loop to be shown.
    ///
    /// - Returns: How many they were.
    mutating func passCycles(_ count: Int) -> Int {
        let loopsPerCycle = self.bounces ? 2 : 1
        var count = Swift.max(0, count)
        if self.loopLimit > 0 { count = Swift.min(count, Swift.max(0, self.loopLimit - 1 - self.loop) / loopsPerCycle) }
        self.loop += count * loopsPerCycle
        return count
    }

    private var bounces: Bool { self.mode == .bounce || self.mode == .reverseBounce }

    /// Where the first frame is, when it is not where the mode begins.
    private var start: Int?

    private var first: Int {
        self.start ?? (self.direction == .forward ? 0 : self.frameCount - 1)
    }

    private mutating func beginNextLoop() -> Bool {
        self.loop += 1
        self.start = nil
        guard self.loopLimit == 0 || self.loop < self.loopLimit else { return false }
        switch self.mode {
        case .normal: self.index = 0
        case .reverse: self.index = self.frameCount - 1
        case .bounce, .reverseBounce:
            // The frame at the turn is shown once.
            self.direction = self.direction.opposite
            let turn = self.direction == .forward ? 0 : self.frameCount - 1
            self.index = min(max(turn + self.direction.rawValue, 0), self.frameCount - 1)
        }
        return true
    }
}
