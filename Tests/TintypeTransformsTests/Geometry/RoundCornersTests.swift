// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

/// A frame computed by its definition.
///
/// Each pixel is the mean of many points, each of which is outside, in the border or in the image.
private struct SlowFrame {
    private let points: Int
    private let radii: [Double]
    private let border: Border?
    private let size: (width: Int, height: Int)
    /// The shares of image and border in each pixel, row by row.
    private var shares: [(image: Double, border: Double)] = []

    /// Samples `points` times `points` positions in each pixel.
    ///
    /// The radii start at the top left corner, go clockwise, and do not overlap.
    init(width: Int, height: Int, radii: [Double], border: Border?, points: Int = 20) {
        self.points = points
        self.radii = radii
        self.border = border
        self.size = (width, height)
        for row in 0..<height {
            for column in 0..<width { self.shares.append(self.share(column, row)) }
        }
    }

    /// Returns a pixel with premultiplied colour, as four numbers from 0 to 255.
    func pixel(_ column: Int, _ row: Int, of source: PixelBuffer) -> [Double] {
        let share = self.shares[row * self.size.width + column]
        let color = self.border?.color ?? .clear
        let alpha = Double(color.alpha) / 255
        return zip(source.premultiplied(column, row), [color.red, color.green, color.blue, 255]).map {
            image,
            border in
            share.image * image + share.border * (image * (1 - alpha) + Double(border) * alpha)
        }
    }

    private func share(_ column: Int, _ row: Int) -> (image: Double, border: Double) {
        var (inImage, inBorder) = (0, 0)
        for line in 0..<self.points {
            for point in 0..<self.points {
                let x = Double(column) + (Double(point) + 0.5) / Double(self.points)
                let y = Double(row) + (Double(line) + 0.5) / Double(self.points)
                guard self.isInside(x, y, inset: 0) else { continue }
                if self.isInside(x, y, inset: self.border?.width ?? 0) { inImage += 1 } else { inBorder += 1 }
            }
        }
        let all = Double(self.points * self.points)
        return (Double(inImage) / all, Double(inBorder) / all)
    }

    private func isInside(_ x: Double, _ y: Double, inset: Double) -> Bool {
        let (width, height) = (Double(self.size.width), Double(self.size.height))
        guard min(min(x, y), min(width - x, height - y)) >= inset else { return false }
        for (corner, radius) in self.radii.enumerated() {
            let right = radius - (corner == 1 || corner == 2 ? width - x : x)
            let down = radius - (corner >= 2 ? height - y : y)
            guard right > 0, down > 0 else { continue }
            if (right * right + down * down).squareRoot() > max(radius - inset, 0) { return false }
        }
        return true
    }
}

@Suite(.computing) struct RoundCornersTests {
    private static let ink = Color(red: 250, green: 30, blue: 0)

    @Test(
        arguments: [
            (RoundCorners(radius: 5), [5, 5, 5, 5]),
            (RoundCorners(radius: 0.3), [0.3, 0.3, 0.3, 0.3]),
            (RoundCorners(RoundCorners.Radii(topLeft: 7.5, bottomRight: 3)), [7.5, 0, 3, 0]),
            (RoundCorners(radius: 0.25, unit: .shares), [4, 4, 4, 4]),
            // Overlapping radii are all reduced by the same factor: 16 / 40, 16 / 25.
            (RoundCorners(radius: 20), [8, 8, 8, 8]),
            (RoundCorners(RoundCorners.Radii(topLeft: 20, bottomLeft: 5)), [12.8, 0, 0, 3.2]),
            (RoundCorners(radius: 1e300), [8, 8, 8, 8]),
            (RoundCorners(radius: 1e308, unit: .shares), [8, 8, 8, 8]),
            (RoundCorners(radius: 6, border: Border(width: 1, color: Self.ink)), [6, 6, 6, 6]),
            (RoundCorners(radius: 6, border: Border(width: 2.7, color: Self.ink)), [6, 6, 6, 6]),
            (RoundCorners(radius: 2, border: Border(width: 4.5, color: Self.ink)), [2, 2, 2, 2]),
            (RoundCorners(radius: 0, border: Border(width: 2, color: Self.ink)), [0, 0, 0, 0]),
            (
                RoundCorners(
                    radius: 7,
                    border: Border(width: 3, color: Color(red: 0, green: 99, blue: 255, alpha: 90))
                ),
                [7, 7, 7, 7]
            ),
            (RoundCorners(radius: 7, border: Border(width: 1e300, color: Self.ink)), [7, 7, 7, 7]),
            (RoundCorners(radius: 7, border: Border(width: 8, color: Self.ink)), [7, 7, 7, 7]),
        ] as [(RoundCorners, [Double])]
    )
    func `each pixel counts by the area that is inside`(corners: RoundCorners, radii: [Double]) throws {
        let slow = SlowFrame(width: 21, height: 16, radii: radii, border: corners.border)
        for format in [PixelFormat.gray8, .rgb8, .rgba8] {
            let pixels = try PixelBuffer.noise(format, width: 21, height: 16)
            let round = try corners.transform(Image(pixels: pixels)).pixels
            var largest = 0.0
            for row in 0..<16 {
                for column in 0..<21 {
                    for (sample, expected) in zip(round.premultiplied(column, row), slow.pixel(column, row, of: pixels))
                    {
                        largest = max(largest, abs(sample - expected))
                    }
                }
            }
            #expect(largest < 4, "\(format)")
            #expect(round.format == (radii[0] > 0 ? .rgba8 : format == .gray8 ? .rgb8 : format))
            #expect(try corners.footprint(for: pixels.layout).result == round.layout)
        }
    }

