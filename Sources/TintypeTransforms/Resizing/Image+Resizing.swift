// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

extension Image {
    /// Returns the image resized, or the image itself if it already has the size.
    ///
    /// Alpha is premultiplied during filtering, so that invisible colours do not bleed.
    ///
    /// ```swift
    /// let small = try image.resized(.fit(width: 400, height: 300))
    /// ```
    ///
    /// - Throws: `TransformError`, `ImageError` if memory runs out, `CancellationError`.
    public func resized(_ resize: Resize) throws -> Image {
        let geometry = try ResizeGeometry(resize, width: self.width, height: self.height)
        return try self.resized(geometry, resize.resampling)
    }

    /// Returns the image with the part and size of `geometry`.
    ///
    /// - Throws: `TransformError`, `ImageError` if memory runs out, `CancellationError`.
    package func resized(_ geometry: ResizeGeometry, _ resampling: Resampling) throws -> Image {
        guard !geometry.isIdentity(width: self.width, height: self.height) else { return self }
        if let part = geometry.copiedPart(width: self.width, height: self.height) {
            return self.replacingPixels(try self.pixels.cut(to: part), orientation: self.orientation)
        }
        let rows = SourceRows(self.pixels)
        let pixels = try RowResampler(rows, geometry: geometry, resampling: resampling).resample()
        return self.replacingPixels(pixels, orientation: self.orientation)
    }

    /// Returns an image resampled from rows that are read once, from the top.
    ///
    /// It needs only the memory of the result and of a strip.
    ///
    /// - Throws: The errors of the source, `ImageError` if memory runs out, `CancellationError`.
    package static func resampling(
        _ rows: any RowSource,
        _ geometry: ResizeGeometry,
        _ resampling: Resampling
    ) throws -> Image {
        let source = SourceRows(rows)
        if let part = geometry.copiedPart(width: source.layout.width, height: source.layout.height) {
            return Image(pixels: try source.cut(to: part), damage: rows.damage)
        }
        let pixels = try RowResampler(source, geometry: geometry, resampling: resampling).resample()
        return Image(pixels: pixels, damage: rows.damage)
    }
}
