// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct ResamplingTests {
    @Test(arguments: [Resize.fit(width: 40, height: 30), .fill(width: 40, height: 30), .stretch(width: 40, height: 30)])
    func `an image of the size is returned as it is`(resize: Resize) throws {
        let image = Image(pixels: try .noise(.rgb8, width: 40, height: 30), sourceFormat: .png)
        #expect(try image.resized(resize).pixels === image.pixels)
    }

    @Test(arguments: Resize.Filter.allCases, [PixelFormat.gray8, .rgb8, .rgba8])
    func `a constant image stays constant`(filter: Resize.Filter, format: PixelFormat) throws {
        for color in [[0, 0, 0, 0], [255, 255, 255, 255], [10, 128, 200, 255], [250, 3, 77, 128]] as [[UInt8]] {
            let image = Image(pixels: try .make(format, width: 61, height: 47) { color[$2] })
            for (width, height) in [(20, 13), (100, 90), (61, 10), (3, 47)] {
                let resize = Resize(width: width, height: height, mode: .stretch, upscales: true, filter: filter)
                let pixels = try image.resized(resize).pixels
                #expect((pixels.width, pixels.height) == (width, height))
                #expect(pixels.format == format)
                // The division by alpha costs a level of colour if alpha is low.
                let tolerance = format.hasAlpha && color[3] < 255 ? 1 : 0
                let expected = color[3] == 0 && format.hasAlpha ? [0, 0, 0, 0] : color
                #expect(pixels.largestDifference { Int(expected[$2]) } <= tolerance, "\(color) \(width)x\(height)")
            }
        }
    }

    @Test(arguments: Resize.Filter.allCases.filter { $0 != .nearest }, [PixelFormat.gray8, .rgb8])
    func `a ramp keeps its mean`(filter: Resize.Filter, format: PixelFormat) throws {
        let ramp = try PixelBuffer.make(format, width: 256, height: 32) { column, _, _ in UInt8(column) }
        for width in [128, 77, 300, 16] {
            let resize = Resize(width: width, height: 20, mode: .stretch, upscales: true, filter: filter)
            let pixels = try Image(pixels: ramp).resized(resize).pixels
            #expect(abs(pixels.mean - 127.5) < 0.6, "\(width)")
            let row = pixels.row(10).enumerated().filter { $0.offset % format.channelCount == 0 }.map(\.element)
            #expect(row == row.sorted(), "a ramp stays a ramp")
        }
    }

    @Test(arguments: Resize.Filter.allCases) func `hidden colours do not bleed`(filter: Resize.Filter) throws {
        let checker = try PixelBuffer.make(.rgba8, width: 64, height: 64) { column, row, channel in
            // Opaque pixels are red, and transparent pixels are green.
            let isOpaque = (column + row) % 2 == 0
            return [isOpaque ? 255 : 0, isOpaque ? 0 : 255, 0, isOpaque ? 255 : 0][channel]
        }
        for (width, height) in [(32, 32), (20, 27), (100, 100), (9, 64)] {
            let resize = Resize(width: width, height: height, mode: .stretch, upscales: true, filter: filter)
            let pixels = try Image(pixels: checker).resized(resize).pixels
            for row in 0..<height {
                for column in 0..<width where pixels.sample(column, row, 3) > 8 {
                    // Compare premultiplied colours, because a level of colour means little if alpha is low.
                    let green = pixels.sample(column, row, 1) * pixels.sample(column, row, 3) / 255
                    #expect(green <= 1, "\(width)x\(height) at \(column),\(row)")
                }
            }
        }
    }

    @Test func `halving a checker of alpha gives half of it`() throws {
        let checker = try PixelBuffer.make(.rgba8, width: 64, height: 64) { column, row, channel in
            channel == 3 ? ((column + row) % 2 == 0 ? 255 : 0) : 200
        }
        let resize = Resize(width: 32, height: 32, mode: .stretch, filter: .bilinear)
        let pixels = try Image(pixels: checker).resized(resize).pixels
        for row in 4..<28 {
            for column in 4..<28 {
                #expect(abs(pixels.sample(column, row, 3) - 128) <= 2)
                #expect(abs(pixels.sample(column, row, 0) - 200) <= 2)
            }
        }
    }

    @Test func `nearest takes pixels as they are`() throws {
        let pixels = try PixelBuffer.noise(.rgb8, width: 8, height: 6)
        let resize = Resize(width: 24, height: 18, mode: .stretch, upscales: true, filter: .nearest)
        let enlarged = try Image(pixels: pixels).resized(resize).pixels
        #expect(enlarged.largestDifference { pixels.sample($0 / 3, $1 / 3, $2) } == 0)
    }

    @Test func `is not upside down or mirrored`() throws {
        let corners = try PixelBuffer.make(.gray8, width: 40, height: 40) { column, row, _ in
            (column < 20 ? 0 : 80) + (row < 20 ? 0 : 160)
        }
        let pixels = try Image(pixels: corners).resized(.fit(width: 10, height: 10)).pixels
        let seen = [pixels.sample(1, 1), pixels.sample(8, 1), pixels.sample(1, 8), pixels.sample(8, 8)]
        #expect(zip(seen, [0, 80, 160, 240]).allSatisfy { abs($0 - $1) <= 2 })
    }

    @Test func `keeps what is known about the image`() throws {
        let image = Image(pixels: try .noise(.gray8, width: 8, height: 8), orientation: .left, sourceFormat: .jpeg)
        let resized = try image.resized(.fit(width: 4, height: 4))
        #expect(resized.orientation == .left)
        #expect(resized.sourceFormat == .jpeg)
    }
}
