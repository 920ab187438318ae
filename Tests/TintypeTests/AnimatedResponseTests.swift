// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// The animation properties of a response, and the frames of a load.
@Suite(.waiting, .timeLimit(.minutes(5))) struct AnimatedResponseTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    /// Returns an animation of 40x20 pixels that plays three frames of 100, 200 and 300 ms five times.
    static func animation(as format: ImageFormat) throws -> [UInt8] {
        let frames = try (0..<3).map { index in
            let pixels = try PixelBuffer.make(.rgb8, width: 40, height: 20) { column, row, channel in
                UInt8(column * 4 + row * index + channel)
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 100 * (index + 1))
        }
        let content = AnimationContent(frames: frames, loopCount: 5)
        let coder = try CoderRegistry().coder(encoding: format)
        return Array(try coder.encode(content, as: format, options: EncodeOptions(compression: .lossless)))
    }

    private static func check(_ response: ImageResponse, from source: LoadSource, as format: ImageFormat) {
        #expect(response.source == source)
        #expect(response.format == format)
        #expect(response.isAnimated)
        #expect((response.frameCount, response.loopCount) == (3, 5))
        #expect(response.duration == .milliseconds(600))
    }

    @Test(arguments: [ImageFormat.gif, .webp, .png])
    func `a response says what its animation is, from each tier`(format: ImageFormat) async throws {
        self.origin.script("/a", .body(try Self.animation(as: format)))
        let request = ImageRequest(url: self.origin.url("/a"), options: .waitForStore)
        let loader = self.fixture.makeCodingLoader()
        Self.check(try await loader.response(for: request), from: .network, as: format)
        Self.check(try await loader.response(for: request), from: .memory, as: format)
        Self.check(try await self.fixture.makeCodingLoader().response(for: request), from: .disk, as: format)
        for try await event in loader.events(for: request) {
            guard case .finished(let response) = event else { continue }
            Self.check(response, from: .memory, as: format)
        }
    }

    @Test(arguments: [ImageFormat.gif, .webp, .png])
    func `a variant says what its animation is, from each tier`(format: ImageFormat) async throws {
        self.origin.script("/a", .body(try Self.animation(as: format)))
        let request = ImageRequest(
            source: .init(url: self.origin.url("/a")),
            rendering: .init(thumbnail: .fit(width: 10, height: 10)),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        let loader = self.fixture.makeCodingLoader()
        Self.check(try await loader.response(for: request), from: .network, as: format)
        Self.check(try await loader.response(for: request), from: .memory, as: format)
        // The encoded variant is a still.
        Self.check(try await self.fixture.makeCodingLoader().response(for: request), from: .disk, as: format)
        // The thumbnail is made from the full size in memory.
        let other = self.fixture.makeCodingLoader()
        _ = try await other.response(for: ImageRequest(url: self.origin.url("/a")))
        var small = request
        small.thumbnail = .fit(width: 8, height: 8)
        Self.check(try await other.response(for: small), from: .memory, as: format)
    }

    @Test func `an animation is known when its origin confirms it`() async throws {
        let body = try Self.animation(as: .gif)
        self.origin.script(
            "/a",
            .answer { request in
                request.headers["If-None-Match"] == nil
                    ? .body(body, headers: ["ETag": "\"1\""]) : .body([], status: 304, headers: ["ETag": "\"1\""])
            }
        )
        let request = ImageRequest(url: self.origin.url("/a"), cachePolicy: .revalidate)
        let loader = self.fixture.makeCodingLoader()
        _ = try await loader.response(for: request)
        let confirmed = try await loader.response(for: request)
        #expect(confirmed.revalidation == .notModified)
        #expect((confirmed.frameCount, confirmed.loopCount, confirmed.duration) == (3, 5, .milliseconds(600)))
        // The image in memory knows its animation too.
        var cached = request
        cached.cachePolicy = .cacheOnly
        Self.check(try await loader.response(for: cached), from: .memory, as: .gif)
    }

    @Test func `a still says that it is one`() async throws {
        self.origin.script("/a", .body(try makePNG()))
        let response = try await self.fixture.makeCodingLoader().response(for: ImageRequest(url: self.origin.url("/a")))
        #expect(!response.isAnimated && response.format == .png)
        #expect((response.frameCount, response.loopCount, response.duration) == (1, 1, .zero))
    }

    @Test func `the first frame alone is a still, beside loads of the animation`() async throws {
        self.origin.script("/a", .body(try Self.animation(as: .webp)))
        let loader = self.fixture.makeCodingLoader()
        let still = ImageRequest(url: self.origin.url("/a"), options: .firstFrameOnly)
        for _ in 0..<2 {
            let response = try await loader.response(for: still)
            #expect((response.frameCount, response.loopCount, response.duration) == (1, 1, .zero))
        }
        #expect(try await loader.frames(for: still).frameCount == 1)
        let whole = ImageRequest(url: self.origin.url("/a"))
        Self.check(try await loader.response(for: whole), from: .memory, as: .webp)
        #expect(try await loader.frames(for: whole).frameCount == 3)
    }

    // MARK: Frames

    @Test(arguments: [ImageFormat.gif, .webp, .png])
    func `a thumbnail of an animation is an animation`(format: ImageFormat) async throws {
        self.origin.script("/a", .body(try Self.animation(as: format)))
        let loader = self.fixture.makeCodingLoader()
        let request = ImageRequest(url: self.origin.url("/a"), thumbnail: .fit(width: 10, height: 10))
        let source = try await loader.frames(for: request)
        #expect(source.frameCount == 3 && source.durations == [100, 200, 300])
        for index in 0..<3 {
            let frame = try await source.frame(at: index)
            #expect((frame.width, frame.height) == (10, 5))
        }
        // Rows are padded to 64 bytes, and each frame counts 512 bytes more.
        #expect(loader.framePool.byteCount == 3 * (64 * 5 + 512))
        let image = try await loader.image(for: request)
        let first = try await source.frame(at: 0)
        #expect(first.pixels.sample(5, 2, 1) == image.pixels.sample(5, 2, 1))
        let limited = ImageRequest(
            source: .init(url: self.origin.url("/a")),
            rendering: .init(scaleDownLimit: 20 * 10 * 4)
        )
        #expect(try await loader.frames(for: limited).frame(at: 1).width == 20)
    }

    @Test func `all that read the frames of an image share them`() async throws {
        self.origin.script("/a", .body(try Self.animation(as: .webp)))
        let loader = self.fixture.makeCodingLoader()
        let request = ImageRequest(url: self.origin.url("/a"))
        let (one, other) = (try await loader.frames(for: request), try await loader.frames(for: request))
        for index in 0..<3 {
            let first = try await one.frame(at: index)
            #expect(try await other.frame(at: index).pixels === first.pixels)
        }
        #expect(loader.framePool.frameCount == 3)
        // Another size and other bytes have their own frames.
        var small = request
        small.thumbnail = .fit(width: 10, height: 10)
        #expect(try await loader.frames(for: small).frame(at: 0).width == 10)
        self.origin.script("/a", .body(try Self.animation(as: .gif)))
        var again = request
        again.cachePolicy = .reload
        #expect(try await loader.frames(for: again).frame(at: 0).sourceFormat == .gif)
        #expect(loader.framePool.frameCount == 5)
    }

    @Test func `frames are decoded before the load ends, where it asks for that`() async throws {
        self.origin.script("/a", .body(try Self.animation(as: .gif)))
        let loader = self.fixture.makeCodingLoader()
        let plain = ImageRequest(url: self.origin.url("/a"))
        _ = try await loader.image(for: plain)
        #expect(loader.framePool.frameCount == 0)
        var request = plain
        request.options = .preloadAllFrames
        // The image is in memory, but its frames are not.
        _ = try await loader.image(for: request)
        #expect(loader.framePool.frameCount == 3)
        loader.framePool.removeAll()
        for try await event in loader.events(for: request) {
            if case .finished = event { #expect(loader.framePool.frameCount == 3) }
        }
        let other = self.fixture.makeCodingLoader { $0.disk = nil }
        _ = try await other.image(for: request)
        #expect(other.framePool.frameCount == 3)
        // One request for each loader: the first has an empty disk, the second has no disk.
        #expect(self.origin.requestCount(for: "/a") == 2)
        request.options.insert(.firstFrameOnly)
        other.framePool.removeAll()
        _ = try await other.image(for: request)
        #expect(other.framePool.frameCount == 0)
    }

    @Test func `a frame that cannot be decoded fails no load`() async throws {
        self.origin.script("/a", .body(try Self.animation(as: .gif)))
        let loader = self.fixture.makeCodingLoader()
        var request = ImageRequest(url: self.origin.url("/a"), options: .preloadAllFrames)
        request.rendering.coder = Named("broken", BrokenFrames())
        #expect(try await loader.image(for: request).width == 40)
        #expect(loader.framePool.frameCount == 2)
        let source = try await loader.frames(for: request)
        let error = await #expect(throws: CodingError.self) { try await source.frame(at: 2) }
        #expect(error?.code == .corrupt)
    }
}

/// A GIF coder that refuses the third frame of each animation.
private struct BrokenFrames: ImageCoder, EncodedImage {
    private struct Reader: FrameReader {
        let base: any FrameReader
        var canvas: PixelSize { self.base.canvas }
        var frames: [AnimationFrame] { self.base.frames }

        func pixels(of index: Int) throws -> PixelBuffer {
            guard index < 2 else { throw CodingError(code: .corrupt, message: "It is broken.") }
            return try self.base.pixels(of: index)
        }
    }

    let decodableFormats: Set<ImageFormat> = [.gif]
    let encodableFormats: Set<ImageFormat> = []
    var base: (any EncodedImage)?

    var header: ImageHeader { self.base?.header ?? ImageHeader(format: .gif, pixelWidth: 1, pixelHeight: 1) }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        BrokenFrames(base: try GIFCoder().open(data, limits: limits))
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        guard let base else { throw CodingError(code: .corrupt, message: "It was not opened.") }
        return try base.decode(options: options)
    }

    func frameReader(options: DecodeOptions) throws -> (any FrameReader)? {
        try self.base?.frameReader(options: options).map { Reader(base: $0) }
    }
}
