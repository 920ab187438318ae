// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport

@testable import TintypeImgproxy

/// The sources of URLs and their normal form.
@Suite struct SourceTests {
    private func encoded(_ text: String) -> String {
        String(decoding: Base64URL.encode(Array(text.utf8)), as: UTF8.self)
    }

    @Test(arguments: [
        ("http://e.example", "http://e.example/"), ("HTTP://E.Example/A", "http://e.example/A"),
        ("https://e.example:443/a", "https://e.example/a"), ("http://e.example:8080/a", "http://e.example:8080/a"),
        ("http://e.example?a=b", "http://e.example/?a=b"), ("http://e.example/a#b", "http://e.example/a"),
        ("http://e.example/a b", "http://e.example/a%20b"), ("http://e.example/é", "http://e.example/%C3%A9"),
        ("http://e.example/100%", "http://e.example/100%25"), ("http://e.example/a%2Fb", "http://e.example/a%2Fb"),
        ("http://e.example/a%2", "http://e.example/a%252"), ("http://e.example/a\\b", "http://e.example/a%5Cb"),
        ("http://[::1]:81/a", "http://[::1]:81/a"), ("http://e.example/a..b/.c/...", "http://e.example/a..b/.c/..."),
        ("http://e.example/a?b=../c", "http://e.example/a?b=../c"),
        ("http://bücher.example/", "http://bücher.example/"),
        ("http://e.example/a@b", "http://e.example/a@b"), ("http://e.example//a", "http://e.example//a"),
        ("local:///a b%20#?.png", "local:///a b%20#"), ("s3://bucket/é/a", "s3://bucket/é/a"),
    ])
    func `a source has one normal form`(text: String, source: String) throws {
        #expect(try read("/_/\(self.encoded(text))").source == source)
    }

    @Test(arguments: [
        "a.png", "/a.png", "//e.example/a", "ftp://e.example/a", "gs://bucket/a", "file:///etc/passwd",
        "http:e.example/a",
        "http:///a", "http://", "http://user@e.example/a", "http://user:password@e.example/a", "http://e.example:/a",
        "http://e.example:0/a", "http://e.example:65536/a", "http://e.example:+80/a", "http://e.example:8x/a",
        "http://e%2eexample/a", "http://e.example\\@evil.example/a", "http://e.example\\.evil/a", "http://e example/a",
        "http://[::1/a", "http://[]/a", "http://[g]/a", "http://::1/a", "http://e.example/a\u{0}b",
        "http://e.example/a\nb",
        "http://e.example/../a", "http://e.example/a/./b", "http://e.example/a/%2e%2E/b", "http://e.example/a%2f..%2Fb",
        "http://e.example/a/..\\b", "http://e.example/..", "local:///../a", "local:///a/..", "s3://bucket/a/../b",
        "local:///a\u{0}.png", "javascript:alert(1)", "http",
    ])
    func `a source that programs may understand differently is refused`(text: String) throws {
        let error = try #require(try refusal("/_/\(self.encoded(text))"))
        #expect(error.status == 404 && error.publicText == "Invalid source URL")
    }

    @Test func `a key is text, and a path is any bytes`() throws {
        func encoded(_ bytes: [UInt8]) -> String { String(decoding: Base64URL.encode(bytes), as: UTF8.self) }
        let web = Array("http://e.example/".utf8) + [0xE9]
        #expect(try read("/_/\(encoded(web))").source == "http://e.example/%E9")
        #expect(try refusal("/_/\(encoded(Array("local:///".utf8) + [0xE9]))")?.status == 404)
        #expect(try refusal("/_/\(encoded(Array("http://".utf8) + [0xE9]))")?.status == 404)
    }

    @Test(arguments: [
        ("http://e.example/a%2520b", "http://e.example/a%20b"), ("http://e.example/a+b", "http://e.example/a+b"),
        ("http://e.example/a%3Fb", "http://e.example/a?b"), ("http://e.example/a%40b@png", "http://e.example/a@b"),
        ("http://e.example/a:b/c", "http://e.example/a:b/c"), ("local:///%D1%84.png", "local:///ф.png"),
        ("local:///a%23b", "local:///a#b"), ("local:///é.png", "local:///é.png"),
    ])
    func `a plain source is decoded once`(text: String, source: String) throws {
        #expect(try read("/_/plain/\(text)").source == source)
    }

