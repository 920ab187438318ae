// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// Reads and writes GIF.
///
/// Source: GIF89a, CompuServe 1990. It is written in Swift, because files are untrusted and the usual C library cannot
/// resume a decode. As in browsers, the canvas is the logical screen, and is transparent where no frame draws. The
/// background colour is not used, and frames are cropped to the screen. A still image without transparency is decoded
/// to `rgb8`, any other image to `rgba8`.
public struct GIFCoder: ImageCoder {
    /// Creates the coder.
    ///
    /// ```swift
    /// let header = try GIFCoder().open(data).header
    /// ```
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.gif] }
    public var encodableFormats: Set<ImageFormat> { [.gif] }
    public var animatedFormats: Set<ImageFormat> { [.gif] }

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

    /// Encodes each frame as the rectangle that changes, with delays in 1/100 s, at least two.
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
            return DecodedImage(Image(pixels: try file.firstImage(), sourceFormat: .gif))
        }
        return try self.composited(file, options: options)
    }

    func frameReader(options: DecodeOptions) throws -> (any FrameReader)? {
        guard self.isAnimated else { return nil }
        return try GIFFile(self.data, self.stream, options: options)
    }

    private var isAnimated: Bool { self.header.animation.frameCount > 1 }

    func decodedLayout(options: DecodeOptions) throws -> PixelLayout {
        // The missing part of an image is transparent.
        let needsAlpha = self.header.hasAlpha || self.isAnimated || options.allowsTruncated
        return try self.header.layout(as: needsAlpha ? .rgba8 : .rgb8)
    }

    func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int {
        let codec = GIFCodeReader.byteCount(pixelCount: self.stream.largestPixelCount)
        let image = self.decodedByteCount(options: options)
        switch kind {
        case .image, .rows: return image.saturatingAdded(to: codec)
        // The frame that was shown last and the next one, and the pixels to restore.
        case .frame:
            let restored = self.stream.restoredPixelCount.saturatingMultiplied(by: 4)
            return image.saturatingMultiplied(by: self.isAnimated ? 2 : 1)
                .saturatingAdded(to: codec.saturatingAdded(to: restored))
        // The rows that have arrived, and their copy; more may be missing.
        case .incremental:
            let canvas = (try? self.header.layout(as: .rgba8).byteCount) ?? .max
            return canvas.saturatingMultiplied(by: 2).saturatingAdded(to: codec)
        }
    }
}

extension ImageHeader {
    /// Creates the header from the blocks of a GIF that have arrived.
    init(_ stream: GIFStream) {
        self.init(format: .gif, pixelWidth: stream.width, pixelHeight: stream.height)
        self.hasAlpha = stream.hasAlpha || stream.frames.isEmpty
        self.animation.loopCount = stream.animation.loopCount
        if stream.frames.count > 1 { self.animation = stream.animation }
    }
}
