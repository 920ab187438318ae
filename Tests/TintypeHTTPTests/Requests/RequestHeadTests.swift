// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeHTTP

/// Valid heads and their parts.
@Suite struct RequestHeadTests {
    private static let usual = """
        GET /unsafe/rs:fit:512:512/plain/https://images.example.com/a%20b.jpg@webp?x=1 HTTP/1.1\r
        Host: img.example.com:8080\r
        User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r
        accept: image/avif,image/webp, */*;q=0.8\r
        Accept-Language:de\r
        X-Empty:\r
        X-Spaces: \t a b\t \r
        ACCEPT: text/html\r
        If-None-Match: "abc"\r
        \r

        """

    @Test func `a usual head has all its parts`() throws {
        let outcome = RequestHeadParser.outcome(of: Self.usual.utf8)
        #expect(outcome.byteCount == Self.usual.utf8.count)
        let head = try #require(outcome.head)
        #expect(head.method == .get)
        #expect(head.target == "/unsafe/rs:fit:512:512/plain/https://images.example.com/a%20b.jpg@webp?x=1")
        #expect(head.minorVersion == 1)
        #expect(head.keepsAlive)
        #expect(head.contentLength == nil)
        #expect(!head.expectsContinue)
        #expect(head.host == "img.example.com:8080")
        #expect(head.fieldCount == 8)
        #expect(head["ACCEPT-language"] == "de")
        #expect(head["Accept"] == "image/avif,image/webp, */*;q=0.8")
        #expect(head.values(for: "Accept") == ["image/avif,image/webp, */*;q=0.8", "text/html"])
        #expect(head.onlyValue(for: "Accept") == nil)
        #expect(head.onlyValue(for: "If-None-Match") == "\"abc\"")
        #expect(head["X-Empty"] == "")
        #expect(head["X-Spaces"] == "a b")
        #expect(head["X-Absent"] == nil)
        #expect(head.onlyValue(for: "X-Absent") == nil)
        #expect(head.values(for: "X-Absent").isEmpty)
        #expect(head.fields.map(\.name).first == "Host")
        #expect(head.fields.count == 8)
        #expect(head.fields["x-spaces"] == "a b")
    }

    @Test(
        arguments: [
            ("GET", .get), ("HEAD", .head), ("OPTIONS", .options), ("POST", .post), ("PUT", .other("PUT")),
            ("get", .other("get")), ("M-SEARCH", .other("M-SEARCH")),
            ("!#$%&'*+-.^_`|~09", .other("!#$%&'*+-.^_`|~09")),
            ("A234567890123456789012345678901B", .other("A234567890123456789012345678901B")),
        ] as [(String, RequestMethod)]
    )
    func `every short token is a method`(name: String, method: RequestMethod) {
        let head = RequestHead.with([], method: name)
        #expect(head?.method == method)
        #expect(head?.method.name == name)
    }

    @Test(
        arguments: [
            ("GET / HTTP/1.1", "/", "a"), ("GET //a//b HTTP/1.1", "//a//b", "a"),
            ("GET /?# HTTP/1.1", nil, nil), ("GET /a?b?c HTTP/1.1", "/a?b?c", "a"),
            ("GET /\"<>\\^`{|} HTTP/1.1", "/\"<>\\^`{|}", "a"), ("GET /%zz%00 HTTP/1.1", "/%zz%00", "a"),
            ("GET /\u{E9}/\u{20AC} HTTP/1.1", "/%C3%A9/%E2%82%AC", "a"), ("OPTIONS * HTTP/1.1", "*", "a"),
            ("GET http://b:80/c?d HTTP/1.1", "/c?d", "b:80"), ("GET HTTPS://B.example HTTP/1.1", "/", "B.example"),
            ("GET http://b?c/d HTTP/1.1", "/?c/d", "b"),
            ("GET http://[::1]:8080/\u{E9} HTTP/1.1", "/%C3%A9", "[::1]:8080"),
            ("OPTIONS http://b HTTP/1.1", "/", "b"),
        ] as [(String, String?, String?)]
    )
    func `a target is a path and a query`(line: String, target: String?, host: String?) {
        let head = RequestHeadParser.outcome(of: "\(line)\r\nHost: a\r\n\r\n".utf8).head
        #expect(head?.target == target)
        #expect(head?.host == host)
    }

