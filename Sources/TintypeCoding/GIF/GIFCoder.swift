public import FoundationEssentials
public import TintypeImage

/// Reads and writes GIF.
///
/// Source: GIF89a, CompuServe 1990. Written in Swift, because the files are hostile and the usual C library can't be
/// resumed. As in browsers the canvas is the logical screen, transparent where nothing was drawn; the background
/// colour is not used, and images are cut at its edge. A still picture without transparency decodes to `rgb8`,
/// everything else to `rgba8`.
public struct GIFCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.gif] }
    public var encodableFormats: Set<ImageFormat> { [.gif] }

    public func header(of data: Data) throws -> ImageHeader {
        try self.header(of: data, limits: DecodingLimits())
    }

    public func header(of data: Data, limits: DecodingLimits) throws -> ImageHeader {
        ImageHeader(try GIFStream(data, limits: limits))
    }

    public func byteCount(for kind: DecodeKind, header: ImageHeader, options: DecodeOptions) -> Int {
        let isAnimated = header.animation.frameCount > 1
        // What is missing is transparent.
        let needsAlpha = header.hasAlpha || isAnimated || kind == .incremental || options.allowsTruncated
        let format: PixelFormat = needsAlpha ? .rgba8 : .rgb8
        guard let layout = try? PixelLayout(format: format, width: header.pixelWidth, height: header.pixelHeight) else {
            return .max
        }
        let canvases =
            switch kind {
            case .picture, .rows: 1
            // The one that was shown last, and the next; what has arrived, and its copy.
            case .frame: isAnimated ? 2 : 1
            case .incremental: 2
            }
        let restored = kind == .frame ? header.restoredByteCount : 0
        return layout.byteCount.saturatingMultiplied(by: canvases)
            .saturatingAdded(to: header.codecByteCount.saturatingAdded(to: restored))
    }

    public func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage {
        guard options.frame == 0 else {
            let reader = try GIFFrameReader(data, options: options)
            guard reader.frames.indices.contains(options.frame) else {
                throw CodingError.noFrame(options.frame, in: header)
            }
            let compositor = try FrameCompositor(reader, limits: options.limits, format: .gif)
            let pixels = try compositor.frame(at: options.frame, isLast: true)
            return DecodedImage(Image(pixels: pixels, sourceFormat: .gif))
        }
        let pixels = try GIFFile(data, options: options).firstPicture()
        return DecodedImage(Image(pixels: pixels, sourceFormat: .gif))
    }

    public func frameReader(
        for data: Data,
        header: ImageHeader,
        options: DecodeOptions
    ) throws -> (any FrameReader)? {
        guard header.animation.frameCount > 1 else { return nil }
        return try GIFFrameReader(data, options: options)
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
}

extension ImageHeader {
    /// What the blocks of a GIF say, as far as they are there.
    init(_ stream: GIFStream) {
        self.init(format: .gif, pixelWidth: stream.width, pixelHeight: stream.height)
        self.hasAlpha = stream.hasAlpha || stream.frames.isEmpty
        self.animation.loopCount = stream.animation.loopCount
        if stream.frames.count > 1 { self.animation = stream.animation }
        self.pixelFormatWithHoles = .rgba8
        self.codecByteCount = GIFCodeReader.byteCount(pixelCount: stream.largestPixelCount)
        self.restoredByteCount = stream.restoredPixelCount.saturatingMultiplied(by: 4)
    }
}
