// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

@Suite struct TrimTests {
    /// Returns an image of noise within a border of one colour, with noise that is far from all colours of the tests.
    private static func framed(
        _ format: PixelFormat,
        _ border: [UInt8],
        left: Int,
        top: Int,
        right: Int,
        bottom: Int
    ) throws -> PixelBuffer {
        var generator = SeededGenerator(seed: 7)
        return try .make(format, width: 80 + left + right, height: 9 + top + bottom) { column, row, channel in
            let isInside = (left..<left + 80).contains(column) && (top..<top + 9).contains(row)
            return isInside ? (channel == 3 ? 255 : UInt8.random(in: 90...160, using: &generator)) : border[channel]
        }
    }

    @Test(
        arguments: [PixelFormat.gray8, .rgb8, .rgba8],
        [(0, 0, 0, 0), (3, 0, 0, 0), (0, 70, 0, 0), (0, 0, 150, 0), (0, 0, 0, 1), (5, 6, 70, 8)]
    )
    func `borders are cut off`(
        format: PixelFormat,
        sides: (left: Int, top: Int, right: Int, bottom: Int)
    ) throws {
        for (border, color) in [([250, 250, 250, 255], Color.white), ([0, 0, 0, 255], .black)] as [([UInt8], Color)] {
            let pixels = try Self.framed(
                format,
                border,
                left: sides.left,
                top: sides.top,
                right: sides.right,
                bottom: sides.bottom
            )
            let image = Image(pixels: pixels)
            let trimmed = try Trim(color: color).transform(image).pixels
            #expect((trimmed.width, trimmed.height) == (80, 9))
            #expect(trimmed.largestDifference { pixels.sample($0 + sides.left, $1 + sides.top, $2) } == 0)
            if sides == (0, 0, 0, 0) { #expect(trimmed === pixels) }
            #expect(try Trim(color: color).footprint(for: pixels.layout).result == pixels.layout)
            guard sides.left > 0 || sides.top > 0 else { continue }
            #expect(try Trim().transform(image).pixels.samples == trimmed.samples)
        }
    }

    @Test func `the tolerance is for each sample by itself`() throws {
        let pixels = try PixelBuffer.make(.rgb8, width: 9, height: 9) { column, row, channel in
            // The green of the dot differs by 20.
            (column, row, channel) == (4, 4, 1) ? 120 : 100
        }
        let image = Image(pixels: pixels)
        let dot = try Trim(tolerance: 19).transform(image)
        #expect((dot.width, dot.height) == (1, 1))
        #expect(try Trim(tolerance: 20).transform(image).pixels === pixels)
        #expect(try Trim(color: .white, tolerance: 255).transform(image).pixels === pixels)
        #expect(try Trim(color: .white, tolerance: 134).transform(image).pixels === pixels)
    }

    @Test func `what cannot be seen is alike whatever its colour`() throws {
        var generator = SeededGenerator(seed: 3)
        let pixels = try PixelBuffer.make(.rgba8, width: 30, height: 20) { column, row, channel in
            let isInside = (10..<20).contains(column) && (5..<11).contains(row)
            return channel == 3 ? (isInside ? 255 : 0) : UInt8.random(in: 0...255, using: &generator)
        }
        let image = Image(pixels: pixels)
        for trim in [Trim(tolerance: 0), Trim(color: .clear), Trim(color: Color(red: 9, green: 8, blue: 7, alpha: 0))] {
            let trimmed = try trim.transform(image)
            #expect((trimmed.width, trimmed.height) == (10, 6))
        }
        // The border is not white.
        #expect(try Trim(color: .white).transform(image).pixels === pixels)
    }

    @Test func `black that is faint is not black`() throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 12, height: 12) { column, _, channel in
            channel < 3 ? 0 : column < 4 ? 0 : 128
        }
        let trimmed = try Trim().transform(Image(pixels: pixels))
        #expect((trimmed.width, trimmed.height) == (8, 12))
    }

    @Test func `opposite sides can be cut evenly`() throws {
        let pixels = try Self.framed(.rgb8, [255, 255, 255, 255], left: 3, top: 8, right: 10, bottom: 2)
        func size(_ trim: Trim) throws -> (Int, Int) {
            let trimmed = try trim.transform(Image(pixels: pixels))
            return (trimmed.width, trimmed.height)
        }
        #expect(try size(Trim(isEvenHorizontally: true)) == (87, 9))
        #expect(try size(Trim(isEvenVertically: true)) == (80, 15))
        #expect(try size(Trim(isEvenHorizontally: true, isEvenVertically: true)) == (87, 15))
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8])
    func `an image that is all border stays as it is`(format: PixelFormat) throws {
        for (width, height) in [(1, 1), (90, 70), (1, 200)] {
            let pixels = try PixelBuffer.make(format, width: width, height: height) { _, _, _ in 77 }
            #expect(try Trim().transform(Image(pixels: pixels)).pixels === pixels)
        }
    }

    @Test func `a gray image has no colour`() throws {
        let pixels = try PixelBuffer.make(.gray8, width: 9, height: 9) { _, _, _ in 200 }
        #expect(
            try Trim(color: Color(red: 200, green: 200, blue: 0)).transform(Image(pixels: pixels)).pixels === pixels
        )
        let framed = try PixelBuffer.make(.gray8, width: 9, height: 9) { column, _, _ in column == 4 ? 9 : 200 }
        let red = Color(red: 200, green: 0, blue: 0)
        #expect(try Trim(color: red).transform(Image(pixels: framed)).pixels === framed)
    }

    @Test(arguments: [
        ("{}", Trim()), (##"{"color":"#fff","tolerance":0}"##, Trim(color: .white, tolerance: 0)),
        (#"{"evenHorizontally":true,"evenVertically":true}"#, Trim(isEvenHorizontally: true, isEvenVertically: true)),
    ])
    func `is read from a description and written to one`(text: String, trim: Trim) throws {
        #expect(try JSONDecoder().decode(Trim.self, from: Data(text.utf8)) == trim)
        #expect(try JSONDecoder().decode(Trim.self, from: JSONEncoder().encode(trim)) == trim)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(Trim.self, from: Data(#"{"tolerance":256}"#.utf8))
        }
    }

    @Test func `keys tell all parameters apart`() {
        let trims = [
            Trim(), Trim(color: .white), Trim(tolerance: 9), Trim(isEvenHorizontally: true),
            Trim(isEvenVertically: true),
        ]
        #expect(Set(trims.map(\.key)).count == trims.count)
    }
}
