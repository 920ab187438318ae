// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

/// Sequences of crops, turns and one resize that become a single step.
@Suite struct TransformGeometryTests {
    @Test(arguments: UInt64(0)..<60) func `crops and turns in any order are one step with the same pixels`(
        seed: UInt64
    ) throws {
        var generator = SeededGenerator(seed: seed)
        let pixels = try PixelBuffer.noise(.rgb8, width: 23, height: 17, seed: seed)
        var expected = Image(pixels: pixels)
        var geometry = TransformGeometry(of: PixelSize(width: 23, height: 17))
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            if Bool.random(using: &generator) {
                let turn = try #require(Orientation.allCases.randomElement(using: &generator))
                geometry.turn(turn)
                expected = try expected.replacingPixels(expected.pixels, orientation: turn).upright()
            } else {
                let width = Int.random(in: 1...expected.width, using: &generator)
                let height = Int.random(in: 1...expected.height, using: &generator)
                let left = Int.random(in: 0...expected.width - width, using: &generator)
                let top = Int.random(in: 0...expected.height - height, using: &generator)
                geometry.crop(to: PixelRectangle(x: left, y: top, width: width, height: height))
                expected = Image(
                    pixels: try PixelBuffer.make(.rgb8, width: width, height: height) { column, row, channel in
                        UInt8(expected.pixels.sample(left + column, top + row, channel))
                    }
                )
            }
        }
        #expect(geometry.turnedSize == PixelSize(width: expected.width, height: expected.height))
        let result = try geometry.transform(Image(pixels: pixels))
        #expect(result.pixels.samples == expected.pixels.samples)
        // The result is the same if the stored image has another orientation.
        for orientation in Orientation.allCases {
            let stored = try Image(pixels: pixels, orientation: orientation.inverse).upright()
            let result = try geometry.beforeTurn(orientation).transform(stored)
            #expect(result.pixels.samples == expected.pixels.samples, "\(orientation)")
        }
    }

    @Test(arguments: Orientation.allCases)
    func `a resize between crops and turns reads the same part whichever way the image is stored`(
        turn: Orientation
    ) throws {
        let image = Image(pixels: try .smooth(.rgb8, width: 64, height: 48))
        var geometry = TransformGeometry(of: PixelSize(width: 64, height: 48))
        geometry.crop(to: PixelRectangle(x: 8, y: 4, width: 40, height: 40))
        geometry.turn(turn)
        #expect(try geometry.resize(.fill(width: 20, height: 10)))
        geometry.crop(to: PixelRectangle(x: 2, y: 1, width: 16, height: 8))
        #expect(geometry.turnedSize == PixelSize(width: 16, height: 8))
        #expect(try !geometry.resize(.fit(width: 5, height: 5)))
        let result = try geometry.transform(image)
        #expect((result.width, result.height) == (16, 8))
        for orientation in Orientation.allCases {
            let stored = try image.replacingPixels(image.pixels, orientation: orientation.inverse).upright()
            let other = try geometry.beforeTurn(orientation).transform(stored)
            let difference = other.pixels.largestDifference { result.pixels.sample($0, $1, $2) }
            #expect(difference <= 1, "\(orientation)")
        }
    }

    @Test(arguments: Orientation.allCases, Resize.Filter.allCases)
    func `beyond a crop no pixel is read`(orientation: Orientation, filter: Resize.Filter) throws {
        // Make an image with a black part within white.
        let image = Image(
            pixels: try .make(.rgb8, width: 40, height: 30) { column, row, _ in
                (10..<30).contains(column) && (5..<25).contains(row) ? 0 : 255
            }
        )
        var geometry = TransformGeometry(of: PixelSize(width: 40, height: 30))
        geometry.crop(to: PixelRectangle(x: 10, y: 5, width: 20, height: 20))
        #expect(try geometry.resize(Resize(width: 7, height: 7, filter: filter)))
        let stored = try image.replacingPixels(image.pixels, orientation: orientation.inverse).upright()
        let result = try geometry.beforeTurn(orientation).transform(stored)
        #expect(result.pixels.samples.allSatisfy { $0 == 0 })
    }

    @Test func `turns are joined as they would be done one after the other`() throws {
        let image = Image(pixels: try .noise(.gray8, width: 3, height: 2))
        for first in Orientation.allCases {
            for second in Orientation.allCases {
                let once = try image.replacingPixels(image.pixels, orientation: first.followed(by: second)).upright()
                let step = try image.replacingPixels(image.pixels, orientation: first).upright()
                let twice = try step.replacingPixels(step.pixels, orientation: second).upright()
                #expect(once.pixels.samples == twice.pixels.samples, "\(first), \(second)")
            }
            #expect(first.followed(by: first.inverse) == .up)
        }
    }
}
