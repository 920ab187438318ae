// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeTransforms

@Suite(.computing) struct BlurTests {
    /// Images in which errors are visible: noise, edges, a fine pattern, and single pixels.
    enum Pattern: CaseIterable {
        case noise, edges, stripes, points

        func pixels(_ format: PixelFormat, width: Int, height: Int) throws -> PixelBuffer {
            switch self {
            case .noise: try .noise(format, width: width, height: height)
            case .edges:
                try .make(format, width: width, height: height) { column, row, channel in
                    (column > width / 3) != (row > height / 2 + channel) ? 255 : 0
                }
            case .stripes:
                try .make(format, width: width, height: height) { column, row, channel in
                    (column + channel) % 2 == 0 || row % 3 == 0 ? 255 : 0
                }
            case .points:
                try .make(format, width: width, height: height) { column, row, channel in
                    column == width / 2 && row == height / 2 || column + row == 0 ? 255 : 0
                }
            }
        }
    }

    @Test(
        arguments: [0.3, 0.5, 1, 1.9, 2.5, 2.83, 3, 4.2, 4.3, 5.9, 7, 15, 23.3, 50],
        Pattern.allCases
    )
    func `A Gaussian is within one level of the exact one`(sigma: Double, pattern: Pattern) throws {
        for format in [PixelFormat.gray8, .rgb8, .rgba8] where format == .rgba8 || sigma < 8 {
            let pixels = try pattern.pixels(format, width: 45, height: 37)
            let exact = SlowBlur(pixels, .sRGB).blurred { exp(-0.5 * $0 * $0 / (sigma * sigma)) }
            let result = try Blur.gaussian(sigma: sigma).transform(Image(pixels: pixels)).pixels
            #expect(exact.largestDifference(to: result) <= 1, "\(format)")
        }
    }

    @Test(arguments: [
        (3100, 2, 2.0), (2000, 3, 6.5), (3400, 2, 3), (2600, 2, 30), (3, 900, 90), (1, 1, 1000), (1, 40, 12),
        (33, 1, 3),
    ])
    func `Images of several strips, high and tiny ones are blurred alike`(
        width: Int,
        height: Int,
        sigma: Double
    ) throws {
        let pixels = try PixelBuffer.noise(.rgba8, width: width, height: height, seed: 7)
        let exact = SlowBlur(pixels, .sRGB).blurred { exp(-0.5 * $0 * $0 / (sigma * sigma)) }
        let result = try Blur.gaussian(sigma: sigma).transform(Image(pixels: pixels)).pixels
        #expect(exact.largestDifference(to: result) <= 1, "\(exact.largestDifference(to: result))")
    }

    @Test(arguments: [0.5, 2, 3, 5.9, 20]) func `An image of one colour stays as it is`(sigma: Double) throws {
        for color in [[0, 0, 0, 0], [0, 0, 0, 255], [1, 127, 254, 255], [255, 255, 255, 255]] as [[UInt8]] {
            let pixels = try PixelBuffer.make(.rgba8, width: 25, height: 17) { _, _, channel in color[channel] }
            let result = try Blur.gaussian(sigma: sigma).transform(Image(pixels: pixels)).pixels
            #expect(result.samples == pixels.samples, "\(color)")
        }
    }

    @Test(arguments: [1.2, 4], [PixelFormat.gray8, .rgb8, .rgba8])
    func `Light is blurred as light`(sigma: Double, format: PixelFormat) throws {
        let pixels = try Pattern.edges.pixels(format, width: 40, height: 30)
        let exact = SlowBlur(pixels, .linear).blurred { exp(-0.5 * $0 * $0 / (sigma * sigma)) }
        let blur = Blur.gaussian(sigma: sigma, light: .linear)
        #expect(exact.largestDifference(to: try blur.transform(Image(pixels: pixels)).pixels) <= 1)
    }

    @Test(arguments: [1, 2, 7, 30, 200], [PixelFormat.gray8, .rgb8, .rgba8])
    func `A box is the mean of a square`(radius: Int, format: PixelFormat) throws {
        for light in LightSpace.allCases {
            let pixels = try PixelBuffer.noise(format, width: 37, height: 26)
            let exact = SlowBlur(pixels, light).blurred { abs($0) <= Double(radius) ? 1 : 0 }
            let result = try Blur.box(radius: radius, light: light).transform(Image(pixels: pixels)).pixels
            #expect(exact.largestDifference(to: result) <= (light == .sRGB ? 0.501 : 0.6), "\(light)")
        }
    }

