// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeHTTP

/// The cost of reading header fields, which an origin can make as long as it likes.
@Suite struct FieldParsingTests {
    struct Pattern: Sendable, CustomTestStringConvertible {
        let start: String
        let unit: String
        let end: String

        init(_ unit: String, start: String = "", end: String = "") {
            self.start = start
            self.unit = unit
            self.end = end
        }

        var testDescription: String { "\(self.start) \(self.unit)... \(self.end)" }

        func bytes(_ count: Int) -> [UInt8] {
            let units = Array(repeating: Array(self.unit.utf8), count: count / self.unit.utf8.count).joined()
            return Array(self.start.utf8) + units + Array(self.end.utf8)
        }
    }

    private static let patterns = [
        Pattern("\""), Pattern("\"", start: "\""), Pattern("\"\\"), Pattern("\"\\", start: "a=\""),
        Pattern("\\\"", start: "\""), Pattern("\\\\\"", start: "\""), Pattern("\\"), Pattern("\\", start: "\""),
        Pattern(","), Pattern(" "), Pattern("\t,"), Pattern(" ", end: "a"), Pattern(" ", start: "a", end: ","),
        Pattern("a,"), Pattern("\"a,"), Pattern(",\""), Pattern("a=\"\\\""), Pattern("a=\"b\","),
        Pattern("no-cache=\"a,b\","), Pattern("max-age=", end: "1"), Pattern("="), Pattern(";"), Pattern("a;b=\"c"),
        Pattern("9"), Pattern("*,"), Pattern("\u{E9}"),
    ]

    /// Returns the number of bytes that `read` visits, for sizes that double.
    private func visits(_ pattern: Pattern, _ read: (CountedBytes) -> Void) -> [Int] {
        [500, 1_000, 2_000, 4_000, 8_000].map { size in
            let bytes = CountedBytes(pattern.bytes(size))
            read(bytes)
            return bytes.visitCount
        }
    }

    @Test(arguments: Self.patterns)
    func `a list costs as much as it is long`(pattern: Pattern) {
        let visits = self.visits(pattern) { _ = FieldList.ranges(in: $0) }
        for (less, more) in zip(visits, visits.dropFirst()) { #expect(more <= less * 2 + 100) }
        #expect(visits[0] <= 500 * 4 + 100)
    }

    @Test(arguments: Self.patterns)
    func `directives cost as much as they are long`(pattern: Pattern) {
        let visits = self.visits(pattern) { _ = CacheControl.directives(in: $0) }
        for (less, more) in zip(visits, visits.dropFirst()) { #expect(more <= less * 2 + 100) }
        #expect(visits[0] <= 500 * 8 + 100)
    }

    /// Splits a list by the rule without a shortcut, with each quote considered separately.
    private func elementsByTheRule(of bytes: [UInt8]) -> [String] {
        var elements: [[UInt8]] = [[]]
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "\""), let end = FieldList.end(ofQuoteAt: index, in: bytes) {
                elements[elements.count - 1] += bytes[index..<end]
                index = end
                continue
            }
            if bytes[index] == UInt8(ascii: ",") {
                elements.append([])
            } else {
                elements[elements.count - 1].append(bytes[index])
            }
            index += 1
        }
        return elements.map { element in
            let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
            let trimmed = element.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
            return String(decoding: trimmed, as: UTF8.self)
        }.filter { !$0.isEmpty }
    }

    @Test func `quotes, commas and backslashes in any order are read by the rule`() {
        let alphabet = Array("\"\\, a".utf8)
        var wrong: [String] = []
        for length in 0...5 {
            var digits = [Int](repeating: 0, count: length)
            while true {
                let bytes = digits.map { alphabet[$0] }
                let text = String(decoding: bytes, as: UTF8.self)
                if FieldList.elements(of: [text]) != self.elementsByTheRule(of: bytes) { wrong.append(text) }
                guard let next = digits.lastIndex(where: { $0 < alphabet.count - 1 }) else { break }
                digits[next] += 1
                for index in (next + 1)..<max(next + 1, length) { digits[index] = 0 }
            }
        }
        #expect(wrong == [])
    }

