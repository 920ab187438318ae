// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// Reads and writes PNG and APNG.
///
/// Source: W3C PNG, third edition. Decodes to `gray8` or `rgb8`, or to `rgba8` if there is an alpha channel, a
/// transparency chunk or an animation. 16-bit samples keep their high byte. Gamma is not applied. An animation that
/// breaks the rules is shown as its default image.
///
/// Damage and transparent colours are handled as in libpng:
///
/// - Compressed pixels with a wrong Adler-32, a preset dictionary or another broken header are corrupt. Compressed
///   pixels without their end are truncated. libpng only warns if the checksum begins a chunk of its own; this coder
///   checks it there, too.
/// - Pixels and bytes behind the last row are ignored.
/// - Only the bits within the bit depth of a transparent colour (`tRNS`) count. It is compared with the samples as
///   stored: with all 16 bits of 16, and before gray of few bits is scaled. Pillow compares such samples after it has
///   changed them.
public struct PNGCoder: ImageCoder {
    /// Creates the coder.
    ///
    /// ```swift
    /// let png = try PNGCoder().encode(image, as: .png, options: EncodeOptions(pngLevel: 9))
    /// ```
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.png] }
    public var encodableFormats: Set<ImageFormat> { [.png] }
    public var animatedFormats: Set<ImageFormat> { [.png] }

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedPNG(data, limits: limits)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        format == .png ? PNGIncrementalDecoder(options: options) : nil
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try PNGCompressor(options: options.keepingProfile(of: image)).compress(try image.upright().pixels)
    }

    public func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) throws -> Data {
        try PNGAnimationCompressor(options: options).compress(try animation.inSRGB())
    }

    public func encodingByteCount(
        of layout: PixelLayout,
        frameCount: Int?,
        as format: ImageFormat,
        options: EncodeOptions
    ) -> Int {
        // The file is no larger than the samples unless they are noise. Its buffer grows by a quarter at a time, and
        // may be copied for that.
        let line = layout.width.saturatingMultiplied(by: layout.format.channelCount).saturatingAdded(to: 1)
        let samples = line.saturatingMultiplied(by: layout.height).saturatingMultiplied(by: frameCount ?? 1)
        // The smallest file so far may stay while another one is written.
        let keepsFile = options.maximumByteCount != nil && !options.requiresMaximumByteCount
        let file = samples.saturatingAdded(to: samples / 64).saturatingMultiplied(by: keepsFile ? 13 : 9) / 4
        // A frame may be converted to the richest format of all frames.
        let frames = layout.pixelCount.saturatingMultiplied(by: 4).saturatingMultiplied(by: frameCount ?? 0)
        let lines = PNGLineWriter.byteCount(lineByteCount: line, width: layout.width)
        return file.saturatingAdded(to: frames).saturatingAdded(to: lines)
            .saturatingAdded(to: PNGDeflater.byteCount(longestLine: line)).saturatingAdded(to: 64 << 10)
    }
}

/// A PNG whose chunks were parsed.
struct EncodedPNG: EncodedImage {
    let header: ImageHeader
    private let data: Data
    private let chunks: PNGHeader
    /// The memory in bytes for decoding a still image in addition to its pixels.
    private let stillByteCount: Int
    /// The inflation of the rows on another lane; used once.
    private var ahead: PNGAhead?

