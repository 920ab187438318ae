import FoundationEssentials

/// The colours of an image as pixels: red in the lowest byte, then green, blue and alpha.
struct GIFPalette: Sendable {
    /// 256 pixels.
    ///
    /// What the file leaves out is black, and the transparent one is all zero.
    let pixels: [UInt32]

    /// Reads a colour table; what is missing of it is black.
    init(_ location: GIFPaletteLocation?, transparentIndex: UInt8?, in data: Data) {
        var pixels = [UInt32](repeating: 0xFF00_0000, count: 256)
        if let location {
            for index in 0..<min(location.count, pixels.count) {
                guard let color = data.uint24LittleEndian(at: location.offset + index * 3) else { break }
                pixels[index] |= UInt32(color)
            }
        }
        if let transparentIndex { pixels[Int(transparentIndex)] = 0 }
        self.pixels = pixels
    }
}
