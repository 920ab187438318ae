import FoundationEssentials
import TestSupport
import Testing
import Tintype

@Suite struct CustomCoderTests {
    @Test func aCoderGivenWithTheRequestBypassesTheRegistry() async throws {
        let fixture = try LoaderFixture()
        let loader = fixture.makeLoader()
        let url = Fixtures.url("kodak-3.png")
        let own = CustomCoder(name: "gray", coder: LyingCoder(header: 5, decoded: 5, covered: 5))
        #expect(try await loader.image(for: ImageRequest(url: url, coder: own)).width == 5)
        #expect(fixture.decodes.count == 0)
        // Its picture has a key of its own.
        #expect(try await loader.image(for: url).width == 768)
    }

    @Test(arguments: [false, true])
    func `a coder given with the request that fails leaves the original on disk`(isOnDisk: Bool) async throws {
        let origin = try FaultyOrigin(["/a": .body(try makePNG())])
        let fixture = try LoaderFixture()
        let plain = ImageRequest(url: origin.url("/a"), options: [.waitForStore])
        if isOnDisk { _ = try await fixture.makeLoader().data(for: plain) }
        let loader = fixture.makeLoader()
        var request = plain
        request.coder = CustomCoder(name: "liar", coder: LyingCoder(header: 5, decoded: 6, covered: 6))
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        #expect(error?.code == .corrupt)
        #expect(await loader.cache.contains(plain.sourceKey, in: .disk))
        #expect(try await loader.response(for: plain).source == .disk)
        #expect(origin.requestCount(for: "/a") == 1)
    }

    @Test(arguments: [(5, 6, 6.0), (5, 5, 7.0), (5, 5, -1.0), (5, 5, .nan), (5, 5, .infinity)])
    func aCoderThatLiesAboutItsSizeIsAnError(header: Int, decoded: Int, covered: Double) async throws {
        let loader = try LoaderFixture().makeLoader()
        let coder = CustomCoder(name: "liar", coder: LyingCoder(header: header, decoded: decoded, covered: covered))
        for thumbnail in [nil, Resize.fit(width: 2, height: 2)] {
            let request = ImageRequest(url: Fixtures.url("kodak-3.png"), thumbnail: thumbnail, coder: coder)
            let error = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
            #expect(error?.code == .corrupt)
        }
    }
}

/// A coder whose header, pixels and covered size need not agree.
private struct LyingCoder: ImageCoder {
    let header: Int
    let decoded: Int
    let covered: Double
    let decodableFormats: Set<ImageFormat> = []
    let encodableFormats: Set<ImageFormat> = []

    func header(of data: Data) throws(CodingError) -> ImageHeader {
        ImageHeader(format: .png, pixelWidth: self.header, pixelHeight: self.header)
    }

    func decode(_ data: Data, header: ImageHeader, options: DecodeOptions) throws -> DecodedImage {
        let pixels = try PixelBuffer.smooth(.gray8, width: self.decoded, height: self.decoded)
        return DecodedImage(Image(pixels: pixels), coveredWidth: self.covered, coveredHeight: self.covered)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
}
