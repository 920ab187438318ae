import TintypeImage

/// One coded picture of a WebP: a still, or a frame of an animation.
struct WebPCodedPicture {
    /// Where it lies on the canvas and how it is drawn there; a still covers its canvas.
    var frame: AnimationFrame
    /// How long a frame is shown, as stored.
    var milliseconds = 0
    /// Where its chunks lie in the file, as far as they are there: ALPH, and VP8 or VP8L.
    ///
    /// libwebp decodes this part by itself.
    var bytes: Range<Int>
    /// Where its chunks end according to their sizes.
    var end: Int
    /// Whether it is VP8L.
    var isLossless: Bool
    /// How many of the bytes come before those of a lossy picture's first row: its first partition says how each
    /// block is predicted.
    var preludeByteCount = 0

    /// The bytes of memory that libwebp needs to decode it, besides those of the output.
    var codecByteCount: Int {
        // Lossless pictures refer to all that went before: they are held whole, in four bytes a pixel. Lossy
        // ones take some rows; their alpha is a lossless picture by itself, and a plane of bytes.
        let pixels = self.frame.width * self.frame.height
        if self.isLossless { return pixels * 4 }
        // Blocks without detail take no bytes, so that all rows of a flat picture come at once.
        let isFlat = (self.end - self.bytes.lowerBound - self.preludeByteCount) * 256 < pixels
        return self.frame.width * 128 + (self.frame.hasAlpha ? pixels * 5 : 0) + (isFlat ? pixels * 4 : 0)
    }

    /// How a still is laid out at its own ratio: as large as suffices, and never larger than stored.
    func layout(sufficientSize: PixelSize?) throws(ImageError) -> PixelLayout {
        var scale = 1.0
        if let size = sufficientSize, size.width > 0, size.height > 0 {
            scale = min(
                1,
                max(Double(size.width) / Double(self.frame.width), Double(size.height) / Double(self.frame.height))
            )
        }
        return try PixelLayout(
            format: self.frame.hasAlpha ? .rgba8 : .rgb8,
            width: max(1, Int((Double(self.frame.width) * scale).rounded())),
            height: max(1, Int((Double(self.frame.height) * scale).rounded()))
        )
    }
}
