// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct AnimationTests {
    private static let colors: [UInt8] = [10, 120, 240]

    private static func animation() throws -> AnimationContent {
        let frames = try Self.colors.enumerated().map { index, color in
            let pixels = try PixelBuffer.make(.rgb8, width: 16, height: 12) { column, _, _ in
                column < 8 ? color : UInt8(index)
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 100 * (index + 1))
        }
        return AnimationContent(frames: frames, loopCount: 3)
    }

    @Test(arguments: [ImageFormat.gif, .webp, .png]) func `animations are written and read back`(
        format: ImageFormat
    ) async throws {
        let directory = try TemporaryDirectory()
        let loader = try LoaderFixture().makeLoader { $0.coders = CoderRegistry() }
        let options = EncodeOptions(compression: .lossless)
        let data = try await loader.encode(try Self.animation(), as: format, options: options)
        let url = URL(filePath: try directory.write(data, to: "animation"))
        let source = try await loader.frames(for: ImageRequest(url: url))
        #expect(source.frameCount == 3)
        #expect(source.loopCount == 3)
        #expect(source.durations == [100, 200, 300])
        for index in [2, 0, 1] {
            let frame = try await source.frame(at: index)
            #expect(frame.pixels.sample(0, 0, 0) == Int(Self.colors[index]))
            #expect(frame.pixels.sample(15, 11, 0) == index)
        }
        let error = await #expect(throws: CodingError.self) { try await source.frame(at: 3) }
        #expect(error?.code == .invalidOptions)
    }

    @Test func `a still image is a source of one frame`() async throws {
        let source = try await LoaderFixture().makeLoader().frames(for: ImageRequest(url: Fixtures.url("flower.webp")))
        #expect(source.frameCount == 1)
        #expect(source.durations == [])
        #expect(try await source.frame(at: 0).width == 1_134)
    }

    @Test(arguments: [(ImageFormat.jpeg, PixelFormat.rgb8), (.png, .rgba8)])
    func `the format follows the alpha where none is given`(format: ImageFormat, pixels: PixelFormat) async throws {
        let image = Image(pixels: try .smooth(pixels, width: 20, height: 10))
        let loader = try LoaderFixture().makeLoader()
        #expect(ImageFormat(sniffing: try await loader.encode(image)) == format)
        let small = try await loader.encode(image, as: .png, maximumSide: 10)
        #expect(try PNGCoder().open(small).header.pixelWidth == 10)
    }

    @Test func `large images are scaled down to their limit`() async throws {
        let request = ImageRequest(
            source: .init(url: Fixtures.url("flower.jpg")),
            rendering: .init(scaleDownLimit: 1 << 20)
        )
        let image = try await LoaderFixture().makeLoader().image(for: request)
        // 2268x1512 times the square root of 262,144 / 3,429,216.
        #expect((image.width, image.height) == (627, 418))
        let whole = ImageRequest(
            source: .init(url: Fixtures.url("flower.jpg")),
            rendering: .init(scaleDownLimit: ImageRequest.Rendering.defaultScaleDownLimit)
        )
        #expect(try await LoaderFixture().makeLoader().image(for: whole).width == 2_268)
    }
}
