// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCaching

@testable import TintypeRequests

/// URLs are compared as RFC 3986 normalises them.
@Suite struct CanonicalURLTests {
    /// URLs and their canonical texts.
    static let examples = [
        // 6.2.2.1: case.
        ("HTTP://Example.COM/A", "http://example.com/A"),
        ("https://example.com/%c3%a4%2f", "https://example.com/%C3%A4%2F"),
        ("http://[2001:DB8::1]/a", "http://[2001:db8::1]/a"),
        ("http://%45xample.com/a", "http://example.com/a"),
        ("http://ex%c3%a4mple.com/a", "http://ex%C3%A4mple.com/a"),
        // 6.2.2.2: needless escapes.
        ("http://example.com/%7Euser/%41%2D%5f%2e?%7e=%62", "http://example.com/~user/A-_.?~=b"),
        ("http://example.com/a%20b%2Fc%3Fd?e%26f", "http://example.com/a%20b%2Fc%3Fd?e%26f"),
        ("http://example.com/%2541", "http://example.com/%2541"),
        // 6.2.2.3: dot segments, after the escapes.
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/../../a", "http://example.com/a"),
        ("http://example.com/a/%2e%2E/b/%2E", "http://example.com/b/"),
        ("http://example.com/a/b/..", "http://example.com/a/"),
        ("http://example.com/.", "http://example.com/"),
        ("http://example.com/a//../b", "http://example.com/a/b"),
        ("http://example.com/.a/..b/...", "http://example.com/.a/..b/..."),
        ("http://example.com/a?b=/../c", "http://example.com/a?b=/../c"),
        // 6.2.3: the rules of HTTP.
        ("http://example.com", "http://example.com/"),
        ("https://example.com?a", "https://example.com/?a"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:0443/a", "https://example.com/a"),
        ("http://example.com:/a", "http://example.com/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("https://example.com:80/a", "https://example.com:80/a"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("http://[::80]/a", "http://[::80]/a"),
        ("http://[::1]:80/a", "http://[::1]/a"),
        // A loader does not send the fragment, but sends an empty query.
        ("http://example.com/a?b#c", "http://example.com/a?b"),
        ("http://example.com#c", "http://example.com/"),
        ("http://example.com/a#", "http://example.com/a"),
        ("http://example.com/a?", "http://example.com/a?"),
        // Characters without a special meaning stay.
        ("http://example.com/a@b:c;d=e,f/(g)!'*+$&", "http://example.com/a@b:c;d=e,f/(g)!'*+$&"),
        ("http://example.com//a//", "http://example.com//a//"),
        // The segment before two dots may be a link, so both stay.
        ("FILE:///a/../B%7e#c", "file:///a/../B~"),
        // Only the scheme of a fetcher's URL changes, and a file's necessary escapes stay.
        ("S3://Bucket/a/../%7e?B#c", "s3://Bucket/a/../%7e?B#c"), ("icons:a/./b#C", "icons:a/./b#C"),
        ("file:///a%23b%3Fc", "file:///a%23b%3Fc"),
    ]

    @Test(arguments: Self.examples)
    func `a URL is compared by its canonical text`(text: String, canonical: String) throws {
        let url = try #require(URL(string: text))
        #expect(CanonicalURL(url).text == canonical)
        #expect(CanonicalURL(url).credentials == nil)
        // The slow path and the quick check agree, and a canonical text stays as it is.
        #expect(CanonicalURL(normalizing: text).text == canonical)
        #expect(CanonicalURL(normalizing: canonical).text == canonical)
        #expect(ImageRequest(url: url).key.text == canonical)
    }

    @Test(arguments: [
        "http://example.com/", "https://example.com/a.b/c.jpg?d=e&f", "http://127.0.0.1:8080/a", "http://[::1]:81/a",
        "https://a-b.example.com/%C3%A4%20%2F?%3D", "http://example.com/A@2x.png", "http://[::80]/",
    ])
    func `a canonical text is known without a copy`(text: String) {
        let isCanonical = CanonicalURL.isCanonical(text.utf8.span)
        #expect(isCanonical)
    }

    @Test(arguments: [
        "", "http", "http://", "https://", "http://a", "http:///a", "http://a:80/", "http://a:/b",
        "https://a:443/b", "http://a:0/b", "HTTP://a/bcd", "http://A/bcd", "http://a@b/c", "http://a/b#c",
        "http://a/b/../c", "http://a/%7E", "http://a/%c3%a4", "http://a/b%", "http://a/b%4", "httpx://a/b",
        "file:///abc",
        "http:/a/bcde", "http://a?bcde",
    ])
    func `what is not plainly canonical is looked at closely`(text: String) {
        let isCanonical = CanonicalURL.isCanonical(text.utf8.span)
        #expect(!isCanonical)
    }

    @Test(arguments: ["%", "a%4", "a%zz", "http://a/b%", "http://a/%4", "http://%/", "//a/b", "a/b/../c", ":", "http:"])
    func `what is no URL of the RFC is left as it is`(text: String) {
        #expect(CanonicalURL(normalizing: text).text == text)
    }

    @Test func `credentials are apart, and in one spelling`() throws {
        for text in ["HTTP://a%62:c@Example.com:80", "http://ab:c@example.com/#d"] {
            let canonical = CanonicalURL(try #require(URL(string: text)))
            #expect(canonical.text == "http://example.com/")
            #expect(canonical.credentials == "ab:c")
        }
        let path = CanonicalURL(try #require(URL(string: "http://example.com/a:b@c")))
        #expect(path.credentials == nil)
    }

    @Test func `a long data URL has a short key`() throws {
        let texts = ["data:image/png;base64," + String(repeating: "A", count: 100_000), "data:,a", "data:,b"]
        let keys = try texts.map { ImageRequest(url: try #require(URL(string: $0))).key }
        #expect(Set(keys).count == 3)
        for key in keys { #expect(key.text.utf8.count < 100) }
        let upper = try #require(URL(string: "DATA:,a#b"))
        #expect(ImageRequest(url: upper).key == keys[1])
        #expect(ImageRequest(url: upper).isLocal)
    }
}
