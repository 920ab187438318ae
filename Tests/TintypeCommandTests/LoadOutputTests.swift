// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The output of `tintype load -o` and its path.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LoadOutputTests {
    let fixture: CommandFixture
    let image: Data

    init() throws {
        self.fixture = try CommandFixture()
        self.image = try Images.jpeg(width: 64, height: 32)
        try self.fixture.folder.write(self.image, to: "wide.jpg")
    }

    @Test func `bytes stay as they are when nothing is asked`() async throws {
        let origin = try FaultyOrigin(["/a%20b.jpg": .body(Array(self.image))])
        let url = origin.url("/a%20b.jpg").absoluteString
        #expect(try await self.fixture.run("load", url, "-o", "out/").code == 0)
        #expect(try self.fixture.data("out/a b.jpg") == self.image)
        // The second load comes from disk, and goes to a file in a folder that does not exist yet.
        #expect(try await self.fixture.run("load", url, "-o", "new/folder/b.jpeg").code == 0)
        #expect(try self.fixture.data("new/folder/b.jpeg") == self.image)
    }

    @Test func `a folder that exists needs no slash`() async throws {
        try self.fixture.folder.write([], to: "out/other")
        #expect(try await self.fixture.run("load", "wide.jpg", "-o", "out").code == 0)
        #expect(try self.fixture.names(in: "out") == ["other", "wide.jpg"])
    }

    @Test(arguments: [("jpeg", "jpg"), ("png", "png"), ("webp", "webp")])
    func `the format can be chosen`(_ format: String, _ fileExtension: String) async throws {
        #expect(try await self.fixture.run("load", "wide.jpg", "-o", "out/", "--format", format).code == 0)
        #expect(try await self.fixture.info("out/wide.\(fileExtension)")["format"]?.string == format)
        // The extension of the file's name selects the format as well.
        #expect(try await self.fixture.run("load", "wide.jpg", "-o", "named.\(fileExtension)").code == 0)
        #expect(try await self.fixture.info("named.\(fileExtension)")["format"]?.string == format)
    }

    @Test(arguments: ["jpg", "png", "webp"])
    func `metadata goes over where that is asked for, without the position`(name: String) async throws {
        let path = Fixtures.url("camera.jpg").path
        let arguments = ["load", path, "-o", "kept.\(name)", "--resize", "20x20"]
        #expect(try await self.fixture.run(arguments + ["--keep-metadata"]).code == 0)
        let kept = try await self.fixture.info("kept.\(name)")
        #expect(kept["cameraModel"] == "Example One" && kept["dateTaken"] == "2024-05-06T07:08:09.125+02:00")
        #expect(kept["position"] == .null && kept["orientation"] == 1)
        // The stored image has 48x32 pixels, and is turned.
        #expect(kept["width"] == 13 && kept["height"] == 20)
        #expect(try self.fixture.data("kept.\(name)").firstRange(of: Data("GPSL".utf8)) == nil)
        #expect(try await self.fixture.run(arguments).code == 0)
        #expect(try await self.fixture.info("kept.\(name)")["cameraModel"] == .null)
        #expect(try await self.fixture.run("load", path, "--keep-metadata").code == 2)
    }

    @Test func `quality changes the size`() async throws {
        for quality in ["20", "95"] {
            let run = try await self.fixture.run("load", "wide.jpg", "-o", "\(quality).jpg", "--quality", quality)
            #expect(run.code == 0)
        }
        #expect(try self.fixture.data("20.jpg").count < self.fixture.data("95.jpg").count)
    }

    @Test(arguments: [
        ("fit", "16x16", 16, 8), ("fill", "16x16", 16, 16), ("stretch", "16x16", 16, 16), ("fit", "500x500", 64, 32),
    ])
    func `resize meets the box`(_ mode: String, _ box: String, _ width: Int, _ height: Int) async throws {
        let run = try await self.fixture.run(
            ["load", "--json", "wide.jpg", "-o", "small.png", "--resize", box, "--mode", mode]
        )
        #expect(run.code == 0)
        #expect(try run.object()["width"]?.number == Double(width))
        let info = try await self.fixture.info("small.png")
        #expect(info["width"]?.number == Double(width) && info["height"]?.number == Double(height))
    }

    @Test func `an oriented image is written upright`() async throws {
        try self.fixture.folder.write(Images.jpeg(width: 64, height: 32, orientation: 6), to: "turned.jpg")
        #expect(try await self.fixture.run("load", "turned.jpg", "-o", "upright.png").code == 0)
        let info = try await self.fixture.info("upright.png")
        #expect(info["pixelWidth"] == 32 && info["pixelHeight"] == 64 && info["orientation"] == 1)
    }

    @Test func `no two inputs share a file`() async throws {
        try self.fixture.folder.write(Images.jpeg(width: 8, height: 8), to: "more/wide.jpg")
        let run = try await self.fixture.run("load", "wide.jpg", "more/wide.jpg", "-o", "out/")
        #expect(run.code == 0)
        #expect(try self.fixture.names(in: "out") == ["wide-2.jpg", "wide.jpg"])
        // The command reports both facts once.
        #expect(
            Set(run.errorLines) == [
                "tintype: made the folder out/",
                "tintype: more/wide.jpg: written to out/wide-2.jpg, as another input has the same name",
            ]
        )
        #expect(run.errorLines.count == 2)
        #expect(try await self.fixture.run("load", "wide.jpg", "-o", "out/").errors.isEmpty)
        #expect(try self.fixture.data("out/wide.jpg") == self.image)
    }

    @Test func `an input is not overwritten by its folder`() async throws {
        let run = try await self.fixture.run("load", "wide.jpg", "-o", ".", "--resize", "8x8")
        #expect(run.code == 1)
        #expect(run.errors.contains("name another folder"))
        #expect(try self.fixture.data("wide.jpg") == self.image)
    }

    @Test(arguments: ["file/under.jpg", "/proc/none/a.jpg", "/dev/full"])
    func `a file that can not be written is an error`(_ path: String) async throws {
        try self.fixture.folder.write([1], to: "file")
        let run = try await self.fixture.run("load", "--json", "wide.jpg", "-o", path)
        #expect(run.code == 1)
        #expect(try run.object()["code"] == "outputFailed")
        #expect(run.errorLines.count == 1)
        #expect(run.errors.contains("\(path) cannot be written"))
    }

    @Test func `a file that is named as a format that is not written is refused before a load`() async throws {
        let run = try await self.fixture.run("load", "missing.jpg", "-o", "wide.bmp")
        #expect(run.code == 2)
        #expect(run.errorLines.count == 1)
        #expect(run.errors.contains("jpeg, png, webp, gif"))
        // An explicit format overrides the extension, and an extension need not name a format.
        #expect(try await self.fixture.run("load", "wide.jpg", "-o", "wide.bmp", "--format", "png").code == 0)
        #expect(try await self.fixture.run("load", "wide.jpg", "-o", "wide.old").code == 0)
    }

    @Test func `a name that stands for no format is told of`() async throws {
        for (name, options, isTold) in [
            ("a.xyz", [], true), ("a.pgn", ["--resize", "8x8"], true), ("a.xyz", ["--format", "jpeg"], false),
            ("a", [], false), ("a.JPG", [], false), ("out.old/", [], false),
        ] {
            let run = try await self.fixture.run(["load", "wide.jpg", "-o", name] + options)
            #expect(run.code == 0)
            let told = run.errorLines.filter { $0.contains("is written as jpeg, as no format is named") }
            #expect(told.count == (isTold ? 1 : 0), "\(run.testDescription)")
        }
    }

    @Test func `the report says what was written, where, and how large it is`() async throws {
        let arguments = ["load", "wide.jpg", "-o", "out/", "--format", "png", "--resize", "16x16"]
        let line = try await self.fixture.run(arguments).output
        let written = try self.fixture.data("out/wide.png").count
        let loaded = self.image.count
        #expect(
            line.hasPrefix("wide.jpg: wrote out/wide.png, png 16x8, \(written) B; jpeg, \(loaded) B, from file in "),
            "\(line)"
        )
        let object = try await self.fixture.run(arguments + ["--json"]).object()
        #expect(object["format"] == "jpeg" && object["bytes"]?.number == Double(loaded))
        #expect(object["output"] == "out/wide.png" && object["outputFormat"] == "png")
        #expect(object["outputBytes"]?.number == Double(written))
        #expect(object["width"] == 16 && object["height"] == 8)
    }
}
