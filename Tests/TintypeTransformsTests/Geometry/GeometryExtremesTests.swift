// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct GeometryExtremesTests {
    private static let numbers: [Double] = [
        0, -0.0, 1, -1, 0.5, 0.999, 7.25, 45, 90, 270, 1e-300, 1e-9, 1e9, 1e300, -1e300, .greatestFiniteMagnitude,
        .leastNonzeroMagnitude, .nan, .infinity, -.infinity,
    ]
    private static let counts = [
        0, 1, -1, 2, 5, 19, 20, 21, 1_000, Int(Int32.max), Int(Int32.max) + 1, Int.max, Int.max - 1, Int.min,
        Int.min + 1,
    ]
    private static let colors: [Color?] = [nil, .clear, .white, Color(red: 9, green: 200, blue: 0, alpha: 77)]

    /// Returns a transformer whose parameters mostly make no sense.
    private static func transformer(_ generator: inout SeededGenerator) -> any ImageTransformer {
        func number() -> Double { self.numbers.randomElement(using: &generator) ?? 0 }
        func count() -> Int { self.counts.randomElement(using: &generator) ?? 0 }
        func color() -> Color? { self.colors.randomElement(using: &generator) ?? nil }
        func gravity() -> Gravity { .focus(x: number(), y: number()) }
        func border() -> Border? { color().map { Border(width: number(), color: $0) } }
        switch Int.random(in: 0..<12, using: &generator) {
        case 0: return Crop.rectangle(x: count(), y: count(), width: count(), height: count())
        case 1: return Crop.shares(x: number(), y: number(), width: number(), height: number())
        case 2: return Crop.size(width: count(), height: count(), gravity: gravity())
        case 3: return Crop.aspectRatio(number(), gravity: gravity())
        case 4: return Pad.sides(left: count(), top: count(), right: count(), bottom: count(), color: color() ?? .black)
        case 5: return Pad.size(width: count(), height: count(), gravity: gravity(), color: color() ?? .black)
        case 6: return Pad.aspectRatio(number(), gravity: gravity(), color: color() ?? .black)
        case 7: return Trim(color: color(), tolerance: UInt8.random(in: 0...255, using: &generator))
        case 8: return Circle(border: border())
        case 9:
            let radii = RoundCorners.Radii(
                topLeft: number(),
                topRight: number(),
                bottomRight: number(),
                bottomLeft: number()
            )
            return RoundCorners(radii, unit: Bool.random(using: &generator) ? .shares : .pixels, border: border())
        case 10: return RoundCorners(radius: number(), border: border())
        default:
            return Rotate(
                degrees: number() * number(),
                canvas: Bool.random(using: &generator) ? .fit : .clip,
                background: color() ?? .black,
                interpolation: Rotate.Interpolation.allCases.randomElement(using: &generator) ?? .nearest
            )
        }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], [(20, 20), (1, 1), (1, 33), (64, 2)])
    func `whatever the parameters, there is an image as large as was said or an error`(
        format: PixelFormat,
        size: (width: Int, height: Int)
    ) throws {
        var generator = SeededGenerator(seed: UInt64(size.width * 4 + format.channelCount))
        let image = Image(pixels: try .noise(format, width: size.width, height: size.height))
        var made = 0
        for _ in 0..<1_000 {
            let transformer = Self.transformer(&generator)
            do {
                let footprint = try transformer.footprint(for: image.pixels.layout)
                guard footprint.result.byteCount < 1 << 20 else { continue }
                let result = try transformer.transform(image).pixels.layout
                if !(transformer is Trim) { #expect(result == footprint.result, "\(transformer.key)") }
                made += 1
            } catch is TransformError {
                #expect(throws: TransformError.self, "\(transformer.key)") { try transformer.transform(image) }
            }
        }
        #expect(made > 100)
    }
}
