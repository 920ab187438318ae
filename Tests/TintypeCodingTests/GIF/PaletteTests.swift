// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeTestSupport

/// Palettes: distinct colours, the nearest colour of a palette, dithering, and the choice of colours.
@Suite struct PaletteTests {
    private static func pixels(_ count: Int, seed: UInt64, transparency: Int = .max) -> [UInt32] {
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { place in
            let color = UInt32.random(in: 0...0xFF_FFFF, using: &generator) | 0xFF00_0000
            return place % transparency == transparency - 1 ? 0 : color
        }
    }

    @Test(arguments: [1, 2, 15, 16, 17, 255, 256])
    func `each pixel gets the nearest colour`(count: Int) throws {
        let palette = Self.pixels(count, seed: 1)
        let row = Self.pixels(3_000, seed: 2, transparency: 7)
        var mapper = try PaletteMapper(palette: palette, transparentIndex: 99, width: row.count, isDithered: false)
        var indices = [UInt8](repeating: 0, count: row.count)
        // The mapper takes the second result from its cache.
        for _ in 0..<2 {
            mapper.map(row, to: &indices)
            for (pixel, index) in zip(row, indices) {
                guard pixel != 0 else {
                    #expect(index == 99)
                    continue
                }
                let least = palette.map { GIFSamples.squaredDistance($0, pixel) }.min()
                #expect(GIFSamples.squaredDistance(palette[Int(index)], pixel) == least)
            }
        }
    }

    @Test(arguments: [1, 2, 3, 64], [Int.max, 5])
    func `errors are spread as Floyd and Steinberg do`(width: Int, transparency: Int) throws {
        let palette: [UInt32] = [0xFF00_0000, 0xFFFF_FFFF, 0xFF20_80C0, 0xFFC0_4020]
        let pixels = Self.pixels(width * 20, seed: 3, transparency: transparency)
        var mapper = try PaletteMapper(palette: palette, transparentIndex: 4, width: width, isDithered: true)
        var dithered: [UInt8] = []
        var indices = [UInt8](repeating: 0, count: width)
        for start in stride(from: 0, to: pixels.count, by: width) {
            mapper.map(Array(pixels[start..<start + width]), to: &indices)
            dithered += indices
        }
        #expect(dithered == Self.dithered(pixels, width: width, palette, transparentIndex: 4))
    }

    /// Dithers as the algorithm is published, one channel at a time, with errors in sixteenths of a level.
    private static func dithered(
        _ pixels: [UInt32],
        width: Int,
        _ palette: [UInt32],
        transparentIndex: UInt8
    ) -> [UInt8] {
        var errors = [[Int]](repeating: [0, 0, 0], count: pixels.count)
        var indices = [UInt8](repeating: transparentIndex, count: pixels.count)
        func spread(_ error: [Int], _ share: Int, row: Int, column: Int) {
            guard (0..<width).contains(column), row < pixels.count / width else { return }
            for channel in 0..<3 { errors[row * width + column][channel] += error[channel] * share }
        }
        for row in 0..<pixels.count / width {
            let step = row % 2 == 0 ? 1 : -1
            for column in step == 1 ? Array(0..<width) : Array((0..<width).reversed()) {
                let place = row * width + column
                guard pixels[place] != 0 else { continue }
                let wanted = (0..<3).map { Self.sample(pixels[place], $0) + (errors[place][$0] + 8) >> 4 }
                let shown = Self.color(wanted.map { min(max($0, 0), 255) })
                let distances = palette.map { GIFSamples.squaredDistance($0, shown) }
                let index = distances.indices.min { distances[$0] < distances[$1] } ?? 0
                indices[place] = UInt8(index)
                let error = (0..<3).map { min(max(wanted[$0] - Self.sample(palette[index], $0), -64), 64) }
                spread(error, 7, row: row, column: column + step)
                spread(error, 3, row: row + 1, column: column - step)
                spread(error, 5, row: row + 1, column: column)
                spread(error, 1, row: row + 1, column: column + step)
            }
        }
        return indices
    }

    private static func sample(_ pixel: UInt32, _ channel: Int) -> Int { Int(pixel >> UInt32(8 * channel) & 255) }

    private static func color(_ samples: [Int]) -> UInt32 {
        0xFF00_0000 | UInt32(samples[2]) << 16 | UInt32(samples[1]) << 8 | UInt32(samples[0])
    }

    @Test func `a set holds 256 colours`() {
        let colors = (0..<256).map { GIFSamples.color($0) }
        var set = ColorSet()
        let isRoom = set.insert(opaque: colors + [0] + colors.reversed())
        #expect(isRoom)
        #expect(set.colors == colors)
        var indices = [UInt8](repeating: 9, count: 4)
        set.write([colors[255], 0, colors[3], colors[3]], missing: 77, to: &indices)
        #expect(indices == [255, 77, 3, 3])
        let isStillRoom = set.insert(opaque: [GIFSamples.color(256)])
        #expect(!isStillRoom)
    }

    @Test func `well separated colours are found as they are`() throws {
        let colors: [UInt32] = [0xFF00_0000, 0xFFFF_FFFF, 0xFF00_00FF, 0xFF00_FF00, 0xFFFF_0000]
        var quantizer = try ColorQuantizer()
        quantizer.count((0..<1_000).map { $0 % 6 == 5 ? 0 : colors[$0 % 6] })
        let found = try quantizer.colors(maximum: 5)
        #expect(Set(found) == Set(colors))
        // A single colour is the mean of all.
        let mean = try quantizer.colors(maximum: 1)
        #expect(mean.count == 1)
        let samples = (0..<3).map { Self.sample(mean[0], $0) }
        #expect(samples.allSatisfy { (101...103).contains($0) }, "\(samples)")
    }

    @Test func `no pixels have one colour`() throws {
        let quantizer = try ColorQuantizer()
        let colors = try quantizer.colors(maximum: 256)
        #expect(colors == [0xFF00_0000])
    }
}
