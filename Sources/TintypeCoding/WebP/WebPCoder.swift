import CWebP
public import FoundationEssentials
public import TintypeImage

/// Reads and writes WebP through libwebp.
///
/// Source: RFC 9649. Stills are decoded to `rgb8`, or `rgba8` where they have alpha; a smaller sufficient size is
/// decoded straight to. Frames of an animation are decoded to `rgba8`, each by itself.
///
/// Lossy pictures are decoded by libwebp, lossless ones by code of our own: see ``VP8LDecoder``.
///
/// Memory: a lossy still needs its rows and little else, and with ``withRows(of:header:options:_:)`` only a strip of
/// them; but rows that are flat from edge to edge take no bytes, and come all at once. The format makes a lossless one
/// need four bytes a pixel besides: any pixel may refer to any before it. So does the alpha of a lossy one, which is
/// stored as a lossless picture.
public struct WebPCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.webp] }
    public var encodableFormats: Set<ImageFormat> { [.webp] }

    public func header(of data: Data) throws -> ImageHeader {
        try self.header(of: data, limits: DecodingLimits())
    }

    public func header(of data: Data, limits: DecodingLimits) throws -> ImageHeader {
        let container = try WebPContainer(data, limits: limits)
        if let header = container.header { return header }
        throw container.error(byteCount: data.count) ?? .corrupt(.webp, "it holds no picture")
    }

    public func byteCount(for kind: DecodeKind, header: ImageHeader, options: DecodeOptions) -> Int {
        let isAnimated = !header.animation.durations.isEmpty
        var codec = header.codecByteCount
        let pictures: Int
        switch kind {
        case .picture:
            pictures = 1
            if options.frame == 0 { codec = header.firstFrameCodecByteCount ?? codec }
        // Rows without detail take no bytes, so that all of a lossy picture may come at once.
        case .rows: pictures = header.isScaledByCodec ? 1 : 0
        // The one that was shown last, and the next.
        case .frame: pictures = isAnimated ? 2 : 1
        // What has arrived, and its copy.
        case .incremental:
            pictures = 2
            codec = header.firstFrameCodecByteCount ?? codec
        }
        return self.decodedByteCount(of: header, options: options).saturatingMultiplied(by: pictures)
            .saturatingAdded(to: codec)
    }

    public func decodedSize(of header: ImageHeader, options: DecodeOptions) -> PixelSize {
        let stored = PixelSize(width: header.pixelWidth, height: header.pixelHeight)
        guard header.animation.durations.isEmpty, header.isScaledByCodec else { return stored }
        let layout = try? PixelLayout(webp: stored, hasAlpha: header.hasAlpha, sufficientSize: options.sufficientSize)
        return layout.map { PixelSize(width: $0.width, height: $0.height) } ?? stored
    }

    public func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage {
        let container = try self.container(of: data, header: header, options: options)
        let pixels =
            if container.isAnimated {
                try self.frame(of: data, container, header: header, options: options)
            } else {
                try self.still(of: data, container, options: options)
            }
        return DecodedImage(Image(pixels: pixels, orientation: header.orientation, sourceFormat: .webp))
    }

    public func frameReader(
        for data: Data,
        header: ImageHeader,
        options: DecodeOptions
    ) throws -> (any FrameReader)? {
        let container = try self.container(of: data, header: header, options: options)
        guard container.isAnimated else { return nil }
        return self.reader(of: data, container, header: header, options: options)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        format == .webp ? WebPIncrementalDecoder(options: options) : nil
    }

    /// Lends the rows of a still, of any kind; for its memory see ``WebPCoder``.
    public func withRows<Result>(
        of data: Data,
        header: ImageHeader,
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? {
        let container = try self.container(of: data, header: header, options: options)
        guard !container.isAnimated, let picture = container.pictures.first else { return nil }
        let layout = try picture.layout(sufficientSize: options.sufficientSize)
        return try data.withUnsafeBytes { bytes in
            let work = DecodeWork(options.limits, format: .webp)
            if picture.isLossless {
                let rows = VP8LRowSource(
                    picture,
                    of: bytes,
                    layout: layout,
                    allowsTruncated: options.allowsTruncated,
                    work: work
                )
                return try body(rows, Double(layout.width), Double(layout.height))
            }
            let rows = try WebPRowSource(
                picture,
                of: bytes,
                layout: layout,
                allowsTruncated: options.allowsTruncated,
                work: work
            )
            return try rows.map { try body($0, Double(layout.width), Double(layout.height)) }
        }
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        // Gray is stored as RGB, which a profile for gray says nothing of.
        let image = image.pixels.format == .gray8 ? try image.inSRGB() : image
        return try WebPCompressor(options.keepingProfile(of: image)).compress(try image.upright().pixels)
    }

    public func encode(_ animation: AnimationContent, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try WebPAnimationCompressor(options).compress(try animation.inSRGB())
    }
}

extension WebPCoder {
    /// The chunks of a file that may be decoded.
    private func container(of data: Data, header: ImageHeader, options: DecodeOptions) throws -> WebPContainer {
        let container = try WebPContainer(data, limits: options.limits)
        if !options.allowsTruncated, let error = container.error(byteCount: data.count) { throw error }
        // The limits were checked for the header's size, so the file's must be the same.
        guard let size = container.size, (size.width, size.height) == (header.pixelWidth, header.pixelHeight),
            !container.pictures.isEmpty
        else {
            throw container.error(byteCount: data.count) ?? .corrupt(.webp, "its header is that of another file")
        }
        return container
    }

    private func still(of data: Data, _ container: WebPContainer, options: DecodeOptions) throws -> PixelBuffer {
        let picture = container.pictures[0]
        return try data.withUnsafeBytes { bytes in
            try WebPDecompressor.decompress(
                picture,
                of: bytes,
                layout: try picture.layout(sufficientSize: options.sufficientSize),
                allowsTruncated: options.allowsTruncated,
                work: DecodeWork(options.limits, format: .webp)
            )
        }
    }

    private func frame(
        of data: Data,
        _ container: WebPContainer,
        header: ImageHeader,
        options: DecodeOptions
    ) throws -> PixelBuffer {
        guard container.pictures.indices.contains(options.frame) else {
            throw CodingError.noFrame(options.frame, in: header)
        }
        let reader = self.reader(of: data, container, header: header, options: options)
        let compositor = try FrameCompositor(reader, limits: options.limits, format: .webp)
        return try compositor.frame(at: options.frame, isLast: true)
    }

    private func reader(
        of data: Data,
        _ container: WebPContainer,
        header: ImageHeader,
        options: DecodeOptions
    ) -> WebPFrameReader {
        WebPFrameReader(
            data,
            container,
            canvas: PixelSize(width: header.pixelWidth, height: header.pixelHeight),
            options: options
        )
    }
}
