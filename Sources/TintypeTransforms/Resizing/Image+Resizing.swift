public import TintypeImage

extension Image {
    /// The picture brought to a size; itself when it has that size already.
    ///
    /// Alpha is premultiplied while filtering, so that hidden colours don't bleed. The filter
    /// works on the stored sRGB values, as the peers do by default.
    ///
    /// - Throws: `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    public func resized(_ resize: Resize) throws -> Image {
        let geometry = try ResizeGeometry(resize, width: self.width, height: self.height)
        return try self.resized(geometry, filter: resize.filter)
    }

    /// The part and size that `geometry` names.
    ///
    /// - Throws: `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    public func resized(_ geometry: ResizeGeometry, filter: Resize.Filter) throws -> Image {
        guard !geometry.isIdentity(width: self.width, height: self.height) else { return self }
        if geometry.isResampledByRows(width: self.width, height: self.height, format: self.pixels.format) {
            let rows = PixelBufferRows(self.pixels)
            let pixels = try RowResampler(rows, geometry: geometry, filter: filter).resample()
            return self.replacingPixels(pixels, orientation: self.orientation)
        }
        let pixels = try Resampler(source: self.pixels, geometry: geometry, filter: filter).resample()
        return self.replacingPixels(pixels, orientation: self.orientation)
    }

    /// A picture made from rows that are read once, from the top.
    ///
    /// It needs no more memory than the result and a strip; with pixels that are there,
    /// ``resized(_:filter:)`` is faster.
    ///
    /// - Throws: What the source throws, `ImageError` when memory runs out, `CancellationError`.
    public static func resampling(
        _ rows: any RowSource,
        _ geometry: ResizeGeometry,
        filter: Resize.Filter
    ) throws -> Image {
        Image(pixels: try RowResampler(rows, geometry: geometry, filter: filter).resample())
    }
}
