// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Animations that are encoded for a server.
@Suite(.waiting, .timeLimit(.minutes(5))) struct AnimatedEncodedTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.origin.script("/a", .body(try AnimatedResponseTests.animation(as: .webp)))
    }

    private func makeRequest(_ options: LoadOptions = .waitForStore) -> ImageRequest {
        ImageRequest(
            url: self.origin.url("/a"),
            thumbnail: .fit(width: 10, height: 10),
            transforms: [.flip(.horizontal)],
            options: options
        )
    }

    private var requests: Int { self.origin.requestCount(for: "/a") }

    private static func lossless(_ format: ImageFormat, frameLimit: Int? = nil) -> OutputEncoding {
        OutputEncoding(format, options: EncodeOptions(compression: .lossless), frameLimit: frameLimit)
    }

    /// Opens an encoded image.
    private static func open(_ response: EncodedResponse) throws -> ImageDecoder {
        try ImageDecoder(response.data, registry: CoderRegistry())
    }

    @Test(arguments: [ImageFormat.gif, .webp, .png], [ImageFormat.gif, .webp, .png])
    func `an animation stays one in a format that has animations`(
        source: ImageFormat,
        target: ImageFormat
    ) async throws {
        self.origin.script("/a", .body(try AnimatedResponseTests.animation(as: source)))
        let (loader, request, encoding) = (self.fixture.makeCodingLoader(), self.makeRequest(), Self.lossless(target))
        let response = try await loader.encoded(request, as: encoding)
        #expect((response.mediaType, response.source) == (target.mediaType, .network))
        #expect((response.width, response.height) == (10, 5))
        let decoder = try Self.open(response)
        #expect((decoder.header.pixelWidth, decoder.header.pixelHeight) == (10, 5))
        #expect(decoder.header.animation.durations == [100, 200, 300])
        #expect(decoder.header.animation.loopCount == 5)
        let frames = try await loader.frames(for: request)
        for index in 0..<3 where target != .gif {
            var options = DecodeOptions()
            options.frame = index
            let (frame, expected) = (try decoder.decode(options: options), try await frames.frame(at: index))
            #expect(frame.pixels.sample(2, 3, 1) == expected.pixels.sample(2, 3, 1), "\(index)")
        }
        #expect(response.metrics.encode > .zero)
        // The loader's pool is for frames that a program shows.
        loader.framePool.removeAll()
        #expect(try await loader.encoded(request, as: encoding).source == .memory)
        let stored = try await self.fixture.makeCodingLoader().encoded(request, as: encoding)
        #expect((stored.source, stored.etag, stored.data) == (.disk, response.etag, response.data))
        #expect(self.requests == 1)
    }

    @Test func `an animation gives its first frame in a format without animations`() async throws {
        let (loader, request) = (self.fixture.makeCodingLoader(), self.makeRequest())
        let response = try await loader.encoded(request, as: .jpeg(quality: 100))
        #expect(try Self.open(response).header.animation.frameCount == 1)
        #expect((response.mediaType, response.width, response.height) == ("image/jpeg", 10, 5))
        // The metadata is of the original.
        #expect(response.metadata.animation?.frameCount == 3)
        // The fixture's coders say that they write no animations.
        let other = self.fixture.makeLoader { $0.disk = nil }
        #expect(try Self.open(await other.encoded(request, as: .png)).header.animation.frameCount == 1)
    }

    @Test func `the first frame alone is a still, beside the animation`() async throws {
        let loader = self.fixture.makeCodingLoader()
        for _ in 0..<2 {
            let still = try await loader.encoded(self.makeRequest([.waitForStore, .firstFrameOnly]), as: .gif)
            #expect(try Self.open(still).header.animation.frameCount == 1)
            let whole = try await loader.encoded(self.makeRequest(), as: .gif)
            #expect(try Self.open(whole).header.animation.frameCount == 3)
        }
        let other = self.fixture.makeCodingLoader()
        let still = try await other.encoded(self.makeRequest(.firstFrameOnly), as: .gif)
        #expect(still.source == .disk)
        #expect(try Self.open(still).header.animation.frameCount == 1)
        #expect(other.cachedEncoded(self.makeRequest(.firstFrameOnly), as: .gif)?.etag == still.etag)
        #expect(other.cachedEncoded(self.makeRequest(), as: .gif) == nil)
        #expect(self.requests == 1)
    }

    @Test(arguments: [(-1, 1), (1, 1), (2, 2), (3, 3), (9, 3)])
    func `a limit keeps the first frames`(limit: Int, count: Int) async throws {
        let loader = self.fixture.makeCodingLoader()
        let encoding = Self.lossless(.png, frameLimit: limit)
        let response = try await loader.encoded(self.makeRequest(), as: encoding)
        let decoder = try Self.open(response)
        #expect(decoder.header.animation.frameCount == count)
        #expect(decoder.header.animation.durations == (count == 1 ? [] : Array([100, 200, 300].prefix(count))))
        let whole = try await loader.encoded(self.makeRequest(), as: Self.lossless(.png))
        #expect(try Self.open(whole).header.animation.frameCount == 3)
    }

    @Test(arguments: [true, false]) func `the bytes are asked for once, whatever has the image`(
        hasDisk: Bool
    ) async throws {
        let loader = self.fixture.makeCodingLoader { if !hasDisk { $0.disk = nil } }
        _ = try await loader.encoded(self.makeRequest(), as: .gif)
        #expect(self.requests == 1)
        // The image is in memory now. Only the disk has its bytes.
        let response = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(try Self.open(response).header.animation.frameCount == 3)
        #expect(self.requests == (hasDisk ? 1 : 2))
        await until { loader.downloads.bodyBudget.status.usedBytes == 0 }
    }

    @Test func `a thousand callers make one download and one animation`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try AnimatedResponseTests.animation(as: .gif)))
        let (loader, request) = (self.fixture.makeCodingLoader { $0.disk = nil }, self.makeRequest())
        let tasks = (0..<1_000).map { _ in Task { try await loader.encoded(request, as: .webp()) } }
        await until { await loader.encodedWaiterCount == 1_000 }
        await gate.open()
        var tags: Set<String> = []
        for task in tasks { tags.insert(try await task.value.etag) }
        #expect(tags.count == 1)
        #expect(self.requests == 1)
    }

    @Test func `a body that replaces the one in memory is the one that is encoded`() async throws {
        let loader = self.fixture.makeCodingLoader { $0.disk = nil }
        let request = self.makeRequest()
        // Only the image is in memory, so its bytes are loaded again, and are other ones.
        _ = try await loader.image(for: request)
        let body = try makePNG(width: 20, height: 10, gray: 7)
        self.origin.script("/a", .body(body))
        let response = try await loader.encoded(request, as: .png)
        let image = try await loader.image(from: response.data)
        #expect(image.pixels.sample(0, 0) == 7)
        #expect(response.metadata.bodyDigest == BodyDigest.value(of: Data(body)))
        #expect(self.requests == 2)
    }

    @Test func `a frame that cannot be decoded fails the encode`() async throws {
        let body = try AnimatedResponseTests.animation(as: .gif)
        self.origin.script("/a", .body(Array(body.dropLast(60))))
        let loader = self.fixture.makeCodingLoader()
        await #expect(throws: LoadError.self) { try await loader.encoded(self.makeRequest(), as: .webp()) }
    }
}
