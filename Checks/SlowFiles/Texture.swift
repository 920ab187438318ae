// SPDX-License-Identifier: Apache-2.0

import TintypeImage
import TintypeTestSupport

/// Pixels for an encoder: flat (0), a gradient (1), noise (2), or noise on a gradient (3).
enum Texture {
    static func image(_ kind: Int, width: Int, height: Int, _ random: SeededGenerator) throws -> Image {
        var random = random
        let layout = try PixelLayout(format: .rgba8, width: width, height: height)
        let plane = layout.planes[0]
        let pixels = try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                for row in 0..<height {
                    for column in 0..<width {
                        let slope = kind & 1 == 1 ? row * 255 / height ^ column * 255 / width : 100
                        let noise = kind >= 2 ? Int(random.next() & 0x3F3F3F) : 0
                        let pixel = UInt32(truncatingIfNeeded: slope * 0x010101 + noise) | 0xFF00_0000
                        target.storeBytes(
                            of: pixel,
                            toByteOffset: row * plane.bytesPerRow + column * 4,
                            as: UInt32.self
                        )
                    }
                }
            }
        )
        return Image(pixels: pixels)
    }
}
