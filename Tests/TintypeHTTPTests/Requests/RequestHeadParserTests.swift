// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeHTTP

/// Refusals, limits and pieces.
@Suite struct RequestHeadParserTests {
    private static let refused: [(String, RequestRefusal)] = [
        // Lines
        ("GET / HTTP/1.1\nHost: a\n\n", .invalidLineEnding),
        ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", .invalidLineEnding),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", .invalidLineEnding),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", .invalidMethod),
        ("GET / HTTP/1.1\rHost: a\r\n\r\n", .invalidLineEnding),
        ("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", .invalidLineEnding),
        ("GET / HTTP/1.1\r\nHost: a\r\n\rX: b\r\n\r\n", .invalidLineEnding),
        ("\rGET / HTTP/1.1\r\n\r\n", .invalidLineEnding),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", .invalidMethod), ("GET / HTTP/1.1\r\r\n", .invalidLineEnding),
        // Methods
        (" GET / HTTP/1.1\r\n", .invalidMethod), ("G\u{E9}T / HTTP/1.1\r\n", .invalidMethod),
        ("GET\t/ HTTP/1.1\r\n", .invalidMethod),
        ("GET\r\n", .invalidMethod), ("\r\n\r\n", .invalidMethod), ("G(T / HTTP/1.1\r\n", .invalidMethod),
        ("\u{16}\u{3}\u{1}", .invalidMethod), ("\0", .invalidMethod),
        ("A23456789012345678901234567890123", .invalidMethod),
        // Targets
        ("GET  / HTTP/1.1\r\n", .invalidTarget), ("GET a HTTP/1.1\r\n", .invalidTarget),
        ("GET * HTTP/1.1\r\n", .invalidTarget),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .invalidTarget), ("OPTIONS ** HTTP/1.1\r\n", .invalidTarget),
        ("CONNECT a:443 HTTP/1.1\r\n", .invalidTarget), ("GET ftp://a/ HTTP/1.1\r\n", .invalidTarget),
        ("GET /\0 HTTP/1.1\r\n", .invalidTarget), ("GET /\t HTTP/1.1\r\n", .invalidTarget),
        ("GET /\u{7F} HTTP/1.1\r\n", .invalidTarget),
        ("GET ?a HTTP/1.1\r\n", .invalidTarget), ("GET http:/a HTTP/1.1\r\n", .invalidTarget),
        ("GET /a#b HTTP/1.1\r\n", .targetWithFragment),
        ("GET # HTTP/1.1\r\n", .targetWithFragment), ("GET http:// HTTP/1.1\r\n", .invalidHost),
        ("GET http:///a HTTP/1.1\r\n", .invalidHost), ("GET http://a@b/ HTTP/1.1\r\n", .invalidHost),
        ("GET http://a:x/ HTTP/1.1\r\n", .invalidHost), ("GET http://\u{E9}/ HTTP/1.1\r\n", .invalidHost),
        // Versions
        ("GET /\r\n", .invalidVersion), ("GET /\n", .invalidVersion), ("GET / \r\n", .invalidVersion),
        ("GET /  HTTP/1.1\r\n", .invalidVersion),
        ("GET / http/1.1\r\n", .invalidVersion), ("GET / HTTP/1.1 \r\n", .invalidVersion),
        ("GET / HTTP/1\r\n", .invalidVersion),
        ("GET / HTTP/1.10\r\n", .invalidVersion), ("GET / HTTP/0.9\r\n", .invalidVersion),
        ("GET / HTTP/01.1\r\n", .invalidVersion),
        ("GET / HTTP/1,1\r\n", .invalidVersion), ("GET / HTTP/x.1\r\n", .invalidVersion),
        ("GET / HTTP/1.x\r\n", .invalidVersion),
        ("GET / HTTPS/1.1\r\n", .invalidVersion), ("GET / a HTTP/1.1\r\n", .invalidVersion),
        ("GET / HTTP/2\r\n", .invalidVersion),
        ("GET / HTTP/2.0\r\n", .unsupportedVersion), ("GET / HTTP/9.1\r\n", .unsupportedVersion),
    ]

    /// Field lines behind the request line and a `Host` field.
    private static let refusedFields: [(String, RequestRefusal)] = [
        (" X: a", .foldedField), ("\tX: a", .foldedField), ("X: a\r\n b", .foldedField), ("X: a\r\n\tb", .foldedField),
        ("X : a", .invalidFieldName), ("X\t: a", .invalidFieldName), (": a", .invalidFieldName),
        ("X", .invalidFieldName),
        ("X Y: a", .invalidFieldName), ("X\0: a", .invalidFieldName), ("\u{E9}: a", .invalidFieldName),
        ("X(: a", .invalidFieldName),
        ("\"X\": a", .invalidFieldName), ("X: a\0b", .invalidFieldValue), ("X: \u{1}", .invalidFieldValue),
        ("X: a\u{7F}", .invalidFieldValue),
        ("X: a\u{B}", .invalidFieldValue), ("X: a\u{1B}[0m", .invalidFieldValue), ("X: \0", .invalidFieldValue),
        ("Host: a", .repeatedHost), ("HOST: b", .repeatedHost), ("host:", .repeatedHost),
        ("Content-Length: 1\r\nContent-Length: 1", .repeatedContentLength),
        ("Content-Length: 0\r\ncontent-length: 1", .repeatedContentLength),
        ("Content-Length: 1, 1", .invalidContentLength), ("Content-Length:", .invalidContentLength),
        ("Content-Length: -1", .invalidContentLength),
        ("Content-Length: +1", .invalidContentLength), ("Content-Length: 0x1", .invalidContentLength),
        ("Content-Length: 1.0", .invalidContentLength),
        ("Content-Length: 1 1", .invalidContentLength), ("Content-Length: 9223372036854775808", .invalidContentLength),
        ("Content-Length: \u{661}", .invalidContentLength),
        ("Content-Length: 99999999999999999999999", .invalidContentLength),
        ("Transfer-Encoding: chunked", .transferEncoding), ("Transfer-Encoding: identity", .transferEncoding),
        ("transfer-encoding:", .transferEncoding), ("Transfer-Encoding: xchunked", .transferEncoding),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked", .transferEncodingWithContentLength),
        ("Transfer-Encoding: chunked\r\nContent-Length: 1", .transferEncodingWithContentLength),
        ("Transfer-Encoding : chunked", .invalidFieldName), ("Transfer-Encoding: \u{B}chunked", .invalidFieldValue),
        ("Expect: 200-ok", .unknownExpectation), ("Expect: 100-continue, x", .unknownExpectation),
        ("Expect:", .unknownExpectation),
        ("Expect: 100-continue\r\nExpect: x", .unknownExpectation),
    ]

    private static let allRefused =
        Self.refused + Self.refusedFields.map { ("GET / HTTP/1.1\r\nHost: a\r\n\($0)\r\n\r\n", $1) } + [
            ("GET / HTTP/1.1\r\n\r\n", .missingHost), ("GET / HTTP/1.1\r\nX: a\r\n\r\n", .missingHost),
            ("GET http://a/ HTTP/1.1\r\n\r\n", .missingHost), ("GET / HTTP/1.9\r\n\r\n", .missingHost),
            ("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", .repeatedHost),
            ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", .transferEncodingBeforeVersion1_1),
            (
                "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
                .transferEncodingWithContentLength
            ),
        ]

    private static let accepted = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\nGET / HTTP/1.0\r\n\r\n",
        "POST http://b/c HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n12345",
        "HEAD /\u{E9} HTTP/1.1\r\nHost: a\r\nX:\r\nY: \t\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ]

    @Test(arguments: Self.allRefused)
    func `an invalid head is refused`(text: String, refusal: RequestRefusal) {
        #expect(RequestHeadParser.outcome(of: text.utf8) == .refused(refusal))
    }

    @Test func `all refusals have an error status and a sentence`() {
        let others = Set<RequestRefusal>([.requestLineTooLong, .headTooLarge, .tooManyFields])
        let tested = Set(Self.allRefused.map(\.1) + [.invalidHost])
        #expect(others.union(tested) == Set(RequestRefusal.allCases))
        for refusal in RequestRefusal.allCases {
            #expect([400, 414, 417, 431, 501, 505].contains(refusal.status))
            #expect(!AnswerHead.reason(for: refusal.status).isEmpty)
            #expect(refusal.message.hasSuffix("."))
        }
        #expect(RequestRefusal.requestLineTooLong.status == 414)
        #expect(RequestRefusal.headTooLarge.status == 431)
        #expect(RequestRefusal.tooManyFields.status == 431)
        #expect(RequestRefusal.transferEncoding.status == 501)
        #expect(RequestRefusal.transferEncodingWithContentLength.status == 400)
        #expect(RequestRefusal.unsupportedVersion.status == 505)
        #expect(RequestRefusal.unknownExpectation.status == 417)
    }

    /// Invalid bytes are refused when they arrive, so that a client of another protocol does not wait.
    @Test(arguments: Self.refused)
    func `a request line is refused without the bytes behind it`(text: String, refusal: RequestRefusal) {
        let bytes = Array(text.utf8)
        let firstLine = bytes.firstIndex(of: 10).map { Array(bytes[...$0]) } ?? bytes
        guard refusal != .invalidLineEnding, firstLine != [13, 10] else { return }
        #expect(RequestHeadParser.outcome(of: firstLine) == .refused(refusal))
    }

    @Test(arguments: Self.allRefused.map(\.0) + Self.accepted)
    func `any split gives the same outcome as the whole`(text: String) {
        let bytes = Array(text.utf8)
        let small = RequestHeadParser.Limits(requestLine: 16, head: 48, fieldCount: 1)
        for limits in [RequestHeadParser.Limits(), small] {
            let whole = RequestHeadParser.outcome(of: bytes, limits: limits)
            let drip = repeatElement(1, count: bytes.count)
            #expect(RequestHeadParser.outcome(of: bytes, pieces: drip, limits: limits) == whole)
            for split in 0...bytes.count {
                let pieces = [split, 0, bytes.count - split]
                #expect(RequestHeadParser.outcome(of: bytes, pieces: pieces, limits: limits) == whole, "\(split)")
            }
        }
    }

    @Test(arguments: Self.accepted)
    func `a part of a head is incomplete`(text: String) throws {
        let bytes = Array(text.utf8)
        let outcome = RequestHeadParser.outcome(of: bytes)
        let byteCount = try #require(outcome.byteCount)
        #expect(bytes[..<byteCount].suffix(4) == [13, 10, 13, 10])
        for count in 0..<byteCount {
            #expect(RequestHeadParser.outcome(of: bytes.prefix(count)) == .incomplete)
        }
    }

    /// The parser visits most of a value in words of eight bytes.
    @Test func `a control character is refused at any place of a value`() {
        for byte in UInt8.min...UInt8.max {
            let isValid = byte >= 0x20 && byte != 0x7F || byte == 0x09
            for place in 1...17 {
                var value = Array(repeating: UInt8(ascii: "~"), count: 19)
                value[place] = byte
                let head = Array("GET / HTTP/1.1\r\nHost: a\r\nX:".utf8) + value + Array("\r\n\r\n".utf8)
                let outcome = RequestHeadParser.outcome(of: head)
                #expect((outcome.head != nil) == isValid, "\(byte) at \(place)")
                if byte < 0x80, isValid { #expect(outcome.head?["X"] == String(decoding: value, as: UTF8.self)) }
            }
        }
    }

    @Test func `pipelined heads are parsed one after the other`() {
        var parser = RequestHeadParser()
        var rest = (1...3).flatMap { "GET /\($0) HTTP/1.1\r\nHost: a\r\nX-\($0): b\r\n\r\n".utf8 }[...]
        for number in 1...3 {
            // The middle one is in two pieces.
            if number == 2 {
                let start = parser.parse(rest.prefix(20))
                #expect(start == .incomplete)
                #expect(parser.isInHead)
                rest = rest.dropFirst(20)
            }
            let outcome = parser.parse(rest)
            #expect(outcome.head?.target == "/\(number)")
            #expect(outcome.head?.fieldCount == 2)
            #expect(outcome.head?["X-\(number)"] == "b")
            #expect(!parser.isInHead)
            rest = rest.dropFirst(outcome.byteCount ?? 0)
        }
        #expect(rest.isEmpty)
        let empty = parser.parse([])
        #expect(empty == .incomplete)
        #expect(!parser.isInHead)
    }

    @Test func `a refused connection stays refused`() {
        var parser = RequestHeadParser()
        for text in ["GET /\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
            let outcome = parser.parse(text.utf8)
            #expect(outcome == .refused(.invalidVersion))
        }
        #expect(!parser.isInHead)
    }

    // MARK: - Limits

    private func line(_ count: Int) -> String {
        "GET /" + String(repeating: "a", count: count - "GET / HTTP/1.1\r\n".utf8.count) + " HTTP/1.1\r\n"
    }

    @Test func `a request line has at most 8192 bytes`() {
        let rest = "Host: a\r\n\r\n"
        #expect(RequestHeadParser.outcome(of: (self.line(8_192) + rest).utf8).head != nil)
        #expect(RequestHeadParser.outcome(of: (self.line(8_193) + rest).utf8) == .refused(.requestLineTooLong))
        let endless = "GET /" + String(repeating: "a", count: 65_536)
        #expect(RequestHeadParser.outcome(of: endless.utf8) == .refused(.requestLineTooLong))
        #expect(RequestHeadParser.outcome(of: endless.utf8.prefix(8_191)) == .incomplete)
        #expect(RequestHeadParser.outcome(of: endless.utf8.prefix(8_192)) == .refused(.requestLineTooLong))
    }

    @Test func `a head has at most 16384 bytes`() {
        func head(_ count: Int) -> String {
            let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
            return start + String(repeating: "a", count: count - start.utf8.count - 4) + "\r\n\r\n"
        }
        #expect(RequestHeadParser.outcome(of: head(16_384).utf8).byteCount == 16_384)
        #expect(RequestHeadParser.outcome(of: head(16_385).utf8) == .refused(.headTooLarge))
        #expect(RequestHeadParser.outcome(of: head(16_385).utf8.prefix(16_384)) == .refused(.headTooLarge))
        let drip = repeatElement(1, count: 20_000)
        #expect(RequestHeadParser.outcome(of: Array(head(16_385).utf8), pieces: drip) == .refused(.headTooLarge))
        #expect(RequestHeadParser.outcome(of: Array(head(16_384).utf8), pieces: drip).byteCount == 16_384)
    }

    @Test func `a head has at most 100 fields`() {
        func head(_ count: Int) -> String {
            "GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "X: a\r\n", count: count - 1) + "\r\n"
        }
        #expect(RequestHeadParser.outcome(of: head(100).utf8).head?.fieldCount == 100)
        #expect(RequestHeadParser.outcome(of: head(101).utf8) == .refused(.tooManyFields))
    }

    @Test func `no limit is larger than the places of fields can be`() {
        let limits = RequestHeadParser.Limits(requestLine: .max, head: .max, fieldCount: .max)
        #expect(limits.requestLine == 65_535)
        let endless = "GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "a", count: 70_000)
        #expect(RequestHeadParser.outcome(of: endless.utf8, limits: limits) == .refused(.headTooLarge))
        let longest = endless.utf8.prefix(65_531) + Array("\r\n\r\n".utf8)
        #expect(RequestHeadParser.outcome(of: longest, limits: limits).byteCount == 65_535)
        let nothing = RequestHeadParser.Limits(requestLine: 0, head: 0, fieldCount: 0)
        #expect(RequestHeadParser.outcome(of: "G".utf8, limits: nothing) == .refused(.requestLineTooLong))
        let negative = RequestHeadParser.Limits(requestLine: -1, head: -1, fieldCount: -1)
        #expect(RequestHeadParser.outcome(of: "G".utf8, limits: negative) == .refused(.requestLineTooLong))
    }
}
