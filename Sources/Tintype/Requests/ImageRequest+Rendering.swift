import TintypeRendering

extension ImageRequest {
    /// The part of the request that says how the bytes become an image.
    var rendering: RenderingRequest {
        RenderingRequest(
            thumbnail: self.thumbnail,
            transforms: self.transforms,
            scaleDownLimit: self.scaleDownLimit,
            scale: self.pictureScale,
            coder: self.coder?.coder,
            coderName: self.coder?.name,
            limits: self.decodingLimits,
            allowsTruncated: self.options.contains(.allowTruncated),
            keepsColorProfile: self.options.contains(.keepColorProfile),
            firstFrameOnly: self.options.contains(.firstFrameOnly)
        )
    }
}
