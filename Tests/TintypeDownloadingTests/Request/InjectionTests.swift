// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Values that become part of a line of a request and contain a line break.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct InjectionTests {
    struct Attempt: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var configure: @Sendable (inout DownloadActor.Configuration) -> Void = { _ in }
        var change: @Sendable (inout DownloadRequest) -> Void = { _ in }
    }

    private static let attempts =
        [
            Attempt(testDescription: "bearer token, CRLF", change: { $0.credentials = .bearer("abc\r\nX-Forged: 1") }),
            Attempt(testDescription: "bearer token, LF", change: { $0.credentials = .bearer("abc\nX-Forged: 1") }),
            Attempt(testDescription: "bearer token, CR", change: { $0.credentials = .bearer("abc\rX-Forged: 1") }),
            Attempt(testDescription: "bearer token, NUL", change: { $0.credentials = .bearer("abc\0def") }),
            Attempt(
                testDescription: "digest user",
                change: { $0.credentials = .digest(user: "a\"\r\nX-Forged: 1", password: "b") }
            ),
            Attempt(
                testDescription: "digest password, NUL",
                change: { $0.credentials = .digest(user: "a", password: "b\0c") }
            ),
            Attempt(
                testDescription: "basic user, colon",
                change: { $0.credentials = .basic(user: "a:b", password: "c") }
            ),
            Attempt(
                testDescription: "basic password, NUL",
                change: { $0.credentials = .basic(user: "a", password: "b\0c") }
            ),
            Attempt(
                testDescription: "basic user, DEL",
                change: { $0.credentials = .basic(user: "\u{7F}", password: "c") }
            ),
            Attempt(testDescription: "cookie", change: { $0.headers["Cookie"] = "a=1\r\nX-Forged: 1" }),
            Attempt(testDescription: "referer", change: { $0.headers["Referer"] = "http://a/\u{B}" }),
            Attempt(testDescription: "range", change: { $0.headers["Range"] = "bytes=0-\0" }),
            Attempt(testDescription: "name with a space", change: { $0.headers["X Forged"] = "1" }),
            Attempt(
                testDescription: "name with a colon",
                change: { $0.headers["X-Name: 1\r\nX-Forged: 1\r\nX"] = "1" }
            ),
            Attempt(testDescription: "user agent", configure: { $0.userAgent = "tintype\r\nX-Forged: 1" }),
            Attempt(testDescription: "accept", configure: { $0.acceptHeader = "image/*\nX-Forged: 1" }),
            Attempt(
                testDescription: "proxy user",
                change: {
                    $0.proxy = .proxy(
                        "http://127.0.0.1:1",
                        credentials: .digest(user: "a\r\nX-Forged: 1", password: "")
                    )
                }
            ),
            Attempt(
                testDescription: "proxy password of the configuration",
                configure: { $0.proxy = .proxy("http://127.0.0.1:1", credentials: .basic(user: "a", password: "b\n")) }
            ),
            Attempt(testDescription: "proxy URL", change: { $0.proxy = .proxy("http://a\r\n@127.0.0.1:1") }),
            Attempt(
                testDescription: "proxy URL, encoded",
                change: { $0.proxy = .proxy("http://a%0D%0Ab:c@127.0.0.1:1", credentials: nil) }
            ),
            Attempt(
                testDescription: "exception of a proxy",
                change: { $0.proxy = .proxy("http://127.0.0.1:1", exceptions: ["a\0b"]) }
            ),
            Attempt(testDescription: "socket path", change: { $0.unixSocketPath = "/tmp/a\0b" }),
        ]
        + [
            "Content-Length", "transfer-encoding", "Connection", "Upgrade", "TE", "Trailer", "Keep-Alive",
            "Proxy-Connection", "EXPECT",
        ].map { name in
            Attempt(testDescription: "\(name), about the connection", change: { $0.headers[name] = "30" })
        }

    @Test func `a host of the caller's own is sent`() async throws {
        let origin = try FaultyOrigin(["/a": .echo])
        let request = DownloadRequest(url: origin.url("/a"), headers: ["Host": "example.org"])
        let body = try await DownloadActor.patient().response(for: request).body
        #expect(String(decoding: body, as: UTF8.self).contains("\r\nHost: example.org\r\n"))
    }

    @Test(arguments: Self.attempts, [false, true])
    func `what would forge a line is refused, and nothing is sent`(attempt: Attempt, comesFromHook: Bool) async throws {
        let origin = try FaultyOrigin(["/a": .echo])
        var configuration = DownloadActor.Configuration()
        attempt.configure(&configuration)
        let hooks = DownloadHooks(modifyRequest: { request in
            var request = request
            attempt.change(&request)
            return request
        })
        let downloader = DownloadActor(configuration: configuration, hooks: comesFromHook ? hooks : DownloadHooks())
        var request = DownloadRequest(url: origin.url("/a"))
        if !comesFromHook { attempt.change(&request) }
        let error = try await downloader.error(for: request)
        #expect(error.code == .invalidHeader)
        #expect(!error.message.contains("X-Forged: 1"))
        #expect(error.message.hasSuffix("."))
        let streamed = request
        let streamError = await #expect(throws: DownloadError.self) { try await downloader.stream(for: streamed) }
        #expect(streamError?.code == .invalidHeader)
        #expect(origin.connectionCount == 0)
    }

    @Test(arguments: ["a%0D%0AX-Forged:%201:b", "a:b%0A", "a%00b:c", "%7F"])
    func `a user in a URL forges nothing`(user: String) async throws {
        let origin = try FaultyOrigin(["/a": .echo])
        for credentials in [nil, Credentials.digest(user: "a", password: "b")] {
            var request = DownloadRequest(url: try url("http://\(user)@127.0.0.1:\(origin.port)/a"))
            request.credentials = credentials
            #expect(try await DownloadActor.patient().error(for: request).code == .invalidURL)
        }
        #expect(origin.connectionCount == 0)
    }

    @Test func `a redirect brings no user that forges a line`() async throws {
        let challenge = FaultyResponse.body(
            [1],
            status: 401,
            headers: [("WWW-Authenticate", "Digest realm=\"a\", nonce=\"b\"")]
        )
        let origin = try FaultyOrigin(["/b": challenge])
        origin.script("/a", .redirect(to: "http://u%0D%0AX-Forged:%201:p@127.0.0.1:\(origin.port)/b"))
        var request = DownloadRequest(url: origin.url("/a"))
        request.credentials = .digest(user: "a", password: "b")
        let error = try await DownloadActor.patient().error(for: request)
        #expect(error.code == .unsafeRedirect)
        #expect(!origin.requestHeads(for: "/b").contains { $0.contains("X-Forged") })
    }

    @Test(arguments: ["http://a/b\0c", "http://a/b\r\nc", "http://a\u{7F}/"])
    func `an address with a control character is no URL`(text: String) {
        #expect(throws: DownloadError.self) { try ResourceAddress(text) }
    }

    @Test func `fields keep every character that they may have`() async throws {
        let origin = try FaultyOrigin(["/a": .echo])
        var request = DownloadRequest(url: origin.url("/a"))
        request.headers = ["X-Tab": "a\tb", "X-Text": "caf\u{E9} ~!", "X-Blank": "  \t", "Accept": " "]
        request.credentials = .bearer("a.b-c_d~e+f/g==")
        let body = try await DownloadActor.patient().response(for: request).body
        let lines = String(decoding: body, as: UTF8.self).split(separator: "\r\n").map(String.init)
        #expect(lines.contains("X-Tab: a\tb"))
        #expect(lines.contains("X-Text: caf\u{E9} ~!"))
        #expect(lines.contains("X-Blank:"))
        #expect(lines.contains("Accept:"))
        #expect(lines.contains("Authorization: Bearer a.b-c_d~e+f/g=="))
    }

    @Test(arguments: [
        ("a", "1; admin=1", "127.0.0.1"), ("a; admin", "1", "127.0.0.1"), ("a=b", "1", "127.0.0.1"),
        ("a", "1\r\nX-Forged: 1", "127.0.0.1"), ("a", "1\0", "127.0.0.1"), ("a", "1\t2", "127.0.0.1"),
        ("a", "1", "#127.0.0.1"), ("a", "1", "Set-Cookie: b=1; domain=127.0.0.1"), ("", "1", "127.0.0.1"),
    ])
    func `a cookie that would be another one stays out of a jar`(name: String, value: String, domain: String) {
        let jar = CookieJar()
        #expect(!jar.insert(CookieJar.Cookie(name: name, value: value, domain: domain)))
        #expect(jar.cookies.isEmpty)
    }
}
