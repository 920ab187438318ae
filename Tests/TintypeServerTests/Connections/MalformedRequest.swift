// SPDX-License-Identifier: Apache-2.0

import Testing

/// A request that breaks the rules of HTTP or the limits of the server, or only seems to.
struct MalformedRequest: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    /// The status that the server must answer with.
    let status: Int
    /// Whether the server must close the connection.
    let closes: Bool

    init(_ name: String, _ text: String, _ status: Int, closes: Bool = true) {
        self.init(name, Array(text.utf8), status, closes: closes)
    }

    init(_ name: String, _ bytes: [UInt8], _ status: Int, closes: Bool = true) {
        self.name = name
        self.bytes = bytes
        self.status = status
        self.closes = closes
    }

    var testDescription: String { self.name }

    /// A request line with its end, and a valid host.
    private static let start = "GET /health HTTP/1.1\r\nHost: a\r\n"

    private static func line(_ name: String, _ line: String, _ status: Int, closes: Bool = true) -> Self {
        Self(name, "\(line)\r\nHost: a\r\n\r\n", status, closes: closes)
    }

    /// A valid request with one more line in its head.
    private static func field(_ name: String, _ field: String, _ status: Int = 400) -> Self {
        Self(name, "\(self.start)\(field)\r\n\r\n", status)
    }

    private static func host(_ name: String, _ host: String) -> Self {
        Self(name, "GET /health HTTP/1.1\r\nHost: \(host)\r\n\r\n", 400)
    }

    private static func post(_ name: String, _ fields: String, _ body: String = "", _ status: Int = 400) -> Self {
        Self(name, "POST /health HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n\(body)", status)
    }

    /// The requests that must be refused.
    static let refused = Self.framing + Self.fields + Self.hosts + Self.lines + Self.targets + Self.sizes + Self.others

    private static let framing: [MalformedRequest] = [
        .post("a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
        .post("chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"),
        .post("two different lengths", "Content-Length: 5\r\nContent-Length: 6", "123456"),
        .post("two equal lengths", "Content-Length: 5\r\nContent-Length: 5", "12345"),
        .post("a list of lengths", "Content-Length: 5, 5", "12345"),
        .post("a length with a sign", "Content-Length: +5", "12345"),
        .post("a negative length", "Content-Length: -1"),
        .post("a length with a space", "Content-Length: 1 2", "12345"),
        .post("a hexadecimal length", "Content-Length: 0x5", "12345"),
        .post("a length with a point", "Content-Length: 5.0", "12345"),
        .post("an empty length", "Content-Length:", "12345"),
        .post("a length beyond all integers", "Content-Length: 99999999999999999999999"),
        .post("a length that overflows", "Content-Length: 18446744073709551617", "1"),
        .post("chunks", "Transfer-Encoding: chunked", "5\r\n12345\r\n0\r\n\r\n", 501),
        .post("an unknown coding", "Transfer-Encoding: gzip", "12345", 501),
        .post("a hidden coding", "Transfer-Encoding: xchunked", "0\r\n\r\n", 501),
        .post("a coding with a vertical tab", "Transfer-Encoding: \u{B}chunked", "0\r\n\r\n"),
        .post("a coding behind a tab", "Transfer-Encoding:\tchunked", "0\r\n\r\n", 501),
        .post("a coding with a space before the colon", "Transfer-Encoding : chunked", "0\r\n\r\n"),
        .post("a folded coding", "Transfer-Encoding:\r\n chunked", "0\r\n\r\n"),
        .post("two codings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n", 501),
        .post("the coding identity", "Transfer-Encoding: identity", "12345", 501),
        Self("chunks with HTTP/1.0", "POST /health HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        Self("chunks of GET", "\(Self.start)Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        Self("a body of GET", "\(Self.start)Content-Length: 5\r\n\r\n12345", 400),
        Self("a body of HEAD", "HEAD /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345", 400),
    ]

    private static let fields: [MalformedRequest] = [
        .field("a folded field", "X-A: b\r\n c"),
        .field("a field folded with a tab", "X-A: b\r\n\tc"),
        Self("a folded first field", "GET /health HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        .field("a space before the colon", "X-A : b"),
        .field("a tab before the colon", "X-A\t: b"),
        .field("a space in a name", "X A: b"),
        .field("a field without a colon", "X-A"),
        .field("an empty name", ": b"),
        .field("a name with NUL", "X-\u{0}A: b"),
        .field("a name with a quote", "X-\"A: b"),
        .field("a name with a slash", "X/A: b"),
        .field("a name with an umlaut", "X-\u{E4}: b"),
        .field("NUL in a value", "X-A: b\u{0}c"),
        .field("a bare CR in a value", "X-A: b\rc"),
        .field("a bare CR before a field", "X-A: b\rContent-Length: 5"),
        .field("DEL in a value", "X-A: b\u{7F}c"),
        .field("a control character in a value", "X-A: b\u{1}c"),
        .field("an escape in a value", "X-A: \u{1B}[31m"),
        .field("an expectation that nobody meets", "Expect: 200-maybe", 417),
        Self("a line that ends with LF", "GET /health HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n", 400),
        Self("a head that ends with LF", "GET /health HTTP/1.1\r\nHost: a\r\n\n", 400),
        Self("lines that end with LF", "GET /health HTTP/1.1\nHost: a\n\n", 400),
        Self("a head with two CRs at its end", "GET /health HTTP/1.1\r\nHost: a\r\n\r\r\n", 400),
    ]

    private static let hosts: [MalformedRequest] = [
        Self("no host", "GET /health HTTP/1.1\r\n\r\n", 400),
        Self("two hosts", "GET /health HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        Self("two different hosts", "GET /health HTTP/1.1\r\nHost: a\r\nX: y\r\nHost: b\r\n\r\n", 400),
        .host("an empty host", ""),
        .host("a host with a space", "a b"),
        .host("a host with a slash", "a/b"),
        .host("a host with a user", "u@a"),
        .host("a host with a NUL", "a\u{0}b"),
        .host("a host with an open bracket", "[::1"),
        .host("a host with two colons", "a:1:2"),
        .host("a host with a wrong port", "a:8x"),
        .host("a host with a long port", "a:999999999"),
        .host("a host with an empty label", "a..b"),
        .host("a host with a backslash", "a\\b"),
        .host("a list of hosts", "a, b"),
    ]

    private static let lines: [MalformedRequest] = [
        .line("HTTP/0.9", "GET /health", 400),
        .line("HTTP/2.0", "GET /health HTTP/2.0", 505),
        .line("HTTP/3.7", "GET /health HTTP/3.7", 505),
        .line("HTTP/0.1", "GET /health HTTP/0.1", 400),
        .line("a version with two digits", "GET /health HTTP/1.10", 400),
        .line("a version with leading zeros", "GET /health HTTP/01.1", 400),
        .line("a version without a point", "GET /health HTTP/11", 400),
        .line("a version in small letters", "GET /health http/1.1", 400),
        .line("another protocol", "GET /health HTTQ/1.1", 400),
        .line("no version number", "GET /health HTTP/", 400),
        .line("a space behind the version", "GET /health HTTP/1.1 ", 400),
        .line("a word behind the version", "GET /health HTTP/1.1 x", 400),
        .line("two spaces behind the method", "GET  /health HTTP/1.1", 400),
        .line("two spaces behind the target", "GET /health  HTTP/1.1", 400),
        .line("a tab behind the method", "GET\t/health HTTP/1.1", 400),
        .line("a tab behind the target", "GET /health\tHTTP/1.1", 400),
        .line("a space before the method", " GET /health HTTP/1.1", 400),
        .line("no method", "/health HTTP/1.1", 400),
        .line("a method with NUL", "G\u{0}T /health HTTP/1.1", 400),
        .line("a method with a colon", "G:T /health HTTP/1.1", 400),
        .line("a method with an umlaut", "G\u{C4}T /health HTTP/1.1", 400),
        .line("a long method", String(repeating: "A", count: 33) + " /health HTTP/1.1", 400),
        .line("a very long method", String(repeating: "A", count: 5_000) + " /health HTTP/1.1", 400),
        .line("a method in small letters", "get /health HTTP/1.1", 405, closes: false),
        .line("the method DELETE", "DELETE /health HTTP/1.1", 405, closes: false),
        .line("the method TRACE", "TRACE /health HTTP/1.1", 405, closes: false),
        .line("the method PUT", "PUT /health HTTP/1.1", 405, closes: false),
        .line("an unknown method", "BREW /health HTTP/1.1", 405, closes: false),
        .line("the method CONNECT", "CONNECT a:443 HTTP/1.1", 400),
        Self("POST without a body", "POST /health HTTP/1.1\r\nHost: a\r\n\r\n", 405, closes: false),
        Self("POST with a body", "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345", 405),
        Self("PUT with a body", "PUT /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345", 405),
        Self(
            "a purge of a server without a secret for it",
            "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n12345",
            403
        ),
    ]

    private static let targets: [MalformedRequest] = [
        .line("a target without a slash", "GET health HTTP/1.1", 400),
        .line("a space in the target", "GET /health /x HTTP/1.1", 400),
        .line("NUL in the target", "GET /he\u{0}alth HTTP/1.1", 400),
        .line("a control character in the target", "GET /he\u{1}alth HTTP/1.1", 400),
        .line("DEL in the target", "GET /he\u{7F}alth HTTP/1.1", 400),
        .line("a CR in the target", "GET /he\ralth HTTP/1.1", 400),
        .line("a fragment in the target", "GET /health#x HTTP/1.1", 400),
        .line("a star with GET", "GET * HTTP/1.1", 400),
        .line("an authority with GET", "GET a:80 HTTP/1.1", 400),
        .line("another scheme", "GET ftp://a/health HTTP/1.1", 400),
        .line("a URL without a host", "GET http:///health HTTP/1.1", 400),
        .line("a URL with a user", "GET http://u@a/health HTTP/1.1", 400),
        .line("a URL with a wrong port", "GET http://a:b/health HTTP/1.1", 400),
    ]

    private static let sizes: [MalformedRequest] = [
        .line("a target of 9 kB", "GET /\(String(repeating: "a", count: 9_000)) HTTP/1.1", 414),
        .line("a target of 64 kB", "GET /\(String(repeating: "a", count: 65_536)) HTTP/1.1", 414),
        .field("101 fields", (0..<100).map { "X-\($0): a" }.joined(separator: "\r\n"), 431),
        .field(
            "1,000 fields",
            (0..<1_000).map { "X-Field-\($0): \(String(repeating: "a", count: 40))" }.joined(separator: "\r\n"),
            431
        ),
        .field("a value of 20 kB", "X-A: \(String(repeating: "a", count: 20_000))", 431),
        .field("a value of 200 kB", "X-A: \(String(repeating: "a", count: 200_000))", 431),
        .field("a name of 20 kB", "\(String(repeating: "a", count: 20_000)): a", 431),
    ]

    private static let others: [MalformedRequest] = [
        Self("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        Self(
            "a handshake of TLS",
            [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03, 0x0D, 0x0A],
            400
        ),
        Self("another protocol's greeting", "SSH-2.0-OpenSSH_9.2\r\n", 400),
        Self("a line of the PROXY protocol", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n\(Self.start)\r\n", 400),
        Self(
            "a binary header of the PROXY protocol",
            [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A],
            400
        ),
        Self("an LF before the request", "\n\(Self.start)\r\n", 400),
        Self("two empty lines before the request", "\r\n\r\n\(Self.start)\r\n", 400),
        Self("bytes of noise", (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 131) }, 400),
    ]

    /// The requests that are unusual and valid.
    static let accepted: [MalformedRequest] = [
        Self("an empty line before the request", "\r\n\(Self.start)\r\n", 200, closes: false),
        Self("a URL as target", "GET http://a/health HTTP/1.1\r\nHost: b\r\n\r\n", 200, closes: false),
        Self("a URL in capitals as target", "GET HTTP://A:80/health HTTP/1.1\r\nHost: b\r\n\r\n", 200, closes: false),
        Self("HTTP/1.0 without a host", "GET /health HTTP/1.0\r\n\r\n", 200),
        Self("a later minor version", "GET /health HTTP/1.7\r\nHost: a\r\n\r\n", 200, closes: false),
        Self(
            "no space behind the colon",
            "GET /health HTTP/1.1\r\nhOST:a\r\nX-A:\r\nX-B: \t\r\n\r\n",
            200,
            closes: false
        ),
        Self("tabs and bytes over 127 in a value", "\(Self.start)X-A: a\tb\u{E4}\r\n\r\n", 200, closes: false),
        Self("100 fields", Self.start + (0..<99).map { "X-\($0): a\r\n" }.joined() + "\r\n", 200, closes: false),
        Self("an address with a port as host", "GET /health HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 200, closes: false),
        Self("a query", "GET /health?a=b%20c HTTP/1.1\r\nHost: a\r\n\r\n", 200, closes: false),
        Self("an empty body", "\(Self.start)Content-Length: 0\r\n\r\n", 200, closes: false),
        Self("an end of the connection", "\(Self.start)Connection: close\r\n\r\n", 200),
    ]
}
