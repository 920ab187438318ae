// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct FailureTests {
    private static let half = (try? Fixtures.data("kodak-3.png")).map { Array($0.prefix($0.count / 2)) } ?? []

    @Test(arguments: [
        (DecodingLimits(maximumPixels: 47), LoadError.Code.tooManyPixels),
        (DecodingLimits(maximumSide: 7), .sideTooLong),
    ])
    func `an image over the limits is refused before it is decoded`(
        limits: DecodingLimits,
        code: LoadError.Code
    ) async throws {
        let origin = ScriptedOrigin(["/image": .body(try makePNG())])
        let fixture = try LoaderFixture(origin: origin)
        let loader = fixture.makeLoader { $0.limits = limits }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/image")) }
        #expect(error?.code == code)
        #expect(fixture.decodes.count == 0)
    }

    @Test func `the limit of the downloads holds too`() async throws {
        let origin = ScriptedOrigin(["/image": .body([UInt8](repeating: 0, count: 2_000))])
        let fixture = try LoaderFixture(origin: origin)
        let loader = fixture.makeLoader { $0.downloads.maximumBodySize = 1_000 }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/image")) }
        #expect(error?.code == .bodyTooLarge)
    }

    @Test(arguments: [Resize.Mode.fit, .fill, .stretch], [100_000, Int(Int32.max), Int.max])
    func `an enlargement over the limits is refused`(mode: Resize.Mode, side: Int) async throws {
        let origin = ScriptedOrigin(["/image": .body(try makePNG())])
        let fixture = try LoaderFixture(origin: origin)
        let thumbnail = Resize(width: side, height: side, mode: mode, upscales: true)
        let request = ImageRequest(url: origin.url("/image"), thumbnail: thumbnail)
        let loader = fixture.makeLoader()
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        #expect(error?.code == .invalidSize)
        #expect(fixture.decodes.count == 0)
    }

    @Test(arguments: ["ftp://example.com/a.png", "gopher://a/", "no-scheme", "http://"])
    func `a URL that can not be loaded is refused`(text: String) async throws {
        let url = try #require(URL(string: text))
        let error = await #expect(throws: LoadError.self) { try await LoaderFixture().makeLoader().image(for: url) }
        #expect(error?.code == .unsupportedScheme || error?.code == .invalidURL)
    }

    @Test func `a format without a coder is named`() async throws {
        let bytes = Array("%PDF-1.7 and so on".utf8)
        let origin = ScriptedOrigin(["/document": .body(bytes)])
        let loader = try LoaderFixture(origin: origin).makeLoader()
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/document")) }
        #expect(error?.code == .unsupportedFormat)
        #expect(error?.message.contains("pdf") == true)
        // The loader still returns the bytes.
        #expect(try await loader.data(for: ImageRequest(url: origin.url("/document"))) == Data(bytes))
    }

    @Test func `truncated images are taken when allowed`() async throws {
        let origin = ScriptedOrigin(["/half": .body(Self.half)])
        let loader = try LoaderFixture(origin: origin).makeLoader()
        let strict = ImageRequest(url: origin.url("/half"))
        let lenient = ImageRequest(url: origin.url("/half"), options: [.allowTruncated])
        #expect(try await loader.image(for: lenient).height == 512)
        // A strict load does not get the image of a lenient one.
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: strict) }
        #expect(error?.code == .truncated)
    }
}
