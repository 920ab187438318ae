// SPDX-License-Identifier: Apache-2.0

package import TintypeImage

/// The size and the place of a watermark on a result.
package struct WatermarkGeometry: Sendable, Hashable {
    /// The place of the watermark on the result with its padding.
    ///
    /// It may lie partly outside. If the watermark is repeated, this is the copy in the centre.
    package let box: PixelRectangle
    /// Whether copies fill the result.
    package let isRepeated: Bool
    /// The gap between two copies side by side, in pixels; 0 without copies.
    package let horizontalGap: Int
    /// The gap between two copies on top of each other, in pixels; 0 without copies.
    package let verticalGap: Int

    /// Creates the geometry of a watermark of a size in pixels.
    package init(_ option: WatermarkOption, on result: ResultGeometry, width: Int, height: Int) {
        let canvas = result.size
        let (width, height) = (max(1, width), max(1, height))
        var size = PixelSize(width: width, height: height)
        if option.scale > 0 {
            // Reduce or enlarge the watermark to fit its share of the result.
            let box = (
                width: max(1, Rounding.nearest(Double(canvas.width) * option.scale)),
                height: max(1, Rounding.nearest(Double(canvas.height) * option.scale))
            )
            let factor = max(Double(width) / Double(box.width), Double(height) / Double(box.height))
            size = PixelSize(
                width: max(1, Rounding.nearest(Double(width) / factor)),
                height: max(1, Rounding.nearest(Double(height) / factor))
            )
        }
        let position = option.position
        let ratio = result.pixelRatio
        self.isRepeated = position.kind == .tile
        if self.isRepeated {
            self.horizontalGap = max(0, GravityOption.pixels(position.x, of: canvas.width, pixelRatio: ratio))
            self.verticalGap = max(0, GravityOption.pixels(position.y, of: canvas.height, pixelRatio: ratio))
            self.box = GravityOption().place(size, in: canvas, pixelRatio: ratio, overhangs: true)
        } else {
            (self.horizontalGap, self.verticalGap) = (0, 0)
            self.box = position.place(size, in: canvas, pixelRatio: ratio, overhangs: true)
        }
    }
}
