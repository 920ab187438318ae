import TintypeCoding
public import TintypeImage

/// What is made of the stored pictures of one file, its previews or frames: they are resized, finished (brought to sRGB
/// and turned), and then transformed.
public struct StoredRendering: Sendable {
    /// The stored size that suffices.
    let sufficientSize: PixelSize
    /// The stored size of what the resize gives.
    let size: PixelSize
    /// How that is turned.
    let orientation: Orientation
    /// The bytes that the resize takes besides what it is given and what it gives.
    let byteCount: @Sendable (_ source: PixelLayout) -> Int
    /// Resizes a picture, which is not turned and covers the whole, and notes on it how it is to be turned.
    let resize: @Sendable (_ stored: Image) throws -> Image
    /// What is made of a finished picture, and the bytes that are taken for that, with the picture and the result; `nil`
    /// where it is what is wanted.
    let transform: Transform?

    /// What is made of finished pictures.
    public struct Transform: Sendable {
        let byteCount: @Sendable (_ finished: PixelLayout) -> Int
        let image: @Sendable (_ finished: Image) throws -> Image

        /// Describes what is made of finished pictures.
        ///
        /// - Parameters:
        ///   - byteCount: The bytes that are taken at most at once, with the picture and the result.
        ///   - image: Makes the result.
        public init(
            byteCount: @escaping @Sendable (_ finished: PixelLayout) -> Int,
            image: @escaping @Sendable (_ finished: Image) throws -> Image
        ) {
            self.byteCount = byteCount
            self.image = image
        }
    }

    /// Describes what is made of stored pictures.
    ///
    /// - Parameters:
    ///   - sufficientSize: The stored size that suffices: decoders may give less than the whole.
    ///   - size: The stored size of what the resize gives.
    ///   - orientation: How that is turned.
    ///   - byteCount: The bytes that the resize takes besides what it is given and what it gives.
    ///   - resize: Resizes a picture, which is not turned and covers the whole, and notes on it how it is to be turned.
    ///   - transform: What is made of the finished picture.
    public init(
        sufficientSize: PixelSize,
        size: PixelSize,
        orientation: Orientation,
        byteCount: @escaping @Sendable (_ source: PixelLayout) -> Int,
        resize: @escaping @Sendable (_ stored: Image) throws -> Image,
        transform: Transform? = nil
    ) {
        self.sufficientSize = sufficientSize
        self.size = size
        self.orientation = orientation
        self.byteCount = byteCount
        self.resize = resize
        self.transform = transform
    }

    /// The bytes of a resized picture and its copies while it is finished and transformed.
    func finishingByteCount(of picture: PixelLayout, header: ImageHeader, options: DecodeOptions) -> Int {
        let finishing = header.finishingByteCount(
            of: picture.byteCount,
            as: picture.format,
            orientation: self.orientation,
            options: options
        )
        guard let transform else { return finishing }
        let size = self.orientation.uprightSize(width: picture.width, height: picture.height)
        // Gray may become colour.
        let format = header.isConverted(options) && picture.format == .gray8 ? PixelFormat.rgb8 : picture.format
        guard let finished = try? PixelLayout(format: format, width: size.width, height: size.height) else {
            return .max
        }
        return max(finishing, transform.byteCount(finished))
    }

    /// A stored picture as it is given out.
    ///
    /// - Throws: What the resize and the transforms throw, `ImageError`, `CancellationError`.
    func render(_ stored: Image, header: ImageHeader, options: DecodeOptions) throws -> Image {
        let finished = try header.finish(self.resize(stored), options: options)
        return try self.transform?.image(finished) ?? finished
    }
}
