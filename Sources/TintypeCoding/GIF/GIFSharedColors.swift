// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// The colours that the frames of a GIF share.
struct GIFSharedColors {
    /// The tolerated increase of the mean squared error by a shared palette, and the error that is too small to be
    /// seen.
    private static let (toleratedRatio, invisibleError) = (1.5, 12.0)

    /// The colours of all frames, if one palette can hold them.
    let colors: ColorSet?
    /// The palette for the frames with too many colours, if it is nearly as good as a separate palette for each.
    let palette: [UInt32]?
    /// Whether a palette can hold all colours of each frame; empty if no palette is shared.
    private let isExact: [Bool]

    /// Finds the colours for palettes of at most `maximumCount` entries.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    init(of frames: [AnimationContent.Frame], _ maximumCount: Int, work: DecodeWork) throws {
        var colors = ColorSet()
        let areFew = try frames.allSatisfy { try colors.insert($0, work: work) }
        let isExact = areFew && colors.count <= maximumCount
        self.colors = isExact ? colors : nil
        // A single frame has nothing to share.
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

    /// Returns the palette that a frame shares; `nil` if the frame can have exact colours.
    func palette(ofFrame index: Int) -> [UInt32]? {
        self.palette.flatMap { self.isExact[index] ? nil : $0 }
    }

    /// Returns the palette that frames share, leaving an entry for transparent pixels.
    ///
    /// Returns `nil` if separate palettes are clearly better.
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
    /// The drawing of all pixels, as stored.
    fileprivate var drawing: GIFDrawing {
        let pixels = GIFPixels(self.image.pixels)
        return GIFDrawing(pixels: pixels, area: pixels.area)
    }
}

extension ColorSet {
    /// Adds the colours of a frame.
    ///
    /// Returns `false` if there are too many.
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
