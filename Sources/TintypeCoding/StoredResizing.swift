public import TintypeImage

/// How the stored pictures of one file, its previews or frames, are brought to the size that is wanted of them.
public struct StoredResizing: Sendable {
    /// The stored size that suffices.
    let sufficientSize: PixelSize
    /// The stored size of what comes of it.
    let size: PixelSize
    /// The bytes that it takes besides what it is given and what it gives.
    let byteCount: @Sendable (_ source: PixelLayout) -> Int
    /// Resizes a picture, which is not turned and covers the whole.
    let resize: @Sendable (_ stored: Image) throws -> Image

    /// Describes a resize.
    ///
    /// - Parameters:
    ///   - sufficientSize: The stored size that suffices: decoders may give less than the whole.
    ///   - size: The stored size of what comes of it.
    ///   - byteCount: The bytes that it takes besides what it is given and what it gives.
    ///   - resize: Resizes a picture, which is not turned and covers the whole.
    public init(
        sufficientSize: PixelSize,
        size: PixelSize,
        byteCount: @escaping @Sendable (_ source: PixelLayout) -> Int,
        resize: @escaping @Sendable (_ stored: Image) throws -> Image
    ) {
        self.sufficientSize = sufficientSize
        self.size = size
        self.byteCount = byteCount
        self.resize = resize
    }
}
