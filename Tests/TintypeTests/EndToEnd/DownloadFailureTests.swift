// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// A kind of bad input and the error that it causes.
struct BadInput: Sendable, CustomTestStringConvertible {
    let name: String
    let response: FaultyResponse
    let code: LoadError.Code
    /// A word that the message must contain, because it names the problem or the remedy.
    let hint: String

    var testDescription: String { self.name }
}

/// The errors of a loader whose origin fails, over real sockets.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DownloadFailureTests {
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
        BadInput(name: "half a PNG", response: .body(DownloadFailureTests.half), code: .truncated, hint: "ends"),
    ]
    private static let half = (try? Fixtures.data("kodak-3.png")).map { Array($0.prefix($0.count / 2)) } ?? []

    @Test(arguments: Self.inputs)
    func `bad input gives its own error and is not cached`(input: BadInput) async throws {
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
        // The loader keeps working, and cached images remain.
        #expect(try await loader.response(for: good).source == .memory)
        #expect(try await fixture.makeLoader().response(for: good).source == .disk)
        #expect(fixture.cacheFiles().count == 1)
        origin.script("/bad", .body(try makePNG()))
        let retry = ImageRequest(url: origin.url("/bad"), options: .retryFailed)
        #expect(try await loader.image(for: retry).width == 8)
    }

    @Test func `an unreachable host says so`() async throws {
        let fixture = try LoaderFixture()
        let origin = try FaultyOrigin()
        let url = origin.url("/image")
        origin.stop()
        let error = await #expect(throws: LoadError.self) { try await fixture.makeLoader().image(for: url) }
        #expect(error?.code == .cannotConnect)
    }

    @Test func `a body over the limit is not received`() async throws {
        let fixture = try LoaderFixture()
        let chunks = Array(repeating: Array(repeating: UInt8(0), count: 500), count: 4)
        let origin = try FaultyOrigin(["/image": .chunked(chunks)])
        let loader = fixture.makeLoader { $0.limits.maximumEncodedBytes = 1_000 }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/image")) }
        #expect(error?.code == .bodyTooLarge)
    }

    @Test(arguments: [
        FaultyResponse.body([1], status: 503), .reset, .garbage, .lying(declaredLength: 100, body: [1]),
    ])
    func `a failed origin is stood in for`(failure: FaultyResponse) async throws {
        let fields = [("Cache-Control", "max-age=0, stale-if-error=600"), ("ETag", "\"1\"")]
        let origin = try FaultyOrigin(["/a": .body(try makePNG(), headers: fields)])
        let loader = try LoaderFixture().makeLoader { $0.cachePolicy = .honorFreshness }
        let request = ImageRequest(url: origin.url("/a"))
        _ = try await loader.image(for: request)
        origin.script("/a", failure)
        let stale = try await loader.response(for: request)
        #expect(stale.revalidation == .failed)
        #expect(stale.image.width == 8)
        #expect(origin.requestCount(for: "/a") >= 2)
    }

    /// A GIF of 18 frames of one pixel.
    private static let gif: [UInt8] = {
        let head = Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]
        return head + (0..<18).flatMap { _ in gifFrame } + [0x3B]
    }()
    private static let gifFrame: [UInt8] = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0]

    /// Returns an HTTP/2 origin that sends half of the GIF.
    private static func gifOrigin(declaredLength: Int?) throws -> FaultyOrigin {
        let origin = try FaultyOrigin(speaksHTTP2: true)
        self.script(origin, sendsHalf: true, declaredLength: declaredLength)
        return origin
    }

    /// Lets an origin send the GIF, or the half of it that ends between two frames and with a reset.
    private static func script(_ origin: FaultyOrigin, sendsHalf: Bool, declaredLength: Int?) {
        let half = Array(self.gif[..<(19 + 10 * self.gifFrame.count)])
        let body = FaultyResponse.dataFrame(sendsHalf ? half : self.gif, isLast: !sendsHalf)
        origin.script(
            "*",
            FaultyResponse([
                .send(FaultyResponse.settingsFrame), .awaitStreams(1),
                .send(FaultyResponse.headFrame(length: declaredLength) + body),
                .send(sendsHalf ? FaultyResponse.resetFrame(code: 0) : []), .close,
            ])
        )
    }

    private static func makeLoader(_ fixture: LoaderFixture, for origin: FaultyOrigin) throws -> LoaderActor {
        let authority = try #require(origin.authorityPath)
        return fixture.makeLoader { configuration in
            configuration.coders = CoderRegistry()
            configuration.downloads.tls.authorities = .file(path: authority)
        }
    }

    @Test(arguments: [nil, gif.count])
    func `an animation that is cut between frames over HTTP 2 is neither shown nor stored`(length: Int?) async throws {
        let origin = try Self.gifOrigin(declaredLength: length)
        let fixture = try LoaderFixture()
        let loader = try Self.makeLoader(fixture, for: origin)
        var request = ImageRequest(url: origin.url("/a"), options: [.waitForStore])
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        #expect(error?.code == .bodyCutShort)
        #expect(fixture.cacheFiles().isEmpty)
        Self.script(origin, sendsHalf: false, declaredLength: length)
        request.options.insert(.retryFailed)
        #expect(try await loader.response(for: request).frameCount == 18)
    }

    @Test(arguments: [nil, gif.count], [Prefetcher.Destination.disk, .memory])
    func `a prefetch of a body that is cut over HTTP 2 fails and caches nothing`(
        length: Int?,
        destination: Prefetcher.Destination
    ) async throws {
        let origin = try Self.gifOrigin(declaredLength: length)
        let fixture = try LoaderFixture()
        let loader = try Self.makeLoader(fixture, for: origin)
        let prefetcher = Prefetcher(loader: loader, destination: destination)
        var request = ImageRequest(url: origin.url("/a"))
        var progress: PrefetchProgress?
        for await latest in prefetcher.prefetch([request]) { progress = latest }
        #expect(progress?.completedCount == 1)
        #expect(progress?.failedCount == 1)
        #expect(progress?.receivedBytes == 0)
        let error = #expect(throws: LoadError.self) { try progress?.latest.outcome.get() }
        #expect(error?.code == .bodyCutShort)
        #expect(fixture.cacheFiles().isEmpty)
        request.cachePolicy = .cacheOnly
        let miss = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        #expect(miss?.code == .notInCache)
        // The failure leaves nothing behind that a later prefetch could take for the image.
        Self.script(origin, sendsHalf: false, declaredLength: length)
        request.cachePolicy = nil
        request.options.insert(.retryFailed)
        for await latest in prefetcher.prefetch([request]) { progress = latest }
        #expect(progress?.failedCount == 0)
        #expect(progress?.receivedBytes == Int64(Self.gif.count))
        #expect(try await loader.response(for: request).frameCount == 18)
    }
}
