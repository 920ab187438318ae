public import FoundationEssentials
public import TintypeImage

/// Reads and writes JPEG through libjpeg-turbo.
///
/// Source: ITU-T T.81. Decodes to `rgb8`, or `gray8` for grayscale. CMYK and YCCK become sRGB by
/// their profile, or RGB without one. A smaller sufficient size decodes to 1/2, 1/4 or 1/8 by the
/// DCT. What is missing of a truncated picture is as the library leaves it: gray, or the last
/// colour before.
public struct JPEGCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.jpeg] }
    public var encodableFormats: Set<ImageFormat> { [.jpeg] }

    public func header(of data: Data) throws -> ImageHeader {
        try self.header(of: data, limits: DecodingLimits())
    }

    public func header(of data: Data, limits: DecodingLimits) throws -> ImageHeader {
        try JPEGHeader(data, work: DecodeWork(limits, format: .jpeg)).imageHeader
    }

    public func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage {
        let work = DecodeWork(options.limits, format: .jpeg)
        let jpeg = try JPEGHeader(data, work: work)
        let divisor = Self.divisor(for: jpeg, sufficientSize: options.sufficientSize)
        let pixels = try data.withUnsafeBytes { source in
            try JPEGReading(source, jpeg, divisor: divisor, options: options, work: work).pixels()
        }
        return Self.decodedImage(pixels, of: jpeg, divisor: divisor)
    }

    public func withRows<Result>(
        of data: Data,
        header: ImageHeader,
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? {
        let work = DecodeWork(options.limits, format: .jpeg)
        let jpeg = try JPEGHeader(data, work: work)
        let divisor = Self.divisor(for: jpeg, sufficientSize: options.sufficientSize)
        return try data.withUnsafeBytes { source in
            let reading = try JPEGReading(source, jpeg, divisor: divisor, options: options, work: work)
            return try body(reading, Double(jpeg.width) / Double(divisor), Double(jpeg.height) / Double(divisor))
        }
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

    /// The largest of 1, 2, 4 and 8 that leaves at least the sufficient size.
    ///
    /// The steps between them exist too, but only these have SIMD code.
    static func divisor(for header: JPEGHeader, sufficientSize: PixelSize?) -> Int {
        self.divisor(width: header.width, height: header.height, sufficientSize: sufficientSize)
    }

    private static func divisor(width: Int, height: Int, sufficientSize: PixelSize?) -> Int {
        guard let size = sufficientSize, size.width > 0, size.height > 0 else { return 1 }
        let shrink = min(width / size.width, height / size.height)
        return [8, 4, 2].first { $0 <= shrink } ?? 1
    }

    public func decodedSize(of header: ImageHeader, options: DecodeOptions) -> PixelSize {
        let (width, height) = (header.pixelWidth, header.pixelHeight)
        let divisor = Self.divisor(width: width, height: height, sufficientSize: options.sufficientSize)
        return PixelSize(width: (width + divisor - 1) / divisor, height: (height + divisor - 1) / divisor)
    }

    /// Pixels decoded to a `divisor`-th, with what is known about them.
    static func decodedImage(_ pixels: PixelBuffer, of header: JPEGHeader, divisor: Int) -> DecodedImage {
        DecodedImage(
            Image(pixels: pixels, orientation: header.orientation ?? .up, sourceFormat: .jpeg),
            coveredWidth: Double(header.width) / Double(divisor),
            coveredHeight: Double(header.height) / Double(divisor)
        )
    }
}
