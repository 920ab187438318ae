// SPDX-License-Identifier: Apache-2.0

public import TintypeCoding
public import TintypeTransforms

extension ImageRequest {
    /// The image to make of the bytes.
    ///
    /// Requests that differ in it have images of their own in the cache, made of the same bytes.
    public struct Rendering: Sendable, Hashable {
        /// The size to bring the image to, or `nil` for full size.
        public var thumbnail: Resize?
        /// The transforms to apply to the image, after ``thumbnail``.
        ///
        /// The decode includes the first transforms if they crop, resize, flip or turn the image. The loader applies
        /// the transforms to previews and to the frames of an animation, too.
        public var transforms: TransformPipeline
        /// The bytes of pixels, four for each pixel, that an image without a thumbnail may have, or `nil` for no limit.
        ///
        /// The decode scales a larger image down to that, before the transforms.
        public var scaleDownLimit: Int?
        /// The scale of the image, or `nil` to read it from `@2x` or `@3x` at the end of the URL's name.
        ///
        /// It becomes `Image.scale`, whichever tier the image comes from. The pixels are the same.
        public var scale: Double?
        /// The coder that decodes the image, or `nil` to choose one of the registered coders.
        public var coder: Named<any ImageCoder>?

        /// The usual limit for ``scaleDownLimit``: 60 MiB, which is 15.7 megapixels.
        public static let defaultScaleDownLimit = 60 << 20

        /// Creates a rendering; by default of the whole image at full size.
        ///
        /// ```swift
        /// request.rendering = .init(thumbnail: .width(800), transforms: [.sharpen()])
        /// ```
        public init(
            thumbnail: Resize? = nil,
            transforms: TransformPipeline = [],
            scaleDownLimit: Int? = nil,
            scale: Double? = nil,
            coder: Named<any ImageCoder>? = nil
        ) {
            self.thumbnail = thumbnail
            self.transforms = transforms
            self.scaleDownLimit = scaleDownLimit
            self.scale = scale
            self.coder = coder
        }
    }
}
