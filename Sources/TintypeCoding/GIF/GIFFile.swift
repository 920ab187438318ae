import FoundationEssentials
import TintypeImage

/// A GIF whose blocks are parsed: decodes any of its images by itself.
struct GIFFile: Sendable {
    let data: Data
    let stream: GIFStream
    private let options: DecodeOptions

    /// Parses the blocks of a file.
    ///
    /// - Throws: `CodingError` for a file that can't be decoded as the options ask.
    init(_ data: Data, options: DecodeOptions) throws(CodingError) {
        self.data = data
        self.stream = try GIFStream(data)
        self.options = options
        try Self.check(self.stream, byteCount: data.count, options: options)
    }

    /// Refuses a file whose end is missing, and one that no decoder shows as it was meant.
    static func check(_ stream: GIFStream, byteCount: Int, options: DecodeOptions) throws(CodingError) {
        guard !stream.frames.isEmpty else { throw .truncated(.gif) }
        guard !options.allowsTruncated else { return }
        guard stream.isComplete(at: byteCount) else { throw .truncated(.gif) }
        guard !stream.beginsWithText else {
            throw CodingError(
                code: .unsupportedFeature,
                message: "The gif data draws text into its first picture, which can't be decoded; convert it first.",
                format: .gif
            )
        }
    }

    /// The first image on a transparent screen, without alpha where none is needed.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    func firstPicture() throws -> PixelBuffer {
        let format = PixelFormat.gif(self.stream)
        do {
            return try self.firstPicture(as: format, isLenient: false)
        } catch is CodingError where self.options.allowsTruncated {
            return try self.firstPicture(as: .rgba8, isLenient: true)
        }
    }

    private func firstPicture(as format: PixelFormat, isLenient: Bool) throws -> PixelBuffer {
        let frame = self.stream.frames[0]
        let (width, height) = (self.stream.width, self.stream.height)
        let layout = try PixelLayout(format: format, width: width, height: height)
        let origin = (column: Int(frame.left), row: Int(frame.top))
        let isCovered = frame.covers(width: width, height: height)
        return try self.pixels(of: frame, layout: layout, origin: origin, isCovered: isCovered, isLenient: isLenient)
    }

    /// The part of an image that lies on the screen; a transparent pixel when there is none.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    func pixels(of index: Int) throws -> PixelBuffer {
        let frame = self.stream.frames[index]
        let visible = frame.visibleSize(width: self.stream.width, height: self.stream.height)
        let isEmpty = visible.width == 0 || visible.height == 0
        let layout = try PixelLayout(
            format: .rgba8,
            width: isEmpty ? 1 : visible.width,
            height: isEmpty ? 1 : visible.height
        )
        do {
            return try self.pixels(of: frame, layout: layout, isCovered: !isEmpty, isLenient: false)
        } catch is CodingError where self.options.allowsTruncated {
            return try self.pixels(of: frame, layout: layout, isCovered: false, isLenient: true)
        }
    }

    private func pixels(
        of frame: GIFFrame,
        layout: PixelLayout,
        origin: (column: Int, row: Int) = (0, 0),
        isCovered: Bool,
        isLenient: Bool
    ) throws -> PixelBuffer {
        try Self.check(frame, limits: self.options.limits)
        let palette = GIFPalette(frame.palette, transparentIndex: frame.transparentIndex, in: self.data)
        return try PixelBuffer(
            layout,
            fillingUnsafely: { bytes in
                guard let base = bytes.baseAddress else { return }
                // Where all pixels are written or none comes out, they need not be cleared.
                if !isCovered || isLenient { bytes.initializeMemory(as: UInt8.self, repeating: 0) }
                let writer = GIFRowWriter(
                    target: base,
                    layout: layout,
                    origin: origin,
                    frame: frame,
                    visible: frame.visibleSize(width: self.stream.width, height: self.stream.height),
                    palette: palette
                )
                var decoder = GIFFrameDecoder(frame, writer: writer)
                try decoder.advance(through: self.data, isAll: true)
                if !isLenient { try decoder.check() }
            }
        )
    }

    /// Refuses an image that is over the limits, which its screen keeps: each pixel costs time.
    static func check(_ frame: GIFFrame, limits: DecodingLimits) throws(CodingError) {
        guard Int(frame.width) * Int(frame.height) > limits.maximumPixels else { return }
        throw CodingError(
            code: .tooManyPixels,
            message: "A frame is \(frame.width)x\(frame.height) and the limit is \(limits.maximumPixels) pixels; "
                + "raise maximumPixels if you trust the source.",
            format: .gif
        )
    }
}

extension PixelFormat {
    /// What a GIF's first picture is decoded to.
    ///
    /// A still picture without transparency needs no alpha; the canvas of an animation has it always.
    static func gif(_ stream: GIFStream) -> PixelFormat {
        stream.hasAlpha || stream.frames.count > 1 ? .rgba8 : .rgb8
    }
}