    @Test func `corners are clear and the border is at the edge`() throws {
        let image = Image(pixels: try .smooth(.rgb8, width: 300, height: 300))
        let one = try RoundCorners(radius: 50, border: Border(width: 1, color: Self.ink)).transform(image).pixels
        #expect(one.premultiplied(0, 0) == [0, 0, 0, 0])
        #expect(one.premultiplied(0, 150) == [250, 30, 0, 255])
        #expect(one.premultiplied(1, 150) == image.pixels.premultiplied(1, 150))
        let two = try RoundCorners(radius: 50, border: Border(width: 2, color: Self.ink)).transform(image).pixels
        #expect(two.premultiplied(1, 150) == [250, 30, 0, 255])
        #expect(two.premultiplied(150, 20) == image.pixels.premultiplied(150, 20))
    }

    @Test(arguments: [(40, 25), (25, 40), (31, 31), (1, 1), (2, 9)])
    func `a circle is the largest in the middle`(size: (width: Int, height: Int)) throws {
        let image = Image(pixels: try .noise(.rgb8, width: size.width, height: size.height))
        let side = min(size.width, size.height)
        let square = try Crop.aspectRatio(1).transform(image).pixels
        for border in [nil, Border(width: 2, color: Self.ink)] {
            let circle = try Circle(border: border).transform(image).pixels
            #expect((circle.width, circle.height) == (side, side))
            #expect(circle.format == .rgba8)
            #expect(try Circle(border: border).footprint(for: image.pixels.layout).result == circle.layout)
            let radii = Array(repeating: Double(side) / 2, count: 4)
            let slow = SlowFrame(width: side, height: side, radii: radii, border: border, points: side < 4 ? 100 : 20)
            #expect(circle.signalToNoise { slow.pixel($0, $1, of: square) } > 45)
        }
    }

    @Test(arguments: [RoundCorners(radius: 0), RoundCorners(radius: 0, border: Border(width: 0, color: .black))])
    func `what cuts and draws nothing gives the image itself`(corners: RoundCorners) throws {
        let image = Image(pixels: try .noise(.rgb8, width: 9, height: 9))
        #expect(try corners.transform(image).pixels === image.pixels)
        #expect(try corners.footprint(for: image.pixels.layout).result == image.pixels.layout)
    }

    @Test(
        arguments: [
            RoundCorners(radius: -1), RoundCorners(radius: .nan), RoundCorners(radius: .infinity),
            RoundCorners(RoundCorners.Radii(bottomLeft: -0.1)),
            RoundCorners(radius: 1, border: Border(width: -1, color: .black)),
            RoundCorners(radius: 1, border: Border(width: .nan, color: .black)),
            RoundCorners(radius: 1, border: Border(width: .infinity, color: .black)),
        ]
    )
    func `what makes no frame is refused`(corners: RoundCorners) throws {
        let image = Image(pixels: try .noise(.gray8, width: 4, height: 4))
        let error = #expect(throws: TransformError.self) { try corners.transform(image) }
        #expect(error?.code == .invalidParameter)
        #expect(throws: TransformError.self) { try corners.footprint(for: image.pixels.layout) }
        if corners.border != nil {
            #expect(throws: TransformError.self) { try Circle(border: corners.border).transform(image) }
        }
    }

    @Test(arguments: [
        (#"{"radius":20}"#, RoundCorners(radius: 20)),
        (
            ##"{"radius":{"topLeft":2,"bottomLeft":0.5},"unit":"shares","border":{"width":2,"color":"#fff"}}"##,
            RoundCorners(
                RoundCorners.Radii(topLeft: 2, bottomLeft: 0.5),
                unit: .shares,
                border: Border(width: 2, color: .white)
            )
        ),
    ])
    func `is read from a description and written to one`(text: String, corners: RoundCorners) throws {
        #expect(try JSONDecoder().decode(RoundCorners.self, from: Data(text.utf8)) == corners)
        #expect(try JSONDecoder().decode(RoundCorners.self, from: JSONEncoder().encode(corners)) == corners)
        let circle = try JSONDecoder().decode(Circle.self, from: Data("{}".utf8))
        #expect(circle == Circle())
    }

    @Test func `keys tell all parameters apart`() {
        let border = Border(width: 1, color: .black)
        let keys =
            [
                RoundCorners(radius: 1), RoundCorners(RoundCorners.Radii(topLeft: 1)),
                RoundCorners(RoundCorners.Radii(topRight: 1)), RoundCorners(RoundCorners.Radii(bottomRight: 1)),
                RoundCorners(RoundCorners.Radii(bottomLeft: 1)), RoundCorners(radius: 1, unit: .shares),
                RoundCorners(radius: 1, border: border),
                RoundCorners(radius: 1, border: Border(width: 2, color: .black)),
                RoundCorners(radius: 1, border: Border(width: 1, color: .white)),
            ].map(\.key) + [Circle().key, Circle(border: border).key]
        #expect(Set(keys).count == keys.count)
    }
}
