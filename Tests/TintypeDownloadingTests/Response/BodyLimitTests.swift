// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct BodyLimitTests {
    private let downloader = DownloadActor.patient()

    @Test func `a body that is declared too large is not read`() async throws {
        let origin = try FaultyOrigin(["/a": .stall(declaredLength: 1_001)])
        let request = DownloadRequest(url: origin.url("/a"), maximumBodySize: 1_000)
        let error = try await self.downloader.error(for: request)
        #expect(error.code == .bodyTooLarge)
        #expect(error.status == 200)
        #expect(error.message.contains("1001") && error.message.contains("1000"))
        await origin.waitForDisconnect(from: "/a")
    }

    @Test func `a chunked body stops at the limit`() async throws {
        let chunk = FaultyResponse.Step.send(FaultyResponse.chunk(Array(pattern(600))))
        let origin = try FaultyOrigin([
            "/a": FaultyResponse([FaultyResponse.head(200, [("Transfer-Encoding", "chunked")]), chunk, chunk, .stall])
        ])
        let request = DownloadRequest(url: origin.url("/a"), maximumBodySize: 1_000)
        #expect(try await self.downloader.error(for: request).code == .bodyTooLarge)
        await origin.waitForDisconnect(from: "/a")
    }

    @Test func `the limit counts inflated bytes`() async throws {
        let gzip = try #require(Data(base64Encoded: gzippedText))
        let origin = try FaultyOrigin(["/a": .body(Array(gzip), headers: [("Content-Encoding", "gzip")])])
        let limit = gzip.count + 10
        #expect(inflatedText.utf8.count > limit)
        let request = DownloadRequest(url: origin.url("/a"), maximumBodySize: limit)
        #expect(try await self.downloader.error(for: request).code == .bodyTooLarge)
    }

    @Test(arguments: [FaultyResponse.body(Array(pattern(1_000))), .chunked([Array(pattern(1_000))])])
    func `a body of just the limit is taken`(response: FaultyResponse) async throws {
        let origin = try FaultyOrigin(["/a": response])
        let request = DownloadRequest(url: origin.url("/a"), maximumBodySize: 1_000)
        #expect(try await self.downloader.response(for: request).body == pattern(1_000))
    }

    @Test func `the configuration limits what the request does not`() async throws {
        var configuration = DownloadActor.Configuration()
        configuration.maximumBodySize = 10
        let downloader = DownloadActor(configuration: configuration)
        let origin = try FaultyOrigin(["/a": .body(Array(pattern(11)))])
        #expect(try await downloader.error(at: origin.url("/a")).code == .bodyTooLarge)
        let request = DownloadRequest(url: origin.url("/a"), maximumBodySize: 11)
        #expect(try await downloader.response(for: request).body.count == 11)
    }
}
