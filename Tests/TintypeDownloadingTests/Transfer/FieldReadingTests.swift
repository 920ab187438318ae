// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP

@testable import TintypeDownloading

/// The header fields that a download reads, with hostile values.
@Suite struct FieldReadingTests {
    private static let digits = String(repeating: "9", count: 20_000)

    /// Values that are very long, or larger than an integer can hold.
    private static let values =
        ["\"", "\"\\", ",", " ", "a,", ";", "/", "-", "9-", "\u{1F1E6}", "a\u{301}", "\0"]
        .map { String(repeating: $0, count: 4_000) } + [
            digits, "-\(digits)", "bytes 0-\(digits)/*", "bytes \(digits)-\(digits)/\(digits)", "bytes 0-0/\(digits)",
            "bytes 9223372036854775807-9223372036854775807/*", "bytes 0-9223372036854775807/9223372036854775807",
            "Sun, 06 Nov \(digits) 08:49:37 GMT", "Sun, 06 Nov 9999 23:59:60 GMT", "Sun, 99 Nov 0000 99:99:99 GMT",
            "9223372036854775807", "9223372036854775808", "",
        ]

    @Test(arguments: values)
    func `no value of a field is too much`(value: String) {
        _ = TransferLimits(DownloadRequest(url: URL(filePath: "/a")), DownloadActor.Configuration())
            .accepts(contentType: value)
        #expect(ContentCodings(["Content-Encoding": value]) != .known([]))
        let resumption = Resumption(source: [], validator: "\"a\"", offset: 1, total: .max, wholeHeaders: [:])
        #expect(!resumption.isContinued(by: ["Content-Range": value]))
    }

    @Test(arguments: [
        ("", ContentCodings.identity), ("identity", .identity), (" , ,\tidentity ,", .identity),
        ("gzip", .known([.gzip])),
        ("X-GZIP", .known([.gzip])), ("deflate , br", .known([.deflate, .brotli])), ("zstd", .known([.zstandard])),
        ("utf-8", .unknown), ("gzip, utf-8", .unknown), ("gzip;q=1", .unknown),
    ])
    func `codings are read in their order`(value: String, codings: ContentCodings) {
        #expect(ContentCodings(["Content-Encoding": value]) == codings)
    }

    @Test func `codings in several fields are one list`() {
        let headers: HeaderFields = ["Content-Encoding": "deflate", "X-A": "1", "content-encoding": "gzip"]
        #expect(ContentCodings(headers) == .known([.deflate, .gzip]))
    }

    @Test func `first bytes on disk keep all that is known of them`() throws {
        let request = DownloadRequest(url: URL(filePath: "/a"))
        let key = try #require(PartialBodyKey(request, DownloadActor.Configuration()))
        let body = PartialBody(
            source: PartialBodyKey.source(try ResourceAddress("http://a/b?token=s3cret#c")),
            validator: "\"v\u{E9}\"",
            total: 9,
            headers: ["Content-Type": "image/png", "X-Empty": "", "Vary": "a", "vary": "b"],
            bytes: Data([1, 2, 3])
        )
        let file = PartialBodyFile.encode(body, key: key)
        #expect(PartialBodyFile.decode(file, key: key) == body)
        #expect(!String(decoding: file, as: UTF8.self).contains("s3cret"))
        #expect(body.source == PartialBodyKey.source(try ResourceAddress("http://a/b?token=s3cret")))
        for count in file.indices { #expect(PartialBodyFile.decode(file.prefix(count), key: key) == nil) }
    }
}
