import TintypeImage

/// One coded picture of a WebP: a still, or a frame of an animation.
struct WebPCodedPicture {
    /// Where it lies on the canvas and how it is drawn there; a still covers its canvas.
    var frame: AnimationFrame
    /// How long a frame is shown, as stored.
    var milliseconds = 0
    /// Where its chunks lie in the file, as far as they are there: ALPH, and VP8 or VP8L.
    ///
    /// This part can be decoded by itself.
    var bytes: Range<Int>
    /// Where its chunks end according to their sizes.
    var end: Int
    /// Whether it is VP8L.
    var isLossless: Bool
    /// How many of the bytes come before those of a lossy picture's first row: its first partition says how each
    /// block is predicted.
    var preludeByteCount = 0

    /// The bytes that its coded pixels and its tables take, where it is VP8L.
    var losslessByteCount = 0

    /// The bytes of memory that the decoder needs to decode it, besides those of the output.
    var codecByteCount: Int {
        // Lossless pictures refer to all that went before: they are held whole, in four bytes a pixel. Lossy
        // ones take some rows; their alpha is a lossless picture by itself, and a plane of bytes.
        let pixels = self.frame.width * self.frame.height
        if self.isLossless { return self.losslessByteCount }
        let rows = self.frame.width * (WebPPictureDecoder.isInSteps(self) ? 260 : 150)
        return rows + (self.frame.hasAlpha ? pixels * 5 : 0)
    }

    /// The bytes of a frame's own pixels, where it can't be decoded straight onto the canvas.
    func frameByteCount(isFirst: Bool) -> Int {
        guard !isFirst, !self.isDrawnDirectly else { return 0 }
        return (self.frame.width * 4 + PixelLayout.alignment) * self.frame.height
    }

    /// The content of the chunk of a lossless picture, of the file's bytes.
    func losslessStream(of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = min(self.bytes.lowerBound + WebPChunk.headByteCount, self.bytes.upperBound)
        return UnsafeRawBufferPointer(rebasing: bytes[start..<self.bytes.upperBound])
    }

    /// Whether the pixels replace those of the canvas, so that they need not be mixed with them.
    var isDrawnDirectly: Bool { self.frame.blend == .source || !self.frame.hasAlpha }

    /// How a still is laid out at its own ratio: as large as suffices, and never larger than stored.
    ///
    /// Only lossy ones are decoded to a smaller size.
    func layout(sufficientSize: PixelSize?) throws(ImageError) -> PixelLayout {
        var scale = 1.0
        if let size = sufficientSize, !self.isLossless, size.width > 0, size.height > 0 {
            let (width, height) = (Double(self.frame.width), Double(self.frame.height))
            scale = min(1, max(Double(size.width) / width, Double(size.height) / height))
        }
        return try PixelLayout(
            format: self.frame.hasAlpha ? .rgba8 : .rgb8,
            width: max(1, Int((Double(self.frame.width) * scale).rounded())),
            height: max(1, Int((Double(self.frame.height) * scale).rounded()))
        )
    }
}
