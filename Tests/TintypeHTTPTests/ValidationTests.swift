// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeHTTP

/// The validators and conditions of RFC 9111, section 4.3, and RFC 9110, sections 8.8 and 13.
@Suite struct ValidationTests {
    private static func record(_ headers: HeaderFields, request: HeaderFields = [:]) -> ResponseRecord {
        ResponseRecord(
            status: 200,
            headers: headers,
            requestHeaders: request,
            requestDate: ReuseCase.received,
            responseDate: ReuseCase.received,
            isShared: false
        )
    }

    @Test(
        arguments: [
            (["ETag": "\"a\""], ["If-None-Match: \"a\""]),
            (["ETag": "W/\"a\""], ["If-None-Match: W/\"a\""]),
            (["Last-Modified": "x"], ["If-Modified-Since: x"]),
            (["Last-Modified": "x", "ETag": "\"a\""], ["If-None-Match: \"a\"", "If-Modified-Since: x"]),
            (["ETag": ""], []),
            (["ETag": "\"a\u{7F}\""], []),
            ([:], []),
        ] as [(HeaderFields, [String])]
    )
    func `validators become conditions`(stored: HeaderFields, conditions: [String]) {
        let fields = Validators(stored).conditions.map { "\($0.name): \($0.value)" }
        #expect(fields == conditions)
    }

    /// Selects the stored response that a 304 updates (RFC 9111, 4.3.4).
    @Test(
        arguments: [
            (["ETag": "\"a\""], ["ETag": "\"a\""], true),
            (["ETag": "\"a\""], ["ETag": "\"b\""], false),
            (["ETag": "\"a\""], ["ETag": "W/\"a\""], true),
            (["ETag": "W/\"a\""], ["ETag": "\"a\""], false),
            (["ETag": "W/\"a\""], ["ETag": "W/\"a\""], true),
            (["ETag": "W/\"a\""], ["ETag": "W/\"b\""], false),
            (["Last-Modified": "x"], ["Last-Modified": "x"], true),
            (["Last-Modified": "x"], ["Last-Modified": "y"], true),
            (["Last-Modified": "x"], ["ETag": "\"a\""], false),
            (["ETag": "\"a\""], ["Last-Modified": "x"], true),
            (["ETag": "\"a\""], [:], true),
            (["ETag": "\"a\"", "Last-Modified": "x"], ["ETag": "\"a\"", "Last-Modified": "y"], true),
        ] as [(HeaderFields, HeaderFields, Bool)]
    )
    func `a 304 selects what it names`(stored: HeaderFields, answer: HeaderFields, isSelected: Bool) {
        #expect(Validators(stored).areSelected(by: Validators(answer)) == isSelected)
    }

    /// Updates a stored response (RFC 9111, 3.2).
    @Test func `a 304 updates fields`() {
        let old = Self.record([
            "Date": ReuseCase.date(0), "Age": "50", "Cache-Control": "max-age=1", "X-Two": "a", "x-two": "b",
            "Content-Length": "36", "Content-Encoding": "gzip", "X-Kept": "k", "ETag": "\"a\"",
        ])
        let new = old.updated(
            by: [
                "Date": ReuseCase.date(100), "Cache-Control": "max-age=60", "X-Two": "c", "Content-Length": "10",
                "Content-Encoding": "br", "Connection": "X-Hop", "X-Hop": "h", "X-New": "n",
            ],
            requestHeaders: [:],
            requestDate: ReuseCase.received.addingTimeInterval(100),
            responseDate: ReuseCase.received.addingTimeInterval(100),
            isShared: false
        )
        #expect(new.values(for: "Cache-Control") == ["max-age=60"])
        #expect(new.values(for: "X-Two") == ["c"])
        #expect(new.values(for: "Content-Length") == ["36"])
        #expect(new.values(for: "Content-Encoding") == ["gzip"])
        #expect(new.values(for: "X-Kept") == ["k"])
        #expect(new.values(for: "X-New") == ["n"])
        #expect(new.values(for: "X-Hop").isEmpty)
        #expect(new.values(for: "Age").isEmpty)
        #expect(new.values(for: "ETag") == ["\"a\""])
        #expect(new.freshness.isFresh(at: ReuseCase.received.addingTimeInterval(150)))
        #expect(new.freshness.age(at: ReuseCase.received.addingTimeInterval(150)) == 50)
    }

    @Test func `a 304 without a date is dated by its receipt`() {
        let old = Self.record(["Date": ReuseCase.date(0), "Cache-Control": "max-age=60"])
        let later = ReuseCase.received.addingTimeInterval(1_000)
        let new = old.updated(
            by: [:],
            requestHeaders: [:],
            requestDate: later,
            responseDate: later,
            isShared: false
        )
        #expect(new.values(for: "Date") == [ReuseCase.date(1_000)])
        #expect(new.freshness.isFresh(at: later.addingTimeInterval(59)))
    }

