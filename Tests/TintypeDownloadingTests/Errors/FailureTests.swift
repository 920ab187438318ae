// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct FailureTests {
    private let downloader = DownloadActor.patient()

    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let response: FaultyResponse
        let code: DownloadError.Code

        init(_ name: String, _ response: FaultyResponse, _ code: DownloadError.Code) {
            self.testDescription = name
            self.response = response
            self.code = code
        }
    }

    @Test(arguments: [
        Case("cut short", .lying(declaredLength: 100, body: [1, 2, 3]), .bodyCutShort),
        Case("cut short before its first byte", .lying(declaredLength: 100, body: []), .bodyCutShort),
        Case(
            "cut short between chunks",
            FaultyResponse([
                FaultyResponse.head(200, [("Transfer-Encoding", "chunked")]), .send(FaultyResponse.chunk([1])), .close,
            ]),
            .bodyCutShort
        ),
        Case("garbage", .garbage, .invalidResponse),
        Case("closed without an answer", FaultyResponse([.close]), .connectionLost),
        Case("reset", .reset, .connectionLost),
        Case(
            "reset in the body",
            FaultyResponse([FaultyResponse.head(200, [("Content-Length", "9")]), .send([1]), .reset]),
            .connectionLost
        ),
        Case("empty", .empty, .emptyBody),
        Case("no content", .body([], status: 204), .emptyBody),
        Case("undeclared and empty", .undeclared([]), .emptyBody),
        Case("not found", .body(Array("gone".utf8), status: 404), .badStatus),
        Case("not modified", FaultyResponse([FaultyResponse.head(304, [("ETag", "x")])]), .badStatus),
        Case("redirect to nowhere", .body([1], status: 302), .badStatus),
        Case("server error without end", .stall(declaredLength: 1 << 30), .bodyTooLarge),
        Case(
            "bad compression",
            .body(Array(repeating: 7, count: 40), headers: [("Content-Encoding", "gzip")]),
            .invalidResponse
        ),
    ])
    func `each fault has its own code`(fault: Case) async throws {
        let origin = try FaultyOrigin(["/a": fault.response])
        let error = try await self.downloader.error(at: origin.url("/a"))
        #expect(error.code == fault.code)
        #expect(error.message.hasSuffix("."))
        #expect(error.message.contains("127.0.0.1:\(origin.port)"))
        #expect(error.url == origin.url("/a"))
    }

    @Test func `a bad status keeps status and headers`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1], status: 429, headers: [("Retry-After", "7")])])
        let error = try await self.downloader.error(at: origin.url("/a"))
        #expect(error.code == .badStatus)
        #expect(error.status == 429)
        #expect(error.headers["retry-after"] == "7")
    }

    @Test func `the body of a bad status is not waited for`() async throws {
        let origin = try FaultyOrigin([
            "/a": FaultyResponse([FaultyResponse.head(500, [("Content-Length", "1000000")]), .send([1]), .stall])
        ])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .badStatus)
        await origin.waitForDisconnect(from: "/a")
    }

    @Test func `a short body of a bad status keeps the connection`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1], status: 500), "/b": .body([2])])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .badStatus)
        _ = try await self.downloader.body(at: origin.url("/b"))
        #expect(origin.connectionCount == 1)
    }

    @Test func `a port where nothing listens cannot be connected to`() async throws {
        let origin = try FaultyOrigin()
        let url = origin.url("/a")
        origin.stop()
        let error = try await self.downloader.error(at: url)
        #expect(error.code == .cannotConnect)
        #expect(error.underlyingError as? DownloadError.CurlError != nil)
    }

    @Test func `nginx that was stopped does not answer`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1])])
        #expect(try await self.downloader.body(at: origin.url("/a")) == Data([1]))
        #expect(try origin.requestCount(for: "/a") == 1)
        origin.stop()
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .cannotConnect)
    }

    @Test func `an unknown host is not found`() async throws {
        let error = try await self.downloader.error(at: url("http://tintype.invalid/a.jpg"))
        #expect(error.code == .hostNotFound)
        #expect(error.message.contains("tintype.invalid"))
    }

    @Test func `a certificate that no authority vouches for is refused`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1])], servesTLS: true)
        let error = try await self.downloader.error(at: origin.tlsURL("/a"))
        #expect(error.code == .tlsFailed)
        #expect(try origin.requestCount(for: "/a") == 0)
    }

    @Test func `a trusting request does not make others trusting`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1])], servesTLS: true)
        var request = DownloadRequest(url: origin.tlsURL("/a"))
        request.allowsInvalidCertificates = true
        _ = try await self.downloader.response(for: request)
        request.allowsInvalidCertificates = false
        #expect(try await self.downloader.error(for: request).code == .tlsFailed)
    }

    @Test(arguments: ["ftp://example.org/a", "javascript:alert(1)", "FTP://example.org/a"])
    func `other schemes are not supported`(text: String) async throws {
        #expect(try await self.downloader.error(at: url(text)).code == .unsupportedScheme)
    }

    @Test(arguments: ["a.jpg", "/a.jpg", "http:", "http:///a.jpg", "https:a.jpg", "http://127.0.0.1:99999/a"])
    func `a URL that names no resource is invalid`(text: String) async throws {
        #expect(try await self.downloader.error(at: url(text)).code == .invalidURL)
    }

    @Test func `no message shows credentials`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1], status: 401)])
        let secret = try url("http://user:s3cret@127.0.0.1:\(origin.port)/a")
        let error = try await self.downloader.error(at: secret)
        #expect(error.code == .badStatus)
        #expect(!"\(error)".contains("s3cret"))
        #expect(error.url == origin.url("/a"))
    }

    @Test(arguments: [("X-A", "1\r\nX-B: 2"), ("X A", "1"), ("", "1"), ("X-A:", "1")])
    func `a header that would forge another is refused`(name: String, value: String) async throws {
        let origin = try FaultyOrigin(["/a": .echo])
        var request = DownloadRequest(url: origin.url("/a"))
        request.headers.append(value, for: name)
        #expect(try await self.downloader.error(for: request).code == .invalidHeader)
        #expect(origin.requestCount(for: "/a") == 0)
    }
}
