import FoundationEssentials

/// One image of a GIF as its blocks describe it; no pixels.
///
/// Small, because a file may hold very many. Source: GIF89a, sections 20, 22 and 23.
struct GIFFrame: Sendable {
    /// The column of the logical screen where the image begins.
    var left: UInt16
    /// The row of the logical screen where the image begins.
    var top: UInt16
    /// The width of the image.
    var width: UInt16
    /// The height of the image.
    var height: UInt16
    /// Whether the rows are stored in four passes.
    var isInterlaced: Bool
    /// The bits of the first code, less one.
    var minimumCodeSize: UInt8
    /// The index that is not drawn.
    var transparentIndex: UInt8?
    /// What happens to the area afterwards.
    var disposal: AnimationFrame.Disposal
    /// How long it is shown, in 1/100 s as stored.
    var delay: UInt16
    /// The colours, or `nil` when the file gives none.
    var palette: GIFPaletteLocation?
    /// Where the first block of codes begins in the file.
    var dataOffset: Int

    /// Whether a pixel of the image may be transparent: codes below the first code size's limit can name the index.
    var hasTransparency: Bool {
        guard let transparentIndex else { return false }
        return self.minimumCodeSize >= 8 || transparentIndex < 1 << self.minimumCodeSize
    }

    /// The part of the image that lies on a screen of a size; its sides may be 0.
    func visibleSize(width: Int, height: Int) -> (width: Int, height: Int) {
        (
            min(Int(self.width), max(0, width - Int(self.left))),
            min(Int(self.height), max(0, height - Int(self.top)))
        )
    }

    /// Whether the image fills a screen of a size.
    func covers(width: Int, height: Int) -> Bool {
        self.left == 0 && self.top == 0 && self.width >= width && self.height >= height
    }
}

/// Where a colour table lies in the file.
struct GIFPaletteLocation: Sendable {
    /// The first byte.
    var offset: Int
    /// The number of colours, 2 to 256.
    var count: Int
}

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
