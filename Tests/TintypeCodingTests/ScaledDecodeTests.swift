// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing, .timeLimit(.minutes(10))) struct ScaledDecodeTests {
    @Test(arguments: [
        (2_268, 1_512, 1), (1_135, 757, 1), (1_134, 757, 1), (1_134, 756, 2), (568, 379, 2), (567, 378, 4),
        (567, 379, 2), (284, 190, 4), (283, 189, 8), (1, 1, 8), (10, 1_512, 1), (5_000, 10, 1), (0, 100, 1),
        (100, 0, 1),
    ])
    func `a JPEG is scaled by the largest divisor that suffices`(width: Int, height: Int, divisor: Int) throws {
        let data = try Fixtures.data("flower.jpg")
        let decoded = try Self.decode(data, PixelSize(width: width, height: height))
        #expect(decoded.image.width == (2_268 + divisor - 1) / divisor)
        #expect(decoded.image.height == (1_512 + divisor - 1) / divisor)
        #expect(decoded.coveredWidth == 2_268 / Double(divisor))
        #expect(decoded.coveredHeight == 1_512 / Double(divisor))
    }

    @Test(arguments: [(33, 17), (64, 64), (7, 100), (31, 31), (8, 8)], [1, 2, 4, 8])
    func `the covered part of a JPEG is exact`(size: (width: Int, height: Int), divisor: Int) throws {
        let data = try SampleFiles.smooth(.jpeg, width: size.width, height: size.height)
        let wanted = PixelSize(width: size.width / divisor, height: size.height / divisor)
        let decoded = try Self.decode(data, wanted)
        let used = wanted.width == 0 || wanted.height == 0 ? 1 : divisor
        #expect(decoded.image.width == (size.width + used - 1) / used)
        #expect(decoded.image.height == (size.height + used - 1) / used)
        #expect(decoded.coveredWidth == Double(size.width) / Double(used))
        #expect(decoded.coveredHeight == Double(size.height) / Double(used))
        #expect(decoded.coveredWidth > Double(decoded.image.width - 1))
    }

    @Test(arguments: [
        (1_134, 756, 1_134, 756), (2_000, 2_000, 1_134, 756), (400, 300, 450, 300), (567, 378, 567, 378),
        (100, 1, 100, 67), (1, 100, 150, 100), (1, 1, 2, 1), (0, 0, 1_134, 756),
    ])
    func `a WebP is scaled to the size`(width: Int, height: Int, resultWidth: Int, resultHeight: Int) throws {
        let data = try Fixtures.data("flower.webp")
        let decoded = try Self.decode(data, PixelSize(width: width, height: height))
        #expect((decoded.image.width, decoded.image.height) == (resultWidth, resultHeight))
        #expect(decoded.coveredWidth == Double(resultWidth))
        #expect(decoded.coveredHeight == Double(resultHeight))
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `is never smaller than what suffices`(
        format: ImageFormat
    ) throws {
        let data = try SampleFiles.smooth(format, width: 53, height: 37)
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<200 {
            let wanted = PixelSize(
                width: Int.random(in: 1...60, using: &generator),
                height: Int.random(in: 1...60, using: &generator)
            )
            let image = try Self.decode(data, wanted).image
            #expect(image.width >= min(wanted.width, 53), "\(wanted)")
            #expect(image.height >= min(wanted.height, 37), "\(wanted)")
            #expect(image.width <= 53)
            #expect(image.height <= 37)
        }
    }

    @Test(arguments: ["flower.jpg", "flower.webp"]) func `a scaled image looks the same`(name: String) throws {
        let data = try Fixtures.data(name)
        let whole = PixelMeasure.means(try Self.decode(data, nil).image.pixels)
        let scaled = PixelMeasure.means(try Self.decode(data, PixelSize(width: 280, height: 180)).image.pixels)
        #expect(zip(whole.whole, scaled.whole).allSatisfy { abs($0 - $1) < 1 })
        let largest = zip(whole.cells, scaled.cells).map { abs($0 - $1) }.max() ?? 0
        // The largest difference is 4.06, in a cell at the edge. Half of a scaled column lies beyond it, as in libjpeg.
        #expect(largest < 4.1)
    }

    @Test func `a PNG is decoded whole`() throws {
        let decoded = try Self.decode(try SampleFiles.smooth(.png), PixelSize(width: 1, height: 1))
        #expect((decoded.image.width, decoded.image.height) == (64, 48))
        #expect(decoded.coveredWidth == 64)
    }

    @Test func `the orientation does not change which side is meant`() throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 64, height: 32)
        let data = try SampleFiles.jpeg(pixels, orientation: 6)
        let decoded = try Self.decode(data, PixelSize(width: 16, height: 8))
        #expect((decoded.image.width, decoded.image.height) == (16, 8))
        let upright = try decoded.image.upright()
        #expect((upright.width, upright.height) == (8, 16))
    }

    private static func decode(_ data: Data, _ size: PixelSize?) throws -> DecodedImage {
        try ImageDecoder(data, registry: SampleFiles.registry)
            .decodeStored(options: DecodeOptions(sufficientSize: size))
    }
}
