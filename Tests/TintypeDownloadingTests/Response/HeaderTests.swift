// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct HeaderTests {
    private let downloader = DownloadActor.patient()

    private func sent(_ headers: HeaderFields) async throws -> [String] {
        let origin = try FaultyOrigin(["/a": .echo])
        let request = DownloadRequest(url: origin.url("/a"), headers: headers)
        let body = try await self.downloader.response(for: request).body
        return String(decoding: body, as: UTF8.self).split(separator: "\r\n").map(String.init)
    }

    @Test func `a request says what it accepts and which program asks`() async throws {
        let lines = try await self.sent([:])
        #expect(lines.first == "GET /a HTTP/1.1")
        #expect(lines.contains("Accept: image/*,*/*;q=0.8"))
        #expect(lines.contains("User-Agent: tintype"))
        #expect(lines.contains("Accept-Encoding: identity"))
    }

    @Test func `headers of a request are sent in order and replace the defaults`() async throws {
        let lines = try await self.sent(["X-B": "1", "accept": "image/webp", "X-A": "2", "X-B": "3", "X-Empty": ""])
        let own = lines.filter { $0.lowercased().hasPrefix("x-") || $0.lowercased().hasPrefix("accept:") }
        #expect(own == ["X-B: 1", "accept: image/webp", "X-A: 2", "X-B: 3", "X-Empty:"])
    }

    @Test func `headers of one request are not sent with the next`() async throws {
        let origin = try FaultyOrigin(["/a": .echo])
        let first = DownloadRequest(url: origin.url("/a"), headers: ["X-Once": "1"])
        _ = try await self.downloader.response(for: first)
        let body = try await self.downloader.body(at: origin.url("/a"))
        #expect(!String(decoding: body, as: UTF8.self).contains("X-Once"))
    }

    @Test func `headers of a response keep order, duplicates and folds`() async throws {
        let head =
            "HTTP/1.1 103 Early Hints\r\nLink: early\r\n\r\nHTTP/1.1 200 OK\r\nX-B: 1\r\nX-A:2\r\n"
            + "x-b:  3 \r\nX-Long: one\r\n  two\r\nContent-Length: 1\r\n\r\n!"
        let origin = try FaultyOrigin(["/a": FaultyResponse([.send(Array(head.utf8))])])
        let headers = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a"))).headers
        #expect(headers.map(\.name) == ["X-B", "X-A", "x-b", "X-Long", "Content-Length"])
        #expect(headers.values(for: "x-B") == ["1", "3"])
        #expect(headers["X-LONG"] == "one two")
    }

    private static func answer(_ line: String, after first: String = "") -> FaultyResponse {
        FaultyResponse([.send(Array("\(first)HTTP/1.1 200 OK\r\n\(line)\r\nContent-Length: 1\r\n\r\n!".utf8))])
    }

    @Test(arguments: [" : v", " X: y", "\tX: y", " ", " no colon"])
    func `a field that continues none is an invalid response, and leaves nothing behind`(line: String) async throws {
        let origin = try FaultyOrigin([
            "/good": Self.answer("X-Long: one\r\n two"),
            "/bad": Self.answer(line),
            "/nameless": Self.answer("no colon\r\n\(line)"),
            "/early": Self.answer(line, after: "HTTP/1.1 103 Early Hints\r\nLink: early\r\n\r\n"),
        ])
        for _ in 0..<5 {
            for path in ["/bad", "/nameless", "/early"] {
                #expect(try await self.downloader.body(at: origin.url("/good")) == Data("!".utf8))
                let error = try await self.downloader.error(at: origin.url(path))
                #expect(error.code == .invalidResponse, "\(path): \(error)")
            }
        }
        #expect(try await self.downloader.body(at: origin.url("/good")) == Data("!".utf8))
    }

    @Test(arguments: [" : v", " X: y", "\tX: y"])
    func `neither does one after a challenge continue any`(line: String) async throws {
        let challenge = FaultyResponse.body(
            [1],
            status: 401,
            headers: [("WWW-Authenticate", "Digest realm=\"a\", nonce=\"b\"")]
        )
        let origin = try FaultyOrigin()
        origin.script("/a", sequence: [challenge, Self.answer(line)])
        var request = DownloadRequest(url: origin.url("/a"))
        request.credentials = .digest(user: "a", password: "b")
        #expect(try await self.downloader.error(for: request).code == .invalidResponse)
        #expect(origin.requestCount(for: "/a") == 2)
    }

    @Test func `a header without end is an invalid response`() async throws {
        let line = Array("X-Filler: \(String(repeating: "x", count: 60_000))\r\n".utf8)
        let start = FaultyResponse.Step.send(Array("HTTP/1.1 200 OK\r\n".utf8))
        let lines = Array(repeating: FaultyResponse.Step.send(line), count: 8)
        let origin = try FaultyOrigin(["/a": FaultyResponse([start] + lines + [.stall])])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .invalidResponse)
    }
}
