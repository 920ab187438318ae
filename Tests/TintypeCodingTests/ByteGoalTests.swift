// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport

/// Encodes within a number of bytes that is a goal instead of a requirement.
@Suite struct ByteGoalTests {
    /// A format with its options, and the options of the file that is returned if none fits.
    struct Case: Sendable, CustomTestStringConvertible {
        let format: ImageFormat
        let options: EncodeOptions
        let lowest: EncodeOptions
        var testDescription: String { "\(self.format), \(self.options.compression)" }

        init(_ format: ImageFormat, _ options: EncodeOptions, lowest: EncodeOptions) {
            self.format = format
            self.options = options
            self.lowest = lowest
        }
    }

    static let cases = [
        Case(.jpeg, EncodeOptions(quality: 90), lowest: EncodeOptions(quality: 1, maximumByteCount: .max)),
        Case(.webp, EncodeOptions(quality: 90), lowest: EncodeOptions(quality: 1)),
        Case(
            .webp,
            EncodeOptions(quality: 90, compression: .lossless),
            lowest: EncodeOptions(quality: 90, compression: .lossless)
        ),
        Case(.png, EncodeOptions(pngLevel: 1, pngFilter: .none), lowest: EncodeOptions(pngLevel: 9)),
    ].filter { CoderRegistry().encodableFormats.contains($0.format) }

    private static func encode(
        _ pixels: PixelBuffer,
        as format: ImageFormat,
        _ options: EncodeOptions
    ) throws -> Data {
        try CoderRegistry().coder(encoding: format).encode(Image(pixels: pixels), as: format, options: options)
    }

    @Test(arguments: Self.cases) func `a goal that cannot be met gives the smallest file`(sample: Case) throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 160, height: 120)
        var options = sample.options
        options.maximumByteCount = 100
        #expect(throws: CodingError.self) { try Self.encode(pixels, as: sample.format, options) }
        options.requiresMaximumByteCount = false
        let data = try Self.encode(pixels, as: sample.format, options)
        #expect(data.count > 100)
        let lowest = try Self.encode(pixels, as: sample.format, sample.lowest)
        #expect(data.count <= lowest.count)
        #expect(data.count <= (try Self.encode(pixels, as: sample.format, sample.options).count))
    }

    @Test(arguments: Self.cases) func `a goal that can be met is met as a requirement is`(sample: Case) throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 160, height: 120)
        let free = try Self.encode(pixels, as: sample.format, sample.options)
        let lowest = try Self.encode(pixels, as: sample.format, sample.lowest)
        for limit in [free.count, (free.count + lowest.count) / 2, lowest.count] {
            var options = sample.options
            options.maximumByteCount = limit
            let required = try Self.encode(pixels, as: sample.format, options)
            options.requiresMaximumByteCount = false
            #expect(try Self.encode(pixels, as: sample.format, options) == required)
        }
    }

    @Test func `a GIF over its goal has two colours`() throws {
        let pixels = try PixelBuffer.noise(.rgb8, width: 60, height: 50)
        let options = EncodeOptions(maximumByteCount: 100, requiresMaximumByteCount: false)
        let data = try Self.encode(pixels, as: .gif, options)
        let image = try SampleFiles.decode(data).pixels
        let colors = (0..<image.height).flatMap { row in
            (0..<image.width).map { column in (0..<3).map { image.sample(column, row, $0) } }
        }
        #expect(Set(colors).count == 2)
    }

    @Test(arguments: [ImageFormat.gif, .webp, .png].filter { CoderRegistry().encodableFormats.contains($0) })
    func `an animation over its goal is written all the same`(format: ImageFormat) throws {
        let frames = try (0..<3).map {
            AnimationContent.Frame(
                image: Image(pixels: try .noise(.rgb8, width: 30, height: 20, seed: $0)),
                milliseconds: 100
            )
        }
        let options = EncodeOptions(maximumByteCount: 100, requiresMaximumByteCount: false)
        let data = try CoderRegistry().coder(encoding: format)
            .encode(AnimationContent(frames: frames), as: format, options: options)
        #expect(try CoderRegistry().coder(decoding: data).open(data).header.animation.frameCount == 3)
    }
}
