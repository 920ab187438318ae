// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct RotateTests {
    static let formats: [PixelFormat] = [.gray8, .rgb8, .rgba8]

    @Test(
        arguments: [
            (0, .up), (-0.0, .up), (360, .up), (-720, .up), (90, .right), (-270, .right), (450, .right), (180, .down),
            (-180, .down), (270, .left), (-90, .left), (3_600_090, .right), (-1e-300, .up),
        ] as [(Double, Orientation)],
        Self.formats
    )
    func `quarter turns are exact`(turn: (degrees: Double, orientation: Orientation), format: PixelFormat) throws {
        let rotate = Rotate(degrees: turn.degrees)
        let image = Image(pixels: try .noise(format, width: 13, height: 7))
        let turned = try rotate.transform(image).pixels
        #expect(rotate.orientation == turn.orientation)
        #expect(
            turned.samples == (try Image(pixels: image.pixels, orientation: turn.orientation).upright().pixels.samples)
        )
        #expect(try rotate.footprint(for: image.pixels.layout).result == turned.layout)
        #expect(rotate.key == Rotate(degrees: [.up: 0, .right: 90, .down: 180, .left: 270][turn.orientation]!).key)
        if turn.orientation == .up { #expect(turned === image.pixels) }
    }

    @Test func `a quarter turn is clockwise`() throws {
        let image = Image(pixels: try .make(.gray8, width: 2, height: 1) { column, _, _ in UInt8(column) })
        #expect(try Rotate(degrees: 90).transform(image).pixels.samples == [0, 1])
        #expect(try Rotate(degrees: -90).transform(image).pixels.samples == [1, 0])
    }

    @Test(arguments: Self.formats) func `four quarter turns give the image back`(format: PixelFormat) throws {
        let image = Image(pixels: try .noise(format, width: 13, height: 7))
        for degrees in [90.0, -90] {
            let turned = try (0..<4).reduce(image) { image, _ in try Rotate(degrees: degrees).transform(image) }
            #expect(turned.pixels.samples == image.pixels.samples)
        }
    }

    @Test(arguments: Flip.Direction.allCases, Self.formats)
    func `mirroring twice gives the image back`(direction: Flip.Direction, format: PixelFormat) throws {
        let image = Image(pixels: try .noise(format, width: 13, height: 7))
        let flipped = try Flip(direction).transform(image)
        let (isAcross, isDown) = (direction != .vertical, direction != .horizontal)
        #expect(
            flipped.pixels.largestDifference { column, row, channel in
                image.pixels.sample(isAcross ? 12 - column : column, isDown ? 6 - row : row, channel)
            } == 0
        )
        #expect(try Flip(direction).transform(flipped).pixels.samples == image.pixels.samples)
    }

    @Test func `an image that is to be turned upright still is turned once, by both`() throws {
        let image = Image(pixels: try .noise(.rgb8, width: 5, height: 3), orientation: .left)
        let turned = try Rotate(degrees: 90).transform(image)
        #expect(turned.pixels === image.pixels)
        #expect(turned.orientation == .up)
        #expect(
            try Flip.horizontal.transform(image).pixels.samples
                == Flip.horizontal.transform(image.upright()).pixels.samples
        )
    }

    @Test(arguments: [(12, 6), (6, 12), (9, 9), (7, 4)], [90.0, 270])
    func `a quarter turn on a canvas that stays is exact where the image is`(
        size: (width: Int, height: Int),
        degrees: Double
    ) throws {
        let pixels = try PixelBuffer.noise(.rgb8, width: size.width, height: size.height)
        let rotate = Rotate(degrees: degrees, canvas: .clip, background: .white)
        let turned = try rotate.transform(Image(pixels: pixels)).pixels
        #expect((turned.width, turned.height) == size)
        #expect(turned.format == .rgb8)
        let side = min(size.width, size.height)
        let (left, top) = (
            Int((Double(size.width - side) / 2).rounded()), Int((Double(size.height - side) / 2).rounded())
        )
        #expect(
            turned.largestDifference { column, row, channel in
                let (x, y) = (column - left, row - top)
                guard (0..<side).contains(x), (0..<side).contains(y) else { return 255 }
                return degrees == 90
                    ? pixels.sample(left + y, top + side - 1 - x, channel)
                    : pixels.sample(left + side - 1 - y, top + x, channel)
            } == 0
        )
        #expect(try rotate.footprint(for: pixels.layout).result == turned.layout)
    }

    @Test(
        arguments: [17, 45, 91.5, -3, 0.01, 179.9, 268] as [Double],
        [Rotate.Interpolation.bilinear, .bicubic]
    )
    func `other angles are those of the definition`(degrees: Double, interpolation: Rotate.Interpolation) throws {
        for format in Self.formats {
            for (canvas, background) in [
                (.fit, .clear), (.clip, .white), (.fit, Color(red: 200, green: 30, blue: 90, alpha: 100)),
            ] as [(Rotate.Canvas, Color)] {
                let pixels = try PixelBuffer.noise(format, width: 21, height: 15)
                let rotate = Rotate(
                    degrees: degrees,
                    canvas: canvas,
                    background: background,
                    interpolation: interpolation
                )
                let turned = try rotate.transform(Image(pixels: pixels)).pixels
                let slow = SlowRotation(rotate, of: pixels, width: turned.width, height: turned.height)
                let ratio = turned.signalToNoise(slow.pixel)
                #expect(ratio > 52, "\(format) \(canvas) \(background)")
                #expect(try rotate.footprint(for: pixels.layout).result == turned.layout)
            }
        }
    }

    @Test(arguments: [17, 45, 91.5, -3] as [Double], Self.formats)
    func `nearest pixels are taken as they are`(degrees: Double, format: PixelFormat) throws {
        let pixels = try PixelBuffer.noise(format, width: 31, height: 22)
        let background = Color(red: 9, green: 9, blue: 9)
        let rotate = Rotate(degrees: degrees, background: background, interpolation: .nearest)
        let turned = try rotate.transform(Image(pixels: pixels)).pixels
        #expect(turned.format == format)
        let slow = SlowRotation(rotate, of: pixels, width: turned.width, height: turned.height)
        var wrong = 0
        for row in 0..<turned.height {
            for column in 0..<turned.width
            where zip(turned.premultiplied(column, row), slow.pixel(column, row)).contains(where: {
                abs($0 - $1) > 1e-9
            }) {
                wrong += 1
            }
        }
        // Rounding decides which pixel is nearest if a position lies on a border.
        #expect(wrong <= turned.width * turned.height / 200)
    }

    @Test(arguments: [Rotate.Interpolation.bilinear, .bicubic])
    func `red beside what is transparent keeps its red`(interpolation: Rotate.Interpolation) throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 40, height: 40) { column, row, channel in
            // Transparent pixels are green.
            let isSeen = (column / 5 + row / 5) % 2 == 0
            return [isSeen ? 255 : 0, isSeen ? 0 : 255, 0, isSeen ? 255 : 0][channel]
        }
        let turned = try Rotate(degrees: 30, interpolation: interpolation).transform(Image(pixels: pixels)).pixels
        for row in 0..<turned.height {
            for column in 0..<turned.width {
                let alpha = turned.sample(column, row, 3)
                #expect(turned.sample(column, row, 1) == 0 && turned.sample(column, row, 0) == (alpha > 0 ? 255 : 0))
            }
        }
    }

    @Test(arguments: [Rotate.Interpolation.bilinear, .bicubic])
    func `edges are smooth, and an image of one colour keeps it`(interpolation: Rotate.Interpolation) throws {
        let pixels = try PixelBuffer.make(.rgb8, width: 50, height: 40) { [40, 90, 250][$2] }
        let turned = try Rotate(degrees: 20, interpolation: interpolation).transform(Image(pixels: pixels)).pixels
        let alphas = (0..<turned.height).flatMap { row in (0..<turned.width).map { turned.sample($0, row, 3) } }
        #expect(Set(alphas).count > 30)
        // The rotation preserves the area of the image.
        let area = Double(alphas.reduce(0, +)) / 255
        #expect(abs(area - 2_000) < 4)
        for row in 0..<turned.height {
            for column in 0..<turned.width where turned.sample(column, row, 3) > 0 {
                #expect((0..<3).allSatisfy { turned.sample(column, row, $0) == [40, 90, 250][$0] })
            }
        }
    }

    @Test func `clipped images keep their size, others grow as far as they need`() throws {
        let image = Image(pixels: try .smooth(.rgb8, width: 300, height: 300))
        let clipped = try Rotate(degrees: 45, canvas: .clip).transform(image)
        #expect((clipped.width, clipped.height) == (300, 300))
        let fitted = try Rotate(degrees: 45).transform(image)
        #expect((425...426).contains(fitted.width) && (425...426).contains(fitted.height))
        #expect(fitted.hasAlpha)
    }

    @Test(arguments: [(1, 1), (1, 50), (50, 1), (2, 2), (3, 200)], Rotate.Interpolation.allCases)
    func `thin images can be turned`(size: (width: Int, height: Int), interpolation: Rotate.Interpolation) throws {
        for format in Self.formats {
            for degrees in [1e-9, 33, 90.000001, 135] {
                let pixels = try PixelBuffer.make(format, width: size.width, height: size.height) { _, _, _ in 255 }
                let rotate = Rotate(degrees: degrees, background: .white, interpolation: interpolation)
                let turned = try rotate.transform(Image(pixels: pixels)).pixels
                #expect(turned.largestDifference { _, _, _ in 255 } == 0)
            }
        }
    }

    @Test(arguments: [.nan, .infinity, -.infinity] as [Double]) func `no number is no angle`(degrees: Double) throws {
        let image = Image(pixels: try .noise(.gray8, width: 4, height: 4))
        let error = #expect(throws: TransformError.self) { try Rotate(degrees: degrees).transform(image) }
        #expect(error?.code == .invalidParameter)
        #expect(throws: TransformError.self) { try Rotate(degrees: degrees).footprint(for: image.pixels.layout) }
        #expect(Rotate(degrees: degrees).orientation == nil)
    }

    @Test func `huge angles are angles`() throws {
        let image = Image(pixels: try .noise(.gray8, width: 9, height: 4))
        let degrees = 1e300.truncatingRemainder(dividingBy: 360)
        let turned = try Rotate(degrees: 1e300).transform(image).pixels
        #expect(try turned.samples == Rotate(degrees: degrees).transform(image).pixels.samples)
        #expect(Rotate(degrees: 1e300).key == Rotate(degrees: degrees).key)
    }

    @Test func `a result that is too large is refused`() throws {
        let layout = try PixelLayout(format: .rgb8, width: Int(Int32.max), height: Int(Int32.max) / 2)
        let error = #expect(throws: TransformError.self) { try Rotate(degrees: 30).footprint(for: layout) }
        #expect(error?.code == .invalidSize)
    }

    @Test func `a cancelled task stops`() async throws {
        let image = Image(pixels: try .noise(.rgb8, width: 30, height: 30))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try Rotate(degrees: 30).transform(image)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `is read from a description and written to one`() throws {
        func read(_ text: String) throws -> Rotate { try JSONDecoder().decode(Rotate.self, from: Data(text.utf8)) }
        #expect(try read(#"{"degrees":17}"#) == Rotate(degrees: 17))
        let rotate = Rotate(degrees: -3.5, canvas: .clip, background: .white, interpolation: .nearest)
        #expect(
            try read(##"{"degrees":-3.5,"canvas":"clip","background":"#fff","interpolation":"nearest"}"##) == rotate
        )
        #expect(try JSONDecoder().decode(Rotate.self, from: JSONEncoder().encode(rotate)) == rotate)
        #expect(throws: DecodingError.self) { try read("{}") }
        let flip = try JSONDecoder().decode(Flip.self, from: Data(#"{"direction":"both"}"#.utf8))
        #expect(flip == Flip(.both))
    }

    @Test func `keys tell all parameters apart`() {
        let rotations = [
            Rotate(degrees: 17), Rotate(degrees: 17.5), Rotate(degrees: 17, canvas: .clip),
            Rotate(degrees: 17, background: .white), Rotate(degrees: 17, interpolation: .nearest),
        ]
        #expect(Set(rotations.map(\.key) + Flip.Direction.allCases.map { Flip($0).key }).count == rotations.count + 3)
    }
}
