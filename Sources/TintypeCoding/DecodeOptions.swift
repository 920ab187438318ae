// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// Options for decoding an image.
public struct DecodeOptions: Sendable, Hashable {
    /// The most that the image may cost.
    public var limits: DecodingLimits
    /// The stored size that is sufficient for the caller; `nil`, the default, is full size.
    ///
    /// A coder that can decode to a smaller size cheaply may return any size that is at least this large on both sides.
    public var sufficientSize: PixelSize?
    /// Whether a damaged image, or one whose end is missing, is decoded as far as possible; `false` by default.
    ///
    /// The missing part is black, or transparent if the image has alpha.
    public var allowsTruncated: Bool
    /// The index of the frame of an animation to decode, composited on its canvas; 0 by default.
    public var frame: Int
    /// How an embedded colour profile is handled; by default samples are converted to sRGB.
    public var color: ColorHandling
    /// The scale of the resulting image; 1 by default.
    public var scale: Double

    /// Creates options, by default for a full-size, complete image.
    ///
    /// ```swift
    /// let options = DecodeOptions(sufficientSize: PixelSize(width: 400, height: 300), allowsTruncated: true)
    /// let image = try ImageDecoder(data, registry: CoderRegistry()).decode(options: options)
    /// ```
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

/// How an embedded colour profile is handled.
public enum ColorHandling: Sendable, Hashable {
    /// How colours outside the target's range are brought into it (ICC.1, section 6.2).
    public enum Intent: Sendable, Hashable {
        /// Colours inside the range stay, colours outside are cut off.
        ///
        /// Whites match.
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
