// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeHTTP

/// The rules of RFC 9111 and 5861 about the reuse of responses.
@Suite struct FreshnessTests {
    private static func date(_ offset: Double) -> String { ReuseCase.date(offset) }

    @Test(arguments: [
        // The freshness lifetime.
        ReuseCase("RFC 9111 4.2.1", ["Cache-Control": "max-age=60"], .serve),
        ReuseCase("RFC 9111 4.2", ["Cache-Control": "max-age=60"], after: 60, .revalidate),
        ReuseCase("RFC 9111 4.2", ["Cache-Control": "max-age=60"], after: 59.9, .serve),
        ReuseCase("RFC 9111 5.2.2.1", ["Cache-Control": "max-age=0"], after: 0, .revalidate),
        ReuseCase("RFC 9111 4.2.2, heuristics off", [:], after: 0, .revalidate),
        ReuseCase("RFC 9111 4.2.2, heuristics off", ["Last-Modified": date(-1e8)], .revalidate),
        ReuseCase("RFC 9111 5.3", ["Expires": date(60), "Date": date(0)], .serve),
        ReuseCase("RFC 9111 5.3", ["Expires": date(60), "Date": date(0)], after: 60, .revalidate),
        ReuseCase("RFC 9111 5.3, no Date", ["Expires": date(60)], .serve),
        ReuseCase("RFC 9111 5.3", ["Expires": date(0), "Date": date(0)], after: 0, .revalidate),
        ReuseCase("RFC 9111 5.3, invalid is past", ["Expires": "0", "Date": date(0)], .revalidate),
        ReuseCase("RFC 9111 5.3, invalid is past", ["Expires": "tomorrow"], .revalidate),
        ReuseCase("RFC 9111 5.3, max-age wins", ["Cache-Control": "max-age=60", "Expires": date(-60)], .serve),
        ReuseCase("RFC 9111 5.3, max-age wins", ["Cache-Control": "max-age=1", "Expires": date(60)], .revalidate),
        ReuseCase("RFC 9111 4.2.1, the first", ["Expires": date(60), "expires": date(-60)], .serve),
        ReuseCase("RFC 9111 4.2.1, the first", ["Cache-Control": "max-age=60, max-age=1"], .serve),
        ReuseCase(
            "RFC 9111 4.2.1, the first",
            ["Cache-Control": "max-age=1", "cache-control": "max-age=60"],
            .revalidate
        ),
        ReuseCase("RFC 9111 5.2.2.10, private", ["Cache-Control": "s-maxage=60"], .revalidate),
        ReuseCase("RFC 9111 5.2.2.10, private", ["Cache-Control": "s-maxage=1, max-age=60"], .serve),
        ReuseCase("RFC 9111 5.2.2.10, shared", ["Cache-Control": "s-maxage=60"], isShared: true, .serve),
        ReuseCase(
            "RFC 9111 5.2.2.10, shared",
            ["Cache-Control": "s-maxage=1, max-age=60"],
            isShared: true,
            .revalidate
        ),
        // The syntax of directives.
        ReuseCase("RFC 9111 5.2, case", ["Cache-Control": "MAX-Age=60"], .serve),
        ReuseCase("RFC 9111 5.2, both forms", ["Cache-Control": "max-age=\"60\""], .serve),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age=060"], .serve),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age=+60"], .revalidate),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age=-60"], .revalidate),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age=60.5"], .revalidate),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age='60'"], .revalidate),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age= 60"], .revalidate),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age =60"], .revalidate),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age"], .revalidate),
        ReuseCase("RFC 9111 1.2.2", ["Cache-Control": "max-age="], .revalidate),
        ReuseCase("RFC 9111 1.2.2, overflow", ["Cache-Control": "max-age=2147483649"], after: 2_147_483_640, .serve),
        ReuseCase("RFC 9111 1.2.2, overflow", ["Cache-Control": "max-age=99999999999999999999999"], .serve),
        ReuseCase("RFC 9111 5.2, empty elements", ["Cache-Control": ", ,max-age=60,,"], .serve),
        ReuseCase("RFC 9110 5.6.4, quoted", ["Cache-Control": "max-age=1, x=\"max-age=60\""], .revalidate),
        ReuseCase("RFC 9110 5.6.4, quoted", ["Cache-Control": "x=\", no-cache, \", max-age=60"], .serve),
        ReuseCase("RFC 9110 5.6.4, open quote", ["Cache-Control": "x=\"y, max-age=60, no-cache"], .revalidate),
        ReuseCase("RFC 9111 5.2.3, unknown", ["Cache-Control": "speed=60, max-age=60"], .serve),
        // The age of a response.
        ReuseCase("RFC 9111 4.2.3, Age", ["Cache-Control": "max-age=60", "Age": "58"], after: 1, .serve),
        ReuseCase("RFC 9111 4.2.3, Age", ["Cache-Control": "max-age=60", "Age": "58"], .revalidate),
        ReuseCase("RFC 9111 4.2.3, apparent", ["Cache-Control": "max-age=60", "Date": date(-58)], after: 1, .serve),
        ReuseCase("RFC 9111 4.2.3, apparent", ["Cache-Control": "max-age=60", "Date": date(-58)], .revalidate),
        ReuseCase(
            "RFC 9111 4.2.3, delay",
            ["Cache-Control": "max-age=60", "Age": "30"],
            after: 0,
            delay: 30,
            .revalidate
        ),
        ReuseCase("RFC 9111 4.2.3, delay", ["Cache-Control": "max-age=60", "Age": "30"], after: 0, delay: 29, .serve),
        ReuseCase("RFC 9111 4.2.3, clock ahead", ["Cache-Control": "max-age=60", "Date": date(600)], .serve),
        ReuseCase("RFC 9111 4.2.3, bad Date", ["Cache-Control": "max-age=60", "Date": "now"], .serve),
        ReuseCase("RFC 9111 5.1, the first", ["Cache-Control": "max-age=60", "Age": "0, 70"], .serve),
        ReuseCase("RFC 9111 5.1, the first", ["Cache-Control": "max-age=60", "Age": "70", "age": "0"], .revalidate),
        ReuseCase("RFC 9111 5.1, ignored", ["Cache-Control": "max-age=60", "Age": "-70"], .serve),
        ReuseCase("RFC 9111 5.1, ignored", ["Cache-Control": "max-age=60", "Age": "seventy"], .serve),
        ReuseCase("RFC 9111 1.2.2, overflow", ["Cache-Control": "max-age=60", "Age": "2147483649"], .revalidate),
        // Directives that forbid reuse.
        ReuseCase("RFC 9111 5.2.2.4", ["Cache-Control": "no-cache, max-age=60"], .revalidate),
        ReuseCase("RFC 9111 5.2.2.4", ["Cache-Control": "max-age=60, No-Cache"], .revalidate),
        ReuseCase("RFC 9111 5.2.2.4, fields", ["Cache-Control": "no-cache=\"set-cookie\", max-age=60"], .serve),
        ReuseCase("RFC 9111 5.2.2.4, no fields", ["Cache-Control": "no-cache=\"\", max-age=60"], .revalidate),
        ReuseCase("RFC 9111 5.2.2.4, malformed", ["Cache-Control": "no-cache; max-age=60"], .revalidate),
        ReuseCase("RFC 9111 4.1", ["Vary": "*", "Cache-Control": "max-age=60"], .revalidate),
        ReuseCase("RFC 9111 4.1", ["Vary": "Accept, *", "Cache-Control": "max-age=60"], .revalidate),
        ReuseCase("RFC 9111 5.4, in a response", ["Pragma": "no-cache", "Cache-Control": "max-age=60"], .serve),
        ReuseCase("RFC 9111 5.2.2.2", ["Cache-Control": "max-age=60, must-revalidate"], .serve),
        // Directives of the request.
        ReuseCase(
            "RFC 9111 5.2.1.4",
            ["Cache-Control": "max-age=60"],
            request: ["Cache-Control": "no-cache"],
            .revalidate
        ),
        ReuseCase("RFC 9111 5.4", ["Cache-Control": "max-age=60"], request: ["Pragma": "no-cache"], .revalidate),
        ReuseCase(
            "RFC 9111 5.4, ignored",
            ["Cache-Control": "max-age=60"],
            request: ["Pragma": "no-cache", "Cache-Control": "max-age=30"],
            .serve
        ),
        ReuseCase(
            "RFC 9111 5.2.1.1",
            ["Cache-Control": "max-age=60"],
            request: ["Cache-Control": "max-age=2"],
            .revalidate
        ),
        ReuseCase("RFC 9111 5.2.1.1", ["Cache-Control": "max-age=60"], request: ["Cache-Control": "max-age=4"], .serve),
        ReuseCase(
            "RFC 9111 5.2.1.1",
            ["Cache-Control": "max-age=60"],
            request: ["Cache-Control": "max-age=x"],
            .revalidate
        ),
        ReuseCase(
            "RFC 9111 5.2.1.3",
            ["Cache-Control": "max-age=60"],
            request: ["Cache-Control": "min-fresh=57"],
            .serve
        ),
        ReuseCase(
            "RFC 9111 5.2.1.3",
            ["Cache-Control": "max-age=60"],
            request: ["Cache-Control": "min-fresh=58"],
            .revalidate
        ),
        ReuseCase(
            "RFC 9111 5.2.1.2",
            ["Cache-Control": "max-age=1"],
            request: ["Cache-Control": "max-stale=2"],
            .serve
        ),
        ReuseCase(
            "RFC 9111 5.2.1.2",
            ["Cache-Control": "max-age=1"],
            request: ["Cache-Control": "max-stale=1"],
            .revalidate
        ),
        ReuseCase("RFC 9111 5.2.1.2", ["Cache-Control": "max-age=1"], request: ["Cache-Control": "max-stale"], .serve),
        ReuseCase(
            "RFC 9111 5.2.2.2",
            ["Cache-Control": "max-age=1, must-revalidate"],
            request: ["Cache-Control": "max-stale"],
            .revalidate
        ),
        ReuseCase(
            "RFC 9111 5.2.2.8, shared",
            ["Cache-Control": "max-age=1, proxy-revalidate"],
            request: ["Cache-Control": "max-stale"],
            isShared: true,
            .revalidate
        ),
        ReuseCase(
            "RFC 9111 5.2.2.8, private",
            ["Cache-Control": "max-age=1, proxy-revalidate"],
            request: ["Cache-Control": "max-stale"],
            .serve
        ),
        // The directives of RFC 5861.
        ReuseCase("RFC 5861 3", ["Cache-Control": "max-age=1, stale-while-revalidate=4"], .serveWhileRevalidating),
        ReuseCase("RFC 5861 3", ["Cache-Control": "max-age=1, stale-while-revalidate=4"], after: 0.5, .serve),
        ReuseCase("RFC 5861 3", ["Cache-Control": "max-age=1, stale-while-revalidate=2"], .revalidate),
        ReuseCase("RFC 5861 3", ["Cache-Control": "max-age=1, stale-while-revalidate=x"], .revalidate),
        ReuseCase(
            "RFC 9111 5.2.2.2",
            ["Cache-Control": "max-age=1, stale-while-revalidate=4, must-revalidate"],
            .revalidate
        ),
        ReuseCase("RFC 5861 4", ["Cache-Control": "max-age=1, stale-if-error=60"], .revalidate),
    ])
    func `a stored response is reused as the rule says`(example: ReuseCase) {
        #expect(example.decision == example.expected)
    }

    @Test(arguments: [
        ("max-age=1, stale-if-error=60", "", true), ("max-age=1, stale-if-error=2", "", false),
        ("max-age=1", "", false), ("max-age=1", "stale-if-error=60", true),
        ("max-age=1, stale-if-error=60, must-revalidate", "", false), ("no-cache, stale-if-error=60", "", false),
        ("max-age=1, stale-if-error=60", "no-cache", false), ("stale-if-error=60", "", true),
    ])
    func `a failed origin is stood in for as RFC 5861 says`(response: String, request: String, isServed: Bool) {
        let example = ReuseCase("RFC 5861 4", ["Cache-Control": response], .revalidate)
        let decision = ReuseDecision.servesAfterFailure(
            example.makeRecord().freshness,
            headers: request.isEmpty ? [:] : ["Cache-Control": request],
            now: ReuseCase.received.addingTimeInterval(3)
        )
        #expect(decision == isServed)
    }

    @Test func `without a record the origin is asked`() {
        #expect(ReuseDecision(nil, headers: [:], now: Date()) == .revalidate)
    }

    @Test func `a redirected response is stale from the start`() {
        let record = ResponseRecord(
            status: 200,
            headers: ["Cache-Control": "max-age=60, stale-while-revalidate=60"],
            requestHeaders: [:],
            requestDate: ReuseCase.received,
            responseDate: ReuseCase.received,
            isShared: false,
            wasRedirected: true
        )
        let decision = ReuseDecision(record.freshness, headers: [:], now: ReuseCase.received)
        #expect(decision == .revalidate)
    }
}
