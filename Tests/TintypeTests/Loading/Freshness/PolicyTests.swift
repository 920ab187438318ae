// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP

@testable import Tintype

/// The combination of a load's policy with the rules of HTTP.
@Suite struct PolicyTests {
    private static let received = Date(timeIntervalSince1970: 1_800_000_000)

    private func record(_ headers: HeaderFields) -> ResponseRecord {
        ResponseRecord(
            status: 200,
            headers: headers,
            requestHeaders: [:],
            requestDate: Self.received,
            responseDate: Self.received,
            isShared: false
        )
    }

    @Test(
        arguments: [
            (CachePolicy.revalidate, "max-age=60, immutable", .serve),
            (.revalidate, "max-age=1, immutable", .revalidate),
            (.revalidate, "max-age=60", .revalidate),
            (.revalidate, "max-age=1, immutable, stale-while-revalidate=9", .revalidate),
            (.honorFreshness, "max-age=60", .serve),
            (.honorFreshness, "max-age=1, stale-while-revalidate=9", .serveWhileRevalidating),
            (.neverRevalidate, "no-cache", .serve), (.cacheOnly, "no-cache", .serve),
            (.reload, "max-age=60, immutable", .revalidate),
        ] as [(CachePolicy, String, ReuseDecision)]
    )
    func `a policy asks the origin as it says`(policy: CachePolicy, control: String, expected: ReuseDecision) {
        let freshness = self.record(["Cache-Control": control]).freshness
        let now = Self.received.addingTimeInterval(3)
        #expect(ReuseDecision(freshness, policy: policy, headers: [:], now: now) == expected)
    }

    @Test func `of an entry without a record the origin is asked where HTTP counts`() {
        #expect(ReuseDecision(nil, policy: .honorFreshness, headers: [:], now: Self.received) == .revalidate)
        #expect(ReuseDecision(nil, policy: .neverRevalidate, headers: [:], now: Self.received) == .serve)
    }

    @Test func `entries of older versions have validators as well`() {
        let old = EntryMetadata(etag: "\"a\"", lastModified: "x", responseDate: Self.received)
        #expect(Validators(old) == Validators(["ETag": "\"a\"", "Last-Modified": "x"]))
        let both = EntryMetadata(etag: "\"a\"", response: self.record(["ETag": "\"b\""]))
        #expect(Validators(both) == Validators(["ETag": "\"b\""]))
    }

    @Test(
        arguments: [
            (["Date": "Fri, 15 Jan 2027 08:00:00 GMT"], 0, true),
            (["Date": "Fri, 15 Jan 2027 08:00:00 GMT"], -1, false),
            (["Date": "Fri, 15 Jan 2027 07:59:59 GMT"], -1, true), (["Date": "now"], 0, true), ([:], -1, false),
        ] as [(HeaderFields, Double, Bool)]
    )
    func `without a date of modification that of the response counts`(
        stored: HeaderFields,
        offset: Double,
        isNotModified: Bool
    ) {
        let since = HTTPDate.text(of: Self.received.addingTimeInterval(offset))
        let metadata = EntryMetadata(response: self.record(stored))
        let headers: HeaderFields = ["If-Modified-Since": since]
        #expect(Precondition.isNotModified(headers, stored: metadata, now: Self.received) == isNotModified)
    }
}
