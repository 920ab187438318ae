// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeImgproxy
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
        try purges.purge("source \(source)")
        let first = purges.cacheKey(of: source)
        #expect(first != nil)
        #expect(purges.cacheKey(of: source + "?c") == nil)
        try purges.purge("source \(source)")
        #expect(purges.cacheKey(of: source) != first)
    }

    @Test(arguments: [
        ("https://a.example/", "https://a.example/b.jpg", true),
        ("https://a.example/b", "https://a.example/b.jpg", true),
        ("https://a.example/c", "https://a.example/b.jpg", false), ("", "local:///x", true),
        ("https://a.example/b.jpg", "https://a.example/b.jpg", true),
        ("https://a.example/b.jpg?x", "https://a.example/b.jpg", false),
    ])
    func `a prefix purges the sources that begin with it`(prefix: String, source: String, isPurged: Bool) throws {
        let purges = PurgeList(file: nil)
        try purges.purge("prefix \(prefix)")
        #expect((purges.cacheKey(of: source) != nil) == isPurged)
    }

    @Test
    func `a purge with a line break, or of a moment after tomorrow, does nothing`() throws {
        let folder = try TemporaryDirectory()
        let file = folder.url(of: "purges")
        let purges = PurgeList(file: file)
        try purges.purge("prefix https://b.example/\n1-1 prefix ")
        #expect(PurgeList(file: file).cacheKey(of: "https://a.example/b.jpg") == nil)
        let far = try #require(PurgeList.Moment("18446744073709551614-0"))
        try purges.purge("prefix https://a.example/", at: far)
        #expect(purges.cacheKey(of: "https://a.example/b.jpg") == nil)
        try purges.purge("prefix https://a.example/")
        #expect(purges.cacheKey(of: "https://a.example/b.jpg") != nil)
    }

    @Test
    func `purges outlive the process`() throws {
        let folder = try TemporaryDirectory()
        let file = folder.url(of: "purges")
        let purges = PurgeList(file: file)
        try purges.purge("source https://a.example/b c.jpg")
        try purges.purge("prefix local:///")
        try purges.purge("prefix local:///")
        let later = PurgeList(file: file)
        for source in ["https://a.example/b c.jpg", "local:///x.png", "https://a.example/"] {
            #expect(later.cacheKey(of: source) == purges.cacheKey(of: source))
        }
    }

    @Test
    func `a damaged file of purges is read as far as it makes sense`() throws {
        let folder = try TemporaryDirectory()
        let file = folder.url(of: "purges")
        let text = "nonsense\n3-1 prefix https://a.example/\nx source y\n2\n9 prefix https://\n-1-0 prefix https://"
        try Data(text.utf8).write(to: file)
        #expect(PurgeList(file: file).cacheKey(of: "https://a.example/b") == "3-1 https://a.example/b")
    }

    @Test
    func `the servers of a cluster give a source the same key, whichever order they hear of purges in`() throws {
        let (first, second) = (PurgeList(file: nil), PurgeList(file: nil))
        let purges = [("source https://a.example/b", "8-0"), ("prefix https://a.example/", "7-3"), ("other x", "9-0")]
        for (line, moment) in purges { try first.purge(line, at: PurgeList.Moment(moment)) }
        for (line, moment) in purges.reversed() { try second.purge(line, at: PurgeList.Moment(moment)) }
        for purges in [first, second] {
            #expect(purges.cacheKey(of: "https://a.example/b") == "8-0 https://a.example/b")
            #expect(purges.cacheKey(of: "https://a.example/c") == "7-3 https://a.example/c")
        }
    }

    @Test
    func `a purge is later than one whose moment has not come yet`() throws {
        let purges = PurgeList(file: nil)
        let ahead = UInt64(Date().timeIntervalSince1970 * 1_000) + 40_000_000
        let future = PurgeList.Moment(milliseconds: ahead, number: 5)
        try purges.purge("source https://a.example/b", at: future)
        try purges.purge("source https://a.example/b")
        #expect(purges.cacheKey(of: "https://a.example/b") == "\(ahead)-6 https://a.example/b")
    }

    @Test
    func `purges at the same time are all in the file`() async throws {
        let folder = try TemporaryDirectory()
        let purges = PurgeList(file: folder.url(of: "purges"))
        let sources = (0..<100).map { "https://a.example/\($0)" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for source in sources { group.addTask { try purges.purge("source \(source)") } }
            try await group.waitForAll()
        }
        let later = PurgeList(file: folder.url(of: "purges"))
        for source in sources {
            #expect(later.cacheKey(of: source) == purges.cacheKey(of: source) && later.cacheKey(of: source) != nil)
        }
    }

    @Test
    func `the versions of a purged object have different keys`() throws {
        var settings = AddressSettings()
        settings.schemes = [.s3]
        var sources = ImageServer.Configuration.Sources()
        sources.s3 = ImageServer.Configuration.Sources.S3()
        let planner = RoutePlanner(
            parser: try AddressParser(settings),
            sources: try SourceFetchers(sources, allowed: .all, uploads: nil, downloads: DownloadActor()),
            images: ImageServer.Configuration.Images(),
            limits: DecodingLimits(),
            watermark: nil
        )
        let purges = PurgeList(file: nil)
        func keys() throws -> [String] {
            try ["", "%3Fv1", "%3Fv2"].compactMap { version in
                let target = "/unsafe/plain/s3://bucket/a.png\(version)"
                return try planner.route(for: target, acceptsWebP: false, now: 0, purges: purges).request.cacheKey
            }
        }
        #expect(try keys().isEmpty)
        try purges.purge("source s3://bucket/a.png")
        let first = Set(try keys())
        #expect(first.count == 3)
        try purges.purge("prefix s3://bucket/")
        let second = Set(try keys())
        #expect(second.count == 3 && second.isDisjoint(with: first))
    }

    @Test
    func `with too many purges, everything counts as purged`() throws {
        let purges = PurgeList(file: nil)
        for number in 0...10_000 { try purges.purge("source https://a.example/\(number)") }
        #expect(purges.cacheKey(of: "https://b.example/") != nil)
    }
}
