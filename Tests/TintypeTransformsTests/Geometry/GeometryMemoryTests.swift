// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing, .enabled(if: AllocatedMemory.isMeasured)) struct GeometryMemoryTests {
    @Test(
        arguments: [
            Crop.size(width: 200, height: 300), Pad.sides(left: 20, bottom: 9), Trim(color: .white), Flip.horizontal,
            Rotate(degrees: 90), Rotate(degrees: 90, canvas: .clip), Rotate(degrees: 17), RoundCorners(radius: 40),
            RoundCorners(radius: 0, border: Border(width: 5, color: .black)), Circle(),
        ] as [any ImageTransformer],
        [PixelFormat.gray8, .rgb8, .rgba8]
    )
    func `no more memory is taken than was said`(transformer: any ImageTransformer, format: PixelFormat) throws {
        let image = Image(pixels: try .make(format, width: 400, height: 320) { column, _, _ in column < 9 ? 255 : 0 })
        let footprint = try transformer.footprint(for: image.pixels.layout)
        // Allocate the parts that the runtime allocates only once.
        _ = try transformer.transform(image)
        let (_, taken) = try AllocatedMemory.peak { try transformer.transform(image) }
        #expect(taken <= footprint.result.byteCount + footprint.workingByteCount + 4 << 10)
    }
}
