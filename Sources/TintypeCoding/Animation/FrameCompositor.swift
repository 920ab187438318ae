// SPDX-License-Identifier: Apache-2.0

package import TintypeImage

/// Draws the frames of an animation on their canvas, for all formats alike.
///
/// It draws a frame on a copy of the frame that was shown last, so the next frame costs one frame. Any other frame
/// costs the frames since the last key frame, except frames that leave nothing behind. It keeps the frame that was
/// shown last and, if that frame is to be undone, the pixels that it covers. Use it on one lane at a time.
///
/// Sources: W3C PNG, third edition, section 12 ("dispose_op", "blend_op"); GIF89a, section 23; RFC 9649, section 2.7.1.
/// An area that is disposed to the background becomes transparent, as in browsers.
package final class FrameCompositor {
    /// The work for a frame in addition to its pixels: tables, palettes, a decoder.
    private static let unitsPerFrame = 2_000

    private let reader: any FrameReader
    private let frames: [AnimationFrame]
    private let keyFrames: KeyFrames
    private let layout: PixelLayout
    private let limits: DecodingLimits
    private let format: ImageFormat?
    /// The frame that was shown last, drawn on the canvas.
    private var shown: (index: Int, pixels: PixelBuffer)?
    /// The pixels that the last frame covers, if the frame is to be undone.
    private var covered: PixelBuffer?

    /// Creates a compositor.
    ///
    /// Allocates no pixel memory.
    ///
    /// - Parameters:
    ///   - reader: The reader of the frames.
    ///   - limits: The most that each call of ``frame(at:isLast:)`` may cost.
    ///   - format: The format that errors name.
    /// - Throws: `ImageError` if the canvas does not fit in memory.
    init(_ reader: any FrameReader, limits: DecodingLimits = DecodingLimits(), format: ImageFormat? = nil) throws {
        self.reader = reader
        self.frames = reader.frames
        self.keyFrames = KeyFrames(self.frames, canvas: reader.canvas)
        self.layout = try PixelLayout(format: .rgba8, width: reader.canvas.width, height: reader.canvas.height)
        self.limits = limits
        self.format = format
    }

    /// Returns the canvas as it looks while frame `index` is shown.
    ///
    /// - Parameters:
    ///   - index: The index of the frame.
    ///   - isLast: Whether the caller needs no further frame. Then the compositor keeps nothing.
    /// - Returns: The canvas.
    /// - Throws: `CodingError`, `ImageError`, `CancellationError`. The compositor stays usable after an error.
    package func frame(at index: Int, isLast: Bool = false) throws -> PixelBuffer {
        if let shown, shown.index == index { return shown.pixels }
        // The reader may be a user's.
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
                    // The frame leaves nothing behind.
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

    /// The index of the frame that was returned last.
    package var shownIndex: Int? { self.shown?.index }

    /// Returns whether drawing `index` can start from the frame that was returned last, or that frame is `index`.
    package func leads(to index: Int) -> Bool {
        guard let shown, self.frames.indices.contains(index) else { return false }
        return self.keyFrames.last(notAfter: index)...index ~= shown.index
    }

    /// Prepares the canvas for the frames up to `index`, and returns the first frame to draw.
    private func begin(_ index: Int, on canvas: FrameCanvas) throws -> Int {
        let key = self.keyFrames.last(notAfter: index)
        if let shown, key..<index ~= shown.index {
            let frame = self.frames[shown.index]
            try canvas.copy(shown.pixels)
            switch frame.disposal {
            case .keep: break
            case .background: try canvas.clear(canvas.area(of: frame))
            case .previous:
                // A frame that lies outside the canvas covers no pixels.
                if let covered { try canvas.restore(covered, in: canvas.area(of: frame)) }
            }
            return shown.index + 1
        }
        if !self.fillsCanvas(key, onTheWayTo: index) { try canvas.clear(canvas.area) }
        return key
    }

    /// Returns whether drawing the frame `key` is certain to write every pixel of the canvas.
    private func fillsCanvas(_ key: Int, onTheWayTo index: Int) -> Bool {
        let frame = self.frames[key]
        guard key == index || frame.disposal == .keep else { return false }
        // Do not rely on the alpha that a user's reader declares.
        let isSure = frame.blend == .source || (self.reader as? any CanvasFrameReader)?.fillsOpaqueFrames == true
        return isSure && KeyFrames.replaces(frame, canvas: self.reader.canvas)
    }

    /// Returns whether the next frame is drawn on the canvas as it was before `index`.
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
        // The reader may be a user's.
        guard pixels.format == .rgba8, pixels.width == frame.width, pixels.height == frame.height else {
            throw CodingError(
                code: .corrupt,
                message: "Frame \(index) of the animation has another size than its list says; get it again."
            )
        }
        try canvas.draw(pixels, frame)
    }
}

/// A reader that can draw a frame directly onto the canvas, so that its pixels take no memory of their own.
protocol CanvasFrameReader: FrameReader {
    /// Whether the reader writes each pixel of a frame without alpha, or throws an error.
    var fillsOpaqueFrames: Bool { get }

    /// Draws a frame at its position.
    ///
    /// Returns `false`, and draws nothing, if its pixels must be decoded by themselves.
    ///
    /// - Throws: `CodingError`, `CancellationError`. The content of the canvas is undefined after an error.
    func draw(_ index: Int, on canvas: FrameCanvas, work: DecodeWork) throws -> Bool
}

/// The frames that can be composited without earlier ones.
struct KeyFrames {
    private let isKey: [Bool]

    init(_ frames: [AnimationFrame], canvas: PixelSize) {
        var isKey: [Bool] = []
        isKey.reserveCapacity(frames.count)
        // Whether the canvas is fully transparent before the frame is drawn.
        var isClear = true
        for frame in frames {
            // A frame that is undone leaves the canvas as it was before.
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

    /// Returns the last key frame that is not after `index`.
    func last(notAfter index: Int) -> Int {
        self.isKey[...index].lastIndex(of: true) ?? 0
    }

    /// Returns whether a frame hides the whole canvas below it.
    static func replaces(_ frame: AnimationFrame, canvas: PixelSize) -> Bool {
        frame.covers(canvas) && (frame.blend == .source || !frame.hasAlpha)
    }
}
