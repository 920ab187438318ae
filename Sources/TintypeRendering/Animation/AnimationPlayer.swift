// SPDX-License-Identifier: Apache-2.0

import TintypeCoding
import TintypeConcurrency
public import TintypeImage

/// Plays an animation: an asynchronous sequence that returns each frame when its time has come.
///
/// The player follows the clock. It decodes a frame before its time, and skips frames whose time has passed, so that a slow
/// reader or a slow decode loses frames instead of time. It never skips the last frame of the last loop, on which the
/// animation rests unless the program chooses another frame. A still image is returned once, whatever the loop limit.
///
/// One task may iterate the player. Any task may control it.
///
/// ```swift
/// let frames = try await loader.frames(for: request)
/// for try await frame in AnimationPlayer(frames) { show(frame.image) }
/// ```
public final class AnimationPlayer: AsyncSequence, Sendable {
    /// The order of the frames.
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

    /// A frame whose time has come.
    public struct Element: Sendable {
        /// The image.
        public let image: Image
        /// The index of the frame in the source.
        public let index: Int
        /// The number of complete loops before the frame.
        public let loop: Int
        /// The number of frames that were skipped before it, because their time had passed.
        public let lostFrameCount: Int
    }

    public typealias Failure = any Error

    /// The time since an instant of any clock.
    private struct Timeline: Sendable {
        let elapsed: @Sendable () -> Duration
        let sleep: @Sendable (_ until: Duration) async throws -> Void

        init(_ clock: some Clock<Duration>) {
            let start = clock.now
            self.elapsed = { start.duration(to: clock.now) }
            self.sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
        }
    }

    /// The next frame or the end, unless the program seeks before.
    private struct Turn {
        enum Kind {
            case frame(Int, loop: Int, lost: Int)
            /// The time of the last frame has passed.
            case end
        }

        let kind: Kind
        /// The time at which the frame appears; `nil` for at once.
        var moment: Duration?
        /// The number of seeks when the turn was chosen.
        let seekCount: Int
    }

    private struct State {
        var playback: PlaybackState
        var rate: Double
        /// The visible frame, and the time at which it appeared.
        var shown: (index: Int, start: Duration)?
        var hasRested = false
        var seekCount = 0
        /// Whether the program sought the next frame, which must not be skipped then.
        var isSought = false
        var pauseStart: Duration?
        /// The total duration of the pauses that have ended.
        var pausedTime = Duration.zero
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let source: FrameSource
    private let restingFrame: Int?
    /// The duration of each frame at rate 1.
    private let durations: [Duration]
    private let timeline: Timeline
    private let state: Locked<State>

    /// Creates a player before its first frame.
    ///
    /// ```swift
    /// let player = AnimationPlayer(frames, mode: .bounce, rate: 2, loopLimit: 3, restingFrame: 0)
    /// for try await frame in player { show(frame.image) }
    /// ```
    ///
    /// - Parameters:
    ///   - source: The frames.
    ///   - mode: The order of the frames; by default from the first to the last.
    ///   - rate: The speed relative to the stored one; 1 by default.
    ///   - loopLimit: The number of loops, 0 for an endless animation; a negative number counts as 1. `nil` takes the number
    ///     from the source.
    ///   - restingFrame: The index of a frame to return after the last one. With `nil`, or an index that does not exist, the
    ///     last frame stays.
    ///   - clock: The clock to follow.
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
        // A coder of the program may return any duration.
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

    // MARK: Controlling

    /// Whether the player is paused, until ``resume()``.
    public var isPaused: Bool { self.state.withLock { $0.pauseStart != nil } }

    /// The speed relative to the stored one, from the next frame on.
    ///
    /// The player limits it to 0.001 to 1,000, and takes 1 for a number that is not above 0.
    public var rate: Double {
        get { self.state.withLock { $0.rate } }
        set {
            let rate = Self.valid(newValue)
            self.state.withLock { $0.rate = rate }
        }
    }

    /// Pauses the player: no frame appears, and its clock stands still.
    ///
    /// ```swift
    /// let player = AnimationPlayer(frames)
    /// player.pause()
    /// print(player.isPaused)  // true
    /// ```
    public func pause() {
        let now = self.timeline.elapsed()
        self.state.withLock { state in
            if state.pauseStart == nil { state.pauseStart = now }
        }
    }

