// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport

/// Images and animations for tests, whose pixels have red in the lowest byte.
enum GIFSamples {
    struct Animation: Sendable, CustomTestStringConvertible {
        let name: String
        let width: Int
        let loopCount: Int
        let frames: [[UInt32]]

        var testDescription: String { self.name }
    }

    /// Returns one of very many colours.
    static func color(_ number: Int) -> UInt32 {
        UInt32(truncatingIfNeeded: number &* 0x0001_3579 &+ 0x0024_6813) & 0xFF_FFFF | 0xFF00_0000
    }

    static func image(_ pixels: [UInt32], width: Int) throws -> Image {
        let layout = try PixelLayout(format: .rgba8, width: width, height: pixels.count / width)
        let buffer = try PixelBuffer(layout) { bytes in
            for (place, pixel) in pixels.enumerated() {
                let offset = place / width * layout.planes[0].bytesPerRow + place % width * 4
                bytes.storeBytes(of: pixel.littleEndian, toByteOffset: offset, as: UInt32.self)
            }
        }
        return Image(pixels: buffer)
    }

    static func squaredDistance(_ first: UInt32, _ second: UInt32) -> Int {
        [0, 8, 16].reduce(0) { sum, shift in
            let difference = Int(first >> shift & 255) - Int(second >> shift & 255)
            return sum + difference * difference
        }
    }

    static let animations: [Animation] = [
        Self.random("few colours", colors: 20, transparency: 0, loopCount: 0),
        Self.random("few colours, transparent", colors: 20, transparency: 4, loopCount: 3),
        Self.random("255 colours, transparent", colors: 255, transparency: 9, loopCount: 1),
        Self.random("256 colours", colors: 256, transparency: 0, loopCount: 65_535),
        Self.random("256 colours, transparent", colors: 256, transparency: 30, loopCount: 0, size: 15),
        Self.random("a palette for each frame", colors: 220, transparency: 0, loopCount: 2, shift: 50, size: 15),
        Self.random("own palettes, transparent", colors: 220, transparency: 5, loopCount: 2, shift: 50, size: 15),
        Animation(
            name: "nothing changes",
            width: 2,
            loopCount: 0,
            frames: Array(repeating: [Self.color(1), 0, Self.color(2), 0], count: 3)
        ),
        Animation(
            name: "all goes away and comes back",
            width: 2,
            loopCount: 0,
            frames: [[1, 2, 3, 4], [0, 0, 0, 0], [1, 0, 0, 4], [1, 2, 3, 4]].map {
                $0.map { $0 == 0 ? 0 : Self.color($0) }
            }
        ),
    ]

    /// Returns an animation whose frames differ in some pixels.
    private static func random(
        _ name: String,
        colors: Int,
        transparency: Int,
        loopCount: Int,
        shift: Int = 0,
        size: Int = 40
    ) -> Animation {
        var generator = SeededGenerator(seed: UInt64(colors + transparency + shift))
        var pixels = (0..<size * size).map { Self.color($0 % colors) }
        let frames = (0..<6).map { frame in
            for _ in 0..<size {
                let isTransparent = transparency > 0 && Int.random(in: 0..<transparency, using: &generator) == 0
                let place = Int.random(in: 0..<pixels.count, using: &generator)
                let color = Int.random(in: 0..<colors, using: &generator) + shift * frame
                pixels[place] = isTransparent ? 0 : Self.color(color)
            }
            return pixels
        }
        return Animation(name: name, width: size, loopCount: loopCount, frames: frames)
    }
}
