public import FoundationEssentials
public import TintypeImage

/// Reads and writes PNG and APNG.
///
/// Source: W3C PNG, third edition. Decodes to `gray8`, `rgb8` or, where there is any alpha, a
/// transparency chunk or an animation, `rgba8`; 16-bit samples keep their high byte. Gamma is
/// not applied. An animation that breaks the rules is shown as its default image.
public struct PNGCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.png] }
    public var encodableFormats: Set<ImageFormat> { [.png] }

    public func header(of data: Data) throws -> ImageHeader {
        try self.header(of: data, limits: DecodingLimits())
    }

    public func header(of data: Data, limits: DecodingLimits) throws -> ImageHeader {
        ImageHeader(try PNGHeader(data, .wholeFile, work: DecodeWork(limits, format: .png)))
    }

    public func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage {
        let work = DecodeWork(options.limits, format: .png)
        let png = try PNGHeader(data, .wholeFile, work: work)
        guard options.frame >= 0, options.frame < png.animation?.frames.count ?? 1 else {
            throw CodingError(
                code: .invalidOptions,
                message: "There is no frame \(options.frame): the picture has \(png.animation?.frames.count ?? 1), "
                    + "from 0 on.",
                format: .png
            )
        }
        if let animation = png.animation, animation.frames.count > 1 || !animation.includesDefaultImage {
            let reader = PNGFrameReader(data, png, animation, options: options)
            let compositor = try FrameCompositor(reader, limits: options.limits, format: .png)
            let pixels = try compositor.frame(at: options.frame, isLast: true)
            return DecodedImage(Image(pixels: pixels, orientation: header.orientation, sourceFormat: .png))
        }
        let pixels = try data.withUnsafeBytes { bytes in
            let isLenient = options.allowsTruncated
            return try PNGDecompressor(bytes, header: png, output: png.pixelFormat, isLenient: isLenient, work: work)
                .decompress()
        }
        return DecodedImage(Image(pixels: pixels, orientation: header.orientation, sourceFormat: .png))
    }

    public func frameReader(
        for data: Data,
        header: ImageHeader,
        options: DecodeOptions
    ) throws -> (any FrameReader)? {
        let png = try PNGHeader(data, .wholeFile, work: DecodeWork(options.limits, format: .png))
        return png.animation.map { PNGFrameReader(data, png, $0, options: options) }
    }

    public func byteCount(for kind: DecodeKind, header: ImageHeader, options: DecodeOptions) -> Int {
        let picture = self.decodedByteCount(of: header, options: options)
        let frames = header.codecByteCountForFrames ?? header.codecByteCount
        let isAnimated = !header.animation.durations.isEmpty
        switch kind {
        case .rows where header.givesRows: return header.codecByteCountForRows ?? header.codecByteCount
        case .picture where isAnimated: return picture.saturatingAdded(to: frames)
        case .picture, .rows: return picture.saturatingAdded(to: header.codecByteCount)
        // The frame that was shown last stays.
        case .frame: return picture.saturatingMultiplied(by: 2).saturatingAdded(to: frames)
        // The default image stays while the frame that was asked for is drawn.
        case .incremental where isAnimated: return picture.saturatingMultiplied(by: 2).saturatingAdded(to: frames)
        case .incremental:
            // What has arrived and its copy; strips and lines are inflated one by one.
            let lines = 3 * 8 * header.pixelWidth + PNGScanlines.stripByteCount + PNGInflater.byteCount
            let size = PixelSize(width: header.pixelWidth, height: header.pixelHeight)
            let preview = header.pixelFormatOfPreviews.map { header.byteCount(of: size, as: $0) } ?? picture
            return preview.saturatingMultiplied(by: 2).saturatingAdded(to: lines)
        }
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        format == .png ? PNGIncrementalDecoder(options: options) : nil
    }

    public func withRows<Result>(
        of data: Data,
        header: ImageHeader,
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? {
        let work = DecodeWork(options.limits, format: .png)
        let png = try PNGHeader(data, .wholeFile, work: work)
        // A frame is composited, and an interlaced picture has no row before it has them all.
        guard !png.layout.isInterlaced, png.animation == nil, options.frame == 0 else { return nil }
        return try data.withUnsafeBytes { bytes in
            let rows = try PNGRowSource(bytes, header: png, isLenient: options.allowsTruncated, work: work)
            return try body(rows, Double(png.layout.width), Double(png.layout.height))
        }
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try PNGCompressor(options.keepingProfile(of: image)).compress(try image.upright().pixels)
    }

    public func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) throws -> Data {
        try PNGAnimationCompressor(options).compress(try animation.inSRGB())
    }
}

extension ImageHeader {
    /// What the chunks of a PNG say.
    init(_ png: PNGHeader) {
        self.init(format: .png, pixelWidth: png.layout.width, pixelHeight: png.layout.height)
        self.bitDepth = png.layout.bitDepth
        self.hasAlpha = png.hasAlpha
        self.orientation = png.exif.flatMap { EXIF.orientation(in: $0) } ?? .up
        self.animation = png.animation?.timing ?? AnimationTiming()
        self.givesRows = !png.layout.isInterlaced && png.animation == nil
        self.colorProfile = png.compressedProfile.flatMap { PNGColorProfile.inflated($0) }
        self.pixelFormat = png.pixelFormat
        if png.saysAnimation { self.pixelFormatOfPreviews = .rgba8 }
        self.codecByteCount = PNGDecompressor.extraByteCount(for: png)
        self.codecByteCountForRows = PNGDecompressor.rowsByteCount(for: png)
        self.codecByteCountForFrames = png.animation.map {
            $0.drawingByteCount.saturatingAdded(to: self.codecByteCount)
        }
    }
}
