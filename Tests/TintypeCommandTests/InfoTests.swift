// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// The command `tintype info`.
@Suite(.waiting, .timeLimit(.minutes(5))) struct InfoTests {
    let fixture: CommandFixture

    init() throws {
        self.fixture = try CommandFixture()
    }

    @Test func `every object has the fields of the contract`() async throws {
        try self.fixture.folder.write(Images.jpeg(), to: "a.jpg")
        let info = try await self.fixture.info("a.jpg")
        let fields: Set = [
            "path", "format", "width", "height", "pixelWidth", "pixelHeight", "orientation", "frames", "loopCount",
            "durations", "hasAlpha", "bitDepth", "colorProfile", "cameraMake", "cameraModel", "lensModel", "dateTaken",
            "position", "density",
        ]
        #expect(Set(info.keys) == fields)
        #expect(info["path"] == "a.jpg" && info["format"] == "jpeg")
        #expect(info["width"] == 16 && info["height"] == 8)
        #expect(info["orientation"] == 1 && info["bitDepth"] == 8)
        #expect(info["frames"] == 1 && info["loopCount"] == 1 && info["durations"] == .array([]))
        #expect(info["hasAlpha"] == .bool(false))
        for field in ["colorProfile", "cameraMake", "lensModel", "dateTaken", "position", "density"] {
            #expect(info[field] == .null)
        }
    }

    @Test(arguments: ["jpg", "png", "webp"]) func `how an image was taken is shown`(name: String) async throws {
        let path = Fixtures.url("camera.\(name)").path
        let info = try await self.fixture.info(path)
        #expect(info["cameraMake"] == "Example" && info["cameraModel"] == "Example One")
        #expect(info["lensModel"] == "Example 35mm F2" && info["dateTaken"] == "2024-05-06T07:08:09.125+02:00")
        let line = try await self.fixture.run("info", path).output
        for part in [
            "by Example One", "taken 2024-05-06T07:08:09.125+02:00", "at 47.37009, -8.54911", "240.0 pixels an inch",
        ] {
            #expect(line.contains(part), "\(line)")
        }
    }

    @Test func `alpha is seen`() async throws {
        try self.fixture.folder.write(Images.png(.rgba8), to: "a.png")
        let info = try await self.fixture.info("a.png")
        #expect(info["format"] == "png" && info["hasAlpha"] == .bool(true))
    }

    @Test func `still WebP is read`() async throws {
        let info = try await self.fixture.info(Fixtures.url("flower.webp").path)
        #expect(info["format"] == "webp" && info["width"] == 1134 && info["height"] == 756)
    }

    @Test func `frames of an animation are listed`() async throws {
        try self.fixture.folder.write(Images.animation(durations: [40, 10, 200], loopCount: 3), to: "a.webp")
        let info = try await self.fixture.info("a.webp")
        #expect(info["frames"] == 3 && info["loopCount"] == 3)
        #expect(info["durations"] == .array([40, 100, 200]))
        #expect(info["width"] == 8 && info["height"] == 6)
    }

    @Test func `sizes are upright and stored`() async throws {
        try self.fixture.folder.write(Images.jpeg(orientation: 6), to: "a.jpg")
        let info = try await self.fixture.info("a.jpg")
        #expect(info["width"] == 8 && info["height"] == 16)
        #expect(info["pixelWidth"] == 16 && info["pixelHeight"] == 8)
        #expect(info["orientation"] == 6)
    }

    @Test func `a profile is named`() async throws {
        try self.fixture.folder.write(Images.jpeg(profile: Images.profile(named: "Cinema 1")), to: "a.jpg")
        #expect(try await self.fixture.info("a.jpg")["colorProfile"] == "Cinema 1")
        #expect(try await self.fixture.run("info", "a.jpg").output.contains("Cinema 1"))
    }

    @Test func `errors are objects beside the others`() async throws {
        try self.fixture.folder.write(Images.png(), to: "a.png")
        try self.fixture.folder.write(Array("no image".utf8), to: "b.png")
        let run = try await self.fixture.run("info", "--json", "missing.png", "b.png", "a.png")
        #expect(run.code == 1)
        let objects = try run.objects()
        try #require(objects.count == 3)
        #expect(Set(objects[0].keys) == ["path", "error", "code"])
        #expect(objects.map { $0["code"] } == ["fileNotFound", "notAnImage", nil])
        #expect(objects.map { $0["path"] } == ["missing.png", "b.png", "a.png"])
        #expect(run.errorLines.count == 2)
    }

    @Test func `urls are read and nothing is cached`() async throws {
        let origin = try FaultyOrigin(["/a.png": .body(Array(try Images.png()))])
        #expect(try await self.fixture.info(origin.url("/a.png").absoluteString)["format"] == "png")
        #expect(try await self.fixture.run("cache", "stats", "--json").object()["entries"] == 0)
    }

    @Test(arguments: ["12:30", "img:1", "localhost:80/a.png", "http://127.0.0.1:8"])
    func `a file may be named like a host with a port`(name: String) async throws {
        try self.fixture.folder.write(Images.png(), to: name)
        let isURL = name.hasPrefix("http")
        #expect(try await self.fixture.run("info", name).code == (isURL ? 1 : 0))
    }

    @Test func `names may hold anything`() async throws {
        try self.fixture.folder.write(Images.png(), to: "with space, 100% é日本 #1?.png")
        #expect(try await self.fixture.info("with space, 100% é日本 #1?.png")["format"] == "png")
        let run = try await self.fixture.run("info", "red\u{1B}[31m\nname.png")
        #expect(run.code == 1)
        #expect(run.errorLines.count == 1)
        #expect(!run.errors.contains("\u{1B}"))
    }
}