    /// Parses the chunks of `data`.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    init(_ data: Data, limits: DecodingLimits) throws {
        self.data = data
        self.chunks = try PNGHeader(data, .wholeFile, work: DecodeWork(limits, format: .png))
        self.header = ImageHeader(self.chunks)
        self.stillByteCount = PNGDecompressor.extraByteCount(for: self.chunks)
    }

    func metadata(limits: DecodingLimits) throws -> ImageMetadata {
        let work = DecodeWork(limits, format: .png)
        let blocks = try self.data.withUnsafeBytes { try PNGMetadataBlocks($0, work: work) }
        return ImageMetadata(
            exif: self.chunks.exif,
            xmp: blocks.xmp,
            density: blocks.density,
            orientation: self.header.orientation
        )
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        let frameCount = self.chunks.animation?.frames.count ?? 1
        guard options.frame >= 0, options.frame < frameCount else {
            throw CodingError.noFrame(options.frame, of: self.header.animation.frameCount, self.header.format)
        }
        if let animation = self.chunks.animation, frameCount > 1 || !animation.includesDefaultImage {
            let reader = PNGFrameReader(self.data, self.chunks, animation, options: options)
            return try self.composited(reader, options: options)
        }
        let pixels = try self.data.withUnsafeBytes { bytes in
            try PNGDecompressor(
                bytes,
                header: self.chunks,
                output: self.chunks.pixelFormat,
                isLenient: options.allowsTruncated,
                work: DecodeWork(options.limits, format: .png)
            )
            .decompress()
        }
        return DecodedImage(Image(pixels: pixels, orientation: self.header.orientation, sourceFormat: .png))
    }

    func frameReader(options: DecodeOptions) throws -> (any FrameReader)? {
        self.chunks.animation.map { PNGFrameReader(self.data, self.chunks, $0, options: options) }
    }

    /// `false` for an animation, whose frames are composited, and for an interlaced image, whose rows are complete only
    /// at the end.
    var givesRows: Bool { !self.chunks.layout.isInterlaced && self.chunks.animation == nil }

    func withRows<Result>(
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? {
        guard self.givesRows, options.frame == 0 else { return nil }
        let work = DecodeWork(options.limits, format: .png)
        return try self.data.withUnsafeBytes { bytes in
            defer { self.ahead?.close() }
            let rows = try PNGRowSource(
                bytes,
                header: self.chunks,
                isLenient: options.allowsTruncated,
                ahead: self.ahead,
                work: work
            )
            return try body(rows, Double(rows.layout.width), Double(rows.layout.height))
        }
    }

    /// Returns a decode of a large image, whose rows another lane inflates ahead of the lane that converts them to
    /// pixels.
    func parallelDecode(_ kind: DecodeKind, options: DecodeOptions) -> ParallelDecode? {
        guard kind == .rows, let ahead = self.makeAhead(options: options) else { return nil }
        var copy = self
        copy.ahead = ahead
        return ParallelDecode(image: copy, helperCount: 1, helperByteCount: ahead.byteCount) { ahead.help(until: $0) }
    }

    /// Returns the inflation of the rows on another lane; `nil` if one lane is as fast.
    func makeAhead(options: DecodeOptions) -> PNGAhead? {
        let layout = self.chunks.layout
        guard self.givesRows, options.frame == 0, !options.allowsTruncated,
            layout.filteredByteCount > PNGRowSource.maximumWholeByteCount
        else { return nil }
        return PNGAhead(lineByteCount: layout.byteCount(ofLine: layout.width) + 1)
    }

    func decodedLayout(options: DecodeOptions) throws -> PixelLayout {
        try self.header.layout(as: self.isAnimated ? .rgba8 : self.stillFormat)
    }

    private var isAnimated: Bool { !self.header.animation.durations.isEmpty }

    /// The format of a decoded still image; `rgba8` before the pixels, because a later chunk may still declare alpha.
    private var stillFormat: PixelFormat { self.chunks.pixelsOffset == nil ? .rgba8 : self.chunks.pixelFormat }

    func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int {
        let image = self.decodedByteCount(options: options)
        let still = self.stillByteCount
        let codec = self.chunks.animation.map { $0.drawingByteCount.saturatingAdded(to: still) } ?? still
        switch kind {
        case .rows where self.givesRows: return PNGDecompressor.rowsByteCount(for: self.chunks)
        case .image, .rows: return image.saturatingAdded(to: self.isAnimated ? codec : still)
        // The frame that was shown last stays in memory.
        case .frame: return image.saturatingMultiplied(by: 2).saturatingAdded(to: codec)
        // The default image stays in memory while the requested frame is drawn.
        case .incremental where self.isAnimated:
            return image.saturatingMultiplied(by: 2).saturatingAdded(to: codec)
        case .incremental:
            // The rows that have arrived and their copy; strips and lines are inflated one by one.
            let lines = 3 * 8 * self.header.pixelWidth + PNGScanlines.stripByteCount + PNGInflater.byteCount
            let format = self.chunks.saysAnimation ? .rgba8 : self.stillFormat
            let preview = (try? self.header.layout(as: format).byteCount) ?? .max
            return preview.saturatingMultiplied(by: 2).saturatingAdded(to: lines)
        }
    }
}

extension ImageHeader {
    /// Creates the header from the chunks of a PNG.
    init(_ png: PNGHeader) {
        self.init(format: .png, pixelWidth: png.layout.width, pixelHeight: png.layout.height)
        self.bitDepth = png.layout.bitDepth
        self.hasAlpha = png.hasAlpha
        self.orientation = png.exif.flatMap { EXIF.orientation(in: $0) } ?? .up
        self.animation = png.animation?.timing ?? AnimationTiming()
        self.colorProfile = png.compressedProfile.flatMap { PNGColorProfile.inflated($0) }
    }
}
