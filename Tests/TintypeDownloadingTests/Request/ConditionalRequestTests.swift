// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct ConditionalRequestTests {
    private let downloader = DownloadActor.patient()

    @Test func `an accepted 304 is a response without a body`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1, 2, 3])])
        let first = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a")))
        var request = DownloadRequest(url: origin.url("/a"))
        #expect(first.headers["etag"] != nil)
        request.headers["If-None-Match"] = first.headers["etag"]
        request.acceptableStatusCodes = .success.union(304)
        let second = try await self.downloader.response(for: request)
        #expect(second.status == 304)
        #expect(second.body.isEmpty)
        #expect(second.headers["etag"] == first.headers["etag"])
        #expect(second.requestTime >= first.responseTime)
        #expect(second.responseTime >= second.requestTime)
    }

    @Test func `a 304 that was not asked for is an error`() async throws {
        let origin = try FaultyOrigin(["/a": FaultyResponse([FaultyResponse.head(304, [("ETag", "x")])])])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .badStatus)
    }

    @Test func `fields of one name keep their order`() async throws {
        let origin = try FaultyOrigin([
            "/a": .body([1], headers: [("Vary", "Accept"), ("X-Other", "1"), ("vary", "Cookie")])
        ])
        let response = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a")))
        #expect(response.headers.values(for: "Vary") == ["Accept", "Cookie"])
    }

    @Test func `a status that the configuration accepts gives its body`() async throws {
        var configuration = DownloadActor.Configuration()
        configuration.acceptableStatusCodes = [200, 404]
        let origin = try FaultyOrigin(["/a": .body([7], status: 404), "/b": .body([8], status: 206)])
        let downloader = DownloadActor(configuration: configuration)
        #expect(try await downloader.body(at: origin.url("/a")) == Data([7]))
        #expect(try await downloader.error(at: origin.url("/b")).code == .badStatus)
    }

    @Test(arguments: ["utf-8", "none", "gzip, x-unknown"]) func `an unknown content coding is left alone`(
        coding: String
    ) async throws {
        let origin = try FaultyOrigin([
            "/a": .body([1, 2], headers: [("Content-Encoding", coding)]), "/b": .body([3], headers: []),
        ])
        #expect(try await self.downloader.body(at: origin.url("/a")) == Data([1, 2]))
        #expect(try await self.downloader.body(at: origin.url("/b")) == Data([3]))
    }
}
