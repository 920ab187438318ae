// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeHTTP

/// The dates of RFC 9110, section 5.6.7.
@Suite struct HTTPDateTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)  // 2027-01-15

    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Sun Nov 16 08:49:37 1994", 784_975_777),
            ("SUN, 06 nov 1994 08:49:37 gMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:60 GMT", 1_709_251_200), ("Tue, 19 Jan 2038 14:14:08 GMT", 2_147_523_248),
            ("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878), ("Friday, 31-Dec-99 23:59:59 GMT", 946_684_799),
            ("Mon, 01 Jan 0001 00:00:00 GMT", -62_135_596_800), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ] as [(String, Double)]
    )
    func `all three forms are read`(text: String, seconds: Double) {
        #expect(HTTPDate.parse(text, now: Self.now) == Date(timeIntervalSince1970: seconds))
    }

    @Test(arguments: [
        "", "0", "now", "Thu, 18 Aug 2050 02:01:18 AEST", "Thu, 18 Aug 2050 02:01:18 UTC",
        "Thu 18 Aug 2050 02:01:18 GMT",
        "Thu, 18-Aug-2050 02:01:18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT", "Thu, 18 Aug 2050 02:01 GMT",
        "Thu, 18 Aug 2050 02:01:18", "Thu, 8 Aug 2050 02:01:18 GMT", "Thu, 18  Aug 2050 02:01:18 GMT",
        "Thu, 30 Feb 2050 02:01:18 GMT", "Tue, 29 Feb 2023 02:01:18 GMT", "Thu, 18 Aug 2050 24:01:18 GMT",
        "Thu, 18 Aug 2050 02:60:18 GMT", "Thu, 18 Aug 2050 02:01:61 GMT", "Thu, 00 Aug 2050 02:01:18 GMT",
        "Thu, 18 Avg 2050 02:01:18 GMT", "Xyz, 18 Aug 2050 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:18 GMT x",
        "Thu, 18 Aug 50 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:18 PM", "Thu, 1\u{661} Aug 2050 02:01:18 GMT",
        "2050-08-18T02:01:18Z", "Sun Nov 6 08:49:37 1994", "784111777", "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 EST", "Sun, 06 Nov 1994", "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT", "Sunday Nov  6 08:49:37 1994", " Sun, 06 Nov 1994 08:49:37 GMT",
    ])
    func `anything else is no date`(text: String) {
        #expect(HTTPDate.parse(text, now: Self.now) == nil)
    }

    /// A year of two digits that seems to be more than 50 years ahead is in the past.
    @Test(
        arguments: [
            ("Friday, 15-Jan-27 08:00:00 GMT", 0), ("Friday, 15-Jan-77 08:00:00 GMT", 50),
            ("Saturday, 16-Jan-77 20:00:00 GMT", -50), ("Saturday, 15-Jan-78 08:00:00 GMT", -49),
            ("Friday, 15-Jan-26 08:00:00 GMT", -1), ("Saturday, 01-Jan-00 00:00:00 GMT", -27),
        ] as [(String, Int)]
    )
    func `a year of two digits is at most 50 ahead`(text: String, years: Int) throws {
        let date = try #require(HTTPDate.parse(text, now: Self.now))
        let distance = date.timeIntervalSince(Self.now) / 31_556_952
        #expect(Int(distance.rounded()) == years)
    }

    @Test func `what is written is read back`() {
        for seconds in stride(from: -5e10, through: 2.5e11, by: 86_399 * 997) {
            let date = Date(timeIntervalSince1970: seconds.rounded(.down))
            #expect(HTTPDate.parse(HTTPDate.text(of: date), now: Self.now) == date)
        }
        #expect(HTTPDate.text(of: Date(timeIntervalSince1970: 784_111_777)) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test func `garbage never traps`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5_000 {
            let text = String(
                decoding: (0..<Int.random(in: 0..<40)).map { _ in UInt8.random(in: 32..<127, using: &random) },
                as: UTF8.self
            )
            _ = HTTPDate.parse(text, now: Self.now)
            _ = CacheControl([text, "max-age=\(text)"]).seconds("max-age")
            _ = EntityTag(text)
            _ = VarySelection.names(in: [text])
        }
    }
}
