// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Encodings whose format the image chooses.
@Suite(.waiting, .timeLimit(.minutes(5))) struct AutomaticEncodingTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    /// A source image.
    enum Sample: CaseIterable {
        case opaque, transparent, opaqueWithAlpha, animated

        func body(as format: ImageFormat) throws -> [UInt8] {
            guard self != .animated else { return try AnimatedResponseTests.animation(as: format) }
            let (pixelFormat, alpha): (PixelFormat, UInt8) =
                (self == .opaque ? .rgb8 : .rgba8, self == .transparent ? 100 : 255)
            let pixels = try PixelBuffer.make(pixelFormat, width: 20, height: 10) { $2 == 3 ? alpha : 50 }
            let coder = try CoderRegistry().coder(encoding: format)
            return Array(try coder.encode(Image(pixels: pixels), as: format, options: EncodeOptions()))
        }
    }

    @Test(
        arguments: [
            // The format of the source, if the list has it.
            (.png, .opaque, [.jpeg(), .png, .gif], .png), (.jpeg, .opaque, [.png, .jpeg()], .jpeg),
            (.gif, .animated, [.jpeg(), .webp(), .gif], .gif), (.png, .animated, [.webp(), .png], .png),
            // Otherwise the first one that holds the image.
            (.webp, .opaque, [.jpeg(), .png, .gif], .jpeg), (.webp, .transparent, [.jpeg(), .png, .gif], .png),
            (.webp, .transparent, [.jpeg(), .gif, .png], .gif), (.png, .opaqueWithAlpha, [.jpeg(), .webp()], .jpeg),
            (.webp, .animated, [.jpeg(), .png, .gif], .gif), (.webp, .animated, [.jpeg(), .png], .png),
            (.gif, .animated, [.jpeg(), .webp()], .webp), (.png, .transparent, [.webp(), .gif], .webp),
            // Otherwise the first one.
            (.gif, .animated, [.jpeg()], .jpeg), (.png, .transparent, [.jpeg()], .jpeg), (.jpeg, .opaque, [], .png),
        ] as [(ImageFormat, Sample, [OutputEncoding], ImageFormat)]
    )
    func `the image chooses its format`(
        source: ImageFormat,
        sample: Sample,
        encodings: [OutputEncoding],
        expected: ImageFormat
    ) async throws {
        self.origin.script("/a", .body(try sample.body(as: source)))
        let request = ImageRequest(url: self.origin.url("/a"), thumbnail: .fit(width: 8, height: 8))
        let loader = self.fixture.makeCodingLoader()
        let response = try await loader.encoded(request, as: .automatic(among: encodings))
        #expect(response.mediaType == expected.mediaType)
        #expect(ImageFormat(sniffing: response.data) == expected)
        let frameCount = try ImageDecoder(response.data, registry: CoderRegistry()).header.animation.frameCount
        #expect(frameCount == (sample == .animated && expected != .jpeg ? 3 : 1))
        // A still of the animation needs no format with animations.
        let still = try await loader.encoded(request, as: .automatic(among: encodings, frameLimit: 1))
        if sample == .animated, encodings.count > 2 {
            #expect(still.mediaType == (source == .gif ? "image/gif" : "image/jpeg"))
        }
        #expect(try ImageDecoder(still.data, registry: CoderRegistry()).header.animation.frameCount == 1)
    }

    @Test func `each format has its own options`() async throws {
        let body = try Sample.transparent.body(as: .webp)
        self.origin.script("/a", .body(body))
        let request = ImageRequest(url: self.origin.url("/a"))
        let loader = self.fixture.makeCodingLoader()
        let png = OutputEncoding(.png, options: EncodeOptions(pngLevel: 0))
        let chosen = try await loader.encoded(request, as: .automatic(among: [.jpeg(quality: 1), png]))
        #expect(chosen.data == (try await loader.encoded(request, as: png).data))
    }

    @Test func `an automatic encoding has entries of its own, from one download and one decode`() async throws {
        self.origin.script("/a", .body(try makePNG()))
        let request = ImageRequest(url: self.origin.url("/a"), options: .waitForStore)
        let encoding = OutputEncoding.automatic(among: [.jpeg(), .webp()])
        let loader = self.fixture.makeLoader()
        let tasks = (0..<50).map { _ in Task { try await loader.encoded(request, as: encoding) } }
        var tags: Set<String> = []
        for task in tasks { tags.insert(try await task.value.etag) }
        #expect((tags.count, self.fixture.decodes.count, self.origin.requestCount(for: "/a")) == (1, 1, 1))
        #expect(loader.cachedEncoded(request, as: encoding)?.mediaType == "image/jpeg")
        #expect(loader.cachedEncoded(request, as: .jpeg()) == nil)
        let stored = try await self.fixture.makeLoader().encoded(request, as: encoding)
        #expect((stored.source, stored.mediaType) == (.disk, "image/jpeg"))
        #expect(self.fixture.decodes.count == 1)
    }

    @Test func `encodings that differ have keys that differ`() {
        let lists: [[OutputEncoding]] = [
            [.jpeg(), .png], [.png, .jpeg()], [.jpeg(), .png, .gif], [.jpeg(quality: 1), .png], [.jpeg()], [.png],
        ]
        var encodings = lists.map { OutputEncoding.automatic(among: $0) }
        encodings += [OutputEncoding(.png, frameLimit: 1), OutputEncoding(.png, frameLimit: 2)]
        encodings.append(.automatic(among: [.jpeg(), .png], frameLimit: 2))
        let key = CacheKey("https://example.org/a")
        #expect(Set(encodings.map { $0.key(of: key) }).count == encodings.count)
        #expect(Set(encodings.map(\.number)).count == encodings.count)
        #expect(Set(encodings).count == encodings.count)
        // A list of one encoding is that encoding, and lists in lists are one list.
        #expect(OutputEncoding.automatic(among: [.png]) == .png)
        let nested = OutputEncoding.automatic(among: [.automatic(among: [.jpeg(), .png]), .gif])
        #expect(nested == .automatic(among: [.jpeg(), .png, .gif]))
        #expect(OutputEncoding.automatic(among: []) == .png)
        #expect(OutputEncoding(.png, frameLimit: 0) == OutputEncoding(.png, frameLimit: 1))
        for encoding in encodings {
            let still = encoding.limited(by: .firstFrameOnly)
            #expect(still.number == encoding.number(for: .firstFrameOnly))
            #expect(still.frameLimit == 1)
            #expect(encoding.limited(by: []) == encoding)
        }
    }

    @Test func `the fallback of a request chooses its format`() async throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 4, height: 4) { _, _, _ in 100 }
        var request = ImageRequest(url: self.origin.url("/missing"))
        request.fallback = Image(pixels: pixels)
        let response = try await self.fixture.makeCodingLoader().encoded(
            request,
            as: .automatic(among: [.jpeg(), .webp()])
        )
        #expect((response.source, response.mediaType) == (.fallback, "image/webp"))
    }
}
