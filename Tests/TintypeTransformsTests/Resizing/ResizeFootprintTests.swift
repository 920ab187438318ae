// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing, .enabled(if: AllocatedMemory.isMeasured)) struct ResizeFootprintTests {
    /// The tolerance for some pointers and numbers.
    private static let little = 64 << 10

    /// Target sizes: much smaller, slightly smaller, larger, and with another shape.
    static let sizes = [(40, 30), (230, 170), (600, 450), (600, 10), (20, 400), (300, 200)]

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], LightSpace.allCases)
    func `a resize takes what its footprint says`(format: PixelFormat, light: LightSpace) throws {
        let image = Image(pixels: try .noise(format, width: 300, height: 225))
        // Create the tables that are shared by all resizes and not part of the footprint.
        _ = try image.resized(Resize(width: 9, height: 9, light: light))
        for (width, height) in Self.sizes {
            for filter in [Resize.Filter.lanczos3, .bilinear, .nearest] {
                let resize = Resize(
                    width: width,
                    height: height,
                    mode: .stretch,
                    upscales: true,
                    filter: filter,
                    light: light
                )
                let footprint = try resize.footprint(for: image.pixels.layout)
                let (result, taken) = try AllocatedMemory.peak { try resize.transform(image) }
                #expect(footprint.result == result.pixels.layout)
                let working = taken - result.pixels.byteCount
                #expect(working <= footprint.workingByteCount, "\(resize.key)")
                #expect(footprint.workingByteCount <= 2 * working + Self.little, "\(resize.key)")
            }
        }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], LightSpace.allCases)
    func `rows take what is counted for them`(format: PixelFormat, light: LightSpace) throws {
        let pixels = try PixelBuffer.noise(format, width: 300, height: 225)
        let resampling = Resampling(light: light)
        for (width, height) in Self.sizes {
            let resize = Resize(width: width, height: height, mode: .stretch, upscales: true, light: light)
            let geometry = try ResizeGeometry(resize, width: 300, height: 225)
            let rows = BufferRows(pixels)
            let counted = geometry.byteCount(
                width: 300,
                height: 225,
                format: format,
                resampling: resampling,
                isStreamed: true
            )
            let (result, taken) = try AllocatedMemory.peak { try Image.resampling(rows, geometry, resampling) }
            let working = taken - result.pixels.byteCount
            #expect(working <= counted, "\(resize.key)")
            #expect(counted <= 2 * working + Self.little, "\(resize.key)")
        }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], LightSpace.allCases)
    func `a part takes memory for its columns only`(format: PixelFormat, light: LightSpace) throws {
        let image = Image(pixels: try .noise(format, width: 4_000, height: 40))
        for (width, height) in [(20, 20), (4, 2), (37, 36)] {
            let resize = Resize(width: width, height: height, mode: .fill, light: light)
            _ = try resize.transform(image)
            let footprint = try resize.footprint(for: image.pixels.layout)
            let (result, taken) = try AllocatedMemory.peak { try resize.transform(image) }
            let working = taken - result.pixels.byteCount
            #expect(working <= footprint.workingByteCount, "\(resize.key)")
            #expect(footprint.workingByteCount <= 2 * working + Self.little, "\(resize.key)")
        }
    }

    @Test func `an image of the size takes nothing`() throws {
        let image = Image(pixels: try .noise(.rgba8, width: 30, height: 20))
        let footprint = try Resize.fit(width: 40, height: 20).footprint(for: image.pixels.layout)
        #expect(footprint == TransformFootprint(result: image.pixels.layout))
    }

    @Test func `a footprint of what no memory holds is said without taking it`() throws {
        let huge = try PixelLayout(format: .rgba8, width: Int(Int32.max), height: 1)
        for light in LightSpace.allCases {
            let resize = Resize(width: Int(Int32.max), height: 9, mode: .stretch, upscales: true, light: light)
            #expect(try resize.footprint(for: huge).workingByteCount > 1 << 33)
        }
    }
}