    /// Answers a caller that has its own copy (RFC 9111, 4.3.2, and RFC 9110, 13.2.2).
    @Test(
        arguments: [
            (["If-None-Match": "\"a\""], ["ETag": "\"a\""], true),
            (["If-None-Match": "W/\"a\""], ["ETag": "\"a\""], true),
            (["If-None-Match": "\"b\""], ["ETag": "\"a\""], false),
            (["If-None-Match": "\"b\", \"a\""], ["ETag": "\"a\""], true),
            (["If-None-Match": "\"b\"", "if-none-match": "\"a\""], ["ETag": "\"a\""], true),
            (["If-None-Match": "\"x,y\", \"z\""], ["ETag": "\"x,y\""], true),
            (["If-None-Match": "*"], [:], true),
            (["If-None-Match": "\"a\""], [:], false),
            (
                ["If-None-Match": "\"b\"", "If-Modified-Since": ReuseCase.date(0)],
                ["ETag": "\"a\"", "Last-Modified": ReuseCase.date(-9)], false
            ),
            (
                ["If-None-Match": "\"a\"", "If-Modified-Since": ReuseCase.date(-99)],
                ["ETag": "\"a\"", "Last-Modified": ReuseCase.date(-9)], true
            ),
            (["If-Modified-Since": ReuseCase.date(-9)], ["Last-Modified": ReuseCase.date(-9)], true),
            (["If-Modified-Since": ReuseCase.date(-10)], ["Last-Modified": ReuseCase.date(-9)], false),
            (["If-Modified-Since": ReuseCase.date(0)], ["Date": ReuseCase.date(0)], true),
            (["If-Modified-Since": "yesterday"], ["Last-Modified": ReuseCase.date(-9)], false),
            ([:], ["ETag": "\"a\""], false),
        ] as [(HeaderFields, HeaderFields, Bool)]
    )
    func `a caller's condition is answered from the cache`(
        request: HeaderFields,
        stored: HeaderFields,
        isNotModified: Bool
    ) {
        let answer = Precondition.isNotModified(
            request,
            stored: Validators(stored),
            storedDate: ReuseCase.received,
            now: ReuseCase.received
        )
        #expect(answer == isNotModified)
    }

    /// Selects a response by `Vary` (RFC 9111, 4.1).
    @Test(
        arguments: [
            (["Vary": "Foo"], ["Foo": "1"], ["Foo": "1"], true),
            (["Vary": "Foo"], ["Foo": "1"], ["Foo": "2"], false),
            (["Vary": "Foo"], ["Foo": "1"], [:], false),
            (["Vary": "Foo"], [:], ["Foo": "1"], false),
            (["Vary": "Foo"], [:], ["Foo": ""], false),
            (["Vary": "Foo"], [:], ["Bar": "1"], true),
            (["Vary": "foo"], ["Foo": "1"], ["FOO": "1"], true),
            (["Vary": "Foo, Bar"], ["Foo": "1", "Bar": "2"], ["Bar": "2", "Foo": "1"], true),
            (["Vary": "Foo, Bar"], ["Foo": "1", "Bar": "2"], ["Foo": "1"], false),
            (["Vary": "Foo", "vary": "Bar"], ["Foo": "1", "Bar": "2"], ["Foo": "1", "Bar": "3"], false),
            (["Vary": "Foo"], ["Foo": "1, 2"], ["Foo": "1", "foo": "2"], true),
            (["Vary": "Foo"], ["Foo": "1,2"], ["Foo": " 1 ,  2 "], true),
            (["Vary": "Foo"], ["Foo": "1, 2"], ["Foo": "2, 1"], false),
            (["Vary": "Foo"], ["Foo": "a"], ["Foo": "A"], false),
            (["Vary": "Accept-Language"], ["Accept-Language": "en"], ["Accept-Language": "EN"], true),
            (["Vary": "Foo, Bar"], ["Foo": "1", "Bar": "2"], ["Foo": "1\nbar: 2"], false),
            (["Vary": ""], ["Foo": "1"], ["Foo": "2"], true),
            ([:], ["Foo": "1"], ["Foo": "2"], true),
        ] as [(HeaderFields, HeaderFields, HeaderFields, Bool)]
    )
    func `Vary selects`(response: HeaderFields, first: HeaderFields, second: HeaderFields, isSelected: Bool) {
        #expect(Self.record(response, request: first).isSelected(by: second) == isSelected)
    }

    /// Reuses a response (RFC 9111, 4 and 5.2.2.4).
    @Test func `a reused response has its age and no field that was excepted`() {
        let record = Self.record([
            "Cache-Control": "max-age=60, no-cache=\"Set-Cookie, X-A\"", "Set-Cookie": "a=b", "x-a": "1",
            "X-B": "2", "Age": "5",
        ])
        let reused = record.servedFields(reusedAt: ReuseCase.received.addingTimeInterval(10))
        #expect(reused["Age"] == "15")
        #expect(reused["Set-Cookie"] == nil)
        #expect(reused["X-A"] == nil)
        #expect(reused["X-B"] == "2")
        #expect(record.servedFields(reusedAt: nil)["Set-Cookie"] == "a=b")
    }
}
