package import TintypeImage

/// Draws the frames of an animation on their canvas, for all formats alike.
///
/// Keeps the canvas between calls: the next frame costs one frame, any other one the frames
/// from the last key frame on. Used on one lane at a time.
///
/// Sources: W3C PNG, third edition, section 12 ("dispose_op", "blend_op"); GIF89a, section 23;
/// RFC 9649, section 2.7.1. What is disposed to the background becomes transparent, as in browsers.
package final class FrameCompositor {
    private let reader: any FrameReader
    private let keyFrames: KeyFrames
    private let layout: PixelLayout
    /// The canvas in rows of `rgba8` without padding.
    private var canvas: [UInt32]
    /// The canvas before the last frame, where that one is to be taken back.
    private var saved: [UInt32] = []
    /// The frame that was drawn last.
    private var drawn: Int?

    init(_ reader: any FrameReader) throws {
        self.reader = reader
        self.keyFrames = KeyFrames(reader.frames, canvas: reader.canvas)
        self.layout = try PixelLayout(format: .rgba8, width: reader.canvas.width, height: reader.canvas.height)
        try MemoryRoom.require(self.layout.byteCount)
        self.canvas = Array(repeating: 0, count: reader.canvas.width * reader.canvas.height)
    }

    /// The canvas as it looks while frame `index` is shown.
    ///
    /// - Throws: `CodingError`, `ImageError`, `CancellationError`. The canvas is good after it.
    package func frame(at index: Int) throws -> PixelBuffer {
        do {
            for next in self.framesToDraw(for: index) {
                try Task.checkCancellation()
                try self.draw(next)
            }
        } catch {
            self.drawn = nil
            throw error
        }
        return try self.copy()
    }

    private func framesToDraw(for index: Int) -> Range<Int> {
        let key = self.keyFrames.last(notAfter: index)
        if let drawn = self.drawn, drawn <= index, drawn >= key { return drawn + 1..<index + 1 }
        self.drawn = nil
        return key..<index + 1
    }

    private func draw(_ index: Int) throws {
        let frame = self.reader.frames[index]
        let pixels = try self.reader.pixels(of: index)
        // A reader may be a user's.
        guard pixels.format == .rgba8, pixels.width == frame.width, pixels.height == frame.height else {
            throw CodingError(
                code: .corrupt,
                message: "Frame \(index) of the animation has another size than its list says; get it again."
            )
        }
        if let drawn = self.drawn {
            self.dispose(of: self.reader.frames[drawn])
        } else {
            self.clear(rows: 0..<self.layout.height, columns: 0..<self.layout.width)
        }
        self.saved = frame.disposal == .previous ? self.canvas : []
        self.blend(pixels, frame)
        self.drawn = index
    }

    private func dispose(of frame: AnimationFrame) {
        switch frame.disposal {
        case .keep: break
        case .background:
            let area = self.visible(frame)
            self.clear(rows: area.rows, columns: area.columns)
        case .previous: swap(&self.canvas, &self.saved)
        }
    }

    private func clear(rows: Range<Int>, columns: Range<Int>) {
        for row in rows {
            let start = row * self.layout.width
            for column in columns { self.canvas[start + column] = 0 }
        }
    }

    /// The part of the canvas that a frame covers.
    private func visible(_ frame: AnimationFrame) -> (rows: Range<Int>, columns: Range<Int>) {
        func clamped(_ start: Int, _ length: Int, _ limit: Int) -> Range<Int> {
            let lower = min(max(0, start), limit)
            return lower..<max(lower, min(start + length, limit))
        }
        return (
            clamped(frame.top, frame.height, self.layout.height),
            clamped(frame.left, frame.width, self.layout.width)
        )
    }

    private func blend(_ pixels: PixelBuffer, _ frame: AnimationFrame) {
        let area = self.visible(frame)
        let bytesPerRow = pixels.layout.planes[0].bytesPerRow
        let width = self.layout.width
        self.canvas.withUnsafeMutableBufferPointer { canvas in
            pixels.withUnsafeBytes { source in
                for row in area.rows {
                    let from = (row - frame.top) * bytesPerRow - frame.left * 4
                    let to = row * width
                    for column in area.columns {
                        let pixel = source.loadUnaligned(fromByteOffset: from + column * 4, as: UInt32.self)
                        let alpha = pixel >> 24
                        if frame.blend == .source || alpha == 255 {
                            canvas[to + column] = pixel
                        } else if alpha > 0 {
                            canvas[to + column] = Self.over(pixel, canvas[to + column])
                        }
                    }
                }
            }
        }
    }

    /// One pixel laid over another, both with straight alpha (Porter and Duff, 1984).
    private static func over(_ top: UInt32, _ bottom: UInt32) -> UInt32 {
        let topAlpha = top >> 24
        // The bottom's share of the result, in units of 255 * 255.
        let bottomShare = (bottom >> 24) * (255 - topAlpha)
        let topShare = topAlpha * 255
        let total = topShare + bottomShare
        var result = ((total + 127) / 255) << 24
        for shift in stride(from: UInt32(0), to: 24, by: 8) {
            let mixed = ((top >> shift) & 255) * topShare + ((bottom >> shift) & 255) * bottomShare
            result |= ((mixed + total / 2) / total) << shift
        }
        return result
    }

    private func copy() throws -> PixelBuffer {
        let bytesPerRow = self.layout.planes[0].bytesPerRow
        let width = self.layout.width
        return try PixelBuffer(
            self.layout,
            fillingUnsafely: { target in
                self.canvas.withUnsafeBytes { canvas in
                    guard let to = target.baseAddress, let from = canvas.baseAddress else { return }
                    for row in 0..<self.layout.height {
                        (to + row * bytesPerRow).copyMemory(from: from + row * width * 4, byteCount: width * 4)
                    }
                }
            }
        )
    }
}
