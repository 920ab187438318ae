// SPDX-License-Identifier: Apache-2.0

import Tintype

/// The pixels of an upright image, as they are written to terminals.
struct TerminalPixels: Equatable {
    /// The least alpha of a visible pixel on terminals that know only opaque ones.
    private static let opaqueAlpha: UInt32 = 128

    let width: Int
    let height: Int
    /// Red in the lowest byte, then green, blue and alpha; row by row without padding.
    private(set) var pixels: [UInt32]

    /// Reads the pixels of an image.
    init(_ buffer: PixelBuffer) {
        let plane = buffer.layout.planes[0]
        let channels = buffer.format.channelCount
        self.width = buffer.width
        self.height = buffer.height
        self.pixels = Array(repeating: 0, count: buffer.width * buffer.height)
        let (width, height) = (self.width, self.height)
        self.pixels.withUnsafeMutableBufferPointer { pixels in
            buffer.withUnsafeBytes { bytes in
                for row in 0..<height {
                    var offset = plane.offset + row * plane.bytesPerRow
                    for place in row * width..<(row + 1) * width {
                        switch channels {
                        case 4:
                            pixels[place] = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self).littleEndian
                        case 3:
                            pixels[place] =
                                0xFF00_0000 | UInt32(bytes[offset + 2]) << 16 | UInt32(bytes[offset + 1]) << 8
                                | UInt32(bytes[offset])
                        default: pixels[place] = 0xFF00_0000 | 0x01_0101 * UInt32(bytes[offset])
                        }
                        offset += channels
                    }
                }
            }
        }
    }

    /// Whether any pixel is not opaque.
    var isTransparent: Bool { self.pixels.contains { $0 < 0xFF00_0000 } }

    /// The pixels for terminals without alpha: opaque, or zero for invisible ones.
    var masked: [UInt32] {
        self.pixels.map { $0 >> 24 < Self.opaqueAlpha ? 0 : $0 | 0xFF00_0000 }
    }
}
