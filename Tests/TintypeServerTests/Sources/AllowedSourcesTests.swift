// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype

@testable import TintypeServer

struct AllowedSourcesTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let pattern: String
        let allowed: [String]
        let refused: [String]

        var testDescription: String { self.pattern }
    }

    private static let cases = [
        Case(
            pattern: "http://*.cdn.dev/",
            allowed: [
                "http://a-1.cdn.dev/x", "http://a.b.cdn.dev/x", "HTTP://A.CDN.dev/x", "http://a.cdn.dev:80/x",
                "http://a.cdn.dev./x", "http://a.cdn.dev", "http://a.cdn.dev/x?y=z", "http://a.cdn.dev/x/../y",
            ],
            refused: [
                "http://other.dev/.cdn.dev/x", "http://cdn.dev@evil/", "http://cdn.dev/x", "http://acdn.dev/x",
                "https://a.cdn.dev/x", "s3://a.cdn.dev/x", "http://a.cdn.dev.evil/x", "http://evil/?.cdn.dev/",
                "http://evil#.cdn.dev/", "http://evil\\.cdn.dev/", "http://a.cdn.dev:8080/x", "http://.cdn.dev/x",
                "http://a.cdn.dev:80@evil/x", "http://evil%2F.cdn.dev/x", "http://user@a.cdn.dev/x",
                "http://evil:80.cdn.dev/x",
            ]
        ),
        Case(
            pattern: "https://example.com",
            allowed: ["https://example.com/", "https://example.com/any/path", "https://EXAMPLE.com:443/"],
            refused: [
                "https://example.com.evil/", "https://example.community/", "https://example.com@evil/",
                "https://www.example.com/", "https://example.com:8443/", "http://example.com/", "https:example.com",
                "https:///example.com/", "https:example.com/https://example.com/",
            ]
        ),
        Case(
            pattern: "https://example.com/photos/",
            allowed: [
                "https://example.com/photos/a", "https://example.com/photos/", "https://example.com/%70hotos/a/b",
                "https://example.com/photos/a..b",
            ],
            refused: [
                "https://example.com/photos", "https://example.com/photos-private/a", "https://example.com/Photos/a",
                "https://example.com/photos/../private", "https://example.com/photos/%2e%2E/private",
                "https://example.com/photos/..%2Fprivate", "https://example.com/photos/..%5Cprivate",
                "https://example.com/photos/./a", "https://example.com//photos/a", "https://example.com/a?/photos/",
            ]
        ),
        Case(
            pattern: "https://img*.example.com/u/*/public/a*b",
            allowed: ["https://img1.example.com/u/x/public/acb", "https://img.example.com/u//public/abbc"],
            refused: [
                "https://img.evil.example.com/u/x/public/ab", "https://img1.example.com/u/x/y/public/ab",
                "https://img1.example.com/u/x/public/a/b", "https://img1.example.com/u/x%2Fy/public/ab",
            ]
        ),
        Case(
            pattern: "http://127.0.0.1:*/a b/",
            allowed: ["http://127.0.0.1:9000/a%20b/", "http://127.0.0.1/a%20b/c", "http://0x7f.1:81/a%20b/c"],
            refused: ["http://127.0.0.2:9000/a%20b/", "http://127.0.0.1:9000/a/"]
        ),
        Case(
            pattern: "http://[::1]:8080/",
            allowed: ["http://[::1]:8080/a", "http://[0:0:0:0:0:0:0:1]:8080/a"],
            refused: ["http://[::1]/a", "http://[::2]:8080/a"]
        ),
        Case(
            pattern: "https://*",
            allowed: ["https://example.com/", "https://a.b.c/x"],
            refused: ["http://example.com/", "https://example.com:8443/", "https://user@example.com/"]
        ),
        Case(
            pattern: "https://",
            allowed: ["https://example.com/", "https://a.b.c:8443/x"],
            refused: ["http://example.com/", "local:///a"]
        ),
        Case(
            pattern: "s3://photos/2024/",
            allowed: ["s3://photos/2024/a.jpg", "s3://photos/2024/b/c.jpg?version"],
            refused: [
                "s3://photos/2023/a.jpg", "s3://photos2/2024/a.jpg", "s3://Photos/2024/a.jpg",
                "s3://photos./2024/a.jpg",
                "s3://photos/2024/../2023/a.jpg", "s3://photos/2024/%2e%2e/2023/a.jpg", "https://photos/2024/a.jpg",
            ]
        ),
        Case(
            pattern: "https://example.com/photos/",
            allowed: ["https://example.com/photos/a;b.jpg", "https://example.com./photos/..a/b..jpg"],
            refused: [
                "https://example.com/photos/..;/a", "https://example.com/photos/.;x/a",
                "https://example.com/photos/%252e%252e/a", "https://example.com/photos/%252e%252e%253bx/a",
                "https://example.com/photos/x;y/..;/a",
            ]
        ),
        Case(
            pattern: "s3://photos-*/",
            allowed: ["s3://photos-1/a.jpg"],
            refused: ["s3://photos/a.jpg", "s3://videos-1/a.jpg"]
        ),
        Case(pattern: "s3://", allowed: ["s3://any/key"], refused: ["local:///a", "s3://a@b/key", "s3://a/k#x"]),
        Case(
            pattern: "local:///public/",
            allowed: ["local:///public/a.jpg"],
            refused: ["local:///private/a.jpg", "local:///public/../private/a.jpg", "local:///publicity/a.jpg"]
        ),
        Case(pattern: "local://", allowed: ["local:///a.jpg"], refused: ["file:///a.jpg", "http://local/"]),
    ]

    @Test(arguments: Self.cases)
    func `a pattern allows the sources that it means`(expected: Case) throws {
        let sources = try AllowedSources(patterns: [expected.pattern])
        for (texts, isAllowed) in [(expected.allowed, true), (expected.refused, false)] {
            for text in texts {
                // A text that is no URL cannot be requested either.
                guard let url = URL(string: text) else {
                    #expect(!isAllowed, "\(text) is no URL")
                    continue
                }
                #expect(((try? sources.check(url)) != nil) == isAllowed, "\(text)")
            }
        }
    }

    @Test func `one of several patterns is enough`() throws {
        let sources = try AllowedSources(patterns: ["https://a.example/", "local:///"])
        try sources.check(#require(URL(string: "https://a.example/x")))
        try sources.check(#require(URL(string: "local:///x")))
        let url = try #require(URL(string: "https://b.example/x"))
        let error = #expect(throws: DownloadError.self) { try sources.check(url) }
        #expect(error?.code == .hostNotAllowed)
        #expect(error?.message.contains("https://b.example:443") == true)
    }

    @Test func `without patterns, every source is allowed except URLs that parsers disagree about`() throws {
        for sources in [AllowedSources.all, try AllowedSources(patterns: [])] {
            for text in ["https://a.example:81/x", "s3://b/k", "local:///x"] {
                try sources.check(#require(URL(string: text)))
            }
            for text in ["https://a@b/", "https://a/#b", "https://exa_mple..com/", "https:///a"] {
                let url = try #require(URL(string: text))
                #expect(throws: DownloadError.self) { try sources.check(url) }
            }
        }
    }

    @Test(arguments: [
        "", "example.com", "://a", "https://user@a/", "https://a/?b", "https://a/#b", "https://a\\b/",
        "https://a:http/", "https://a:70000/", "https://a:-1/", "https:///photos/", "s3:///key",
        "https://bücher.example/",
        "https://a\u{1}/",
    ])
    func `a text that is no pattern is refused with its text`(text: String) {
        let error = #expect(throws: DownloadError.self) { try AllowedSources(patterns: [text]) }
        #expect(error?.message.contains(text) == true)
    }

    @Test func `stars match as a simple search over all splits does`() {
        func slow(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
            guard let first = pattern.first else { return text.isEmpty }
            if first == UInt8(ascii: "*") {
                return (text.startIndex...text.endIndex).contains { slow(pattern.dropFirst(), text[$0...]) }
            }
            return text.first == first && slow(pattern.dropFirst(), text.dropFirst())
        }
        /// Returns all texts of the letters up to a length.
        func texts(_ letters: String, _ length: Int) -> [[UInt8]] {
            guard length > 0 else { return [[]] }
            let shorter = texts(letters, length - 1)
            return shorter
                + shorter.filter { $0.count == length - 1 }.flatMap { text in letters.utf8.map { text + [$0] } }
        }
        let candidates = texts("ab", 5)
        for pattern in texts("ab*", 5) {
            for text in candidates {
                #expect(SourcePattern.matches(pattern, text[...]) == slow(pattern[...], text[...]))
            }
        }
    }
}
