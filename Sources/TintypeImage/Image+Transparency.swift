extension Image {
    /// Whether any pixel is not opaque; looks at every pixel of a picture with alpha.
    public var hasTransparency: Bool {
        guard self.hasAlpha else { return false }
        let plane = self.pixels.layout.planes[0]
        return self.pixels.withUnsafeBytes { bytes in
            (0..<plane.height).contains { row in
                let start = row * plane.bytesPerRow
                return stride(from: start + 3, to: start + plane.usedBytesPerRow, by: 4).contains { bytes[$0] != 255 }
            }
        }
    }
}
