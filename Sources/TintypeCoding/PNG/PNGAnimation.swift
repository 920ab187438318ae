/// The frames of an APNG: where they lie on the canvas and in the file.
///
/// Source: W3C PNG, third edition, sections 4.9 and 11.3.6.
struct PNGAnimation {
    /// One frame.
    ///
    /// Small, because a hostile file may hold a million.
    struct Frame {
        let left: UInt32
        let top: UInt32
        let width: UInt32
        let height: UInt32
        let milliseconds: UInt32
        let disposal: AnimationFrame.Disposal
        let blend: AnimationFrame.Blend
        /// Where the first chunk with its pixels begins.
        var pixelsOffset = 0
    }

    /// How often the frames are shown, as stored: 0 is forever.
    let loopCount: Int
    let frames: [Frame]
    /// Whether the default image, which decoders without animations show, is the first frame.
    let includesDefaultImage: Bool

    /// What a header says about it; one frame has no timing.
    var timing: AnimationTiming {
        var timing = AnimationTiming()
        timing.loopCount = self.loopCount
        if self.frames.count > 1 {
            for frame in self.frames { timing.appendFrame(milliseconds: Int(frame.milliseconds)) }
        }
        return timing
    }

    /// The bytes of the largest frame, and of the largest part of the canvas that comes back after a frame.
    var drawingByteCount: Int {
        func largest(_ frames: some Sequence<Frame>) -> Int { frames.map { Int($0.width) * Int($0.height) }.max() ?? 0 }
        // There is nothing before the first one, and nothing comes behind the last.
        let restored = self.frames.dropFirst().dropLast().lazy.filter { $0.disposal == .previous }
        return (largest(self.frames) + largest(restored)).saturatingMultiplied(by: 4)
    }

    /// A frame for compositing.
    func frame(at index: Int, hasAlpha: Bool) -> AnimationFrame {
        let frame = self.frames[index]
        // There is nothing before the first frame that could come back.
        let disposal = index == 0 && frame.disposal == .previous ? .background : frame.disposal
        return AnimationFrame(
            left: Int(frame.left),
            top: Int(frame.top),
            width: Int(frame.width),
            height: Int(frame.height),
            disposal: disposal,
            blend: frame.blend,
            hasAlpha: hasAlpha
        )
    }
}
