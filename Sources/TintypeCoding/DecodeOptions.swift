public import TintypeImage

/// How bytes become pixels.
public struct DecodeOptions: Sendable, Hashable {
    /// What the image may cost.
    public var limits: DecodingLimits
    /// The stored size that the caller can do with: a coder that can decode to a smaller size cheaply gives any
    /// size that is at least this large on both sides.
    ///
    /// `nil` is full size.
    public var sufficientSize: PixelSize?
    /// Whether an image whose end is missing, or that is damaged on the way, is decoded as far as it goes.
    ///
    /// What is missing is black, or transparent where the image has alpha.
    public var allowsTruncated: Bool
    /// Which frame of an animation is decoded, as composited on its canvas; default 0.
    public var frame: Int
    /// What becomes of an embedded colour profile; by default samples are converted to sRGB.
    public var color: ColorHandling
    /// The scale that the image is given; default 1.
    public var scale: Double

    /// Options for a full-size, complete image.
    public init(
        limits: DecodingLimits = DecodingLimits(),
        sufficientSize: PixelSize? = nil,
        allowsTruncated: Bool = false,
        frame: Int = 0,
        color: ColorHandling = .convert(.relativeColorimetric),
        scale: Double = 1
    ) {
        self.limits = limits
        self.sufficientSize = sufficientSize
        self.allowsTruncated = allowsTruncated
        self.frame = frame
        self.color = color
        self.scale = scale
    }
}

/// What becomes of an embedded colour profile.
public enum ColorHandling: Sendable, Hashable {
    /// How colours outside the target's range are brought into it (ICC.1, section 6.2).
    public enum Intent: Sendable, Hashable {
        /// Colours inside the range stay, those outside are cut off. Whites match.
        case relativeColorimetric
        /// The whole range is compressed so that relations look right.
        case perceptual
    }

    /// Samples are converted to sRGB.
    case convert(Intent)
    /// Samples stay as they are, and the image carries the profile.
    case keep
    /// Samples stay as they are and are taken for sRGB.
    case ignore
}
