/// Which frames can be composited without those before them.
struct KeyFrames {
    private let isKey: [Bool]

    init(_ frames: [AnimationFrame], canvas: PixelSize) {
        var isKey: [Bool] = []
        isKey.reserveCapacity(frames.count)
        // Whether the canvas is transparent all over before the frame is drawn.
        var isClear = true
        for frame in frames {
            // A frame that is taken back leaves what was there before it.
            isKey.append(isClear || (Self.replaces(frame, canvas: canvas) && frame.disposal != .previous))
            isClear =
                switch frame.disposal {
                case .keep: false
                case .background: Self.covers(frame, canvas: canvas) || isClear
                case .previous: isClear
                }
        }
        self.isKey = isKey
    }

    /// The last key frame that is not after `index`.
    func last(notAfter index: Int) -> Int {
        self.isKey[...index].lastIndex(of: true) ?? 0
    }

    /// Whether nothing of what was there before a frame shows through it.
    static func replaces(_ frame: AnimationFrame, canvas: PixelSize) -> Bool {
        self.covers(frame, canvas: canvas) && (frame.blend == .source || !frame.hasAlpha)
    }

    private static func covers(_ frame: AnimationFrame, canvas: PixelSize) -> Bool {
        frame.left <= 0 && frame.top <= 0 && frame.left.saturatingAdded(to: frame.width) >= canvas.width
            && frame.top.saturatingAdded(to: frame.height) >= canvas.height
    }
}
