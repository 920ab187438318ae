import TintypeConcurrency
public import TintypeImage

/// Plays an animation in time: a sequence of frames, each given when its moment has come.
///
/// A frame is never skipped: when decoding is slower than the animation, it is shown later. A still picture is given
/// once, whatever the limit of loops says: nothing would follow it.
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
    }

    /// A frame whose moment has come.
    public struct Element: Sendable {
        /// The picture.
        public let image: Image
        /// Its index in the source.
        public let index: Int
        /// The loops that were complete before it.
        public let loop: Int
    }

    public typealias Failure = any Error

    private struct State {
        var playback: PlaybackState
        var rate: Double
        var isPaused = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let source: FrameSource
    private let sleep: @Sendable (Duration) async throws -> Void
    private let state: Locked<State>

    /// Creates a player that stands before its first frame.
    ///
    /// - Parameters:
    ///   - source: The frames.
    ///   - mode: The order in which they are shown.
    ///   - rate: How much faster than stored; default 1.
    ///   - loopLimit: How often they are shown, 0 for ever; `nil` as the source says.
    ///   - clock: What moments are measured by.
    public init(
        _ source: FrameSource,
        mode: Mode = .normal,
        rate: Double = 1,
        loopLimit: Int? = nil,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.source = source
        self.sleep = { try await clock.sleep(for: $0) }
        self.state = Locked(
            State(
                playback: PlaybackState(
                    frameCount: source.frameCount,
                    mode: mode,
                    loopLimit: source.durations.isEmpty ? 1 : loopLimit ?? source.loopCount
                ),
                rate: Self.valid(rate)
            )
        )
    }

    // MARK: Steering

    /// Whether no frame comes until ``resume()``.
    public var isPaused: Bool { self.state.withLock { $0.isPaused } }

    /// How much faster than stored the frames follow each other, from the next one on.
    public var rate: Double {
        get { self.state.withLock { $0.rate } }
        set {
            let rate = Self.valid(newValue)
            self.state.withLock { $0.rate = rate }
        }
    }

    /// Holds the next frame back.
    public func pause() {
        self.state.withLock { $0.isPaused = true }
    }

    /// Lets frames come again.
    public func resume() {
        let waiter = self.state.withLock { state in
            state.isPaused = false
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Makes `index` the next frame; an index that does not exist is ignored.
    public func seek(to index: Int) {
        self.state.withLock { $0.playback.seek(to: index) }
    }

    // MARK: AsyncSequence

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(player: self)
    }

    /// Gives the frames when their moments have come.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let player: AnimationPlayer
        private var shown: Int?

        fileprivate init(player: AnimationPlayer) {
            self.player = player
        }

        public mutating func next() async throws -> Element? {
            if let shown = self.shown { try await self.player.wait(after: shown) }
            try await self.player.waitWhilePaused()
            guard let (index, loop) = self.player.advance() else { return nil }
            let image = try await self.player.source.frame(at: index)
            self.shown = index
            return Element(image: image, index: index, loop: loop)
        }
    }

    private func advance() -> (index: Int, loop: Int)? {
        self.state.withLock { state in state.playback.next().map { ($0, state.playback.loop) } }
    }

    /// Waits as long as a frame is shown.
    private func wait(after index: Int) async throws {
        let durations = self.source.durations
        guard durations.indices.contains(index) else { return }
        // A coder may be a user's, and give durations that never were looked at.
        let milliseconds = AnimationTiming.shownDuration(durations[index])
        try await self.sleep(.milliseconds(milliseconds) / self.rate)
    }

    private func waitWhilePaused() async throws {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isHeld = self.state.withLock { state -> Bool in
                    guard state.isPaused, !Task.isCancelled else { return false }
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
        self.loopLimit = loopLimit
        self.direction = mode == .reverse ? .backward : .forward
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

    /// Makes `index` the next frame.
    ///
    /// An index that does not exist is ignored.
    mutating func seek(to index: Int) {
        guard (0..<self.frameCount).contains(index) else { return }
        self.index = index - self.direction.rawValue
        // Before the first frame of the direction there is none to step from.
        if !(0..<self.frameCount).contains(index - self.direction.rawValue) {
            self.index = nil
            self.start = index
        }
    }

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
        case .bounce:
            // The frame at the turn is shown once.
            self.direction = self.direction == .forward ? .backward : .forward
            let turn = self.direction == .forward ? 0 : self.frameCount - 1
            self.index = min(max(turn + self.direction.rawValue, 0), self.frameCount - 1)
        }
        return true
    }
}
