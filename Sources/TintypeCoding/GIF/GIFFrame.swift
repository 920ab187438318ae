// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// One frame of a GIF as its blocks describe it, without pixels.
///
/// The type is small, because a file may contain very many frames. Source: GIF89a, sections 20, 22 and 23.
struct GIFFrame: Sendable {
    /// The column of the logical screen where the frame begins.
    var left: UInt16
    /// The row of the logical screen where the frame begins.
    var top: UInt16
    /// The width of the frame in pixels.
    var width: UInt16
    /// The height of the frame in pixels.
    var height: UInt16
    /// Whether the rows are stored in four passes.
    var isInterlaced: Bool
    /// The bits of the first code, less one.
    var minimumCodeSize: UInt8
    /// The index that is not drawn, or `nil`.
    var transparentIndex: UInt8?
    /// How the frame's area changes after the frame was shown.
    var disposal: AnimationFrame.Disposal
    /// How long the frame is shown, in 1/100 s as stored.
    var delay: UInt16
    /// The colours, or `nil` if the file defines no colours.
    var palette: GIFPaletteLocation?
    /// The offset of the first block of codes in the file.
    var dataOffset: Int

    /// Whether a pixel of the frame may be transparent, which requires that codes can name the transparent index.
    var hasTransparency: Bool {
        guard let transparentIndex else { return false }
        return self.minimumCodeSize >= 8 || transparentIndex < 1 << self.minimumCodeSize
    }

    /// Returns the size of the frame's part on a screen of a given size; its sides may be 0.
    func visibleSize(width: Int, height: Int) -> (width: Int, height: Int) {
        (
            min(Int(self.width), max(0, width - Int(self.left))),
            min(Int(self.height), max(0, height - Int(self.top)))
        )
    }

    /// Returns whether the frame fills a screen of a given size.
    func covers(width: Int, height: Int) -> Bool {
        self.left == 0 && self.top == 0 && self.width >= width && self.height >= height
    }
}

/// The place of a colour table in the file.
struct GIFPaletteLocation: Sendable {
    /// The offset of the first byte.
    var offset: Int
    /// The number of colours, 2 to 256.
    var count: Int
}

/// The colours of a frame as pixels: red in the lowest byte, then green, blue and alpha.
struct GIFPalette: Sendable {
    /// The 256 pixels.
    ///
    /// Colours that the file does not define are black, and the transparent one is all zero.
    let pixels: [UInt32]

    /// Reads a colour table; missing colours are black.
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