    @Test func `the text behind a question mark is the version of an object`() throws {
        let address = try read("/_/plain/s3://bucket/a.png%3Fv1%3Fv2")
        #expect(address.source == "s3://bucket/a.png" && address.objectVersion == "v1?v2")
        #expect(try read("/_/plain/s3://bucket/a.png").objectVersion == nil)
        #expect(try read("/_/plain/http://e.example/a%3Fb").objectVersion == nil)
        let settings = openSettings { $0.objectVersionSeparator = "" }
        #expect(try read("/_/plain/s3://bucket/a%3Fb", settings).source == "s3://bucket/a?b")
        #expect(try address != read("/_/plain/s3://bucket/a.png"))
    }

    @Test func `a scheme must be switched on`() throws {
        let settings = AddressSettings()
        #expect(try refusal("/_/plain/http://e.example/a", settings) == nil)
        let error = try #require(try refusal("/_/plain/local:///a", settings))
        #expect(error.status == 404 && error.publicText == "Invalid source URL")
    }

    // MARK: Base URL and replacements

    @Test(arguments: [
        ("https://cdn.example", "/a.png", "https://cdn.example/a.png"),
        ("https://cdn.example", "a.png", "https://cdn.example/a.png"),
        ("https://cdn.example/", "a.png", "https://cdn.example/a.png"),
        ("https://cdn.example/x-", "a.png", "https://cdn.example/x-a.png"),
        ("https://cdn.example", "https://cdn.example/a.png", "https://cdn.example/a.png"),
        ("https://cdn.example", ".evil.example/a", "https://cdn.example/.evil.example/a"),
        ("https://cdn.example", "@evil.example/a", "https://cdn.example/@evil.example/a"),
        ("https://cdn.example", "https://cdn.example.evil/a", "https://cdn.example/https://cdn.example.evil/a"),
        ("s3://", "bucket/a", "s3://bucket/a"), ("local:///", "a", "local:///a"), ("", "local:///a", "local:///a"),
    ])
    func `the base URL comes first`(base: String, text: String, source: String) throws {
        let settings = openSettings { $0.baseURL = base }
        #expect(try read("/_/\(self.encoded(text))", settings).source == source)
    }

    @Test(arguments: [
        ("mys3://", "s3://bucket/", "mys3://a/b", "s3://bucket/a/b"),
        (
            "http://*.old.example/*/", "https://new.example/${2}/${1}/", "http://a.old.example/x/y",
            "https://new.example/x/a/y"
        ),
        ("http://*/", "http://e.example/${2}$$1${", "http://a/b", "http://e.example/$$1$%7Bb"),
        ("https://", "http://", "http://a/b", "http://a/b"),
        ("http://*", "local:///${1}", "http://a/b", "local:///a/b"),
        ("http://*a*", "local:///${1}-${2}", "http://bab/c", "local:///b-b/c"),
    ])
    func `replacements change the start of a source`(
        pattern: String,
        replacement: String,
        text: String,
        source: String
    ) throws {
        let settings = openSettings { $0.replacements = [SourceReplacement(pattern, with: replacement)] }
        #expect(try read("/_/\(self.encoded(text))", settings).source == source)
    }

    @Test func `replacements apply in their order, before the base URL`() throws {
        let settings = openSettings {
            $0.replacements = [SourceReplacement("a/", with: "b/"), SourceReplacement("b/", with: "c/")]
            $0.baseURL = "local:///"
        }
        #expect(try read("/_/\(self.encoded("a/x"))", settings).source == "local:///c/x")
    }

    // MARK: Wildcards

    @Test(arguments: [
        ("a*c", "abc", 3), ("a*c", "abcbc", 5), ("a*c", "ab/c", nil), ("*", "ab/c", 2), ("*/", "ab/c", 3),
        ("**a", "bba", 3),
        ("", "abc", 0), ("*a*b", "aab/b", 3), ("a*", "b", nil), ("*b*c", "abcbxc", 6),
    ])
    func `a wildcard takes as much as possible up to a slash`(pattern: String, text: String, end: Int?) {
        #expect(WildcardPattern(pattern.utf8).match(Array(text.utf8))?.end == end)
    }

    @Test func `many wildcards are no trap for time`() {
        let pattern = String(repeating: "*a", count: 50)
        let text = Array(String(repeating: "a", count: 2_000).utf8)
        #expect(WildcardPattern(pattern.utf8).match(text)?.end == 2_000)
        #expect(WildcardPattern("\(pattern)b".utf8).match(text) == nil)
    }

    @Test func `Base64 and its bytes are the same in both directions`() {
        var generator = SeededGenerator(seed: 3)
        for count in 0..<100 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
        }
    }
}
