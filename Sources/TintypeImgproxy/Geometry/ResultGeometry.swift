// SPDX-License-Identifier: Apache-2.0

package import TintypeImage

/// The sizes and places of all steps from a source to a result.
///
/// The steps are: turn and flip, cut out `crop`, resize to `scaled`, cut out `resultCrop`, put that at `position` on a
/// `canvas`, and surround the canvas with `padding`. All boxes lie in the image as it is finally seen: after the
/// orientation in the metadata, the rotation and the flips.
///
/// A border is removed before these steps, so the source has its size without the border.
package struct ResultGeometry: Sendable, Hashable {
    /// The size of the source after the rotation.
    package let source: PixelSize
    /// The part of the source that is resized.
    package let crop: PixelRectangle
    /// The size of the part after the resize.
    ///
    /// A side can be far longer than the result if the aspect ratios differ much. A renderer must not store all of it.
    package let scaled: PixelSize
    /// The part of the resized image that is kept.
    package let resultCrop: PixelRectangle
    /// The size of the canvas.
    ///
    /// It is the size of `resultCrop` if nothing extends it.
    package let canvas: PixelSize
    /// The place of the image on the canvas.
    package let position: PixelRectangle
    /// The widths of the area around the canvas, in pixels.
    package let padding: PaddingOption
    /// The pixels for each pixel of the options: `dpr` after all limits.
    package let pixelRatio: Double

    /// Creates the geometry of a result.
    ///
    /// The size of the source is the one after the orientation in its metadata, if that is applied, and before the
    /// option `rotate`.
    package init(_ options: ProcessingOptions, sourceWidth: Int, sourceHeight: Int) {
        let upright = PixelSize(width: Self.side(sourceWidth), height: Self.side(sourceHeight))
        self.source = options.rotation % 180 == 0 ? upright : upright.transposed
        let size = PixelSize(
            width: Self.croppedSide(options.crop.width, of: self.source.width),
            height: Self.croppedSide(options.crop.height, of: self.source.height)
        )
        let gravity = options.crop.gravity ?? options.gravity
        self.crop = gravity.place(size, in: self.source, pixelRatio: 1)

        var scale = ResultScale(options, area: size)
        var outcome = ResultOutcome(options, area: size, scale: scale)
        let limit = options.limits.effectiveResultSide
        // Rounding can leave a pixel too many, so shrink again if necessary. Each turn removes a pixel or more, so the
        // loop ends at the latest when each side has one pixel. No limit is less than that.
        while outcome.size.longerSide > limit {
            scale.shrink(by: Double(limit) / Double(outcome.size.longerSide), area: size)
            outcome = ResultOutcome(options, area: size, scale: scale)
        }
        self.scaled = outcome.scaled
        self.resultCrop = outcome.crop
        self.canvas = outcome.canvas
        self.position = outcome.position
        self.padding = outcome.padding
        self.pixelRatio = scale.pixelRatio
    }

    /// The size of the result, with the padding.
    package var size: PixelSize { self.canvas.padded(self.padding) }

    private static func side(_ side: Int) -> Int { min(max(side, 1), Int(Int32.max)) }

    /// Returns a side of the part that the option cuts out.
    private static func croppedSide(_ option: Double, of side: Int) -> Int {
        guard option > 0 else { return side }
        return min(side, max(1, Rounding.nearest(option < 1 ? option * Double(side) : option.rounded(.down))))
    }
}

extension PixelSize {
    func padded(_ padding: PaddingOption) -> PixelSize {
        PixelSize(
            width: self.width + padding.left + padding.right,
            height: self.height + padding.top + padding.bottom
        )
    }
}

extension PixelSize {
    /// The longer side.
    var longerSide: Int { max(self.width, self.height) }

    /// The size after a turn by 90 degrees.
    var transposed: PixelSize { PixelSize(width: self.height, height: self.width) }
}

extension PixelRectangle {
    package var size: PixelSize { PixelSize(width: self.width, height: self.height) }
}
