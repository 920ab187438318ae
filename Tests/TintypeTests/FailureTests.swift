import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Tintype

/// One kind of bad input and the error that it gives.
struct BadInput: Sendable, CustomTestStringConvertible {
    let name: String
    let response: FaultyResponse
    let code: LoadError.Code
    /// A word that the message must have, because it says what to do or what is wrong.
    let hint: String

    var testDescription: String { self.name }
}

@Suite(.waiting, .timeLimit(.minutes(5))) struct FailureTests {
    private static let page = Array("<!DOCTYPE html><html><body>Try later</body></html>".utf8)
    private static let inputs: [BadInput] = [
        BadInput(name: "a 404", response: .body([], status: 404), code: .badStatus, hint: "404"),
        BadInput(name: "a 503", response: .body(page, status: 503), code: .badStatus, hint: "503"),
        BadInput(name: "an HTML page", response: .body(page), code: .notAnImage, hint: "HTML"),
        BadInput(name: "JSON", response: .body(Array("{\"error\": 1}".utf8)), code: .notAnImage, hint: "JSON"),
        BadInput(
            name: "a body cut short",
            response: .lying(declaredLength: 1_000, body: [0x89, 0x50]),
            code: .bodyCutShort,
            hint: "declared length"
        ),
        BadInput(name: "an empty body", response: .empty, code: .emptyBody, hint: "is empty"),
        BadInput(name: "garbage", response: .garbage, code: .invalidResponse, hint: "HTTP"),
        BadInput(name: "a reset", response: .reset, code: .connectionLost, hint: "again"),
        BadInput(name: "a redirect loop", response: .redirect(to: "/bad"), code: .tooManyRedirects, hint: "redirect"),
        BadInput(name: "half a PNG", response: .body(FailureTests.half), code: .truncated, hint: "ends"),
    ]
    private static let half = (try? Fixtures.data("kodak-3.png")).map { Array($0.prefix($0.count / 2)) } ?? []

    @Test(arguments: Self.inputs)
    func badInputGivesItsOwnErrorAndIsNotCached(input: BadInput) async throws {
        let fixture = try LoaderFixture()
        let origin = try FaultyOrigin(["/bad": input.response, "/good": .body(try makePNG())])
        let loader = fixture.makeLoader()
        let good = ImageRequest(url: origin.url("/good"), options: [.waitForStore])
        _ = try await loader.image(for: good)
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/bad")) }
        #expect(error?.code == input.code)
        let message = try #require(error?.message)
        #expect(message.lowercased().contains(input.hint.lowercased()), "\(message)")
        #expect(message.hasSuffix("."))
        #expect(error?.underlyingError != nil)
        // The loader keeps working, and what was cached stays.
        #expect(try await loader.response(for: good).source == .memory)
        #expect(try await fixture.makeLoader().response(for: good).source == .disk)
        #expect(fixture.cacheFiles().count == 1)
        origin.script("/bad", .body(try makePNG()))
        #expect(try await loader.image(for: origin.url("/bad")).width == 8)
    }

    @Test func anUnreachableHostSaysSo() async throws {
        let fixture = try LoaderFixture()
        let origin = try FaultyOrigin()
        let url = origin.url("/picture")
        origin.stop()
        let error = await #expect(throws: LoadError.self) { try await fixture.makeLoader().image(for: url) }
        #expect(error?.code == .cannotConnect)
    }

    @Test(arguments: [
        (DecodingLimits(maximumPixels: 47), LoadError.Code.tooManyPixels),
        (DecodingLimits(maximumSide: 7), .sideTooLong),
    ])
    func aPictureOverTheLimitsIsRefusedBeforeItIsDecoded(limits: DecodingLimits, code: LoadError.Code) async throws {
        let fixture = try LoaderFixture()
        let origin = try FaultyOrigin(["/picture": .body(try makePNG())])
        let loader = fixture.makeLoader { $0.limits = limits }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/picture")) }
        #expect(error?.code == code)
        #expect(fixture.decodes.count == 0)
    }

    @Test func aBodyOverTheLimitIsNotReceived() async throws {
        let fixture = try LoaderFixture()
        let chunks = Array(repeating: Array(repeating: UInt8(0), count: 500), count: 4)
        let origin = try FaultyOrigin(["/picture": .chunked(chunks)])
        let loader = fixture.makeLoader { $0.limits.maximumEncodedBytes = 1_000 }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/picture")) }
        #expect(error?.code == .bodyTooLarge)
    }

    @Test func theLimitOfTheDownloadsHoldsToo() async throws {
        let fixture = try LoaderFixture()
        let origin = try FaultyOrigin(["/picture": .body(Array(repeating: 0, count: 2_000))])
        let loader = fixture.makeLoader { $0.downloads.maximumBodySize = 1_000 }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/picture")) }
        #expect(error?.code == .bodyTooLarge)
    }

    @Test(arguments: [Resize.Mode.fit, .fill, .stretch], [100_000, Int(Int32.max), Int.max])
    func anEnlargementOverTheLimitsIsRefused(mode: Resize.Mode, side: Int) async throws {
        let fixture = try LoaderFixture()
        let origin = try FaultyOrigin(["/picture": .body(try makePNG())])
        let thumbnail = Resize(width: side, height: side, mode: mode, upscales: true)
        let request = ImageRequest(url: origin.url("/picture"), thumbnail: thumbnail)
        let loader = fixture.makeLoader()
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        #expect(error?.code == .invalidSize)
        #expect(fixture.decodes.count == 0)
    }

    @Test(arguments: ["ftp://example.com/a.png", "gopher://a/", "no-scheme", "http://"])
    func aURLThatCanNotBeLoadedIsRefused(text: String) async throws {
        let url = try #require(URL(string: text))
        let error = await #expect(throws: LoadError.self) { try await LoaderFixture().makeLoader().image(for: url) }
        #expect(error?.code == .unsupportedScheme || error?.code == .invalidURL)
    }

    @Test func aFormatWithoutACoderIsNamed() async throws {
        let bytes = Array("%PDF-1.7 and so on".utf8)
        let origin = try FaultyOrigin(["/document": .body(bytes)])
        let loader = try LoaderFixture().makeLoader()
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/document")) }
        #expect(error?.code == .unsupportedFormat)
        #expect(error?.message.contains("pdf") == true)
        // Its bytes can be had all the same.
        #expect(try await loader.data(for: ImageRequest(url: origin.url("/document"))) == Data(bytes))
    }

    @Test func truncatedPicturesAreTakenWhenAllowed() async throws {
        let fixture = try LoaderFixture()
        let origin = try FaultyOrigin(["/half": .body(Self.half)])
        let loader = fixture.makeLoader()
        let strict = ImageRequest(url: origin.url("/half"))
        let lenient = ImageRequest(url: origin.url("/half"), options: [.allowTruncated])
        #expect(try await loader.image(for: lenient).height == 512)
        // A lenient load's picture is not what a strict one gets.
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: strict) }
        #expect(error?.code == .truncated)
    }
}
