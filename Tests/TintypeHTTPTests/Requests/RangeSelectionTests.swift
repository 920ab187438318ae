// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeHTTP

/// Ranges of RFC 9110, section 14.
@Suite struct RangeSelectionTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)
    private static let modified = Date(timeIntervalSince1970: 784_111_777.5)
    private static let huge = String(repeating: "9", count: 5_000)

    @Test(arguments: [
        ("bytes=0-0", 0, 1), ("bytes=0-9", 0, 10), ("bytes=0-99", 0, 100), ("bytes=0-100", 0, 100),
        ("bytes=99-", 99, 1),
        ("bytes=5-5", 5, 1), ("bytes=0-", 0, 100), ("bytes=-1", 99, 1), ("bytes=-100", 0, 100), ("bytes=-101", 0, 100),
        ("bytes=50-99999999999999999999", 50, 50), ("bytes=-99999999999999999999", 0, 100), ("Bytes=1-2", 1, 2),
        ("bytes= 1-2", 1, 2), ("bytes=1-2,", 1, 2), ("bytes=,\t1-2 ,", 1, 2), ("bytes=007-008", 7, 2),
    ])
    func `one range selects its bytes`(text: String, offset: Int, length: Int) {
        let selection = RangeSelection(text, length: 100)
        #expect(selection == .part(ByteRange(offset: offset, length: length)))
        #expect(selection.contentRange(length: 100) == "bytes \(offset)-\(offset + length - 1)/100")
    }

    @Test(arguments: ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999-", "bytes=-000"])
    func `a range without bytes cannot be satisfied`(text: String) {
        let selection = RangeSelection(text, length: 100)
        #expect(selection == .unsatisfiable)
        #expect(selection.contentRange(length: 100) == "bytes */100")
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=2-1", "bytes=0-1,2-3", "bytes=0-1, 0-1",
        "bytes 0-1",
        "bytes =0-1", "items=0-1", "none", "bytes=+1-2", "bytes=1-+2", "bytes=--1", "bytes=1 - 2", "bytes=1-2-3",
        "bytes=0x1-2",
        "bytes=1.5-2", "bytes=\u{661}-2", "=0-1", "bytes=\"0-1\"", "bytes=0-1;q=1", " bytes=0-1",
    ])
    func `anything else is ignored`(text: String) {
        #expect(RangeSelection(text, length: 100) == .whole)
        #expect(RangeSelection(text, length: 100).contentRange(length: 100) == nil)
    }

    @Test(
        arguments: [
            ("bytes=0-", .unsatisfiable), ("bytes=0-0", .unsatisfiable), ("bytes=-0", .unsatisfiable),
            ("bytes=-1", .whole),
        ] as [(String, RangeSelection)]
    )
    func `an empty response has no parts`(text: String, selection: RangeSelection) {
        #expect(RangeSelection(text, length: 0) == selection)
    }

    @Test func `no number is too large`() {
        for text in [
            "bytes=\(Self.huge)-\(Self.huge)", "bytes=0-\(Self.huge)", "bytes=-\(Self.huge)", "bytes=\(Self.huge)-",
        ] {
            for length in [0, 1, .max] {
                let selection = RangeSelection(text, length: length)
                guard case .part(let part) = selection else { continue }
                #expect(part.offset >= 0 && part.length > 0 && part.length <= length - part.offset)
            }
        }
        #expect(RangeSelection("bytes=0-", length: .max) == .part(ByteRange(offset: 0, length: .max)))
    }

    @Test(
        arguments: [
            ("GET", ["Range: bytes=1-2"], true), ("HEAD", ["Range: bytes=1-2"], false),
            ("POST", ["Range: bytes=1-2"], false),
            ("GET", [], false), ("GET", ["Range: bytes=1-2", "Range: bytes=1-2"], false),
            ("GET", ["Range: bytes=1-2", "If-Range: \"a\""], true),
            ("GET", ["Range: bytes=1-2", "If-Range: \"b\""], false),
            ("GET", ["Range: bytes=1-2", "If-Range: W/\"a\""], false),
            ("GET", ["Range: bytes=1-2", "If-Range: a"], false),
            ("GET", ["Range: bytes=1-2", "If-Range: *"], false), ("GET", ["Range: bytes=1-2", "If-Range:"], false),
            ("GET", ["Range: bytes=1-2", "If-Range: \"a\"", "If-Range: \"a\""], false),
            ("GET", ["Range: bytes=1-2", "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"], true),
            ("GET", ["Range: bytes=1-2", "If-Range: Sun, 06 Nov 1994 08:49:38 GMT"], false),
            ("GET", ["Range: bytes=1-2", "If-Range: Sun, 06 Nov 1994 08:49:36 GMT"], false),
        ] as [(String, [String], Bool)]
    )
    func `a range counts for GET and the same response`(method: String, lines: [String], isPart: Bool) throws {
        let head = try #require(RequestHead.with(lines, method: method))
        let selection = RangeSelection(head, length: 9, entityTag: "\"a\"", lastModified: Self.modified, now: Self.now)
        #expect(selection == (isPart ? .part(ByteRange(offset: 1, length: 2)) : .whole))
    }

    @Test func `a recent date and a weak tag name no response`() throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let head = try #require(RequestHead.with(["Range: bytes=1-2", "If-Range: \(date)"]))
        for (seconds, isPart) in [(59.0, false), (60.0, true)] {
            let now = Date(timeIntervalSince1970: 784_111_777 + seconds)
            let selection = RangeSelection(head, length: 9, entityTag: nil, lastModified: Self.modified, now: now)
            #expect((selection != .whole) == isPart)
        }
        #expect(RangeSelection(head, length: 9, entityTag: nil, lastModified: nil, now: Self.now) == .whole)
        let weak = try #require(RequestHead.with(["Range: bytes=1-2", "If-Range: W/\"a\""]))
        #expect(RangeSelection(weak, length: 9, entityTag: "W/\"a\"", lastModified: nil, now: Self.now) == .whole)
    }
}
