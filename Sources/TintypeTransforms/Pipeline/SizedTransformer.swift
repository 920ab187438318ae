// SPDX-License-Identifier: Apache-2.0

package import TintypeImage

/// A transform that consists of other transforms, which depend on the size of the image.
///
/// A pipeline replaces it by these transforms as soon as it knows the size, and does the same work as if they had been
/// written out. At the start of a pipeline, and after other crops, turns and a resize, the header of the file tells the
/// size. The decode then includes the transforms that replace this one.
package protocol SizedTransformer: ImageTransformer {
    /// Returns the transforms of an upright image of `size`.
    ///
    /// Equal keys must mean equal transforms for each size.
    ///
    /// - Throws: `TransformError` if a parameter is invalid, or invalid for such an image.
    func transforms(for size: PixelSize) throws(TransformError) -> TransformPipeline
}

extension SizedTransformer {
    package func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try self.transforms(for: PixelSize(width: source.width, height: source.height)).footprint(for: source)
    }

    package func transform(_ image: Image) throws -> Image {
        let image = try image.upright()
        return try self.transforms(for: PixelSize(width: image.width, height: image.height)).transform(image)
    }
}