    /// Continues after a pause.
    ///
    /// ```swift
    /// let player = AnimationPlayer(frames)
    /// player.pause()
    /// player.resume()
    /// ```
    public func resume() {
        let now = self.timeline.elapsed()
        let waiter = self.state.withLock { state in
            if let start = state.pauseStart.take() { state.pausedTime += Swift.max(.zero, now - start) }
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Makes `index` the next frame; after the end, the next frame of the last loop.
    ///
    /// Ignores an index that does not exist.
    ///
    /// ```swift
    /// let player = AnimationPlayer(frames)
    /// player.seek(to: frames.frameCount / 2)
    /// for try await frame in player { print(frame.index) }
    /// ```
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
        // A new iteration skips no frame for the time since the last one.
        self.state.withLock { $0.shown = nil }
        return AsyncIterator(player: self)
    }

    /// Returns each frame when its time has come.
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

    /// Returns the next frame at this moment, after the frames whose time has passed.
    private func chooseTurn() -> Turn {
        let now = self.timeline.elapsed()
        return self.state.withLock { state in
            let (seekCount, pausedTime) = (state.seekCount, state.pausedTime)
            var moment = state.shown.map { $0.start + self.duration(of: $0.index, state.rate) }
            let wasSought = state.isSought
            state.isSought = false
            guard var index = state.playback.next() else {
                return Turn(kind: .end, moment: moment, seekCount: seekCount)
            }
            var lost = 0
            if wasSought {
                moment = moment.map { Swift.max($0, now - pausedTime) }
            } else if let first = moment {
                let late = now - pausedTime - first
                var (start, count) = self.passCycles(&state.playback, late, state.rate)
                start += first
                // Show the last frame however late it is.
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
            return Turn(kind: kind, moment: moment, seekCount: seekCount)
        }
    }

    /// Skips whole loops at once, because a day may have millions.
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
        // A clock may jump by any duration.
        return (length * count, Swift.min(cycle.count.saturatingMultiplied(by: count), .max / 2))
    }

    /// Waits until the time of a turn; returns `false` if the program has sought another frame.
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

    /// Records the frame that is about to be returned.
    ///
    /// Its time began when it should have.
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

    /// Returns the duration of a frame; zero for a still image, because no frame follows it.
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

    /// Returns a valid rate.
    ///
    /// Only a pause stops the player, so a rate that is not above 0 becomes 1.
    private static func valid(_ rate: Double) -> Double {
        rate.isFinite && rate > 0 ? Swift.min(Swift.max(rate, 0.001), 1_000) : 1
    }
}

/// Chooses the next frame.
///
/// A pure value.
struct PlaybackState {
    /// The direction of the frames.
    enum Direction: Int {
        case forward = 1
        case backward = -1

        var opposite: Direction { self == .forward ? .backward : .forward }
    }

    let frameCount: Int
    let mode: AnimationPlayer.Mode
    /// The number of loops; 0 for an endless animation.
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

    /// Moves to the next frame and returns its index; returns `nil` after the last loop.
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

    /// Makes `index` the next frame; returns `false` if it does not exist.
    @discardableResult
    mutating func seek(to index: Int) -> Bool {
        guard (0..<self.frameCount).contains(index) else { return false }
        if self.loopLimit > 0 { self.loop = min(self.loop, self.loopLimit - 1) }
        self.index = index - self.direction.rawValue
        // The first frame of a direction has no frame to step from.
        if !(0..<self.frameCount).contains(index - self.direction.rawValue) {
            self.index = nil
            self.start = index
        }
        return true
    }

    /// The frames of one cycle, in any order: after it the state repeats.
    var cycle: [Int] {
        let all = Array(0..<self.frameCount)
        // The frames at the turns appear once.
        return self.bounces ? all + all.dropFirst().dropLast() : all
    }

    /// Skips up to `count` cycles, and leaves at least one loop.
    ///
    /// - Returns: The number of skipped cycles.
    mutating func passCycles(_ count: Int) -> Int {
        let loopsPerCycle = self.bounces ? 2 : 1
        var count = Swift.max(0, count)
        if self.loopLimit > 0 { count = Swift.min(count, Swift.max(0, self.loopLimit - 1 - self.loop) / loopsPerCycle) }
        self.loop += count * loopsPerCycle
        return count
    }

    private var bounces: Bool { self.mode == .bounce || self.mode == .reverseBounce }

    /// The first frame of the loop, if it is not the usual one of the mode.
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
            // The frame at the turn appears once.
            self.direction = self.direction.opposite
            let turn = self.direction == .forward ? 0 : self.frameCount - 1
            self.index = min(max(turn + self.direction.rawValue, 0), self.frameCount - 1)
        }
        return true
    }
}
