package import TintypeCoding
package import TintypeTransforms

/// The part of a request that says how the bytes become an image.
package struct RenderingRequest: Sendable {
    /// The size of the image; `nil` keeps the stored size.
    package var thumbnail: Resize?
    /// The transforms after the resize.
    package var transforms: TransformPipeline
    /// The most bytes of pixels that an image without a thumbnail may have; `nil` is no limit.
    package var scaleDownLimit: Int?
    /// The pixels for each point of the image.
    package var scale: Double
    /// A coder to use instead of the registered ones.
    package var coder: (any ImageCoder)?
    /// The name that tells ``coder`` apart from others.
    package var coderName: String?
    /// The limits of the decode; `nil` takes those of the pipeline.
    package var limits: DecodingLimits?
    /// Whether an image whose end is missing is decoded as far as it goes.
    package var allowsTruncated: Bool
    /// Whether the image keeps its samples and its profile instead of becoming sRGB.
    package var keepsColorProfile: Bool
    /// Whether an animation is decoded as the still image of its first frame.
    package var firstFrameOnly: Bool

    /// Creates a request; by default for the whole image, upright and in sRGB.
    package init(
        thumbnail: Resize? = nil,
        transforms: TransformPipeline = [],
        scaleDownLimit: Int? = nil,
        scale: Double = 1,
        coder: (any ImageCoder)? = nil,
        coderName: String? = nil,
        limits: DecodingLimits? = nil,
        allowsTruncated: Bool = false,
        keepsColorProfile: Bool = false,
        firstFrameOnly: Bool = false
    ) {
        self.thumbnail = thumbnail
        self.transforms = transforms
        self.scaleDownLimit = scaleDownLimit
        self.scale = scale
        self.coder = coder
        self.coderName = coderName
        self.limits = limits
        self.allowsTruncated = allowsTruncated
        self.keepsColorProfile = keepsColorProfile
        self.firstFrameOnly = firstFrameOnly
    }

    /// Names the way in which the codec decodes the bytes, whatever the size of the image.
    package var decodingName: String {
        let coder = self.coderName.map { "\($0.debugDescription)" } ?? ""
        let limits = self.limits.map { "\($0)" } ?? ""
        return "\(coder), \(self.allowsTruncated), \(self.keepsColorProfile), \(limits)"
    }
}

extension DecodeOptions {
    /// The options that `request` asks for, except the size.
    init(_ request: RenderingRequest, limits: DecodingLimits) {
        self.init(
            limits: limits,
            allowsTruncated: request.allowsTruncated,
            color: request.keepsColorProfile ? .keep : .convert(.relativeColorimetric),
            scale: request.scale
        )
    }
}
