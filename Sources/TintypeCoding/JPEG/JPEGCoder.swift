// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// Reads and writes JPEG through libjpeg-turbo.
///
/// Source: ITU-T T.81. Decodes to `rgb8`, or `gray8` for grayscale. CMYK and YCCK are converted to sRGB by their
/// profile, or to RGB without one. If the sufficient size allows it, the DCT decodes to 1/2, 1/4 or 1/8. The missing
/// part of a truncated image is as the library leaves it: gray, or the last colour before it.
public struct JPEGCoder: ImageCoder {
    private let shortcuts: Shortcuts

    /// Creates the coder, which uses `shortcuts` when they apply.
    ///
    /// ```swift
    /// let plain = JPEGCoder(shortcuts: [])
    /// ```
    public init(shortcuts: Shortcuts = .standard) {
        self.shortcuts = shortcuts
    }

    public var decodableFormats: Set<ImageFormat> { [.jpeg] }
    public var encodableFormats: Set<ImageFormat> { [.jpeg] }

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedJPEG(data, limits: limits, shortcuts: self.shortcuts)
    }

    public func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        JPEGIncrementalDecoder(options: options)
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try JPEGCompressor().compress(try image.upright().pixels, options: options.keepingProfile(of: image))
    }

    public func encodingByteCount(
        of layout: PixelLayout,
        frameCount: Int?,
        as format: ImageFormat,
        options: EncodeOptions
    ) -> Int {
        JPEGCompressor.byteCount(of: layout, options: options)
    }
}

/// A JPEG whose marker segments were parsed, up to the first scan.
struct EncodedJPEG: EncodedImage {
    let header: ImageHeader
    private let data: Data
    private let segments: JPEGHeader
    private let shortcuts: JPEGCoder.Shortcuts
    /// The decode that other lanes help with; used once.
    private var parallel: JPEGParallelDecode?

    /// Parses the segments of `data`.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    init(_ data: Data, limits: DecodingLimits, shortcuts: JPEGCoder.Shortcuts) throws {
        self.init(data, try JPEGHeader(data, work: DecodeWork(limits, format: .jpeg)), shortcuts)
    }

    /// Creates a file whose segments were already parsed.
    init(_ data: Data, _ segments: JPEGHeader, _ shortcuts: JPEGCoder.Shortcuts) {
        self.data = data
        self.shortcuts = shortcuts
        self.segments = segments
        self.header = segments.imageHeader
    }

    func metadata(limits: DecodingLimits) throws -> ImageMetadata {
        var blocks = JPEGMetadataBlocks()
        var parser = JPEGHeaderParser()
        _ = try parser.parse(self.data, work: DecodeWork(limits, format: .jpeg)) { blocks.read($0, marker: $1) }
        return blocks.metadata(orientation: self.header.orientation)
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        if let parallel, let image = try self.decode(in: parallel, options: options) { return image }
        let divisor = self.segments.divisor(for: options.sufficientSize)
        return try self.withReading(divisor, options) {
            self.segments.decodedImage(try $0.pixels(), divisor: divisor, damage: $0.damage)
        }
    }

    var givesRows: Bool { true }

    func withRows<Result>(
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? {
        let divisor = self.segments.divisor(for: options.sufficientSize)
        let width = Double(self.segments.width) / Double(divisor)
        let height = Double(self.segments.height) / Double(divisor)
        return try self.withReading(divisor, options) { try body($0, width, height) }
    }

    private func withReading<Result>(
        _ divisor: Int,
        _ options: DecodeOptions,
        _ body: (JPEGReading) throws -> Result
    ) throws -> Result {
        let work = DecodeWork(options.limits, format: .jpeg)
        return try self.data.withUnsafeBytes { source in
            let reading = try JPEGReading(
                source,
                self.segments,
                divisor: divisor,
                options: options,
                shortcuts: self.shortcuts,
                work: work
            )
            return try body(reading)
        }
    }

    func decodedLayout(options: DecodeOptions) throws -> PixelLayout {
        let divisor = self.segments.divisor(for: options.sufficientSize)
        return try PixelLayout(
            format: self.segments.components.count == 1 ? .gray8 : .rgb8,
            width: (self.segments.width + divisor - 1) / divisor,
            height: (self.segments.height + divisor - 1) / divisor
        )
    }

    func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int {
        let images =
            switch kind {
            case .rows: 0
            case .image: 1
            // The rows that have arrived, and their copy.
            case .frame, .incremental: 2
            }
        return self.decodedByteCount(options: options).saturatingMultiplied(by: images)
            .saturatingAdded(to: self.segments.codecByteCount + self.ownEntropyByteCount)
    }

    // MARK: Bands

    /// Returns a decode of a large image with restart markers, whose bands several lanes can decode.
    func parallelDecode(_ kind: DecodeKind, options: DecodeOptions) -> ParallelDecode? {
        guard kind == .image, let byteCount = self.bandByteCount(options: options) else { return nil }
        // A lane that gets only a few bands saves no time.
        let helperCount = self.segments.width * self.segments.height / JPEGBands.pixelsPerBand / 4
        let parallel = JPEGParallelDecode(helperCount: helperCount)
        var copy = self
        copy.parallel = parallel
        return ParallelDecode(image: copy, helperCount: helperCount, helperByteCount: byteCount) {
            parallel.help(until: $0)
        }
    }

    /// Decodes the bands of the image together with helping lanes.
    ///
    /// Returns `nil` if there are no bands, or one is damaged. Then one lane decodes the image and reports the damage.
    ///
    /// - Throws: `ImageError`, `CancellationError`.
    private func decode(in parallel: JPEGParallelDecode, options: DecodeOptions) throws -> DecodedImage? {
        defer { parallel.close() }
        do {
            guard let bands = try self.bands(options: options) else { return nil }
            let pixels = try PixelBuffer(bands.layout, fillingUnsafely: { try parallel.decode(bands, into: $0) })
            let divisor = self.segments.divisor(for: options.sufficientSize)
            return self.segments.decodedImage(pixels, divisor: divisor, damage: bands.damage)
        } catch is CodingError {
            return nil
        }
    }

    /// Returns the memory in bytes of a lane that decodes bands of the image; `nil` if the image is not divided.
    func bandByteCount(options: DecodeOptions) -> Int? {
        let segments = self.segments
        guard segments.restartInterval > 0, !segments.hasScans, !segments.isArithmetic,
            segments.width * segments.height >= JPEGBands.smallestPixelCount, options.frame == 0
        else { return nil }
        // Include the rows above a band, which are discarded.
        return segments.codecByteCount + self.ownEntropyByteCount + segments.width * 3 * 32
    }

    /// Returns the bands of the image; `nil` if it cannot be divided.
    ///
    /// - Throws: `CodingError`, `ImageError`, `CancellationError`.
    func bands(options: DecodeOptions, pixelsPerBand: Int = JPEGBands.pixelsPerBand) throws -> JPEGBands? {
        try JPEGBands(
            self.data,
            self.segments,
            layout: self.decodedLayout(options: options),
            divisor: self.segments.divisor(for: options.sufficientSize),
            options: options,
            shortcuts: self.shortcuts,
            pixelsPerBand: pixelsPerBand
        )
    }

    /// The memory of Tintype's entropy decoder: its window, and the usual two tables of each kind.
    private var ownEntropyByteCount: Int {
        let isWanted = !self.segments.hasScans && self.shortcuts.wantsOwnEntropy(ofFile: self.data.count)
        return isWanted ? 96 << 10 : 0
    }
}
