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