    @Test func `bytes over 0x7F that are not UTF-8 are percent-encoded in targets`() {
        let bytes =
            Array("GET /".utf8) + [0xFF, 0x80] + Array(" HTTP/1.1\r\nHost: a\r\nX: ".utf8) + [0xFF, 13, 10, 13, 10]
        let head = RequestHeadParser.outcome(of: bytes).head
        #expect(head?.target == "/%FF%80")
        #expect(head?["X"] == "\u{FFFD}")
    }

    @Test(
        arguments: [
            ("1.1", [], true), ("1.1", ["close"], false), ("1.1", ["keep-alive"], true), ("1.1", ["Close"], false),
            ("1.1", ["keep-alive, close"], false), ("1.1", ["x", " , close\t,"], false), ("1.1", ["closed"], true),
            ("1.1", ["\"close\""], true), ("1.1", [""], true), ("1.2", [], true), ("1.9", ["close"], false),
            ("1.0", [], false), ("1.0", ["keep-alive"], true), ("1.0", ["Keep-Alive, x"], true),
            ("1.0", ["keep-alive", "close"], false), ("1.0", ["keep"], false),
        ] as [(String, [String], Bool)]
    )
    func `a connection persists by version and option`(version: String, options: [String], keepsAlive: Bool) {
        let lines = options.map { "Connection: \($0)\r\n" }.joined()
        let head = RequestHeadParser.outcome(of: "GET / HTTP/\(version)\r\nHost: a\r\n\(lines)\r\n".utf8).head
        #expect(head?.keepsAlive == keepsAlive)
        #expect(head?.minorVersion == (version == "1.0" ? 0 : 1))
    }

    @Test(arguments: [
        ("0", 0), ("7", 7), ("0010", 10), ("9223372036854775807", .max),
    ])
    func `a length is a number of bytes`(text: String, length: Int) {
        #expect(RequestHead.with(["Content-Length: \(text)"], method: "POST")?.contentLength == length)
    }

    @Test(arguments: [
        ("1.1", "100-continue", true), ("1.1", "100-Continue", true), ("1.0", "100-continue", false),
        ("1.0", "other", false),
    ])
    func `an expectation counts since version 1.1`(version: String, value: String, expects: Bool) {
        let outcome = RequestHeadParser.outcome(
            of: "POST / HTTP/\(version)\r\nHost: a\r\nExpect: \(value)\r\n\r\n".utf8
        )
        #expect(outcome.head?.expectsContinue == expects)
    }

    @Test func `a request with HTTP 1.0 needs no host`() {
        let head = RequestHeadParser.outcome(of: "GET / HTTP/1.0\r\n\r\n".utf8).head
        #expect(head != nil)
        #expect(head?.host == nil)
    }

    @Test(
        arguments: [
            "a", "example.com", "EXAMPLE.com.", "127.0.0.1:80", "a:", "[::1]", "[2001:db8::1]:443", "a_b",
            "xn--bcher-kva",
            "%41", ".a", "a:00080", "[::1]:",
        ].map { ($0, true) }
            + [
                "", ":80", "a:b", "a:123456", "a b", "a/b", "a@b", "a?b", "a#b", "a..b", "..", "[]", "[::1", "::1",
                "[::1]a",
                "[g]", "a:80:80", "a,b ,c", "\u{E9}", "http://a", "a\\b", "<a>", "\"a\"", "a[",
            ].map { ($0, false) }
    )
    func `a host is a name or an address, with or without a port`(text: String, isValid: Bool) {
        #expect(HostText.isValid(Array(text.utf8)) == isValid)
        let outcome = RequestHeadParser.outcome(of: "GET / HTTP/1.1\r\nHost: \(text)\r\n\r\n".utf8)
        #expect(outcome.refusal == (isValid ? nil : .invalidHost))
        #expect(outcome.head?.host == (isValid ? text : nil))
    }
}
