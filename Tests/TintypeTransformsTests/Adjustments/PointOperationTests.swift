// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct PointOperationTests {
    /// Operations with their definitions, in double precision for straight colours from 0 to 1.
    struct Case: CustomTestStringConvertible {
        let operation: any PointOperation & Codable & Hashable
        let color: @Sendable ([Double]) -> [Double]

        var testDescription: String { self.operation.key }

        init(_ adjustment: ColorAdjustment, _ color: @escaping @Sendable ([Double]) -> [Double]) {
            self.operation = adjustment
            self.color = color
        }

        static func luma(_ color: [Double], _ weights: [Double]) -> Double {
            zip(color, weights).reduce(0) { $0 + $1.0 * $1.1 }
        }

        static let all = [
            Case(.brightness(1.2)) { $0.map { $0 * 1.2 } },
            Case(.brightness(0)) { $0.map { _ in 0 } },
            Case(.contrast(0.6)) { $0.map { ($0 - 0.5) * 0.6 + 0.5 } },
            Case(.contrast(3)) { $0.map { ($0 - 0.5) * 3 + 0.5 } },
            Case(.gamma(2.2)) { $0.map { pow($0, 1 / 2.2) } },
            Case(.gamma(0.5)) { $0.map { $0 * $0 } },
            Case(.invert) { $0.map { 1 - $0 } },
            Case(ColorAdjustment(.invert, 0.25)) { $0.map { $0 * 0.5 + 0.25 } },
            Case(.saturation(1.7)) { color in
                let gray = Self.luma(color, [0.213, 0.715, 0.072])
                return color.map { gray + ($0 - gray) * 1.7 }
            },
            Case(ColorAdjustment(.grayscale, 0.5)) { color in
                let gray = Self.luma(color, [0.2126, 0.7152, 0.0722])
                return color.map { ($0 + gray) / 2 }
            },
            Case(.sepia) {
                [
                    Self.luma($0, [0.393, 0.769, 0.189]), Self.luma($0, [0.349, 0.686, 0.168]),
                    Self.luma($0, [0.272, 0.534, 0.131]),
                ]
            },
            // A quarter turn has the cosine 0 and the sine 1.
            Case(.hue(degrees: 90)) {
                [
                    Self.luma($0, [0, 0, 1]), Self.luma($0, [0.356, 0.855, -0.211]),
                    Self.luma($0, [-0.574, 1.430, 0.144]),
                ]
            },
        ]
    }

    @Test(arguments: Case.all, [PixelFormat.gray8, .rgb8, .rgba8])
    func `Adjustments are those of CSS, and leave alpha alone`(example: Case, format: PixelFormat) throws {
        let source = try PixelBuffer.noise(format, width: 67, height: 5)
        let result = try example.operation.transform(Image(pixels: source)).pixels
        for row in 0..<5 {
            for column in 0..<67 {
                let color = (0..<3).map { Double(source.sample(column, row, min($0, format.channelCount - 1))) / 255 }
                let expected = example.color(color).map { min(max($0, 0), 1) * 255 }
                for channel in 0..<min(3, result.format.channelCount) {
                    #expect(abs(Double(result.sample(column, row, channel)) - expected[channel]) < 0.51)
                }
                if format == .rgba8 { #expect(result.sample(column, row, 3) == source.sample(column, row, 3)) }
            }
        }
    }

    @Test func `A run is carried out without rounding or cutting off in between`() throws {
        let image = Image(pixels: try .noise(.rgb8, width: 300, height: 3))
        let operations: [ColorAdjustment] = [
            .brightness(0.01), .hue(degrees: 40), .brightness(100), .hue(degrees: -40), .saturation(20),
            .saturation(0.05),
        ]
        let result = try PointPass(operations).transform(image)
        #expect(result.pixels.samples == image.pixels.samples)
        let overexposed = try PointPass([ColorAdjustment.brightness(4), .brightness(0.25)]).transform(image)
        #expect(overexposed.pixels.samples == image.pixels.samples)
    }

    @Test(arguments: [
        [.brightness(100), .gamma(0.01), .gamma(0.01), .brightness(0)],
        [ColorAdjustment](repeating: .brightness(100), count: 200),
        [ColorAdjustment](repeating: .saturation(100), count: 200),
    ])
    func `What is beyond all numbers in between makes an image all the same`(run: [ColorAdjustment]) throws {
        for format in [PixelFormat.gray8, .rgb8, .rgba8] {
            let image = Image(pixels: try .noise(format, width: 9, height: 3))
            let result = try PointPass(run).transform(image)
            #expect((result.width, result.height) == (9, 3))
        }
    }

    @Test(arguments: [0.02, 0.3, 0.45, 2.2, 3, 60])
    func `A power is right in the midst of a run as well`(gamma: Double) throws {
        let ramp = try PixelBuffer.make(.rgb8, width: 256, height: 1) { column, _, _ in UInt8(column) }
        // The first operation is a matrix, which cannot become a table, and which does not change grays.
        let operations: [ColorAdjustment] = [.saturation(0.5), .gamma(gamma)]
        let result = try PointPass(operations).transform(Image(pixels: ramp)).pixels
        #expect(
            result.largestDifference { column, row, channel in
                Int((pow(Double(ramp.sample(column, row, channel)) / 255, 1 / gamma) * 255).rounded())
            } <= 1
        )
    }

    @Test func `Grays need one sample where there is neither alpha nor a profile`() throws {
        let pixels = try PixelBuffer.noise(.rgb8, width: 9, height: 4)
        let gray = try ColorAdjustment.grayscale.transform(Image(pixels: pixels)).pixels
        #expect(gray.format == .gray8)
        let luma = { (column: Int, row: Int) in
            let color = (0..<3).map { Double(pixels.sample(column, row, $0)) }
            return Int((0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]).rounded())
        }
        #expect(gray.largestDifference { column, row, _ in luma(column, row) } == 0)
        let profile = ColorProfile(data: Data([1, 2, 3]))
        let tagged = try ColorAdjustment.grayscale.transform(Image(pixels: pixels).tagged(with: profile)).pixels
        #expect(tagged.format == .rgb8)
        #expect(tagged.largestDifference { column, row, _ in luma(column, row) } == 0)
        // An operation may add colour to gray pixels.
        let brown = try PointPass([ColorAdjustment.grayscale, .sepia]).transform(Image(pixels: pixels)).pixels
        #expect(brown.format == .rgb8)
        #expect(brown.sample(3, 2, 0) >= brown.sample(3, 2, 2))
    }

    @Test(arguments: [
        ColorAdjustment.brightness(1), .contrast(1), .saturation(1), .gamma(1), .hue(degrees: 0),
        ColorAdjustment(.grayscale, 0), ColorAdjustment(.invert, 0), ColorAdjustment(.sepia, 0),
    ])
    func `What changes nothing gives the image itself`(adjustment: ColorAdjustment) throws {
        let image = Image(pixels: try .noise(.rgba8, width: 5, height: 4))
        #expect(try adjustment.transform(image).pixels === image.pixels)
        #expect(try adjustment.footprint(for: image.pixels.layout) == TransformFootprint(result: image.pixels.layout))
    }

    @Test(arguments: [ColorAdjustment.saturation(3), .hue(degrees: 77), .grayscale, ColorAdjustment(.grayscale, 0.3)])
    func `A gray image has no colours to change`(adjustment: ColorAdjustment) throws {
        let image = Image(pixels: try .noise(.gray8, width: 5, height: 4))
        #expect(try adjustment.transform(image).pixels === image.pixels)
    }

    @Test(arguments: [
        ColorAdjustment.brightness(-1), .brightness(.nan), .brightness(.infinity), .contrast(101), .saturation(-0.1),
        .gamma(0), .gamma(.nan), .hue(degrees: .infinity), ColorAdjustment(.grayscale, 1.1),
        ColorAdjustment(.invert, -0.1), ColorAdjustment(.sepia, 2),
    ])
    func `Amounts that make no sense are refused`(adjustment: ColorAdjustment) throws {
        let image = Image(pixels: try .noise(.rgb8, width: 5, height: 4))
        let refused = { (error: any Error) in (error as? TransformError)?.code == .invalidParameter }
        #expect { try adjustment.transform(image) } throws: { refused($0) }
        #expect { try adjustment.footprint(for: image.pixels.layout) } throws: { refused($0) }
    }

    @Test(arguments: ColorAdjustment.Property.allCases) func `A description is a name and a number`(
        property: ColorAdjustment.Property
    ) throws {
        let adjustment = ColorAdjustment(property, 0.5)
        let text = #"{"\#(property.rawValue)":0.5}"#
        #expect(String(decoding: try JSONEncoder().encode(adjustment), as: UTF8.self) == text)
        #expect(try JSONDecoder().decode(ColorAdjustment.self, from: Data(text.utf8)) == adjustment)
        #expect(adjustment.key == "\(property.rawValue)(0.5)")
    }

    @Test(arguments: ["{}", #"{"glow":1}"#, #"{"hue":1,"sepia":1}"#, #"{"hue":"red"}"#])
    func `Other descriptions are errors`(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(ColorAdjustment.self, from: Data(text.utf8))
        }
    }
}
