// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@testable import TintypeRendering

/// Checks that a thumbnail takes as much memory as the gate counts for decoding, resampling and conversion to sRGB.
@Suite(.computing, .enabled(if: AllocatedMemory.isMeasured), .timeLimit(.minutes(10))) struct DecodePlanTests {
    /// Returns a black image whose height is three quarters of its width, and its coders.
    private static func file(_ format: ImageFormat, width: Int) throws -> (data: Data, registry: CoderRegistry) {
        let layout = try PixelLayout(format: .rgb8, width: width, height: width * 3 / 4)
        let pixels = try PixelBuffer(layout, filling: { _ in })
        let registry = CoderRegistry()
        let data = try registry.coder(encoding: format)
            .encode(Image(pixels: pixels), as: format, options: EncodeOptions(quality: 60))
        return (data, registry)
    }

    /// Covers formats, sides of the image, and sides of its thumbnail.
    @Test(arguments: [
        (ImageFormat.jpeg, 3_000, 2_000), (.jpeg, 3_000, 300), (.jpeg, 4_000, 3_000), (.png, 2_000, 1_500),
        (.png, 4_000, 1_000),
    ])
    func `a thumbnail takes what the gate counts`(format: ImageFormat, side: Int, target: Int) throws {
        let (data, registry) = try Self.file(format, width: side)
        let limits = DecodingLimits()
        let request = RenderingRequest(
            thumbnail: .fit(width: target, height: target)
        )
        let decoder = try ImageDecoder(data, registry: registry, limits: limits)
        let plan = try DecodePlan(decoder: decoder, request: request, limits: limits)
        let (image, taken) = try AllocatedMemory.peak { try plan.decode() }
        #expect(image.width == target)
        let counted = plan.byteCount
        // The allocator rounds large blocks up to pages of 2 MiB.
        #expect(abs(counted - taken) <= max(counted, taken) / 10 + 2 << 20, "counted \(counted), took \(taken)")
    }

    @Test(
        arguments: [
            ([ImageTransform.blur(.box(radius: 2)), .pixelate(size: 3)], nil),
            ([.blur(.box(radius: 2)), .pixelate(size: 3)], Resize.fit(width: 1_400, height: 1_400)),
            (
                [
                    .crop(.size(width: 1_400, height: 1_000)), .blur(.box(radius: 1)),
                    .pad(.sides(top: 9, color: .black)),
                ], nil
            ),
            ([.pixelate(size: 2)], Resize.fit(width: 1_400, height: 1_400)),
        ] as [([ImageTransform], Resize?)],
        [ImageFormat.jpeg, .png]
    )
    func `a transformed image takes no more than the gate counts`(
        making: ([ImageTransform], Resize?),
        format: ImageFormat
    ) throws {
        let (data, registry) = try Self.file(format, width: 1_600)
        let limits = DecodingLimits()
        let request = RenderingRequest(
            thumbnail: making.1,
            transforms: TransformPipeline(making.0)
        )
        let decoder = try ImageDecoder(data, registry: registry, limits: limits)
        let plan = try DecodePlan(decoder: decoder, request: request, limits: limits)
        let (_, taken) = try AllocatedMemory.peak { try plan.decode() }
        let counted = plan.byteCount
        #expect(taken <= counted + counted / 20 + 1 << 20, "counted \(counted), took \(taken)")
    }

    /// The canvas cannot be read row by row, and the kernel covers hundreds of rows.
    @Test(arguments: [(1_000, 1_000), (1_500, 400), (3_000, 200)])
    func `a thumbnail of a canvas takes no more than the gate counts`(width: Int, height: Int) throws {
        let pixels = try PixelBuffer(PixelLayout(format: .rgba8, width: width, height: height), filling: { _ in })
        let registry = CoderRegistry()
        let frames = (0..<2).map { _ in
            AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 100)
        }
        let data = try registry.coder(encoding: .gif)
            .encode(AnimationContent(frames: frames), as: .gif, options: EncodeOptions())
        let limits = DecodingLimits()
        let request = RenderingRequest(
            thumbnail: .fit(width: 60, height: 60)
        )
        let decoder = try ImageDecoder(data, registry: registry, limits: limits)
        let plan = try DecodePlan(decoder: decoder, request: request, limits: limits)
        let (_, taken) = try AllocatedMemory.peak { try plan.decode() }
        let counted = plan.byteCount
        #expect(taken <= counted + counted / 10 + 2 << 20, "counted \(counted), took \(taken)")
        #expect(taken <= width * height * 4 + 32 << 20)
    }
}
