// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// The option `tintype load --lossless`.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LosslessTests {
    let fixture: CommandFixture

    init() throws {
        self.fixture = try CommandFixture()
        try self.fixture.folder.write(Images.jpeg(width: 64, height: 32), to: "wide.jpg")
        try self.fixture.folder.write(Images.jpeg(width: 64, height: 32, orientation: 6), to: "turned.jpg")
        try self.fixture.folder.write(Images.jpeg(width: 61, height: 30), to: "odd.jpg")
    }

    @Test(arguments: [
        (["--rotate", "90"], JPEGTransform(turn: .rotate90), 32, 64),
        (["--rotate=180"], JPEGTransform(turn: .rotate180), 64, 32),
        (["--rotate", "270"], JPEGTransform(turn: .rotate270), 32, 64),
        (["--flip", "horizontal"], JPEGTransform(turn: .flipHorizontal), 64, 32),
        (["--flip", "vertical", "--rotate", "90"], JPEGTransform(turn: .transverse), 32, 64),
        (["--crop", "16x8+32+16"], JPEGTransform(crop: .init(x: 32, y: 16, width: 16, height: 8)), 16, 8),
        (["--crop", "17x9"], JPEGTransform(crop: .init(x: 0, y: 0, width: 17, height: 9)), 17, 9),
        (["--gray", "--perfect"], JPEGTransform(isPerfect: true, isGray: true), 64, 32),
        (["--progressive"], JPEGTransform(coding: .progressive), 64, 32),
        (["--optimize", "--strip"], JPEGTransform(coding: .optimizedTables, metadata: .none), 64, 32),
        (["--format", "jpeg"], JPEGTransform(), 64, 32),
    ])
    func `options say what is done`(
        _ options: [String],
        _ transform: JPEGTransform,
        _ width: Int,
        _ height: Int
    ) async throws {
        let run = try await self.fixture.run(["load", "--json", "wide.jpg", "--lossless", "-o", "out.jpg"] + options)
        #expect(run.code == 0 && run.errors == "", "\(run.testDescription)")
        let line = try run.object()
        #expect(line["width"]?.number == Double(width) && line["height"]?.number == Double(height))
        #expect(try self.fixture.data("out.jpg") == transform.apply(to: self.fixture.data("wide.jpg")).data)
    }

    @Test func `an image is upright before anything else is done to it`() async throws {
        let data = try self.fixture.data("turned.jpg")
        for (options, turn) in [
            (["--rotate", "upright"], JPEGTransform.Turn.none), (["--flip", "horizontal"], .flipHorizontal),
        ] {
            #expect(try await self.fixture.run(["load", "turned.jpg", "--lossless", "-o", "out/"] + options).code == 0)
            let expected = try JPEGTransform(turnsUpright: true, turn: turn).apply(to: data)
            #expect(try self.fixture.data("out/turned.jpg") == expected.data)
            #expect((expected.width, expected.height) == (32, 64))
        }
        // A command that only strips metadata does not turn the image.
        let stripped = try await self.fixture.run(
            ["load", "--json", "turned.jpg", "--lossless", "--strip", "-o", "stripped.jpg"]
        )
        #expect(stripped.code == 0)
        let line = try stripped.object()
        #expect((line["width"]?.number, line["height"]?.number) == (32, 64))
        #expect(try await self.fixture.info("stripped.jpg")["orientation"] == 6)
    }

    /// `jpegtran` exits with 2 for a damaged file, but for this command 2 means wrong usage.
    @Test func `a damaged file is changed with a warning, as it is decoded with one`() async throws {
        try self.fixture.folder.write(Images.damagedJPEG(), to: "damaged.jpg")
        let warning = "tintype: warning: damaged.jpg is damaged (missing data); a part of the image may look wrong"
        for options in [["--lossless", "--rotate", "90"], ["--resize", "8x8"], ["--format", "png"]] {
            let run = try await self.fixture.run(["load", "--json", "damaged.jpg", "-o", "out/"] + options)
            #expect(run.code == 0, "\(run.testDescription)")
            #expect(run.errorLines.last == warning)
            #expect(try run.object()["warnings"] == .array([.string("missing data")]))
        }
        let decode = try await self.fixture.run("decode", "damaged.jpg", "--raw", "out.rgba")
        #expect(decode.code == 0 && decode.errorLines == [warning])
        let intact = try await self.fixture.run("load", "--json", "wide.jpg")
        #expect(try intact.object()["warnings"] == nil)
    }

    @Test func `what goes over whole blocks is said`() async throws {
        let crop = try await self.fixture.run("load", "odd.jpg", "--lossless", "--crop", "20x5+20+12", "-o", "cut.jpg")
        #expect(crop.code == 0)
        #expect(crop.errorLines == ["tintype: odd.jpg: the crop is 24x17+16+0, as it begins at a block"])
        #expect(crop.lines.first?.contains("jpeg 24x17") == true)
        let turn = try await self.fixture.run("load", "odd.jpg", "--lossless", "--rotate", "180", "-o", "turned.jpg")
        let reason = "13 columns and 14 rows at the edge were left out, as they are not of whole blocks"
        #expect(turn.code == 0 && turn.errorLines == ["tintype: odd.jpg: \(reason)"])
        for options in [["--rotate", "180"], ["--crop", "20x5+20+12"]] {
            let run = try await self.fixture.run(
                ["load", "--json", "odd.jpg", "--lossless", "--perfect", "-o", "no.jpg"] + options
            )
            #expect(run.code == 1)
            #expect(try run.object()["code"] == "notLossless")
        }
        #expect(throws: (any Error).self) { try self.fixture.data("no.jpg") }
    }

    @Test func `what is no JPEG, and what is none of the image, fail`() async throws {
        try self.fixture.folder.write(Images.png(), to: "a.png")
        let run = try await self.fixture.run(
            "load",
            "--json",
            "a.png",
            "wide.jpg",
            "--lossless",
            "--strip",
            "-o",
            "out/"
        )
        #expect(run.code == 1)
        #expect(try run.objects().first?["code"] == "unsupportedFormat")
        #expect(try self.fixture.names(in: "out") == ["wide.jpg"])
        let outside = try await self.fixture.run("load", "wide.jpg", "--lossless", "--crop", "9x9+60+0", "-o", "no.jpg")
        #expect(outside.code == 1 && outside.errors.contains("64x32"))
        // The output would replace the input in its own folder.
        #expect(try await self.fixture.run("load", "wide.jpg", "--lossless", "--strip", "-o", ".").code == 1)
    }

    @Test func `metadata goes over where that is asked for, without the position`() async throws {
        let path = Fixtures.url("camera.jpg").path
        for (option, keepsCamera, keepsPosition) in [
            ("--keep-metadata", true, false), ("--strip", false, false), ("--progressive", true, true),
        ] {
            #expect(try await self.fixture.run("load", path, "--lossless", option, "-o", "out.jpg").code == 0)
            let info = try await self.fixture.info("out.jpg")
            #expect((info["cameraModel"] == "Example One") == keepsCamera)
            #expect((info["position"] != .null) == keepsPosition)
        }
    }

    @Test(arguments: [
        (["--lossless"], "-o"), (["--optimize", "-o", "a.jpg"], "--optimize needs --lossless"),
        (["--strip", "-o", "a.jpg"], "--strip needs --lossless"), (["--lossless", "-o", "a.png"], "writes JPEG"),
        (["--lossless", "-o", "a.jpg", "--resize", "4x4"], "--resize cannot be done without loss"),
        (["--lossless", "-o", "a.jpg", "--quality", "50"], "--quality cannot be done without loss"),
        (["--lossless", "-o", "a/", "--format", "webp"], "webp without loss"),
        (["--lossless", "-o", "a.jpg", "--rotate", "45"], "--rotate takes one of"),
        (["--lossless", "-o", "a.jpg", "--flip", "up"], "--flip takes one of"),
        (["--lossless", "-o", "a.jpg", "--crop", "4x4+1"], "--crop takes"),
        (["--lossless", "-o", "a.jpg", "--crop", "0x4+1+1"], "--crop takes"),
        (["--lossless", "-o", "a.jpg", "--crop", "4x4+1+-1"], "--crop takes"),
        (["--lossless", "-o", "a.jpg", "--crop", "4x4+1+99999999999999999999"], "--crop takes"),
        (["--lossless", "-o", "a.jpg", "--strip", "--keep-metadata"], "contradict"),
        (["--lossless", "-o", "a.jpg", "--rotate", "90", "--rotate", "90"], "once"),
    ])
    func `what makes no sense is wrong usage`(_ options: [String], _ reason: String) async throws {
        let run = try await self.fixture.run(["load", "wide.jpg"] + options)
        #expect(run.code == 2 && run.errors.contains(reason), "\(run.testDescription)")
    }
}
