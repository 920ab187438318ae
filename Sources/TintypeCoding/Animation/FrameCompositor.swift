package import TintypeImage

/// Draws the frames of an animation on their canvas, for all formats alike.
///
/// A frame is drawn on a copy of the one that was shown last, so that the next frame costs one frame, any other one
/// the frames from the last key frame on, less those that leave nothing behind. Besides what it gives out it holds the
/// frame that was shown last, and what that one covers where it is to be taken back. Used on one lane at a time.
///
/// Sources: W3C PNG, third edition, section 12 ("dispose_op", "blend_op"); GIF89a, section 23;
/// RFC 9649, section 2.7.1. What is disposed to the background becomes transparent, as in browsers.
package final class FrameCompositor {
    /// The work that a frame takes besides its pixels: tables, palettes, a decoder.
    private static let unitsPerFrame = 2_000

    private let reader: any FrameReader
    private let frames: [AnimationFrame]
    private let keyFrames: KeyFrames
    private let layout: PixelLayout
    private let limits: DecodingLimits
    private let format: ImageFormat?
    /// The frame that was shown last.
    private var shown: (index: Int, pixels: PixelBuffer)?
    /// What the last frame covers, where it is to be taken back.
    private var covered: PixelBuffer?

    /// Prepares to draw; no pixel memory is allocated.
    ///
    /// - Parameters:
    ///   - reader: Gives the frames.
    ///   - limits: What each frame that is asked for may cost.
    ///   - format: What errors name.
    /// - Throws: `ImageError` when the canvas has a size that no memory holds.
    init(_ reader: any FrameReader, limits: DecodingLimits = DecodingLimits(), format: ImageFormat? = nil) throws {
        self.reader = reader
        self.frames = reader.frames
        self.keyFrames = KeyFrames(self.frames, canvas: reader.canvas)
        self.layout = try PixelLayout(format: .rgba8, width: reader.canvas.width, height: reader.canvas.height)
        self.limits = limits
        self.format = format
    }

    /// The canvas as it looks while frame `index` is shown.
    ///
    /// - Parameters:
    ///   - index: Which frame.
    ///   - isLast: Whether no other frame is asked for after it; then nothing is kept.
    /// - Returns: The canvas.
    /// - Throws: `CodingError`, `ImageError`, `CancellationError`. The canvas is good after it.
    package func frame(at index: Int, isLast: Bool = false) throws -> PixelBuffer {
        if let shown, shown.index == index { return shown.pixels }
        // A reader may be a user's.
        guard self.frames.indices.contains(index) else {
            throw CodingError(
                code: .corrupt,
                message: "The animation lists \(self.frames.count) frames and has no frame \(index); get it again."
            )
        }
        try Task.checkCancellation()
        let work = DecodeWork(self.limits, format: self.format)
        var covered: PixelBuffer?
        let pixels = try PixelBuffer(
            self.layout,
            fillingUnsafely: { bytes in
                guard let canvas = FrameCanvas(bytes, layout: self.layout, work: work) else { return }
                for between in try self.begin(index, on: canvas)..<index {
                    switch self.frames[between].disposal {
                    case .keep: try self.draw(between, on: canvas, work: work)
                    case .background: try canvas.clear(canvas.area(of: self.frames[between]))
                    // It leaves nothing behind.
                    case .previous: break
                    }
                }
                if !isLast, self.isTakenBack(index) {
                    covered = try canvas.pixels(in: canvas.area(of: self.frames[index]))
                }
                try self.draw(index, on: canvas, work: work)
            }
        )
        self.shown = isLast ? nil : (index, pixels)
        self.covered = covered
        return pixels
    }

    /// The frame that was given last.
    package var shownIndex: Int? { self.shown?.index }

    /// Whether the frame that was given last is on the way to `index`, or is that.
    package func leads(to index: Int) -> Bool {
        guard let shown, self.frames.indices.contains(index) else { return false }
        return self.keyFrames.last(notAfter: index)...index ~= shown.index
    }

    /// Brings a canvas to where it was before one of the frames up to `index` is drawn: that frame.
    private func begin(_ index: Int, on canvas: FrameCanvas) throws -> Int {
        let key = self.keyFrames.last(notAfter: index)
        if let shown, key..<index ~= shown.index {
            let frame = self.frames[shown.index]
            try canvas.copy(shown.pixels)
            switch frame.disposal {
            case .keep: break
            case .background: try canvas.clear(canvas.area(of: frame))
            case .previous:
                // Nothing was covered by a frame that lies beside the canvas.
                if let covered { try canvas.restore(covered, in: canvas.area(of: frame)) }
            }
            return shown.index + 1
        }
        if !self.fillsCanvas(key, onTheWayTo: index) { try canvas.clear(canvas.area) }
        return key
    }

    /// Whether drawing a frame is certain to write every pixel of the canvas.
    private func fillsCanvas(_ key: Int, onTheWayTo index: Int) -> Bool {
        let frame = self.frames[key]
        guard key == index || frame.disposal == .keep else { return false }
        // What others say of their alpha is not relied on.
        let isSure = frame.blend == .source || (self.reader as? any CanvasFrameReader)?.fillsOpaqueFrames == true
        return isSure && KeyFrames.replaces(frame, canvas: self.reader.canvas)
    }

    /// Whether the next frame is drawn on what was there before `index`.
    private func isTakenBack(_ index: Int) -> Bool {
        self.frames[index].disposal == .previous && index + 1 < self.frames.count
            && self.keyFrames.last(notAfter: index + 1) <= index
    }

    private func draw(_ index: Int, on canvas: FrameCanvas, work: DecodeWork) throws {
        try work.count(Self.unitsPerFrame)
        if let reader = self.reader as? any CanvasFrameReader,
            try reader.draw(index, on: canvas, work: work)
        {
            return
        }
        let frame = self.frames[index]
        let pixels = try self.reader.pixels(of: index, work: work)
        // A reader may be a user's.
        guard pixels.format == .rgba8, pixels.width == frame.width, pixels.height == frame.height else {
            throw CodingError(
                code: .corrupt,
                message: "Frame \(index) of the animation has another size than its list says; get it again."
            )
        }
        try canvas.draw(pixels, frame)
    }
}

/// A reader that can draw a frame straight onto the canvas, so that its pixels take no memory of their own.
protocol CanvasFrameReader: FrameReader {
    /// Whether each pixel of a frame without alpha is written, or an error thrown.
    var fillsOpaqueFrames: Bool { get }

    /// Draws a frame where it lies; `false` when its pixels must be decoded by themselves, with nothing drawn.
    ///
    /// - Throws: `CodingError`, `CancellationError`. The canvas is lost then.
    func draw(_ index: Int, on canvas: FrameCanvas, work: DecodeWork) throws -> Bool
}

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
                case .background: frame.covers(canvas) || isClear
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
        frame.covers(canvas) && (frame.blend == .source || !frame.hasAlpha)
    }
}
