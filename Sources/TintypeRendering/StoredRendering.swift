// SPDX-License-Identifier: Apache-2.0

import TintypeCoding
package import TintypeImage

/// The way from a stored preview or frame of a file to the image that is shown.
///
/// It is resized, finished (brought to sRGB and turned), and transformed.
package struct StoredRendering: Sendable {
    /// The stored size that suffices.
    let sufficientSize: PixelSize
    /// The stored size after the resize.
    let size: PixelSize
    /// The turn after the resize.
    let orientation: Orientation
    /// The bytes that the resize takes in addition to its source and its result.
    let byteCount: @Sendable (_ source: PixelLayout) -> Int
    /// Resizes a whole image that is not turned, and marks the result with its turn.
    let resize: @Sendable (_ stored: Image) throws -> Image
    /// The transforms of a finished image; `nil` without transforms.
    let transform: Transform?

    /// Transforms of finished images.
    package struct Transform: Sendable {
        let byteCount: @Sendable (_ finished: PixelLayout) -> Int
        let image: @Sendable (_ finished: Image) throws -> Image

        /// Describes transforms.
        ///
        /// - Parameters:
        ///   - byteCount: The most bytes that they take at once, with the image and the result.
        ///   - image: Transforms an image.
        package init(
            byteCount: @escaping @Sendable (_ finished: PixelLayout) -> Int,
            image: @escaping @Sendable (_ finished: Image) throws -> Image
        ) {
            self.byteCount = byteCount
            self.image = image
        }
    }

    /// Describes a rendering.
    ///
    /// - Parameters:
    ///   - sufficientSize: The stored size that suffices: decoders may give less than the whole.
    ///   - size: The stored size after the resize.
    ///   - orientation: The turn after the resize.
    ///   - byteCount: The bytes that the resize takes in addition to its source and its result.
    ///   - resize: Resizes a whole image that is not turned, and marks the result with its turn.
    ///   - transform: The transforms of the finished image.
    package init(
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

    /// The bytes of a resized image and its copies while it is finished and transformed.
    func finishingByteCount(of image: PixelLayout, header: ImageHeader, options: DecodeOptions) -> Int {
        let finishing = header.finishingByteCount(
            of: image.byteCount,
            as: image.format,
            orientation: self.orientation,
            options: options
        )
        guard let transform else { return finishing }
        let size = self.orientation.uprightSize(width: image.width, height: image.height)
        // The conversion may turn gray into colour.
        let format = header.isConverted(options) && image.format == .gray8 ? PixelFormat.rgb8 : image.format
        guard let finished = try? PixelLayout(format: format, width: size.width, height: size.height) else {
            return .max
        }
        return max(finishing, transform.byteCount(finished))
    }

    /// Makes the image that is shown of a stored one.
    ///
    /// - Throws: The errors of the resize and the transforms, `ImageError`, `CancellationError`.
    func render(_ stored: Image, header: ImageHeader, options: DecodeOptions) throws -> Image {
        let finished = try header.finish(self.resize(stored), options: options)
        return try self.transform?.image(finished) ?? finished
    }
}
