import TintypeImage

/// The colours that the frames of a GIF share.
struct GIFSharedColors {
    /// How much larger the mean squared error of a shared palette may be, and what is too small to be seen.
    private static let (toleratedRatio, invisibleError) = (1.5, 12.0)

    /// The colours of all frames, if a palette can hold them.
    let colors: ColorSet?
    /// The colours that show frames of too many colours nearly as well as colours of their own.
    let palette: [UInt32]?
    /// For each frame whether a palette can hold its colours, if there are frames that share one.
    private let isExact: [Bool]

    /// Finds the colours for palettes of at most `maximumCount` entries.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    init(of frames: [AnimationContent.Frame], _ maximumCount: Int, work: DecodeWork) throws {
        var colors = ColorSet()
        let areFew = try frames.allSatisfy { try colors.insert($0, work: work) }
        let isExact = areFew && colors.count <= maximumCount
        self.colors = isExact ? colors : nil
        // One image has nothing to share, and is not looked at again.
        guard !isExact, frames.count > 1 else {
            self.palette = nil
            self.isExact = []
            return
        }
        self.isExact = try frames.map { frame in
            var colors = ColorSet()
            return try colors.insert(frame, work: work) && colors.count <= maximumCount
        }
        let others = zip(frames, self.isExact).filter { !$0.1 }.map(\.0)
        self.palette = try Self.palette(of: others, maximumCount, work: work)
    }

    /// The palette that a frame shares: what can be exact stays so.
    func palette(ofFrame index: Int) -> [UInt32]? {
        self.palette.flatMap { self.isExact[index] ? nil : $0 }
    }

    /// The palette that frames share, with room for the entry that draws nothing; `nil` if frames of their own colours
    /// are shown better.
    private static func palette(
        of frames: [AnimationContent.Frame],
        _ maximumCount: Int,
        work: DecodeWork
    ) throws -> [UInt32]? {
        guard maximumCount > 2, frames.count > 1 else { return nil }
        var whole = try ColorQuantizer()
        for frame in frames { try whole.count(frame, work: work) }
        let palette = try whole.colors(maximum: maximumCount - 1)
        for frame in frames {
            var quantizer = try ColorQuantizer()
            try quantizer.count(frame, work: work)
            let own = quantizer.error(of: try quantizer.colors(maximum: maximumCount - 1))
            guard quantizer.error(of: palette) <= max(Self.invisibleError, own * Self.toleratedRatio) else {
                return nil
            }
        }
        return palette
    }
}

extension AnimationContent.Frame {
    /// All pixels, as they are stored.
    fileprivate var drawing: GIFDrawing {
        let pixels = GIFPixels(self.image.pixels)
        return GIFDrawing(pixels: pixels, area: pixels.area)
    }
}

extension ColorSet {
    /// Adds the colours of a frame; `false` if there are too many.
    fileprivate mutating func insert(_ frame: AnimationContent.Frame, work: DecodeWork) throws -> Bool {
        var areFew = true
        try frame.drawing.forEachRow(work, unitsPerPixel: 1) { row in
            areFew = self.insert(opaque: row)
            return areFew
        }
        return areFew
    }
}

extension ColorQuantizer {
    /// Counts the pixels of a frame.
    fileprivate mutating func count(_ frame: AnimationContent.Frame, work: DecodeWork) throws {
        try frame.drawing.forEachRow(work, unitsPerPixel: 1) { row in
            self.count(row)
            return true
        }
    }
}
