// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct CompositingTests {
    /// Returns a pixel of any format with straight colour.
    private static func pixel(_ pixels: PixelBuffer, _ column: Int, _ row: Int) -> SlowBlending.Pixel {
        let channels = pixels.format.channelCount
        let color = (0..<3).map { Double(pixels.sample(column, row, min($0, channels - 1))) / 255 }
        return (color, channels == 4 ? Double(pixels.sample(column, row, 3)) / 255 : 1)
    }

    /// Returns the largest visible difference, in levels.
    private static func difference(
        _ pixels: PixelBuffer,
        _ column: Int,
        _ row: Int,
        _ exact: SlowBlending.Pixel
    ) -> Double {
        let found = self.pixel(pixels, column, row)
        let colors = zip(found.color, exact.color).map { abs($0 - min(max($1, 0), 1)) * exact.alpha * 255 }
        return max(abs(found.alpha - exact.alpha) * 255, colors.max() ?? 0)
    }

    private static let colors = [
        Color(red: 200, green: 90, blue: 30), Color(red: 20, green: 130, blue: 250, alpha: 100), .black, .white,
        Color(red: 99, green: 99, blue: 99, alpha: 200),
    ]

    @Test(arguments: BlendMode.allCases, [PixelFormat.gray8, .rgb8, .rgba8])
    func `An overlay is drawn by the formulas of W3C`(mode: BlendMode, format: PixelFormat) throws {
        let base = try PixelBuffer.noise(format, width: 23, height: 7, seed: 3)
        for other in [PixelFormat.gray8, .rgb8, .rgba8] {
            let drawn = try PixelBuffer.noise(other, width: 23, height: 7, seed: 9)
            for opacity in [1, 0.4] {
                let overlay = Overlay(Image(pixels: drawn), opacity: opacity, mode: mode)
                let result = try overlay.transform(Image(pixels: base)).pixels
                #expect(try overlay.footprint(for: base.layout).result == result.layout)
                for column in 0..<23 {
                    var source = Self.pixel(drawn, column, 4)
                    source.alpha *= opacity
                    let exact = Self.blended(source, over: Self.pixel(base, column, 4), mode)
                    #expect(Self.difference(result, column, 4, exact) <= 0.51, "\(other) \(opacity)")
                }
            }
        }
    }

    private static func blended(
        _ source: SlowBlending.Pixel,
        over backdrop: SlowBlending.Pixel,
        _ mode: BlendMode
    ) -> SlowBlending.Pixel {
        SlowBlending.drawn(source, over: backdrop, mode)
    }

    @Test(arguments: BlendMode.allCases, [PixelFormat.gray8, .rgb8, .rgba8])
    func `A tint colours what is drawn, and leaves clear what is clear`(mode: BlendMode, format: PixelFormat) throws {
        let base = try PixelBuffer.noise(format, width: 23, height: 3, seed: 5)
        for color in Self.colors {
            let tint = Tint(color, mode: mode)
            let result = try tint.transform(Image(pixels: base)).pixels
            #expect(try tint.footprint(for: base.layout).result == result.layout)
            let source: SlowBlending.Pixel = (
                [color.red, color.green, color.blue].map { Double($0) / 255 }, Double(color.alpha) / 255
            )
            for column in 0..<23 {
                let backdrop = Self.pixel(base, column, 1)
                let exact =
                    switch mode {
                    case .sourceOver, .sourceIn, .sourceAtop, .destinationOver:
                        SlowBlending.drawn(source, over: backdrop, mode)
                    default:
                        // The result is as on an opaque backdrop, but the backdrop keeps its alpha.
                        (SlowBlending.drawn(source, over: (backdrop.color, 1), mode).color, backdrop.alpha)
                    }
                #expect(Self.difference(result, column, 1, exact) <= 0.51, "\(color)")
            }
        }
    }

    @Test func `By default the drawn takes the tint and its alpha stays`() throws {
        let icon = try PixelBuffer.make(.rgba8, width: 5, height: 1) { column, _, channel in
            channel == 3 ? UInt8(column * 60) : 17
        }
        let tint = Color(red: 255, green: 128, blue: 0)
        let result = try Tint(tint).transform(Image(pixels: icon)).pixels
        #expect(result.row(0)[0..<4].elementsEqual([0, 0, 0, 0]))
        for column in 1..<5 {
            #expect((0..<4).map { result.sample(column, 0, $0) } == [255, 128, 0, column * 60])
        }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8]) func `An opaque image needs no background`(
        format: PixelFormat
    ) throws {
        let image = Image(pixels: try .noise(format, width: 3, height: 3))
        #expect(try Flatten().transform(image).pixels === image.pixels)
    }

    @Test func `Flattening leaves alpha out on an opaque colour alone`() throws {
        let pixels = try PixelBuffer.noise(.rgba8, width: 30, height: 2)
        for color in Self.colors {
            let result = try Flatten(color).transform(Image(pixels: pixels)).pixels
            #expect(result.format == (color.alpha == 255 ? .rgb8 : .rgba8))
            let background: SlowBlending.Pixel = (
                [color.red, color.green, color.blue].map { Double($0) / 255 }, Double(color.alpha) / 255
            )
            for column in 0..<30 {
                let exact = SlowBlending.drawn(Self.pixel(pixels, column, 1), over: background, .sourceOver)
                #expect(Self.difference(result, column, 1, exact) <= 0.51)
            }
        }
    }

    @Test func `A run with a tint and a background is one pass`() throws {
        let image = Image(pixels: try .noise(.rgba8, width: 700, height: 3))
        let operations: [any PointOperation] = [
            ColorAdjustment.saturation(0.4), Tint(Color(red: 10, green: 200, blue: 99, alpha: 99), mode: .softLight),
            Flatten(), ColorAdjustment.contrast(1.3),
        ]
        let pass = try PointPass(operations)
        let result = try pass.transform(image)
        #expect(try pass.footprint(for: image.pixels.layout).result == result.pixels.layout)
        let steps = try operations.reduce(image) { try $1.transform($0) }
        // Each separate step rounds its result.
        #expect(result.pixels.largestDifference { steps.pixels.sample($0, $1, $2) } <= 2)
    }

    @Test(arguments: [
        (Gravity.northWest, 3.0, 5.0, 3, 5), (.southEast, 3, 5, 40 - 8 - 3, 30 - 6 - 5), (.center, -2, 4, 14, 16),
        (.east, 2, 1, 40 - 8 - 2, 13), (.northWest, -5, -4, -5, -4), (.southEast, -5, -4, 37, 28),
    ])
    func `Offsets lead away from the border of the gravity`(
        gravity: Gravity,
        x: Double,
        y: Double,
        left: Int,
        top: Int
    ) throws {
        let base = try PixelBuffer.noise(.rgb8, width: 40, height: 30)
        let drawn = try PixelBuffer.noise(.rgb8, width: 8, height: 6, seed: 2)
        let expected = { (column: Int, row: Int, channel: Int) in
            (left..<left + 8).contains(column) && (top..<top + 6).contains(row)
                ? drawn.sample(column - left, row - top, channel) : base.sample(column, row, channel)
        }
        let placement = Overlay.Placement.single(gravity, offsetX: x, offsetY: y)
        let result = try Overlay(Image(pixels: drawn), placement: placement).transform(Image(pixels: base)).pixels
        #expect(result.largestDifference(expected) == 0)
        let shares = Overlay.Placement.single(gravity, offsetX: x / 40, offsetY: y / 30)
        let overlay = Overlay(Image(pixels: drawn), placement: shares, unit: .shares)
        #expect(try overlay.transform(Image(pixels: base)).pixels.largestDifference(expected) == 0)
    }

    @Test(arguments: [(0.0, 0.0), (3, 1), (100, 0)], [Gravity.northWest, .center, .southEast])
    func `Tiles go on in both directions`(gaps: (Double, Double), gravity: Gravity) throws {
        let base = try PixelBuffer.noise(.gray8, width: 41, height: 33)
        let drawn = try PixelBuffer.noise(.gray8, width: 7, height: 5, seed: 2)
        let overlay = Overlay(
            Image(pixels: drawn),
            placement: .tiled(gravity, gapX: gaps.0, gapY: gaps.1)
        )
        let (left, top) = (Int((gravity.x * 34).rounded()), Int((gravity.y * 28).rounded()))
        let (stepX, stepY) = (7 + Int(gaps.0), 5 + Int(gaps.1))
        let result = try overlay.transform(Image(pixels: base)).pixels
        #expect(
            result.largestDifference { column, row, _ in
                let (x, y) = (column - left + 100 * stepX, row - top + 100 * stepY)
                return x % stepX < 7 && y % stepY < 5
                    ? drawn.sample(x % stepX, y % stepY) : base.sample(column, row)
            } == 0
        )
    }

    @Test func `What lies outside, or cannot be seen, changes nothing`() throws {
        let base = Image(pixels: try .noise(.gray8, width: 10, height: 10))
        let drawn = Image(pixels: try .noise(.rgba8, width: 4, height: 4))
        for (x, y) in [(10.0, 0.0), (-4, 0), (0, 10), (0, -4), (1e9, 1e9), (-1e9, -1e9)] {
            let overlay = Overlay(drawn, placement: .single(.northWest, offsetX: x, offsetY: y))
            #expect(try overlay.transform(base).pixels === base.pixels)
        }
        #expect(try Overlay(drawn, opacity: 0).transform(base).pixels === base.pixels)
    }

    @Test(arguments: [(0.5, 20, 10), (0.1, 4, 2), (1, 40, 20)]) func `A scale is a share of the image`(
        scale: Double,
        width: Int,
        height: Int
    ) throws {
        let base = Image(pixels: try .make(.gray8, width: 40, height: 30) { _, _, _ in 0 })
        let drawn = Image(pixels: try .make(.gray8, width: 100, height: 50) { _, _, _ in 255 })
        let overlay = Overlay(drawn, placement: .single(.northWest), scale: scale)
        let result = try overlay.transform(base).pixels
        #expect(result.largestDifference { column, row, _ in column < width && row < height ? 255 : 0 } == 0)
        #expect(try overlay.footprint(for: base.pixels.layout).workingByteCount >= width * height)
    }

    @Test func `Parameters that make no sense are refused`() throws {
        let image = Image(pixels: try .noise(.rgb8, width: 4, height: 4))
        let wrong = [
            Overlay(image, opacity: -0.1), Overlay(image, opacity: .nan), Overlay(image, scale: 0),
            Overlay(image, scale: .infinity), Overlay(image, placement: .single(.center, offsetX: .nan)),
            Overlay(image, placement: .tiled(gapY: -1)), Overlay(image, placement: .tiled(gapX: .infinity)),
        ]
        for overlay in wrong {
            let refused = { (error: any Error) in (error as? TransformError)?.code == .invalidParameter }
            #expect { try overlay.transform(image) } throws: { refused($0) }
            #expect { try overlay.footprint(for: image.pixels.layout) } throws: { refused($0) }
        }
    }

    @Test func `The key names the pixels, or what stands for them`() throws {
        let image = Image(pixels: try .noise(.rgb8, width: 4, height: 4))
        let same = Image(pixels: try .noise(.rgb8, width: 4, height: 4))
        let other = Image(pixels: try .noise(.rgb8, width: 4, height: 4, seed: 2))
        let long = Image(pixels: try .make(.gray8, width: 8, height: 2) { _, _, _ in 0 })
        let high = Image(pixels: try .make(.gray8, width: 4, height: 2) { _, _, _ in 0 })
        #expect(Overlay(image) == Overlay(same))
        #expect(Overlay(image).key != Overlay(other).key)
        #expect(Overlay(long).key != Overlay(high).key)
        let named = Overlay(image, name: "a\nlogo", placement: .tiled(gapX: 2), opacity: 0.5, mode: .multiply)
        #expect(named.key == #"overlay("a\nlogo",tiled,northwest,2.0,0.0,pixels,-,0.5,multiply)"#)
    }

    @Test func `A description names the image, and a resolver finds it`() throws {
        let image = Image(pixels: try .noise(.rgba8, width: 4, height: 4))
        let decoder = JSONDecoder()
        let description = Data(#"{"source":"logo.png","gravity":"southeast","x":4,"scale":0.25,"mode":"screen"}"#.utf8)
        #expect { try decoder.decode(Overlay.self, from: description) } throws: {
            ($0 as? TransformError)?.code == .invalidParameter
        }
        let resolver = Overlay.Resolver { source in
            guard source == "logo.png" else { throw TransformError(code: .invalidParameter, message: source) }
            return image
        }
        decoder.userInfo = resolver.userInfo
        let overlay = try decoder.decode(Overlay.self, from: description)
        #expect(overlay.placement == .single(.southEast, offsetX: 4))
        #expect(overlay.scale == 0.25)
        #expect(overlay.mode == .screen)
        // The key depends on the pixels, because the content of the file may change.
        #expect(overlay.key == Overlay(image, placement: overlay.placement, scale: 0.25, mode: .screen).key)
        #expect(try decoder.decode(Overlay.self, from: JSONEncoder().encode(overlay)) == overlay)
        #expect(throws: TransformError.self) {
            try decoder.decode(Overlay.self, from: Data(#"{"source":"other.png"}"#.utf8))
        }
    }

    @Test func `A cancelled task makes no image`() async throws {
        let image = Image(pixels: try .noise(.rgba8, width: 20, height: 20))
        let operations: [any ImageTransformer] = [
            Tint(.white), Flatten(), ColorAdjustment.hue(degrees: 9), Overlay(image), Blur.gaussian(sigma: 2),
            Blur.gaussian(sigma: 9), Blur.box(radius: 2), Sharpen(), Pixelate(size: 3),
        ]
        for operation in operations {
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try operation.transform(image)
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func `Tints and backgrounds have descriptions with defaults`() throws {
        let tint = try JSONDecoder().decode(Tint.self, from: Data(##"{"color":"#f80"}"##.utf8))
        #expect(tint == Tint(Color(red: 255, green: 136, blue: 0)))
        #expect(tint.key == "tint(#ff8800,source-in)")
        let dodge = Tint(.white, mode: .colorDodge)
        #expect(try JSONDecoder().decode(Tint.self, from: JSONEncoder().encode(dodge)) == dodge)
        #expect(try JSONDecoder().decode(Flatten.self, from: Data("{}".utf8)) == Flatten(.white))
        let flatten = Flatten(.clear)
        #expect(try JSONDecoder().decode(Flatten.self, from: JSONEncoder().encode(flatten)) == flatten)
        #expect(flatten.key == "flatten(#00000000)")
    }
}
