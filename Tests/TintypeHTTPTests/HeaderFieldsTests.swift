// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeHTTP

/// Header fields and their lines.
@Suite struct HeaderFieldsTests {
    @Test func `names are compared without regard to case`() {
        var headers: HeaderFields = ["ETag": "1", "Vary": "a", "vary": "b"]
        #expect(headers["etag"] == "1")
        #expect(headers.values(for: "VARY") == ["a", "b"])
        #expect(headers == ["etag": "1", "vary": "a", "VARY": "b"])
        #expect(headers.hashValue == (["etag": "1", "vary": "a", "VARY": "b"] as HeaderFields).hashValue)
        #expect(headers != ["vary": "a", "etag": "1", "vary": "b"])
        headers["VARY"] = "c"
        #expect(headers.map(\.value) == ["1", "c"])
        headers["etag"] = nil
        #expect(headers.count == 1)
    }

    @Test func `headers are described without credentials`() {
        let headers: HeaderFields = ["Accept": "image/webp", "authorization": "Bearer x", "Set-Cookie": "a=b"]
        #expect("\(headers)" == "[Accept: image/webp, authorization: ..., Set-Cookie: ...]")
        #expect("\(HeaderFields())" == "[]")
    }

    @Test func `headers are a collection of fields`() {
        let headers: HeaderFields = ["A": "1", "b": "2", "a": "3"]
        #expect(headers.removing(["a"]) == ["B": "2"])
        #expect(headers.names == ["a", "b"])
        #expect(headers + [HeaderField(name: "C", value: "4")] == ["a": "1", "b": "2", "a": "3", "c": "4"])
        #expect(Set(headers) == Set(headers.reversed()))
        var none = headers
        none.removeAll(keepingCapacity: true)
        #expect(none == [:])
    }

    @Test func `a set of codes knows its members`() {
        #expect(StatusCodes.success.contains(200))
        #expect(!StatusCodes.success.contains(300))
        #expect(StatusCodes.success.union(304).contains(304))
        #expect(!([304] as StatusCodes).contains(303))
    }

    @Test(arguments: [
        (HeaderLineCase(line: "HTTP/2 204 \r\n"), "status 204"),
        (HeaderLineCase(line: "HTTP/1.1 200 OK\r\n"), "status 200"),
        (HeaderLineCase(line: "A: b \r\n"), "A=b"), (HeaderLineCase(line: "A:\r\n"), "A="),
        (HeaderLineCase(line: "\t more\r\n"), "+more"), (HeaderLineCase(line: "\r\n"), "end"),
        (HeaderLineCase(line: "  \r\n"), "malformed"), (HeaderLineCase(line: "nonsense\r\n"), "malformed"),
        (HeaderLineCase(line: ""), "malformed"),
    ])
    func `lines of a head are told apart`(line: HeaderLineCase, expected: String) {
        #expect(line.parsed == expected)
    }

    @Test(arguments: [
        ("a", "a"), ("\u{E9}", "%C3%A9"), ("http://b\u{FC}cher.example/\u{E9}", "http://b\u{FC}cher.example/%C3%A9"),
        ("//b\u{FC}cher.example?\u{E9}", "//b\u{FC}cher.example?%C3%A9"), ("/a//\u{E9}", "/a//%C3%A9"),
        ("?a=//\u{E9}/", "?a=//%C3%A9/"), ("\u{E9}//b", "%C3%A9//b"),
    ])
    func `a location is encoded behind its host`(location: String, encoded: String) {
        let line = Array("location: \(location)\r\n".utf8)
        guard case .field(_, let value) = line.withUnsafeBytes({ HeaderLine($0) }) else {
            Issue.record("no field")
            return
        }
        #expect(value == encoded)
        let other = Array("X-Location: \(location)\r\n".utf8)
        guard case .field(_, let value) = other.withUnsafeBytes({ HeaderLine($0) }) else {
            Issue.record("no field")
            return
        }
        #expect(value == location)
    }

    @Test(arguments: [
        ("bytes 0-9/10", true), ("bytes 3-3/*", true), ("BYTES 0-0/1", true), ("bytes 9-3/10", false),
        ("bytes 0-10/10", false), ("bytes */10", false), ("bytes 0-9", false), ("items 0-9/10", false),
        ("bytes -1-9/10", false), ("bytes +0-9/10", false), ("bytes 0-99999999999999999999/*", false), ("", false),
    ])
    func `content ranges are read strictly`(value: String, isValid: Bool) {
        #expect((ContentRange(value) != nil) == isValid)
    }

    /// The validators that `If-Range` may have (RFC 9110, 8.8.1 and 8.8.2.2).
    @Test(
        arguments: [
            (["ETag": "\"a\""], "ETag"), (["ETag": "\"a\rX-B: 1\""], nil), (["ETag": "\"a\u{0}\""], nil),
            (["ETag": "\"a\u{7F}\""], nil), (["ETag": "W/\"a\""], nil), (["ETag": "\""], nil), (["ETag": ""], nil),
            (["ETag": "a"], nil), (["ETag": "W/\"a\"", "Last-Modified": date(-99), "Date": date(0)], nil),
            (["Last-Modified": date(-60), "Date": date(0)], "Last-Modified"),
            (["Last-Modified": date(-59), "Date": date(0)], nil), (["Last-Modified": date(-60)], nil),
            (["Last-Modified": "x", "Date": date(0)], nil),
            (["Last-Modified": "Friday, 15-Jan-27 07:00:00 GMT", "Date": date(0)], "Last-Modified"),
        ] as [(HeaderFields, String?)]
    )
    func `a validator is strong where it tells versions apart for sure`(headers: HeaderFields, field: String?) {
        #expect(Validators.strong(in: headers, now: ReuseCase.received) == field.flatMap { headers[$0] })
    }

    private static func date(_ offset: Double) -> String { ReuseCase.date(offset) }

    @Test(
        arguments: [
            ("\"a\"", "\"a\"", true, true), ("W/\"a\"", "W/\"a\"", false, true), ("W/\"a\"", "\"a\"", false, true),
            ("\"a\"", "\"b\"", false, false), ("a", "a", false, true), ("a", "\"a\"", false, true),
            ("\"a", "\"a", false, true), ("\"", "\"", false, true), ("w/\"a\"", "\"a\"", false, false),
            ("\"\"", "\"\"", true, true), ("", "", false, true), ("W/\"\"", "\"\"", false, true),
        ]
    )
    func `tags are compared in two ways`(first: String, second: String, isStrong: Bool, isWeak: Bool) {
        let tags = (EntityTag(first), EntityTag(second))
        #expect(tags.0.matchesStrongly(tags.1) == isStrong)
        #expect(tags.0.matchesWeakly(tags.1) == isWeak)
    }

    /// Stored responses depend on these digests, so they must not change.
    @Test func `the digest of a selection is stable`() {
        let digest = VarySelection.digest(of: ["accept", "x"], in: ["Accept": "a , b"])
        #expect(digest == "50cdc2966d31ae87d82e330591853a043ca342b206c9838af7e0cd52bfd91917")
        #expect(VarySelection.digest(of: [], in: ["Accept": "a"]) == nil)
    }
}

struct HeaderLineCase: Sendable {
    let line: String

    var parsed: String {
        Array(self.line.utf8).withUnsafeBytes { bytes in
            switch HeaderLine(bytes) {
            case .status(let status): "status \(status)"
            case .field(let name, let value): "\(name)=\(value)"
            case .continuation(let value): "+\(value)"
            case .end: "end"
            case .malformed: "malformed"
            }
        }
    }
}
