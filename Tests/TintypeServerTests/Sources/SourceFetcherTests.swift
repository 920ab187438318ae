// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

@Suite(.waiting, .timeLimit(.minutes(5)))
struct SourceFetcherTests {
    /// Returns a fetcher of web sources that checks redirects.
    private func fetcher(
        _ patterns: [String],
        local: LocalFolderFetcher? = nil,
        store: S3Fetcher? = nil
    ) throws -> SourceFetcher {
        let sources = try AllowedSources(patterns: patterns)
        let downloads = DownloadActor(hooks: SourceFetcher.webHooks(for: sources))
        return SourceFetcher(sources: sources, web: downloads, local: local, store: store)
    }

    @Test("each scheme has its fetcher")
    func schemes() async throws {
        let directory = try TemporaryDirectory()
        try directory.write([2], to: "a")
        let origin = try FaultyOrigin(["/a": .body([1]), "/bucket/a": .body([3])])
        let fetcher = try self.fetcher(
            [],
            local: LocalFolderFetcher(root: directory.path, downloads: DownloadActor()),
            store: S3Fetcher(endpoint: S3Endpoint(url: origin.url("")), key: nil, fetcher: DownloadActor())
        )
        #expect(try await fetcher.response(at: origin.url("/a").absoluteString).body == Data([1]))
        #expect(try await fetcher.response(at: "local:///a").body == Data([2]))
        #expect(try await fetcher.response(at: "s3://bucket/a").body == Data([3]))
    }

    @Test(
        "a scheme that is switched off is refused with the flag that switches it on",
        arguments: [("local:///a", "--local-root"), ("s3://bucket/a", "--s3")]
    )
    func switchedOff(text: String, flag: String) async throws {
        let error = try await self.fetcher([]).error(at: text)
        #expect(error.code == .schemeNotAllowed)
        #expect(error.message.contains(flag))
    }

    @Test(
        "an unknown scheme is refused",
        arguments: ["file:///etc/passwd", "data:,x", "ftp://a/b", "gs://a/b", "a", "//a/b"]
    )
    func unknown(text: String) async throws {
        #expect(try await self.fetcher([]).error(at: text).code == .unsupportedScheme)
    }

    @Test("a source that is not allowed is not requested")
    func notAllowed() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        let fetcher = try self.fetcher(["http://127.0.0.2:*/"])
        #expect(try await fetcher.error(at: origin.url("/a").absoluteString).code == .hostNotAllowed)
        #expect(origin.connectionCount == 0)
    }

    @Test("each redirect must be allowed, not only the first one", arguments: [301, 302, 303, 307, 308])
    func redirects(status: Int) async throws {
        let other = try FaultyOrigin(["/c": .body([1])], address: "127.0.0.2")
        let origin = try FaultyOrigin([
            "/a": .redirect(to: "/b", status: status),
            "/b": .redirect(to: other.url("/c").absoluteString, status: status),
            "/fine": .redirect(to: "/end", status: status), "/end": .body([2]),
        ])
        let fetcher = try self.fetcher(["http://127.0.0.1:\(origin.port)/"])
        let error = try await fetcher.error(at: origin.url("/a").absoluteString)
        #expect(error.code == .hostNotAllowed)
        #expect(origin.requestCount(for: "/b") == 1)
        #expect(other.connectionCount == 0)
        #expect(try await fetcher.response(at: origin.url("/fine").absoluteString).body == Data([2]))
        let both = try self.fetcher(["http://127.0.0.1:*/", "http://127.0.0.2:*/"])
        #expect(try await both.response(at: origin.url("/a").absoluteString).body == Data([1]))
    }

    @Test(
        "a redirect cannot leave the allowed folder, or pass another host off as an allowed one",
        arguments: [
            "/public/%2e%2e/private", "/private", "http://127.0.0.1\\@127.0.0.2/public/", "//127.0.0.2/public/a",
            "http://user@127.0.0.1/public/a", "/public/a#fragment", "/public/..%2Fprivate",
            "http://127.0.0.1.evil/public/",
        ]
    )
    func redirectTricks(location: String) async throws {
        let origin = try FaultyOrigin(["/public/a": .redirect(to: location), "/private": .body([1])])
        let fetcher = try self.fetcher(["http://127.0.0.1:\(origin.port)/public/"])
        let error = try await fetcher.error(at: origin.url("/public/a").absoluteString)
        #expect([.hostNotAllowed, .invalidURL, .userInformationInURL, .malformedHost].contains(error.code))
        #expect(origin.requestCount(for: "/private") == 0)
    }

    @Test("the priority of a request reaches the fetcher of its scheme")
    func priority() async throws {
        let recorder = PriorityRecorder()
        let store = S3Fetcher(endpoint: try S3Endpoint(region: "us-east-1"), key: .test, fetcher: recorder)
        let fetcher = SourceFetcher(sources: .all, web: recorder, store: store)
        for text in ["https://a.example/x", "s3://photos/x", "local:///x"] {
            let request = DownloadRequest(url: try #require(URL(string: text)))
            await fetcher.priorityDidChange(of: request) { .high }
        }
        let urls = await recorder.urls.map(\.absoluteString)
        #expect(urls == ["https://a.example/x", "https://photos.s3.us-east-1.amazonaws.com/x"])
    }
}

/// Records the requests whose priority changes.
private actor PriorityRecorder: ImageFetching {
    private(set) var urls: [URL] = []

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        DownloadResponse(body: Data(), url: request.url, status: 404)
    }

    func priorityDidChange(of request: DownloadRequest, to priority: @escaping @Sendable () -> DownloadPriority) async {
        self.urls.append(request.url)
    }
}
