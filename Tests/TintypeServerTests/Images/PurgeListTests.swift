// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport

@testable import TintypeServer

@Suite("Purges of sources")
struct PurgeListTests {
    @Test
    func `a source that was never purged has the key of its URL`() {
        #expect(PurgeList(file: nil).cacheKey(of: "https://a.example/b.jpg") == nil)
    }

    @Test
    func `a purge gives only its source a new key, and each purge another one`() throws {
        let purges = PurgeList(file: nil)
        let source = "https://a.example/b.jpg"
        try purges.purge(source: source)
        let first = purges.cacheKey(of: source)
        #expect(first != nil)
        #expect(purges.cacheKey(of: source + "?c") == nil)
        try purges.purge(source: source)
        #expect(purges.cacheKey(of: source) != first)
    }

    @Test(arguments: [
        ("https://a.example/", "https://a.example/b.jpg", true), ("https://a.example/b", "https://a.example/b.jpg", true),
        ("https://a.example/c", "https://a.example/b.jpg", false), ("", "local:///x", true),
        ("https://a.example/b.jpg", "https://a.example/b.jpg", true),
        ("https://a.example/b.jpg?x", "https://a.example/b.jpg", false),
    ])
    func `a prefix purges the sources that begin with it`(prefix: String, source: String, isPurged: Bool) throws {
        let purges = PurgeList(file: nil)
        try purges.purge(prefix: prefix)
        #expect((purges.cacheKey(of: source) != nil) == isPurged)
    }

    @Test
    func `purges outlive the process`() throws {
        let folder = try TemporaryDirectory()
        let file = folder.url(of: "purges")
        let purges = PurgeList(file: file)
        try purges.purge(source: "https://a.example/b c.jpg")
        try purges.purge(prefix: "local:///")
        try purges.purge(prefix: "local:///")
        let later = PurgeList(file: file)
        for source in ["https://a.example/b c.jpg", "local:///x.png", "https://a.example/"] {
            #expect(later.cacheKey(of: source) == purges.cacheKey(of: source))
        }
    }

    @Test
    func `a damaged file of purges is read as far as it makes sense`() throws {
        let folder = try TemporaryDirectory()
        let file = folder.url(of: "purges")
        try Data("nonsense\n3 prefix https://a.example/\nx whole y\n2".utf8).write(to: file)
        #expect(PurgeList(file: file).cacheKey(of: "https://a.example/b") == "3 https://a.example/b")
    }

    @Test
    func `with too many purges, everything counts as purged`() throws {
        let purges = PurgeList(file: nil)
        for number in 0...10_000 { try purges.purge(source: "https://a.example/\(number)") }
        #expect(purges.cacheKey(of: "https://b.example/") != nil)
    }
}
