// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport

@testable import TintypeServer

@Suite struct LogLinesTests {
    /// 2026-11-27, 16:29:16.123 UTC.
    private static let time = 1_795_796_956_123

    private func text(_ format: ImageServer.LogFormat, _ write: (inout LogLines) -> Void) -> String {
        var lines = LogLines(format)
        write(&lines)
        return String(decoding: lines.bytes, as: UTF8.self)
    }

    /// Returns the line with one value between other fields.
    private func line(_ format: ImageServer.LogFormat, with value: String) -> String {
        self.text(format) { lines in
            lines.begin(.info, at: Self.time)
            lines.add("value", value)
            lines.add("last", 1)
            lines.end()
        }
    }

    // MARK: Whole lines

    @Test func `an exchange is a line of text`() throws {
        let exchange = try ExchangeSamples.record()
        let text = self.text(.text) { $0.append(exchange, traceID: "4bf92f3577b34da6a3ce929d0e0e4736", at: Self.time) }
        #expect(
            text == "2026-11-27T16:29:16.123Z info request_id=0000000000000007"
                + " trace_id=4bf92f3577b34da6a3ce929d0e0e4736 client=192.0.2.1 method=GET path=/unsafe/plain/a status=200"
                + " bytes=1000 milliseconds=1.250 cache=memory format=webp\n"
        )
    }

    @Test func `an exchange is a line of JSON`() throws {
        let exchange = try ExchangeSamples.record(
            #"HEAD /a"b\c"#,
            status: 502,
            byteCount: 0,
            duration: .seconds(2),
            note: AnswerNote(cache: "network", errorCode: "badStatus", message: "The origin said \"no\".\nTwice.")
        )
        let text = self.text(.json) { $0.append(exchange, traceID: nil, at: Self.time) }
        #expect(
            text == #"{"time":"2026-11-27T16:29:16.123Z","level":"error","request_id":"0000000000000007","#
                + #""client":"192.0.2.1","method":"HEAD","path":"/a\"b\\c","status":502,"bytes":0,"#
                + #""milliseconds":2000.000,"cache":"network","error":"badStatus","#
                + #""message":"The origin said \"no\".\u000aTwice."}"# + "\n"
        )
    }

    @Test func `a malformed head has neither method nor path`() throws {
        let exchange = try ExchangeSamples.record(nil, status: 400, note: AnswerNote(message: "No."))
        let text = self.text(.text) { $0.append(exchange, traceID: nil, at: Self.time) }
        #expect(text.contains(" warning request_id=0000000000000007 client=192.0.2.1 status=400 "))
        #expect(text.hasSuffix(" message=No.\n"))
    }

    @Test func `the line tells of an answer that was not sent completely`() throws {
        let exchange = try ExchangeSamples.record(isWhole: false)
        let text = self.text(.text) { $0.append(exchange, traceID: nil, at: Self.time) }
        #expect(text.hasSuffix(#" message="The client did not take the whole answer.""# + "\n"))
    }

    @Test(
        arguments: [
            (200, .info), (304, .info), (400, .warning), (404, .warning), (499, .warning), (500, .error), (503, .error),
        ] as [(Int, ImageServer.LogLevel)]
    )
    func `the level follows from the status`(status: Int, level: ImageServer.LogLevel) {
        #expect(ImageServer.LogLevel(status: status) == level)
    }

    @Test func `an event of the server is a line with its fields`() {
        let text = self.text(.text) {
            $0.append(.warning, "The file has changed.", ["file": "/etc/a b", "line": "12"], at: Self.time)
        }
        #expect(
            text == #"2026-11-27T16:29:16.123Z warning message="The file has changed." file="/etc/a b" line=12"# + "\n"
        )
    }

    // MARK: Values

    @Test(arguments: [
        ("/a", "/a", #""/a""#),
        ("", #""""#, #""""#),
        ("a b", #""a b""#, #""a b""#),
        ("a=b", #""a=b""#, #""a=b""#),
        (#"a"b"#, #""a\"b""#, #""a\"b""#),
        (#"a\b"#, #""a\\b""#, #""a\\b""#),
        ("a\r\nb", #""a\u000d\u000ab""#, #""a\u000d\u000ab""#),
        ("\0\u{1B}[2J\u{7F}", #""\u0000\u001b[2J\u007f""#, #""\u0000\u001b[2J\u007f""#),
        ("\u{85}\u{9B}\u{2028}\u{202E}", #""\u0085\u009b\u2028\u202e""#, #""\u0085\u009b\u2028\u202e""#),
        ("é😀", #""é😀""#, #""é😀""#),
    ])
    func `quotes and control characters are escaped`(value: String, text: String, json: String) {
        #expect(self.line(.text, with: value) == "2026-11-27T16:29:16.123Z info value=\(text) last=1\n")
        let expected = #"{"time":"2026-11-27T16:29:16.123Z","level":"info","value":\#(json),"last":1}"# + "\n"
        #expect(self.line(.json, with: value) == expected)
    }

    @Test func `no value ends its line or its field`() throws {
        struct Line: Decodable {
            let value: String
            let last: Int
        }
        let pieces = ["\"", "\\", "\n", "\r", "\t", "\0", "\u{1B}", "\u{9B}", "\u{2029}", "é", "😀", " ", "=", "}", "a"]
        var generator = SeededGenerator(seed: 24)
        let start = "2026-11-27T16:29:16.123Z info value="
        for _ in 0..<10_000 {
            let count = Int.random(in: 0...12, using: &generator)
            let value = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            let json = self.line(.json, with: value)
            #expect(json.utf8.count(where: { $0 == UInt8(ascii: "\n") }) == 1)
            let decoded = try JSONDecoder().decode(Line.self, from: Data(json.utf8))
            #expect(decoded.value == value && decoded.last == 1)

            let text = self.line(.text, with: value)
            #expect(text.utf8.count(where: { $0 == UInt8(ascii: "\n") }) == 1)
            try #require(text.hasPrefix(start) && text.hasSuffix(" last=1\n"))
            let field = String(text.dropFirst(start.count).dropLast(8))
            let isQuoted = field.hasPrefix("\"")
            let shown = isQuoted ? try JSONDecoder().decode(String.self, from: Data(field.utf8)) : field
            #expect(shown == value)
            #expect(isQuoted || !field.contains(" "))
        }
    }

    @Test(arguments: [("a", 2_048, 2_048), ("a", 2_049, 2_048), ("é", 1_500, 1_024), ("\n", 2_500, 2_048)])
    func `long values are cut between characters`(piece: String, count: Int, kept: Int) {
        let line = self.line(.json, with: String(repeating: piece, count: count))
        let shown = piece == "\n" ? #"\u000a"# : piece
        let value = String(repeating: shown, count: kept) + (count > kept ? "..." : "")
        #expect(line.contains("\"value\":\"\(value)\","))
    }

    @Test(arguments: [
        (0, "0"), (7, "7"), (10, "10"), (-1, "-1"), (1_000_000, "1000000"), (Int.max, "9223372036854775807"),
        (Int.min, "-9223372036854775808"),
    ])
    func `numbers have all their digits`(number: Int, digits: String) {
        #expect(self.text(.text) { $0.add("n", number) } == " n=\(digits)")
    }

    @Test(
        arguments: [
            (.zero, "0.000"), (.nanoseconds(999), "0.000"), (.microseconds(1), "0.001"),
            (.microseconds(12_345), "12.345"), (.seconds(15), "15000.000"), (.seconds(-1), "0.000"),
            (.seconds(Int64.max), "1000000000000.000"),
        ] as [(Duration, String)]
    )
    func `durations are milliseconds with three digits after the point`(duration: Duration, digits: String) {
        #expect(self.text(.text) { $0.add("t", duration) } == " t=\(digits)")
    }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (951_826_799_001, "2000-02-29T12:19:59.001Z"),
        (1_709_164_800_010, "2024-02-29T00:00:00.010Z"), (1_795_796_956_123, "2026-11-27T16:29:16.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ])
    func `times are in UTC with milliseconds`(milliseconds: Int, text: String) {
        // The second line has the same second, whose text is there already.
        let lines = self.text(.text) {
            for _ in 0..<2 {
                $0.begin(.info, at: milliseconds)
                $0.end()
            }
        }
        #expect(lines == "\(text) info\n\(text) info\n")
    }

    @Test(
        arguments: [
            ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1], "192.0.2.1"),
            ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 255, 10, 100], "0.255.10.100"),
            ([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "2001:db8:0:0:0:0:0:1"),
            ([UInt8](repeating: 0xFF, count: 16), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] as [([UInt8], String)]
    )
    func `clients are shown by their addresses`(bytes: [UInt8], text: String) {
        let client = ClientAddress(bytes: bytes)
        #expect(client.description == text)
        let field = self.text(.text) { lines in lines.add("client") { client.append(to: &$0) } }
        #expect(field == " client=\(text)")
    }
}
