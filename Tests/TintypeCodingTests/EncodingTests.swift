// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing) struct EncodingTests {
    @Test(
        arguments: [PixelFormat.gray8, .rgb8, .rgba8],
        [(1, 1), (1, 7), (7, 1), (64, 64), (65, 33), (300, 2)]
    )
    func `a PNG keeps every pixel`(format: PixelFormat, size: (width: Int, height: Int)) throws {
        let pixels = try PixelBuffer.noise(format, width: size.width, height: size.height)
        let decoded = try SampleFiles.decode(try SampleFiles.encode(pixels, as: .png))
        #expect(decoded.pixels.format == format)
        #expect(decoded.pixels.samples == pixels.samples)
    }

    @Test(arguments: [(ImageFormat.jpeg, 38.0), (.webp, 36.0)], [PixelFormat.gray8, .rgb8])
    func `lossy formats stay close`(format: (ImageFormat, Double), pixelFormat: PixelFormat) throws {
        let pixels = try PixelBuffer.smooth(pixelFormat, width: 96, height: 80)
        let decoded = try SampleFiles.decode(try SampleFiles.encode(pixels, as: format.0)).pixels
        #expect(Self.signalToNoise(decoded, pixels) > format.1)
    }

    @Test(arguments: [ImageFormat.jpeg, .webp]) func `photographs stay close`(format: ImageFormat) throws {
        let photograph = try SampleFiles.decode(try Fixtures.data("kodak-3.png")).pixels
        let decoded = try SampleFiles.decode(try SampleFiles.encode(photograph, as: format, quality: 90)).pixels
        #expect(Self.signalToNoise(decoded, photograph) > 35)
    }

    @Test(arguments: [ImageFormat.jpeg, .webp]) func `quality costs bytes and buys closeness`(
        format: ImageFormat
    ) throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 96, height: 80)
        let files = try [1, 50, 100].map { try SampleFiles.encode(pixels, as: format, quality: $0) }
        #expect(files[0].count <= files[1].count)
        #expect(files[1].count < files[2].count)
        let closeness = try files.map { Self.signalToNoise(try SampleFiles.decode($0).pixels, pixels) }
        #expect(closeness[0] < closeness[1])
        #expect(closeness[1] < closeness[2])
        #expect(closeness[2] > 40)
    }

    @Test(arguments: [ImageFormat.jpeg, .webp], [(0, 1), (-5, 1), (101, 100), (Int.max, 100)])
    func `quality is kept within its bounds`(format: ImageFormat, quality: (given: Int, used: Int)) throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 40, height: 40)
        let given = try SampleFiles.encode(pixels, as: format, quality: quality.given)
        #expect(given == (try SampleFiles.encode(pixels, as: format, quality: quality.used)))
    }

    @Test(
        arguments: [
            (UInt8(0), [10, 200, 30]), (255, [250, 20, 120]), (128, [130, 110, 75]), (64, [70, 155, 53]),
        ] as [(UInt8, [Int])]
    )
    func `a JPEG is laid over the background`(alpha: UInt8, expected: [Int]) throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 32, height: 32) { [250, 20, 120, alpha][$2] }
        let options = EncodeOptions(quality: 95, background: .init(red: 10, green: 200, blue: 30))
        let data = try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: options)
        let decoded = try SampleFiles.decode(data).pixels
        #expect(decoded.format == .rgb8)
        for channel in 0..<3 {
            #expect(abs(decoded.sample(16, 16, channel) - expected[channel]) <= 3)
        }
    }

    @Test func `the background is white unless said`() throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 8, height: 8) { _, _, _ in 0 }
        let decoded = try SampleFiles.decode(try SampleFiles.encode(pixels, as: .jpeg)).pixels
        #expect(decoded.samples.allSatisfy { $0 >= 253 })
    }

    @Test func `a WebP keeps its alpha`() throws {
        let pixels = try PixelBuffer.smooth(.rgba8, width: 64, height: 16)
        let decoded = try SampleFiles.decode(try SampleFiles.encode(pixels, as: .webp)).pixels
        #expect(decoded.format == .rgba8)
        for column in 0..<64 { #expect(decoded.sample(column, 8, 3) == pixels.sample(column, 8, 3)) }
    }

    @Test(arguments: [(ImageFormat.jpeg, 65_500, 65_501), (.webp, 16_383, 16_384)])
    func `sides that the format cannot store are refused`(format: ImageFormat, longest: Int, tooLong: Int) throws {
        let limits = DecodingLimits(maximumSide: 70_000)
        let fitting = try PixelBuffer.make(.gray8, width: longest, height: 1) { _, _, _ in 90 }
        let decoded = try SampleFiles.decode(
            try SampleFiles.encode(fitting, as: format),
            DecodeOptions(limits: limits)
        )
        #expect(decoded.width == longest)
        for (width, height) in [(tooLong, 1), (1, tooLong)] {
            let pixels = try PixelBuffer.make(.gray8, width: width, height: height) { _, _, _ in 90 }
            let error = #expect(throws: CodingError.self) { try SampleFiles.encode(pixels, as: format) }
            #expect(error?.code == .encodingFailed)
            #expect(error?.message.contains("\(longest)") == true)
            #expect(error?.format == format)
        }
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `a turned image is written upright`(
        format: ImageFormat
    ) throws {
        let image = Image(pixels: try .smooth(.rgb8, width: 40, height: 20), orientation: .right)
        let coder = try SampleFiles.registry.coder(encoding: format)
        let data = try coder.encode(image, as: format, options: EncodeOptions())
        let header = try coder.open(data).header
        #expect((header.pixelWidth, header.pixelHeight) == (20, 40))
        #expect(header.orientation == .up)
        let decoded = try SampleFiles.decode(data).pixels
        #expect(Self.signalToNoise(decoded, try image.upright().pixels) > 30)
    }

    /// Returns the signal-to-noise ratio in decibels, which is infinite for equal pixels.
    private static func signalToNoise(_ pixels: PixelBuffer, _ original: PixelBuffer) -> Double {
        let gray = original.format == .gray8 && pixels.format != .gray8
        let samples = original.samples.flatMap { gray ? [$0, $0, $0] : [$0] }
        let squares = zip(pixels.samples, samples).reduce(0) { $0 + (Int($1.0) - Int($1.1)) * (Int($1.0) - Int($1.1)) }
        return 10 * log10(255 * 255 * Double(samples.count) / Double(squares))
    }
}
