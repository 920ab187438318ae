// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct ResamplingAccuracyTests {
    /// The least accepted accuracy, of which rounding to 8 bits alone would leave 58.9 dB.
    private static let decibels = 56.0

    /// Target sizes for an image of 33 by 26: slightly smaller, much smaller, larger, and with another shape.
    static let sizes = [(32, 25), (17, 13), (7, 5), (33, 3), (60, 47), (6, 40), (50, 4)]

    @Test(arguments: Resize.Filter.allCases, LightSpace.allCases)
    func `is close to the reference`(filter: Resize.Filter, light: LightSpace) throws {
        for format in [PixelFormat.gray8, .rgb8, .rgba8] {
            let pixels = try PixelBuffer.noise(format, width: 33, height: 26)
            for (width, height) in Self.sizes {
                let resize = Resize(
                    width: width,
                    height: height,
                    mode: .stretch,
                    upscales: true,
                    filter: filter,
                    light: light
                )
                try Self.compare(pixels, resize, "\(format) \(resize.key)")
            }
        }
    }

    @Test(arguments: Resize.Mode.allCases, [PixelFormat.gray8, .rgb8, .rgba8])
    func `every mode is close to the reference`(mode: Resize.Mode, format: PixelFormat) throws {
        let pixels = try PixelBuffer.noise(format, width: 41, height: 30)
        for size in [Resize.Size.box(width: 17, height: 23), .width(13), .height(11), .scale(0.37), .scale(1.6)] {
            for gravity in [Gravity.center, .focus(x: 0.9, y: 0.13)] {
                let resize = Resize(size, mode: mode, upscales: true, gravity: gravity)
                try Self.compare(pixels, resize, "\(format) \(resize.key)")
            }
        }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], LightSpace.allCases)
    func `a part of a wide image is close to the reference, wherever it lies`(
        format: PixelFormat,
        light: LightSpace
    ) throws {
        let pixels = try PixelBuffer.noise(format, width: 401, height: 20)
        for (width, height) in [(15, 11), (5, 3), (20, 25), (90, 18)] {
            for x in [0, 0.2, 0.37, 0.81, 1] {
                let gravity = Gravity.focus(x: x, y: 0.5)
                let resize = Resize(.box(width: width, height: height), mode: .fill, gravity: gravity, light: light)
                try Self.compare(pixels, resize, "\(format) \(resize.key)")
            }
        }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], LightSpace.allCases)
    func `many samples are added without loss`(format: PixelFormat, light: LightSpace) throws {
        // Weights are small if thousands of samples make up one.
        let pixels = try PixelBuffer.noise(format, width: 2, height: 4_000)
        for filter in [Resize.Filter.lanczos3, .bilinear, .box] {
            let resize = Resize(width: 2, height: 3, mode: .stretch, filter: filter, light: light)
            try Self.compare(pixels, resize, resize.key)
        }
        let wide = try PixelBuffer.noise(format, width: 4_000, height: 2)
        try Self.compare(wide, Resize(width: 3, height: 2, mode: .stretch, light: light), "wide")
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8]) func `only black and white is close too`(
        format: PixelFormat
    ) throws {
        // Kernels ring the most for such pixels, and no intermediate result may be clipped.
        var generator = SeededGenerator(seed: 5)
        let pixels = try PixelBuffer.make(format, width: 60, height: 45) { _, _, channel in
            channel == 3 || Bool.random(using: &generator) ? 255 : 0
        }
        for (width, height) in [(59, 44), (30, 45), (60, 22), (13, 11), (113, 87)] {
            let resize = Resize(width: width, height: height, mode: .stretch, upscales: true)
            try Self.compare(pixels, resize, resize.key)
        }
    }

    private static func compare(_ pixels: PixelBuffer, _ resize: Resize, _ name: String) throws {
        let geometry = try ResizeGeometry(resize, width: pixels.width, height: pixels.height)
        let result = try Image(pixels: pixels).resized(resize).pixels
        let reference = SlowResampler(filter: resize.filter, light: resize.light).resample(pixels, geometry)
        #expect(result.closeness(to: reference) >= Self.decibels, "\(name)")
    }

    @Test(arguments: Resize.Filter.allCases, LightSpace.allCases)
    func `red that becomes transparent stays red`(filter: Resize.Filter, light: LightSpace) throws {
        // Transparent pixels have another colour, which must not become visible.
        let image = Image(
            pixels: try .make(.rgba8, width: 40, height: 30) { column, row, channel in
                let isRed = column + row / 3 < 22
                return [isRed ? 255 : 0, isRed ? 0 : 255, isRed ? 0 : 90, isRed ? 255 : 0][channel]
            }
        )
        for (width, height) in Self.sizes {
            let resize = Resize(
                width: width,
                height: height,
                mode: .stretch,
                upscales: true,
                filter: filter,
                light: light
            )
            let pixels = try image.resized(resize).pixels
            for row in 0..<height {
                let samples = pixels.row(row)
                for column in 0..<width where samples[4 * column + 3] > 0 {
                    #expect(
                        Array(samples[4 * column..<4 * column + 3]) == [255, 0, 0],
                        "\(resize.key) \(column),\(row)"
                    )
                }
            }
        }
    }

    @Test func `every sample comes back from its light`() throws {
        let pixels = try PixelBuffer.make(.gray8, width: 256, height: 2) { column, _, _ in UInt8(column) }
        for height in [1, 4] {
            let resize = Resize(
                width: 256,
                height: height,
                mode: .stretch,
                upscales: true,
                filter: .nearest,
                light: .linear
            )
            let result = try Image(pixels: pixels).resized(resize).pixels
            #expect(result.largestDifference { column, _, _ in column } == 0)
        }
    }

    @Test func `linear light keeps the brightness of fine detail`() throws {
        let lines = Image(pixels: try .make(.gray8, width: 64, height: 64) { _, row, _ in row % 2 == 0 ? 0 : 255 })
        let half = Resize(width: 32, height: 32, filter: .box)
        #expect(try lines.resized(half).pixels.sample(9, 9) == 128)
        // Half of the light is 188 in the transfer function of sRGB.
        #expect(
            try lines.resized(Resize(width: 32, height: 32, filter: .box, light: .linear)).pixels.sample(9, 9) == 188
        )
    }
}
