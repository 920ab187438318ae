public import TintypeImage

extension Image {
    /// The image brought to a size; itself when it has that size already.
    ///
    /// Alpha is premultiplied while filtering, so that hidden colours don't bleed.
    ///
    /// - Throws: `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    public func resized(_ resize: Resize) throws -> Image {
        let geometry = try ResizeGeometry(resize, width: self.width, height: self.height)
        return try self.resized(geometry, resize.resampling)
    }

    /// The part and size that `geometry` names.
    ///
    /// - Throws: `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    package func resized(_ geometry: ResizeGeometry, _ resampling: Resampling) throws -> Image {
        guard !geometry.isIdentity(width: self.width, height: self.height) else { return self }
        if let part = geometry.copiedPart(width: self.width, height: self.height) {
            return self.replacingPixels(try self.pixels.cut(to: part), orientation: self.orientation)
        }
        let rows = SourceRows(self.pixels)
        let pixels = try RowResampler(rows, geometry: geometry, resampling: resampling).resample()
        return self.replacingPixels(pixels, orientation: self.orientation)
    }

    /// An image made from rows that are read once, from the top.
    ///
    /// It needs no more memory than the result and a strip.
    ///
    /// - Throws: What the source throws, `ImageError` when memory runs out, `CancellationError`.
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
