// SPDX-License-Identifier: Apache-2.0

#if WebP
public import FoundationEssentials
public import TintypeImage

/// Reads and writes WebP through libwebp.
///
/// Source: RFC 9649. Still images are decoded to `rgb8`, or to `rgba8` if they have alpha. If the sufficient size
/// allows it, a lossy one is decoded to a smaller size directly. Frames of an animation are decoded to `rgba8`, each by
/// itself.
///
/// libwebp decodes lossy images; Tintype's own code decodes lossless ones: see `VP8LDecoder`.
///
/// Memory: a lossy still image needs little more than its rows, and with ``EncodedImage/withRows(options:_:)`` usually
/// only a strip of them. But flat rows take no bytes and are decoded all at once. A lossless image needs four more
/// bytes a pixel, because any pixel may refer to any earlier one. So does the alpha of a lossy image, which is stored
/// as a lossless image.
public struct WebPCoder: ImageCoder {
    /// Creates the coder.
    ///
    /// ```swift
    /// let webp = try WebPCoder().encode(image, as: .webp, options: EncodeOptions(compression: .lossless))
    /// ```
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.webp] }
    public var encodableFormats: Set<ImageFormat> { [.webp] }
    public var animatedFormats: Set<ImageFormat> { [.webp] }

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedWebP(data, limits: limits)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        format == .webp ? WebPIncrementalDecoder(options: options) : nil
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        // Gray is stored as RGB, which a gray profile does not describe.
        let image = image.pixels.format == .gray8 ? try image.inSRGB() : image
        return try WebPCompressor(options: options.keepingProfile(of: image)).compress(try image.upright().pixels)
    }

    public func encode(_ animation: AnimationContent, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try WebPAnimationCompressor(options: options).compress(try animation.inSRGB())
    }

    public func encodingByteCount(
        of layout: PixelLayout,
        frameCount: Int?,
        as format: ImageFormat,
        options: EncodeOptions
    ) -> Int {
        WebPMemory(layout, options).byteCount(frameCount: frameCount)
    }
}

/// A WebP whose chunks were parsed.
struct EncodedWebP: EncodedImage {
    let header: ImageHeader
    private let data: Data
    private let container: WebPContainer
    /// The still image, or the first frame.
    private let first: WebPCodedImage

    /// Parses the chunks of `data`.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    init(_ data: Data, limits: DecodingLimits) throws {
        try self.init(data, try WebPContainer(data, limits: limits))
    }

    /// Creates a file whose chunks were already parsed.
    ///
    /// - Throws: `CodingError` if it has no image.
    init(_ data: Data, _ container: WebPContainer) throws(CodingError) {
        guard let header = container.header, let first = container.images.first else {
            throw container.error(byteCount: data.count) ?? .corrupt(.webp, "it holds no image")
        }
        self.header = header
        self.data = data
        self.container = container
        self.first = first
    }

    func metadata(limits: DecodingLimits) throws -> ImageMetadata {
        let work = DecodeWork(limits, format: .webp)
        return try self.data.withUnsafeBytes { bytes in
            ImageMetadata(
                exif: try self.container.block(WebPChunk.Name.exif, of: bytes, work: work),
                xmp: try self.container.block(WebPChunk.Name.xmp, of: bytes, work: work),
                orientation: self.header.orientation
            )
        }
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        if let reader = try self.frameReader(options: options) { return try self.composited(reader, options: options) }
        let layout = try self.first.layout(sufficientSize: options.sufficientSize)
        let pixels = try self.data.withUnsafeBytes { bytes in
            try WebPDecompressor.decompress(self.firstSource(bytes, options), layout: layout)
        }
        return DecodedImage(Image(pixels: pixels, orientation: self.header.orientation, sourceFormat: .webp))
    }

    func frameReader(options: DecodeOptions) throws -> (any FrameReader)? {
        try self.checkEnd(options)
        guard self.container.isAnimated else { return nil }
        let canvas = PixelSize(width: self.header.pixelWidth, height: self.header.pixelHeight)
        return WebPFrameReader(self.data, self.container, canvas: canvas, options: options)
    }

    private func firstSource(_ bytes: UnsafeRawBufferPointer, _ options: DecodeOptions) -> WebPSource {
        let work = DecodeWork(options.limits, format: .webp)
        return WebPSource(self.first, of: bytes, allowsTruncated: options.allowsTruncated, work: work)
    }

    /// Refuses a file with a missing or damaged part, unless the options allow that.
    private func checkEnd(_ options: DecodeOptions) throws(CodingError) {
        if !options.allowsTruncated, let error = self.container.error(byteCount: self.data.count) { throw error }
    }

    var givesRows: Bool { !self.container.isAnimated }

    /// Passes the rows of a still image, lossy or lossless, to `body`; for the memory see ``WebPCoder``.
    func withRows<Result>(
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? {
        try self.checkEnd(options)
        guard self.givesRows else { return nil }
        let layout = try self.first.layout(sufficientSize: options.sufficientSize)
        return try self.data.withUnsafeBytes { bytes in
            let source = self.firstSource(bytes, options)
            let rows: (any RowSource)? =
                if self.first.isLossless {
                    VP8LRowSource(source, layout: layout)
                } else {
                    try WebPRowSource(source, layout: layout)
                }
            return try rows.map { try body($0, Double(layout.width), Double(layout.height)) }
        }
    }

    func decodedLayout(options: DecodeOptions) throws -> PixelLayout {
        guard self.container.isAnimated else { return try self.first.layout(sufficientSize: options.sufficientSize) }
        return try self.header.layout(as: .rgba8)
    }

    func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int {
        var codec = self.container.codecByteCount
        let images: Int
        switch kind {
        case .image:
            images = 1
            if options.frame == 0 { codec = self.firstCodecByteCount }
        // Rows without detail take no bytes, so a whole lossy image may be decoded at once.
        case .rows: images = self.first.isLossless ? 0 : 1
        // The frame that was shown last, and the next one.
        case .frame: images = self.container.isAnimated ? 2 : 1
        // The rows that have arrived, and their copy.
        case .incremental:
            images = 2
            codec = self.firstCodecByteCount
        }
        return self.decodedByteCount(options: options).saturatingMultiplied(by: images).saturatingAdded(to: codec)
    }

    /// The memory in bytes that the codec needs for the still image, or the first frame.
    private var firstCodecByteCount: Int {
        self.container.isAnimated ? self.first.codecByteCount : self.container.codecByteCount
    }
}

extension WebPContainer {
    /// The header of the file, or `nil` until enough bytes have arrived.
    var header: ImageHeader? {
        guard let size = self.size, let first = self.images.first else { return nil }
        var header = ImageHeader(format: .webp, pixelWidth: size.width, pixelHeight: size.height)
        header.orientation = self.orientation
        header.colorProfile = self.colorProfile
        header.hasAlpha = self.isAnimated ? self.transparency.isSeen : first.frame.hasAlpha
        if self.isAnimated { header.animation = self.timing }
        return header
    }

    /// Returns the error that prevents decoding all images of a file of `byteCount` bytes, or `nil`.
    func error(byteCount: Int) -> CodingError? {
        if let damage = self.damage { return .corrupt(.webp, damage) }
        guard self.isComplete(byteCount) else { return .truncated(.webp) }
        return self.images.isEmpty ? .corrupt(.webp, "it holds no image") : nil
    }
}
#endif
