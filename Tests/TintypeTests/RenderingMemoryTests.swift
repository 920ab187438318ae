import FoundationEssentials
import TestSupport
import Testing

@testable import Tintype

/// What a thumbnail takes is what the memory gate is told: decoded, resampled and brought to sRGB.
@Suite(.enabled(if: AllocatedMemory.isMeasured), .timeLimit(.minutes(5))) struct RenderingMemoryTests {
    /// The side of the picture, the side of its thumbnail, and the format.
    @Test(arguments: [
        (ImageFormat.jpeg, 3_000, 2_000), (.jpeg, 3_000, 300), (.jpeg, 4_000, 3_000), (.png, 2_000, 1_500),
        (.png, 4_000, 1_000),
    ])
    func `a thumbnail takes what the gate counts`(format: ImageFormat, side: Int, target: Int) throws {
        let layout = try PixelLayout(format: .rgb8, width: side, height: side * 3 / 4)
        let pixels = try PixelBuffer(layout, filling: { _ in })
        let registry = CoderRegistry()
        let data = try registry.coder(encoding: format)
            .encode(Image(pixels: pixels), as: format, options: EncodeOptions(quality: 60))
        let limits = DecodingLimits()
        let request = ImageRequest(
            url: try #require(URL(string: "http://127.0.0.1/picture")),
            thumbnail: .fit(width: target, height: target)
        )
        let decoder = try ImageDecoder(data, registry: registry, limits: limits)
        let rendering = try Rendering(decoder: decoder, request: request, limits: limits)
        let (image, taken) = try AllocatedMemory.peak { try rendering.render() }
        #expect(image.width == target)
        let counted = rendering.byteCount
        // Large blocks are rounded up to pages of 2 MiB.
        #expect(abs(counted - taken) <= max(counted, taken) / 10 + 2 << 20, "counted \(counted), took \(taken)")
    }
}