    @Test(arguments: [(1, 1), (1, 30), (30, 1), (2, 2)]) func `A box may reach over all of an image`(
        width: Int,
        height: Int
    ) throws {
        let pixels = try PixelBuffer.noise(.rgb8, width: width, height: height)
        for radius in [1, 2, 29, 30, 31, 100] {
            let exact = SlowBlur(pixels, .sRGB).blurred { abs($0) <= Double(radius) ? 1 : 0 }
            let result = try Blur.box(radius: radius).transform(Image(pixels: pixels)).pixels
            #expect(exact.largestDifference(to: result) <= 0.501, "\(radius)")
        }
    }

    @Test(arguments: [
        Blur.gaussian(sigma: 4), .gaussian(sigma: 1), .box(radius: 3), .gaussian(sigma: 4, light: .linear),
    ])
    func `Red beside what cannot be seen keeps its red`(blur: Blur) throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 40, height: 9) { column, _, channel in
            // Transparent pixels are green.
            column < 20 ? [255, 0, 0, 255][channel] : [0, 255, 0, 0][channel]
        }
        let result = try blur.transform(Image(pixels: pixels)).pixels
        #expect(result.sample(0, 4, 3) == 255)
        #expect((1...254).contains(result.sample(20, 4, 3)))
        for column in 0..<40 {
            let isSeen = result.sample(column, 4, 3) > 0
            #expect(result.sample(column, 4, 0) == (isSeen ? 255 : 0))
            #expect(result.sample(column, 4, 1) == 0)
        }
    }

    @Test(arguments: [Blur.gaussian(sigma: 0), .box(radius: 0), .gaussian(sigma: 0.1)])
    func `Without a reach the image stays itself`(blur: Blur) throws {
        let image = Image(pixels: try .noise(.rgb8, width: 4, height: 4))
        #expect(try blur.transform(image).pixels === image.pixels)
    }

    @Test(arguments: [
        Blur.gaussian(sigma: -1), .gaussian(sigma: .nan), .gaussian(sigma: 1001), .box(radius: -1), .box(radius: .max),
    ])
    func `A reach that makes no sense is refused`(blur: Blur) throws {
        let image = Image(pixels: try .noise(.rgb8, width: 4, height: 4))
        let refused = { (error: any Error) in (error as? TransformError)?.code == .invalidParameter }
        #expect { try blur.transform(image) } throws: { refused($0) }
        #expect { try blur.footprint(for: image.pixels.layout) } throws: { refused($0) }
    }

    @Test(
        .enabled(if: AllocatedMemory.isMeasured),
        arguments: [Blur.gaussian(sigma: 0.8), .gaussian(sigma: 3), .gaussian(sigma: 20), .box(radius: 9)]
    )
    func `It takes the memory that it says`(blur: Blur) throws {
        let image = Image(pixels: try .noise(.rgba8, width: 2000, height: 40))
        let footprint = try blur.footprint(for: image.pixels.layout)
        let (_, peak) = try AllocatedMemory.peak { try blur.transform(image) }
        let working = peak - footprint.result.byteCount
        #expect(working <= footprint.workingByteCount + 100_000)
        #expect(working >= footprint.workingByteCount / 2)
    }

    @Test func `A blur whose task is cancelled makes no more rows, however few and wide they are`() async {
        let task = Task {
            try GaussianFilter(sigma: 100).run(
                FilteredImage<Float>(
                    width: 100,
                    height: 1,
                    channels: 1,
                    load: { _, columns, numbers in
                        numbers.update(repeating: 0, count: columns.count)
                        withUnsafeCurrentTask { $0?.cancel() }
                    },
                    emit: { _, _, _ in Issue.record("A row is made.") }
                )
            )
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test(arguments: [
        (Blur.gaussian(sigma: 2.5), #"{"sigma":2.5}"#, "blur(2.5)"),
        (.gaussian(sigma: 3, light: .linear), #"{"light":"linear","sigma":3}"#, "blur(3.0,linear)"),
        (.box(radius: 4), #"{"radius":4}"#, "blur(box,4)"),
    ])
    func `A description is a sigma or a radius`(blur: Blur, text: String, key: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(blur), as: UTF8.self) == text)
        #expect(try JSONDecoder().decode(Blur.self, from: Data(text.utf8)) == blur)
        #expect(blur.key == key)
        for wrong in ["{}", #"{"sigma":1,"radius":2}"#] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(Blur.self, from: Data(wrong.utf8)) }
        }
    }
}
