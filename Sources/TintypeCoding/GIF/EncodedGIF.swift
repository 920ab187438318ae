import FoundationEssentials
import TintypeImage

/// A GIF whose blocks were parsed.
struct EncodedGIF: EncodedImage {
    let header: ImageHeader
    private let data: Data
    private let stream: GIFStream

    /// Parses the blocks of `data`.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    init(_ data: Data, limits: DecodingLimits) throws {
        self.data = data
        self.stream = try GIFStream(data, limits: limits)
        self.header = ImageHeader(self.stream)
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        let file = try GIFFile(self.data, self.stream, options: options)
        guard options.frame != 0 else {
            return DecodedImage(Image(pixels: try file.firstPicture(), sourceFormat: .gif))
        }
        guard self.stream.frames.indices.contains(options.frame) else {
            throw CodingError.noFrame(options.frame, in: self.header)
        }
        let compositor = try FrameCompositor(GIFFrameReader(file), limits: options.limits, format: .gif)
        let pixels = try compositor.frame(at: options.frame, isLast: true)
        return DecodedImage(Image(pixels: pixels, sourceFormat: .gif))
    }

    func frameReader(options: DecodeOptions) throws -> (any FrameReader)? {
        guard self.isAnimated else { return nil }
        return GIFFrameReader(try GIFFile(self.data, self.stream, options: options))
    }

    private var isAnimated: Bool { self.header.animation.frameCount > 1 }

    func decodedLayout(options: DecodeOptions) throws -> PixelLayout {
        // What is missing is transparent.
        let needsAlpha = self.header.hasAlpha || self.isAnimated || options.allowsTruncated
        return try self.header.layout(as: needsAlpha ? .rgba8 : .rgb8)
    }

    func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int {
        let codec = GIFCodeReader.byteCount(pixelCount: self.stream.largestPixelCount)
        let picture = self.decodedByteCount(options: options)
        switch kind {
        case .picture, .rows: return picture.saturatingAdded(to: codec)
        // The one that was shown last and the next, and what is taken back.
        case .frame:
            let restored = self.stream.restoredPixelCount.saturatingMultiplied(by: 4)
            return picture.saturatingMultiplied(by: self.isAnimated ? 2 : 1)
                .saturatingAdded(to: codec.saturatingAdded(to: restored))
        // What has arrived, and its copy; more may be missing.
        case .incremental:
            let canvas = (try? self.header.layout(as: .rgba8).byteCount) ?? .max
            return canvas.saturatingMultiplied(by: 2).saturatingAdded(to: codec)
        }
    }
}

extension ImageHeader {
    /// What the blocks of a GIF say, as far as they are there.
    init(_ stream: GIFStream) {
        self.init(format: .gif, pixelWidth: stream.width, pixelHeight: stream.height)
        self.hasAlpha = stream.hasAlpha || stream.frames.isEmpty
        self.animation.loopCount = stream.animation.loopCount
        if stream.frames.count > 1 { self.animation = stream.animation }
    }
}
