public import FoundationEssentials
public import TintypeImage

/// Reads and writes GIF.
///
/// Source: GIF89a, CompuServe 1990. Written in Swift, because the files are hostile and the usual C library can't be
/// resumed. As in browsers the canvas is the logical screen, transparent where nothing was drawn; the background
/// colour is not used, and images are cut at its edge. A still image without transparency decodes to `rgb8`,
/// everything else to `rgba8`.
public struct GIFCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.gif] }
    public var encodableFormats: Set<ImageFormat> { [.gif] }

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedGIF(data, limits: limits)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        GIFIncrementalDecoder(options: options)
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try GIFEncoder.encode([.init(image: try image.inSRGB(), milliseconds: 0)], loopCount: nil, options: options)
    }

    /// Writes each frame as the rectangle that changes, with delays in 1/100 s, at least two.
    public func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) throws -> Data {
        try GIFEncoder.encode(try animation.inSRGB().frames, loopCount: animation.loopCount, options: options)
    }

    public func encodingByteCount(
        of layout: PixelLayout,
        frameCount: Int?,
        as format: ImageFormat,
        options: EncodeOptions
    ) -> Int {
        GIFEncoder.byteCount(width: layout.width, height: layout.height, frameCount: frameCount ?? 1)
    }
}

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

    func metadata(limits: DecodingLimits) throws -> ImageMetadata {
        ImageMetadata(xmp: self.stream.packet(of: self.data))
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        let file = try GIFFile(self.data, self.stream, options: options)
        guard options.frame != 0 else {
            return DecodedImage(Image(pixels: try file.firstPicture(), sourceFormat: .gif))
        }
        return try self.composited(file, options: options)
    }

    func frameReader(options: DecodeOptions) throws -> (any FrameReader)? {
        guard self.isAnimated else { return nil }
        return try GIFFile(self.data, self.stream, options: options)
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
