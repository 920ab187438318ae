// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The library's messages as users of the command see them.
@Suite(.waiting, .timeLimit(.minutes(5))) struct MessageTests {
    let fixture: CommandFixture
    let image: Data

    init() throws {
        self.fixture = try CommandFixture()
        self.image = try Images.jpeg(width: 67, height: 35)
    }

    private func write() throws {
        let files: [String: Data] = [
            "whole.jpg": self.image, "cut.jpg": self.image.prefix(self.image.count * 3 / 4),
            "pixels.png": try Images.png(declaring: 20_000, 20_000),
            "side.png": try Images.png(declaring: 70_000, 2), "tiff.tif": Data("II*\0\u{8}\0\0\0".utf8),
            "page.jpg": Data("<!DOCTYPE html>".utf8),
            "moving.webp": try Images.animation(durations: [50, 50], loopCount: 0),
        ]
        for (name, data) in files { try self.fixture.folder.write(data, to: name) }
    }

    @Test(arguments: [
        ("cut.jpg", "truncated"), ("pixels.png", "tooManyPixels"), ("side.png", "sideTooLong"),
        ("tiff.tif", "unsupportedFormat"), ("page.jpg", "notAnImage"), ("missing.jpg", "fileNotFound"),
        ("ftp://example.org/a.jpg", "unsupportedScheme"), ("http:///a.jpg", "invalidURL"),
        ("data:image/png", "invalidURL"),
    ])
    func `a message names no symbol of the library`(input: String, code: String) async throws {
        try self.write()
        let run = try await self.fixture.run("load", "--json", input)
        #expect(try run.object()["code"]?.string == code)
        self.check(run)
    }

    @Test func `messages about origins name no symbol of the library`() async throws {
        let large = FaultyResponse.lying(declaredLength: 1 << 30, body: [1])
        let origin = try FaultyOrigin(["/loop": .redirect(to: "/loop"), "/large": large, "/empty": .empty])
        let urls = ["/loop", "/large", "/empty", "/missing", "/missing"].map { origin.url($0).absoluteString }
        let run = try await self.fixture.run(["load", "--json"] + urls)
        let codes = try run.objects().map { $0["code"]?.string }
        #expect(codes == ["tooManyRedirects", "bodyTooLarge", "emptyBody", "badStatus", "badStatus"])
        self.check(run)
        let unknown = try await self.fixture.run("load", "--json", "--cache-only", urls[0])
        #expect(try unknown.object()["code"]?.string == "notInCache")
        self.check(unknown)
    }

    @Test func `messages about options name no symbol of the library`() async throws {
        try self.write()
        for arguments in [
            ["load", "whole.jpg", "-o", "a.jpg", "--lossless", "--rotate", "90", "--perfect"],
            ["load", "whole.jpg", "-o", "a.jpg", "--lossless", "--crop", "9x9+90+90"],
            ["load", "whole.jpg", "-o", "a.jpg", "--resize", "200000x200000!"],
            ["load", "pixels.png", "-o", "a.jpg", "--lossless", "--rotate", "90"],
            ["load", "whole.jpg", "--crop", "10x10+500+500"],
            ["decode", "cut.jpg", "--raw", "a.rgba"], ["decode", "moving.webp", "--raw", "a.rgba", "--frame", "9"],
        ] {
            let run = try await self.fixture.run(arguments)
            #expect(run.code == 1, "\(run.testDescription)")
            self.check(run)
        }
    }

    /// Expects errors in whole sentences, without names such as `maximumPixels` or `DecodeOptions.allowsTruncated`.
    private func check(_ run: CommandRun) {
        #expect(!run.errorLines.isEmpty)
        for line in run.errorLines.map({ $0.replacing(#/tintype-command-\w+/#, with: "") }) {
            #expect(!line.contains(#/\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*\.\w/#), "\(line)")
            #expect(line.hasSuffix("."), "\(line)")
        }
    }
}
