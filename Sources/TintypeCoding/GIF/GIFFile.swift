// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// Decodes any frame of a GIF by itself.
///
/// Frames are cropped to the screen. A frame that lies completely outside of it becomes one transparent pixel.
struct GIFFile: CanvasFrameReader {
    private let data: Data
    private let stream: GIFStream
    private let options: DecodeOptions
    let frames: [AnimationFrame]

    /// Creates a file whose blocks were parsed.
    ///
    /// - Throws: `CodingError` if the file cannot be decoded with the options.
    init(_ data: Data, _ stream: GIFStream, options: DecodeOptions) throws(CodingError) {
        self.data = data
        self.stream = stream
        self.options = options
        self.frames = stream.frames.map { frame in
            let visible = frame.visibleSize(width: stream.width, height: stream.height)
            guard visible.width > 0, visible.height > 0 else {
                return AnimationFrame(left: 0, top: 0, width: 1, height: 1)
            }
            return AnimationFrame(
                left: Int(frame.left),
                top: Int(frame.top),
                width: visible.width,
                height: visible.height,
                disposal: frame.disposal,
                hasAlpha: frame.hasTransparency || options.allowsTruncated
            )
        }
        try Self.check(stream, byteCount: data.count, options: options)
    }

    var canvas: PixelSize { PixelSize(width: self.stream.width, height: self.stream.height) }

    /// Always `true`: a frame that may have holes because of damage declares that it has alpha.
    var fillsOpaqueFrames: Bool { true }

    /// Refuses a file whose end is missing, and a file that decoders cannot show correctly.
    static func check(_ stream: GIFStream, byteCount: Int, options: DecodeOptions) throws(CodingError) {
        guard !stream.frames.isEmpty else { throw .truncated(.gif) }
        guard !options.allowsTruncated else { return }
        guard stream.isComplete(at: byteCount) else { throw .truncated(.gif) }
        guard !stream.beginsWithText else {
            throw CodingError(
                code: .unsupportedFeature,
                message: "The gif data draws text into its first image, which cannot be decoded; convert it first.",
                format: .gif
            )
        }
    }

    /// Returns the first frame on a transparent screen, without alpha if no pixel needs it.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    func firstImage() throws -> PixelBuffer {
        let work = DecodeWork(self.options.limits, format: .gif)
        let format = PixelFormat.gif(self.stream)
        do {
            return try self.firstImage(as: format, isLenient: false, work: work)
        } catch let error as CodingError where self.options.allowsTruncated && error.isDamage {
            return try self.firstImage(as: .rgba8, isLenient: true, work: work)
        }
    }

    private func firstImage(as format: PixelFormat, isLenient: Bool, work: DecodeWork) throws -> PixelBuffer {
        let frame = self.stream.frames[0]
        let (width, height) = (self.stream.width, self.stream.height)
        let layout = try PixelLayout(format: format, width: width, height: height)
        let origin = (column: Int(frame.left), row: Int(frame.top))
        let isCovered = frame.covers(width: width, height: height)
        return try PixelBuffer(
            layout,
            fillingUnsafely: { bytes in
                guard let base = bytes.baseAddress else { return }
                // Clear the pixels unless the decode either writes all of them or throws.
                if !isCovered || isLenient { try bytes.clear(work) }
                try self.decode(frame, to: base, layout: layout, origin: origin, isLenient: isLenient, work: work)
            }
        )
    }

    func pixels(of index: Int) throws -> PixelBuffer {
        try self.pixels(of: index, work: DecodeWork(self.options.limits, format: .gif))
    }

    func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer {
        let frame = try self.frame(at: index)
        let visible = frame.visibleSize(width: self.stream.width, height: self.stream.height)
        let layout = try PixelLayout(
            format: .rgba8,
            width: max(1, visible.height > 0 ? visible.width : 1),
            height: max(1, visible.width > 0 ? visible.height : 1)
        )
        return try PixelBuffer(
            layout,
            fillingUnsafely: { bytes in
                guard let base = bytes.baseAddress else { return }
                try bytes.clear(work)
                let isLenient = self.options.allowsTruncated
                try self.decode(frame, to: base, layout: layout, isLenient: isLenient, work: work)
            }
        )
    }

    func draw(_ index: Int, on canvas: FrameCanvas, work: DecodeWork) throws -> Bool {
        let frame = try self.frame(at: index)
        try self.decode(
            frame,
            to: canvas.base,
            layout: canvas.layout,
            origin: (column: Int(frame.left), row: Int(frame.top)),
            isLaidOver: true,
            isLenient: self.options.allowsTruncated,
            work: work
        )
        return true
    }

    private func frame(at index: Int) throws(CodingError) -> GIFFrame {
        guard self.frames.indices.contains(index) else { throw .noFrame(index, of: self.frames.count, .gif) }
        return self.stream.frames[index]
    }

    private func decode(
        _ frame: GIFFrame,
        to target: UnsafeMutableRawPointer,
        layout: PixelLayout,
        origin: (column: Int, row: Int) = (0, 0),
        isLaidOver: Bool = false,
        isLenient: Bool,
        work: DecodeWork
    ) throws {
        try Task.checkCancellation()
        try Self.check(frame, limits: self.options.limits)
        let writer = GIFRowWriter(
            target: target,
            layout: layout,
            origin: origin,
            frame: frame,
            visible: frame.visibleSize(width: self.stream.width, height: self.stream.height),
            palette: GIFPalette(frame.palette, transparentIndex: frame.transparentIndex, in: self.data),
            isLaidOver: isLaidOver
        )
        var decoder = GIFFrameDecoder(frame, writer: writer)
        try decoder.advance(through: self.data, isAll: true, work: work)
        if !isLenient { try decoder.check() }
    }

    /// Refuses a frame that exceeds the pixel limit although its screen does not, because each pixel takes time.
    static func check(_ frame: GIFFrame, limits: DecodingLimits) throws(CodingError) {
        guard Int(frame.width) * Int(frame.height) > limits.maximumPixels else { return }
        let what = "A frame is \(frame.width)x\(frame.height) and the limit is \(limits.maximumPixels) pixels"
        throw .overLimit(.tooManyPixels, .gif, what)
    }
}

extension PixelFormat {
    /// Returns the format that the first frame of a GIF is decoded to.
    ///
    /// A still image without transparency needs no alpha; an animation's canvas always has alpha.
    static func gif(_ stream: GIFStream) -> PixelFormat {
        stream.hasAlpha || stream.frames.count > 1 ? .rgba8 : .rgb8
    }
}
