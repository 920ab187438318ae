/// Which frames can be composited without those before them.
struct KeyFrames {
    private let isKey: [Bool]

    init(_ frames: [AnimationFrame], canvas: PixelSize) {
        var isKey: [Bool] = []
        isKey.reserveCapacity(frames.count)
        // Whether the canvas is transparent all over before the frame is drawn.
        var isClear = true
        for frame in frames {
            let covers =
                frame.left <= 0 && frame.top <= 0 && frame.left + frame.width >= canvas.width
                && frame.top + frame.height >= canvas.height
            let replaces = covers && (frame.blend == .source || !frame.hasAlpha)
            // A frame that is taken back leaves what was there before it.
            isKey.append(isClear || (replaces && frame.disposal != .previous))
            isClear =
                switch frame.disposal {
                case .keep: false
                case .background: covers || isClear
                case .previous: isClear
                }
        }
        self.isKey = isKey
    }

    /// The last key frame that is not after `index`.
    func last(notAfter index: Int) -> Int {
        self.isKey[...index].lastIndex(of: true) ?? 0
    }
}
