public import TintypeImage

/// What a coder gives out: a picture, perhaps smaller than stored, and how exactly it covers it.
public struct DecodedImage: Sendable {
    /// The pixels as stored, with the orientation that makes them upright.
    public let image: Image
    /// How many columns of the picture hold content: below its width by less than one pixel where a scaled decode
    /// rounded up.
    ///
    /// A resize that knows it shifts nothing.
    public let coveredWidth: Double
    /// How many rows of the picture hold content.
    public let coveredHeight: Double

    /// Wraps a picture; without sizes it is covered whole.
    public init(_ image: Image, coveredWidth: Double? = nil, coveredHeight: Double? = nil) {
        self.image = image
        self.coveredWidth = coveredWidth ?? Double(image.width)
        self.coveredHeight = coveredHeight ?? Double(image.height)
    }
}
