// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Transformed images, which are made during a load and stored under their own keys.
@Suite(.waiting, .timeLimit(.minutes(5))) struct TransformedImageTests {
    let fixture: LoaderFixture
    let origin: ScriptedOrigin
    let url: URL

    init() throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 40, height: 20)
        let png = try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions())
        self.origin = ScriptedOrigin(["/a": .body(Array(png))])
        self.fixture = try LoaderFixture(origin: self.origin)
        self.url = self.origin.url("/a")
    }

    /// A program's own transformer, which inverts the samples.
    private struct Inversion: ImageTransformer {
        var name = "inversion"
        var error: (any Error & Sendable)?

        var key: String { self.name }

        func transform(_ image: Image) throws -> Image {
            if let error { throw error }
            let pixels = image.pixels
            return image.replacingPixels(
                try .make(pixels.format, width: image.width, height: image.height) {
                    let sample = pixels.sample($0, $1, $2)
                    return UInt8($2 == 3 ? sample : 255 - sample)
                },
                orientation: .up
            )
        }
    }

    /// Returns a TIFF structure with one field, the orientation.
    private static func exif(_ orientation: Orientation) -> Data {
        Data([
            0x49, 0x49, 0x2A, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, orientation.rawValue, 0, 0, 0, 0, 0, 0, 0,
        ])
    }

    private func request(_ transforms: TransformPipeline, thumbnail: Resize? = nil) -> ImageRequest {
        ImageRequest(url: self.url, thumbnail: thumbnail, transforms: transforms)
    }

    @Test func `a program's own transformer makes the image, and its key tells the images apart`() async throws {
        let loader = self.fixture.makeLoader()
        let plain = try await loader.image(for: self.url)
        let inverted = try await loader.response(for: self.request([.custom(Inversion())]))
        #expect(inverted.image.pixels.largestDifference { 255 - plain.pixels.sample($0, $1, $2) } == 0)
        // The image is made from the decoded original in memory, and is stored too.
        #expect((inverted.source, self.fixture.decodes.count) == (.memory, 1))
        let again = try await loader.response(for: self.request([.custom(Inversion())]))
        #expect(again.image.pixels === inverted.image.pixels)
        let other = try await loader.response(for: self.request([.custom(Inversion(name: "other"))]))
        #expect(other.image.pixels !== inverted.image.pixels)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `transforms follow the thumbnail, in their order`() async throws {
        let loader = self.fixture.makeLoader()
        let image = try await loader.image(
            for: self.request(
                [
                    .resize(.stretch(width: 10, height: 10)), .custom(Inversion()),
                    .resize(.stretch(width: 3, height: 7)),
                ],
                thumbnail: .fit(width: 20, height: 20)
            )
        )
        #expect((image.width, image.height) == (3, 7))
        let keys = [
            self.request([.custom(Inversion(name: "a")), .custom(Inversion(name: "b"))]),
            self.request([.custom(Inversion(name: "b")), .custom(Inversion(name: "a"))]),
            self.request([.custom(Inversion(name: "a|.|b"))]),
            self.request([.custom(Inversion(name: "a\nb"))]),
            self.request([.custom(Inversion(name: String(repeating: "a", count: 2_000)))]),
            self.request([]),
        ].map(\.key.text)
        #expect(Set(keys).count == keys.count)
        #expect(keys.allSatisfy { $0.utf8.count < 1_000 && $0.split(separator: "\n").count <= 2 })
    }

    @Test func `the key of a program's own transformer is taken for nothing else`() {
        func key(_ change: (inout ImageRequest) -> Void) -> CacheKey {
            var request = ImageRequest(url: self.url)
            change(&request)
            return request.key
        }
        func own(_ name: String) -> CacheKey { key { $0.transforms = [.custom(Inversion(name: name))] } }
        #expect(own("profile") != key { $0.options = .keepColorProfile })
        #expect(own("truncated") != key { $0.options = .allowTruncated })
        #expect(own("scale(2.0)") != key { $0.rendering.scale = 2 })
        #expect(own("limit(9)") != key { $0.rendering.scaleDownLimit = 9 })
        #expect(own(Flip(.both).key) != key { $0.transforms = [.flip(.both)] })
    }

    @Test(arguments: Orientation.allCases)
    func `an image is upright when it is transformed, however it is stored`(orientation: Orientation) async throws {
        let upright = Image(pixels: try .smooth(.rgb8, width: 64, height: 40))
        let stored = try upright.replacingPixels(upright.pixels, orientation: orientation.inverse).upright()
        var options = EncodeOptions(quality: 100, chromaSubsampling: .none)
        options.metadata.exif = Self.exif(orientation)
        self.origin.script("/o", .body(Array(try JPEGCoder().encode(stored, as: .jpeg, options: options))))
        let loader = self.fixture.makeLoader()
        var request = ImageRequest(url: self.origin.url("/o"), thumbnail: .fill(width: 32, height: 32))
        let thumbnail = try await loader.image(for: request)
        request.transforms = [.resize(.fit(width: 16, height: 16)), .custom(Inversion())]
        let image = try await loader.image(for: request)
        let expected = try thumbnail.resized(.fit(width: 16, height: 16))
        #expect(image.pixels.largestDifference { 255 - expected.pixels.sample($0, $1, $2) } <= 3)
    }

    @Test func `the disk keeps what was made where it is asked to`() async throws {
        var request = self.request([.custom(Inversion())])
        request.caching.variants = .all
        request.options = .waitForStore
        let first = try await self.fixture.makeLoader().image(for: request)
        let again = try await self.fixture.makeLoader().response(for: request)
        #expect(again.source == .disk)
        #expect(again.image.pixels.largestDifference { first.pixels.sample($0, $1, $2) } <= 4)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `an error of a transformer fails the load, and nothing is kept`() async throws {
        struct Failure: Error {}
        let loader = self.fixture.makeLoader()
        await #expect { try await loader.image(for: self.request([.custom(Inversion(error: Failure()))])) } throws: {
            ($0 as? LoadError)?.code == .unexpected && ($0 as? LoadError)?.underlyingError is Failure
        }
        let refusal = TransformError(code: .invalidParameter, message: "No.")
        await #expect { try await loader.image(for: self.request([.custom(Inversion(error: refusal))])) } throws: {
            ($0 as? LoadError)?.code.description == "invalidParameter"
        }
        #expect(try await loader.image(for: self.request([.custom(Inversion())])).width == 40)
    }

    @Test func `a result over the limits is refused before it is made`() async throws {
        struct Growth: ImageTransformer {
            let key = "growth"
            func footprint(for source: PixelLayout) throws -> TransformFootprint {
                let layout = try PixelLayout(format: source.format, width: source.width * 1_000, height: source.height)
                return TransformFootprint(result: layout)
            }
            func transform(_ image: Image) throws -> Image {
                Issue.record("It is not asked to.")
                return image
            }
        }
        let loader = self.fixture.makeLoader { $0.limits.maximumSide = 10_000 }
        await #expect { try await loader.image(for: self.request([.custom(Growth())])) } throws: {
            ($0 as? LoadError)?.code == .invalidSize
        }
        await #expect {
            try await loader.image(
                for: self.request(
                    [.resize(.stretch(width: 20_000, height: 1, upscales: true))],
                    thumbnail: .fit(width: 9, height: 9)
                )
            )
        } throws: { ($0 as? LoadError)?.code == .invalidSize }
    }

    @Test(arguments: [
        [ImageTransform](repeating: .blur(.gaussian(sigma: 1)), count: 20), .init(repeating: .tint(.white), count: 20),
    ])
    func `transforms that together are too much work are refused before the first`(
        transforms: [ImageTransform]
    ) async throws {
        // Each transform makes 800 pixels.
        let loader = self.fixture.makeLoader { $0.limits.maximumWork = 10_000 }
        _ = try await loader.image(for: self.request(TransformPipeline(Array(transforms.prefix(10)))))
        struct Failure: Error {}
        let request = self.request(TransformPipeline([.custom(Inversion(error: Failure()))] + transforms))
        await #expect { try await loader.image(for: request) } throws: {
            ($0 as? LoadError)?.code.description == "tooMuchWork"
        }
    }

    @Test func `a result over the limits that no header could tell of is refused before it is made`() async throws {
        // The image is a line in a white border. The height that belongs to a width is known only after the trim.
        let pixels = try PixelBuffer.make(.rgb8, width: 60, height: 60) { column, _, _ in column == 30 ? 0 : 255 }
        let png = try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions())
        self.origin.script("/line", .body(Array(png)))
        let loader = self.fixture.makeLoader { $0.limits.maximumSide = 1_000 }
        let request = ImageRequest(
            url: self.origin.url("/line"),
            transforms: [.trim(Trim()), .resize(.width(100, upscales: true))]
        )
        await #expect { try await loader.image(for: request) } throws: { ($0 as? LoadError)?.code == .invalidSize }
        _ = try await loader.image(for: ImageRequest(url: request.url))
        await #expect { try await loader.image(for: request) } throws: { ($0 as? LoadError)?.code == .invalidSize }
    }

    @Test func `bytes that are here are transformed`() async throws {
        let loader = self.fixture.makeLoader()
        let data = try await loader.data(for: ImageRequest(url: self.url))
        let image = try await loader.image(
            from: data,
            transforms: [.resize(.fit(width: 4, height: 4)), .custom(Inversion())]
        )
        #expect((image.width, image.height) == (4, 2))
    }

    @Test func `the frames of an animation are transformed`() async throws {
        let frames = try (0..<3).map { index in
            AnimationContent.Frame(
                image: Image(pixels: try .make(.rgb8, width: 40, height: 20) { _, _, _ in UInt8(index * 40) }),
                milliseconds: 100
            )
        }
        let content = AnimationContent(frames: frames, loopCount: 0)
        let bytes = try PNGCoder().encode(content, as: .png, options: EncodeOptions())
        self.origin.script("/m", .body(Array(bytes)))
        let loader = self.fixture.makeLoader { $0.coders = CoderRegistry() }
        let request = ImageRequest(
            url: self.origin.url("/m"),
            transforms: [.resize(.fit(width: 10, height: 10)), .custom(Inversion())]
        )
        let source = try await loader.frames(for: request)
        for index in 0..<3 {
            let frame = try await source.frame(at: index)
            #expect((frame.width, frame.height) == (10, 5))
            #expect(frame.pixels.largestDifference { _, _, channel in channel == 3 ? 255 : 255 - index * 40 } <= 1)
        }
        // Three frames of 20,000 pixels exceed the limit for all frames together.
        let small = self.fixture.makeLoader {
            $0.coders = CoderRegistry()
            $0.limits.maximumAnimationPixels = 50_000
        }
        let enlarged = ImageRequest(
            url: self.origin.url("/m"),
            transforms: [.resize(.stretch(width: 200, height: 100, upscales: true))]
        )
        await #expect { _ = try await small.frames(for: enlarged) } throws: { ($0 as? LoadError)?.code == .invalidSize }
    }
}
