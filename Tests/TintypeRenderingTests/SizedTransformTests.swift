// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@testable import TintypeRendering

/// Transforms that depend on the size of the image, as a part of the decode.
@Suite(.computing, .timeLimit(.minutes(5))) struct SizedTransformTests {
    /// Cuts out the middle half and shrinks it to a tenth.
    private struct Tenth: SizedTransformer {
        let key = "tenth"

        func transforms(for size: PixelSize) throws(TransformError) -> TransformPipeline {
            let (width, height) = (size.width / 2, size.height / 2)
            return [
                .crop(.rectangle(x: size.width / 4, y: size.height / 4, width: width, height: height)),
                .resize(.stretch(width: width / 10, height: height / 10)), .flip(.horizontal),
                .blur(.box(radius: 1)),
            ]
        }
    }

    private static func plan(_ data: Data, _ request: RenderingRequest) throws -> DecodePlan {
        let limits = DecodingLimits()
        let decoder = try ImageDecoder(data, registry: CoderRegistry(), limits: limits)
        return try DecodePlan(decoder: decoder, request: request, limits: limits)
    }

    @Test(arguments: [Orientation.up, .right, .downMirrored])
    func `the decode of a JPEG is scaled as for transforms written out`(orientation: Orientation) throws {
        let upright = orientation.uprightSize(width: 800, height: 600)
        let pixels = try PixelBuffer.smooth(.rgb8, width: 800, height: 600)
        let data = try SampleFiles.jpeg(pixels, orientation: Int(orientation.rawValue))
        let written = try Tenth().transforms(for: PixelSize(width: upright.width, height: upright.height))
        let plan = try Self.plan(data, RenderingRequest(transforms: [.custom(Tenth())]))
        let expected = try Self.plan(data, RenderingRequest(transforms: written))
        // Twice the pixels of the result suffice on each side.
        #expect(try #require(plan.step).width < 800)
        #expect(plan.step == expected.step)
        #expect(plan.base == expected.base)
        #expect(plan.byteCount == expected.byteCount)
        #expect(plan.partKey(1) == expected.partKey(1))
        #expect(plan.commonTransformCount(with: expected) == 1)
        let (result, wanted) = (try plan.decode(), try expected.decode())
        #expect((result.width, result.height) == (upright.width / 20, upright.height / 20))
        #expect(result.pixels.samples == wanted.pixels.samples)
    }

    @Test(arguments: [ImageFormat.jpeg, .png]) func `a large image is streamed`(format: ImageFormat) throws {
        let pixels = try PixelBuffer(PixelLayout(format: .rgb8, width: 4_000, height: 3_000), filling: { _ in })
        let data = try CoderRegistry().coder(encoding: format)
            .encode(Image(pixels: pixels), as: format, options: EncodeOptions())
        let written = try Tenth().transforms(for: PixelSize(width: 4_000, height: 3_000))
        let plan = try Self.plan(data, RenderingRequest(transforms: [.custom(Tenth())]))
        let expected = try Self.plan(data, RenderingRequest(transforms: written))
        #expect(plan.streams == expected.streams)
        #expect(plan.streams == (format == .png))
        #expect(plan.byteCount == expected.byteCount)
    }

    @Test func `a thumbnail comes before, and a pad after`() throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 800, height: 600)
        let data = try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: EncodeOptions())
        let request = RenderingRequest(
            thumbnail: .fit(width: 200, height: 200),
            transforms: [.custom(Tenth()), .pad(.sides(top: 3, color: .black))]
        )
        let image = try Self.plan(data, request).decode()
        // The thumbnail has 200 by 150 pixels.
        #expect((image.width, image.height) == (10, 10))
    }
}