    @Test(arguments: [
        ("0", 0), ("0000000000000000000000007", 7), ("2147483648", 2_147_483_648), ("2147483649", 2_147_483_648),
        ("99999999999999999999999999999999", 2_147_483_648), ("", nil), ("-1", nil), ("1.5", nil), ("1e9", nil),
        ("\u{661}", nil),
    ])
    func `seconds are digits, and never too many`(text: String, seconds: Double?) {
        #expect(DeltaSeconds.parse(text) == seconds)
        #expect(DeltaSeconds.parse(String(repeating: "9", count: 20_000)) == 2_147_483_648)
        #expect(DeltaSeconds.parse(String(repeating: "0", count: 20_000)) == 0)
    }

    /// Covers the fields for the range of a part, the length of a body, and the time of the next try.
    @Test(
        arguments: Self.patterns.map { String(decoding: $0.bytes(4_000), as: UTF8.self) } + [
            "bytes 9223372036854775807-9223372036854775807/*", "bytes 0-9223372036854775807/9223372036854775807",
            "9223372036854775807", "9223372036854775808", "", "\0", "a\u{301}",
        ] + ["", "-", "bytes 0-", "bytes 0-0/", "9-"].map { $0 + String(repeating: "9", count: 20_000) }
    )
    func `no value about a body is too much`(value: String) {
        #expect(ContentRange(value).map { $0.first <= $0.last } ?? true)
        #expect(RetryAfter.delay(value, date: Date(timeIntervalSince1970: 0)).map { $0 >= .zero } ?? true)
        _ = DeclaredLength(["Content-Length": value])
        _ = Validators.strong(in: ["ETag": value], now: Date(timeIntervalSince1970: 0))
        _ = Validators.strong(in: ["Last-Modified": value, "Date": value], now: Date(timeIntervalSince1970: 0))
    }

    /// Covers all fields that caches read, with very long values and values larger than an integer.
    @Test(arguments: [
        "Cache-Control", "Vary", "Age", "Date", "Expires", "ETag", "Last-Modified", "Pragma", "Content-Type",
        "Content-Length", "Connection", "Warning",
    ])
    func `no value of a field is too much`(name: String) {
        let digits = String(repeating: "9", count: 20_000)
        let values =
            Self.patterns.map { String(decoding: $0.bytes(1_000), as: UTF8.self) } + [
                digits, "-\(digits)", "max-age=\(digits), s-maxage=\(digits), stale-while-revalidate=\(digits)",
                "Sun, 06 Nov 9999 23:59:60 GMT", "Sun, 06 Nov 0000 00:00:00 GMT", "Sunday, 31-Dec-99 23:59:59 GMT",
                "\0",
            ]
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        for value in values {
            let headers: HeaderFields = ["Cache-Control": "max-age=1", name: value]
            let record = ResponseRecord(
                status: 200,
                headers: headers,
                requestHeaders: headers,
                requestDate: now,
                responseDate: now,
                isShared: true
            )
            for date in [Date.distantPast, now, .distantFuture] {
                _ = record.servedFields(reusedAt: date)
                _ = ReuseDecision(record.freshness, headers: headers, now: date)
            }
            _ = Storability.allows(record, requestHeaders: headers, isShared: true)
            _ = record.isSelected(by: headers)
            let updated = record.updated(
                by: headers,
                requestHeaders: headers,
                requestDate: now,
                responseDate: now,
                isShared: false
            )
            #expect(updated.status == 200)
            #expect(record.freshness.lifetime >= 0)
        }
    }
}

/// A collection of bytes that counts how often a byte is read.
private struct CountedBytes: RandomAccessCollection {
    private final class Counter {
        var count = 0
    }

    private let bytes: ArraySlice<UInt8>
    private let counter: Counter

    init(_ bytes: [UInt8]) {
        self.bytes = bytes[...]
        self.counter = Counter()
    }

    private init(_ bytes: ArraySlice<UInt8>, _ counter: Counter) {
        self.bytes = bytes
        self.counter = counter
    }

    var visitCount: Int { self.counter.count }
    var startIndex: Int { self.bytes.startIndex }
    var endIndex: Int { self.bytes.endIndex }

    subscript(index: Int) -> UInt8 {
        self.counter.count += 1
        return self.bytes[index]
    }

    subscript(range: Range<Int>) -> CountedBytes { CountedBytes(self.bytes[range], self.counter) }
}
