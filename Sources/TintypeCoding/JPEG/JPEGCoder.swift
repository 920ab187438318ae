public import FoundationEssentials
public import TintypeImage

/// Reads and writes JPEG through libjpeg-turbo's TurboJPEG interface.
///
/// Source: ITU-T T.81. Decodes to `rgb8`, or `gray8` for grayscale. CMYK and YCCK become RGB
/// without a profile. A smaller sufficient size decodes to 1/2, 1/4 or 1/8 by the DCT.
public struct JPEGCoder: ImageCoder {
    /// Creates the coder.
    public init() {}

    public var decodableFormats: Set<ImageFormat> { [.jpeg] }
    public var encodableFormats: Set<ImageFormat> { [.jpeg] }

    public func header(of data: Data) throws(CodingError) -> ImageHeader {
        let jpeg = try JPEGHeader(data)
        var header = ImageHeader(format: .jpeg, pixelWidth: jpeg.width, pixelHeight: jpeg.height)
        header.bitDepth = jpeg.precision
        header.orientation = jpeg.exif.flatMap { EXIF.orientation(in: $0) } ?? .up
        header.colorProfile = jpeg.colorProfile
        let pixels = jpeg.width * jpeg.height
        // A progressive picture is held as coefficients of two bytes until its last scan.
        if jpeg.process == .progressive || jpeg.process == .arithmeticProgressive {
            header.codecByteCount = pixels * jpeg.componentCount * 2
        }
        if jpeg.componentCount == 4 { header.codecByteCount += pixels * 4 }
        return header
    }

    public func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage {
        let divisor = Self.divisor(for: header, sufficientSize: options.sufficientSize)
        let pixels = try JPEGDecompressor().decompress(
            data,
            jpeg: try JPEGHeader(data),
            divisor: divisor,
            allowsTruncated: options.allowsTruncated
        )
        return DecodedImage(
            Image(pixels: pixels, orientation: header.orientation, sourceFormat: .jpeg),
            coveredWidth: Double(header.pixelWidth) / Double(divisor),
            coveredHeight: Double(header.pixelHeight) / Double(divisor)
        )
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try JPEGCompressor().compress(try image.upright().pixels, options: options)
    }

    /// The largest of 1, 2, 4 and 8 that leaves at least the sufficient size.
    ///
    /// The steps between them exist too, but only these have SIMD code.
    private static func divisor(for header: ImageHeader, sufficientSize: PixelSize?) -> Int {
        guard let size = sufficientSize, size.width > 0, size.height > 0 else { return 1 }
        let shrink = min(header.pixelWidth / size.width, header.pixelHeight / size.height)
        return [8, 4, 2].first { $0 <= shrink } ?? 1
    }
}
