// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct CustomCoderTests {
    @Test func `a coder given with the request bypasses the registry`() async throws {
        let fixture = try LoaderFixture()
        let loader = fixture.makeLoader()
        let url = Fixtures.url("kodak-3.png")
        let own = Named<any ImageCoder>("gray", LyingCoder(header: 5, decoded: 5, covered: 5))
        #expect(
            try await loader.image(for: ImageRequest(source: .init(url: url), rendering: .init(coder: own))).width == 5
        )
        #expect(fixture.decodes.count == 0)
        // The image of the request's coder has its own key.
        #expect(try await loader.image(for: url).width == 768)
    }

    @Test(arguments: [false, true])
    func `a coder given with the request that fails leaves the original on disk`(isOnDisk: Bool) async throws {
        let origin = ScriptedOrigin(["/a": .body(try makePNG())])
        let fixture = try LoaderFixture(origin: origin)
        let plain = ImageRequest(url: origin.url("/a"), options: [.waitForStore])
        if isOnDisk { _ = try await fixture.makeLoader().data(for: plain) }
        let loader = fixture.makeLoader()
        var request = plain
        request.rendering.coder = Named("liar", LyingCoder(header: 5, decoded: 6, covered: 6))
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        #expect(error?.code == .corrupt)
        #expect(await loader.cache.contains(plain.sourceKey, in: .disk))
        #expect(try await loader.response(for: plain).source == .disk)
        #expect(origin.requestCount(for: "/a") == 1)
    }

    @Test(arguments: [(5, 6, 6.0), (5, 5, 7.0), (5, 5, -1.0), (5, 5, .nan), (5, 5, .infinity)])
    func `a coder that lies about its size is an error`(header: Int, decoded: Int, covered: Double) async throws {
        let loader = try LoaderFixture().makeLoader()
        let coder = Named<any ImageCoder>("liar", LyingCoder(header: header, decoded: decoded, covered: covered))
        for thumbnail in [nil, Resize.fit(width: 2, height: 2)] {
            let request = ImageRequest(
                source: .init(url: Fixtures.url("kodak-3.png")),
                rendering: .init(thumbnail: thumbnail, coder: coder)
            )
            let error = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
            #expect(error?.code == .corrupt)
        }
    }
}

/// Formats that only their own coder knows.
@Suite(.waiting, .timeLimit(.minutes(5))) struct OwnFormatTests {
    private let fixture: LoaderFixture
    private let origin = ScriptedOrigin(["/a": .body(Array("SQUARE 12".utf8))])

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    private var url: URL { self.origin.url("/a") }

    @Test func `without its coder a file is no image, and is not kept`() async throws {
        let loader = self.fixture.makeLoader()
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: self.url) }
        #expect(error?.code == .notAnImage)
        #expect(self.fixture.cacheFiles().isEmpty)
    }

    @Test func `what a registered coder reads is kept on disk`() async throws {
        for source in [LoadSource.network, .disk] {
            let loader = self.fixture.makeLoader { $0.coders.register(SquareCoder()) }
            let response = try await loader.response(for: ImageRequest(url: self.url, options: .waitForStore))
            #expect(response.source == source)
            #expect(response.image.width == 12)
            #expect(response.image.sourceFormat == .square)
            #expect(response.metadata.formatName == "square")
        }
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `what the coder of a request reads is kept on disk`() async throws {
        let coder = Named<any ImageCoder>("square", SquareCoder())
        for source in [LoadSource.network, .disk] {
            let request = ImageRequest(
                source: .init(url: self.url),
                rendering: .init(coder: coder),
                options: .waitForStore
            )
            let response = try await self.fixture.makeLoader().response(for: request)
            #expect(response.source == source)
            #expect(response.image.width == 12)
            #expect(response.metadata.formatName == "square")
        }
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `a thumbnail on disk knows the format that it was made of`() async throws {
        for source in [LoadSource.network, .disk] {
            let request = ImageRequest(
                source: .init(url: self.url),
                rendering: .init(thumbnail: .fit(width: 4, height: 4), coder: Named("square", SquareCoder())),
                caching: .init(variants: CacheUse()),
                options: .waitForStore
            )
            let response = try await self.fixture.makeLoader().response(for: request)
            #expect(response.source == source)
            #expect(response.image.width == 4)
            #expect(response.image.sourceFormat == .square)
        }
    }
}

extension ImageFormat {
    static let square = ImageFormat(
        name: "square",
        mediaType: "image/x-square",
        matches: { $0.starts(with: "SQUARE ".utf8) }
    )
}

/// A coder of squares, which are written as a word and the side as text.
struct SquareCoder: ImageCoder {
    let decodableFormats: Set<ImageFormat> = [.square]
    let encodableFormats: Set<ImageFormat> = []

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        guard let side = Int(String(decoding: data.dropFirst(7), as: UTF8.self)) else {
            throw CodingError(code: .corrupt, message: "The side of the square is not a number; write it in digits.")
        }
        return EncodedSquare(side: side)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
}

private struct EncodedSquare: EncodedImage {
    let side: Int

    var header: ImageHeader { ImageHeader(format: .square, pixelWidth: self.side, pixelHeight: self.side) }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        let pixels = try PixelBuffer.smooth(.rgb8, width: self.side, height: self.side)
        return DecodedImage(Image(pixels: pixels, sourceFormat: .square))
    }
}

/// A coder whose header, pixels and covered size may disagree.
private struct LyingCoder: ImageCoder {
    let header: Int
    let decoded: Int
    let covered: Double
    let decodableFormats: Set<ImageFormat> = []
    let encodableFormats: Set<ImageFormat> = []

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage { LyingImage(coder: self) }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
}

private struct LyingImage: EncodedImage {
    let coder: LyingCoder

    var header: ImageHeader {
        ImageHeader(format: .png, pixelWidth: self.coder.header, pixelHeight: self.coder.header)
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        let (side, covered) = (self.coder.decoded, self.coder.covered)
        let pixels = try PixelBuffer.smooth(.gray8, width: side, height: side)
        return DecodedImage(Image(pixels: pixels), coveredWidth: covered, coveredHeight: covered)
    }
}
