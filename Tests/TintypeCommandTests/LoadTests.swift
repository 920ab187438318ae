// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The sources of images for `tintype load`, and its reports.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LoadTests {
    let fixture: CommandFixture
    let image: Data

    init() throws {
        self.fixture = try CommandFixture()
        self.image = try Images.png()
    }

    @Test func `an image comes from the network and then from disk`() async throws {
        let origin = try NginxOrigin(files: ["a.png": self.image])
        let url = origin.url("/a.png").absoluteString
        var sources: [JSONValue?] = []
        for options in [[], [], ["--cache-only"], ["--reload"], ["--revalidate"], []] {
            let run = try await self.fixture.run(["load", "--json", url] + options)
            #expect(run.code == 0, "\(run.testDescription)")
            sources.append(try run.object()["source"])
        }
        #expect(sources == ["network", "disk", "disk", "network", "disk", "disk"])
        // The origin answered the third request without a body, because the cached image was current.
        #expect(try origin.requestCount(for: "/a.png") == 3)
    }

    @Test func `the same bytes again come from the network`() async throws {
        // This origin does not support conditional requests.
        let origin = try FaultyOrigin(["/a.png": .body(Array(self.image))])
        let url = origin.url("/a.png").absoluteString
        for count in 1...3 {
            let run = try await self.fixture.run(["load", "--json", "--revalidate", url])
            #expect(try run.object()["source"] == "network")
            #expect(origin.requestCount(for: "/a.png") == count)
        }
    }

    @Test func `cache only never asks the origin`() async throws {
        let origin = try FaultyOrigin(["/a.png": .body(Array(self.image))])
        let run = try await self.fixture.run("load", "--json", "--cache-only", origin.url("/a.png").absoluteString)
        #expect(run.code == 1)
        #expect(try run.object()["code"] == "notInCache")
        #expect(origin.connectionCount == 0)
    }

    @Test func `the cache folder can be chosen`() async throws {
        let origin = try FaultyOrigin(["/a.png": .body(Array(self.image))])
        let arguments = ["load", "--json", origin.url("/a.png").absoluteString, "--cache-dir", "here"]
        #expect(try await self.fixture.run(arguments).object()["source"] == "network")
        #expect(try await self.fixture.run(arguments).object()["source"] == "disk")
        #expect(try await self.fixture.run("cache", "stats", "--json", "--cache-dir", "here").object()["entries"] == 1)
        #expect(try await self.fixture.run("cache", "stats", "--json").object()["entries"] == 0)
    }

    @Test func `every object has the fields of the contract`() async throws {
        let origin = try FaultyOrigin(["/a.png": .body(Array(self.image))])
        try self.fixture.folder.write(self.image, to: "b.png")
        let good = origin.url("/a.png").absoluteString
        let bad = origin.url("/missing").absoluteString
        let run = try await self.fixture.run("load", "--json", good, bad, "b.png")
        #expect(run.code == 1)
        let objects = try run.objects()
        try #require(objects.count == 3)
        #expect(
            Set(objects[0].keys) == ["url", "source", "format", "width", "height", "bytes", "milliseconds"]
        )
        #expect(objects[0]["url"]?.string == good)
        #expect(objects[0]["format"] == "png")
        #expect(objects[0]["width"] == 8 && objects[0]["height"] == 6)
        #expect(objects[0]["bytes"]?.number == Double(self.image.count))
        #expect(objects[0]["milliseconds"]?.number ?? 0 > 0)
        #expect(Set(objects[1].keys) == ["url", "error", "code"])
        #expect(objects[1]["url"]?.string == bad)
        #expect(objects[1]["code"] == "badStatus")
        #expect(objects[2]["source"] == "file")
        #expect(objects[2]["url"] == "b.png")
    }

    @Test func `good inputs are written beside bad ones`() async throws {
        try self.fixture.folder.write(self.image, to: "one.png")
        try self.fixture.folder.write(Array("<html>".utf8), to: "page.png")
        try self.fixture.folder.write(self.image.dropLast(20), to: "short.png")
        let run = try await self.fixture.run("load", "one.png", "missing.png", "page.png", "short.png", "-o", "out/")
        #expect(run.code == 1)
        #expect(try self.fixture.names(in: "out") == ["one.png"])
        #expect(run.lines.count == 1)
        // The command creates the folder for the first output, and reports errors in the order of the inputs.
        #expect(run.errorLines.filter { $0 == "tintype: made the folder out/" }.count == 1)
        let errors = run.errorLines.filter { $0 != "tintype: made the folder out/" }
        #expect(errors.count == 3)
        for (line, name) in zip(errors, ["missing.png", "page.png", "short.png"]) {
            #expect(line.hasPrefix("tintype: \(name): "))
        }
    }

    @Test func `errors have stable codes`() async throws {
        let origin = try FaultyOrigin([
            "/html": .body(Array("<!DOCTYPE html><html></html>".utf8)), "/empty": .empty, "/reset": .reset,
            "/short": .lying(declaredLength: 100, body: [1, 2, 3]), "/garbage": .garbage,
            "/loop": .redirect(to: "/loop"),
        ])
        let paths = ["/html", "/empty", "/short", "/loop"]
        let run = try await self.fixture.run(["load", "--json"] + paths.map { origin.url($0).absoluteString })
        #expect(run.code == 1)
        #expect(
            try run.objects().map { $0["code"] } == ["notAnImage", "emptyBody", "bodyCutShort", "tooManyRedirects"]
        )
        #expect(try await self.fixture.run("load", "--json", "ftp://x/y").object()["code"] == "unsupportedScheme")
    }

    @Test func `results come in the order of the inputs`() async throws {
        let door = Latch()
        let body = Array(self.image)
        let origin = try FaultyOrigin([
            "/1": .held(by: door, body: body), "/2": .body(body), "/3": .body(body), "/4": .body(body),
            "/5": .body(body), "/6": .body(body),
        ])
        let urls = (1...6).map { origin.url("/\($0)").absoluteString }
        async let run = self.fixture.run(["load", "--json"] + urls)
        // A slow first load delays the report, but not the other loads.
        for number in 1...6 { await origin.waitForRequests(for: "/\(number)") }
        door.open()
        #expect(try await run.objects().map { $0["url"]?.string } == urls)
    }

    @Test func `a folder that can not hold a cache is a warning once`() async throws {
        let origin = try FaultyOrigin(["/1": .body(Array(self.image)), "/2": .body(Array(self.image))])
        try self.fixture.folder.write([1], to: "file")
        let run = try await self.fixture.run(
            "load",
            "--json",
            origin.url("/1").absoluteString,
            origin.url("/2").absoluteString,
            "--cache-dir",
            "file/cache"
        )
        #expect(run.code == 0)
        #expect(try run.objects().count == 2)
        #expect(run.errorLines.count == 1)
        #expect(run.errors.hasPrefix("tintype: warning: "))
    }

    @Test(.enabled(if: SmallDisk.isPossible)) func `a full cache is a warning`() async throws {
        let disk = try SmallDisk(byteCount: 64 << 10, at: self.fixture.folder.path(of: "small"))
        defer { disk.unmount() }
        let origin = try FaultyOrigin(["/large": .body(Array(try Fixtures.data("flower.webp")))])
        let run = try await self.fixture.run(
            ["load", "--json", origin.url("/large").absoluteString, "--cache-dir", "small/cache"]
        )
        #expect(run.code == 0)
        #expect(try run.object()["source"] == "network")
        #expect(run.errorLines.count == 1)
        #expect(run.errors.hasPrefix("tintype: warning: "))
    }
}
