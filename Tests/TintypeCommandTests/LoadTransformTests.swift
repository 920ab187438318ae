// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// The options of `tintype load` that transform the image.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LoadTransformTests {
    let fixture: CommandFixture

    init() throws {
        self.fixture = try CommandFixture()
        try self.fixture.folder.write(Images.jpeg(width: 64, height: 32), to: "wide.jpg")
    }

    /// Returns an animation of three different frames of 100 ms each.
    private static func animation() throws -> Data {
        let frames = try (0..<3).map { index in
            let pixels = try PixelBuffer.make(.rgb8, width: 24, height: 16) { column, row, channel in
                UInt8(column * 8 + row * index + channel)
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 100)
        }
        return try PNGCoder().encode(AnimationContent(frames: frames), as: .png, options: EncodeOptions())
    }

    @Test(arguments: [
        ("32x", 32, 16), ("x16", 32, 16), ("32", 32, 16), ("16x16", 16, 8), ("16x16^", 32, 16), ("16x20!", 16, 20),
        ("128x>", 64, 32), ("50%", 32, 16), ("200%", 128, 64), ("128x128", 64, 32),
        ("100x20!", 100, 20), ("200%>", 64, 32),
    ])
    func `sizes are written as users of other commands write them`(text: String, width: Int, height: Int) async throws {
        let run = try await self.fixture.run("load", "wide.jpg", "-o", "small.png", "--resize", text)
        #expect(run.code == 0, "\(run.errors)")
        let info = try await self.fixture.info("small.png")
        #expect((info["width"]?.number, info["height"]?.number) == (Double(width), Double(height)))
    }

    @Test(arguments: [
        (["--crop", "20x10"], 20, 10), (["--crop", "1:1", "--gravity", "east"], 32, 32),
        (["--crop", "20x10+60+30"], 4, 2), (["--rotate", "90"], 32, 64),
        (["--rotate", "90", "--resize", "x32"], 16, 32), (["--resize", "x16", "--rotate", "-90"], 16, 32),
        (["--pad", "3"], 70, 38), (["--pad", "1,2,3,4", "--background", "#f00"], 70, 36),
        (["--extend", "100x100", "--gravity", "south"], 100, 100), (["--circle"], 32, 32), (["--blur", "2"], 64, 32),
        (["--flip", "both", "--gray", "--invert", "--brightness", "1.2", "--hue", "20"], 64, 32),
        (["--round", "8", "--sharpen", "1", "--pixelate", "4", "--tint", "#123"], 64, 32),
    ])
    func `what is made of the image follows the order of the options`(
        options: [String],
        width: Int,
        height: Int
    ) async throws {
        let run = try await self.fixture.run(["load", "wide.jpg", "-o", "made.png"] + options)
        #expect(run.code == 0, "\(run.errors)")
        let info = try await self.fixture.info("made.png")
        #expect((info["width"]?.number, info["height"]?.number) == (Double(width), Double(height)))
    }

    @Test func `a pipeline comes from a file, at its place among the options`() async throws {
        let description = #"[{"crop": {"aspectRatio": {"ratio": 1}}}, {"resize": {"width": 10}}]"#
        try self.fixture.folder.write(Array(description.utf8), to: "square.json")
        let run = try await self.fixture.run(
            ["load", "wide.jpg", "-o", "made.png", "--pipeline", "square.json", "--pad", "1"]
        )
        #expect(run.code == 0, "\(run.errors)")
        let info = try await self.fixture.info("made.png")
        #expect((info["width"]?.number, info["height"]?.number) == (12, 12))
        try self.fixture.folder.write(Array(#"[{"blurr": {}}]"#.utf8), to: "bad.json")
        let refused = try await self.fixture.run("load", "wide.jpg", "-o", "made.png", "--pipeline", "bad.json")
        #expect(refused.code == 2)
        #expect(refused.errors.contains("There is no transform blurr"))
        #expect(try await self.fixture.run("load", "wide.jpg", "--pipeline", "missing.json").code == 2)
    }

    @Test func `another image is drawn on it, from an option or a pipeline`() async throws {
        let mark = try PixelBuffer.make(.rgb8, width: 4, height: 4) { _, _, channel in channel == 0 ? 255 : 0 }
        try self.fixture.folder.write(
            PNGCoder().encode(Image(pixels: mark), as: .png, options: EncodeOptions()),
            to: "marks/red.png"
        )
        let description = #"[{"overlay": {"source": "red.png", "gravity": "northWest"}}]"#
        try self.fixture.folder.write(Array(description.utf8), to: "marks/mark.json")
        for options in [["--overlay", "marks/red.png", "--gravity", "northWest"], ["--pipeline", "marks/mark.json"]] {
            let run = try await self.fixture.run(["load", "wide.jpg", "-o", "marked.png"] + options)
            #expect(run.code == 0, "\(run.errors)")
            let made = try Data(contentsOf: self.fixture.folder.url(of: "marked.png"))
            let pixels = try ImageDecoder(made, registry: CoderRegistry()).decode().pixels
            #expect(pixels.samples.prefix(3) == [255, 0, 0])
        }
        try self.fixture.folder.write(Array(#"[{"overlay": {"source": "none.png"}}]"#.utf8), to: "marks/mark.json")
        for options in [["--overlay", "wide.json"], ["--pipeline", "marks/mark.json"]] {
            let run = try await self.fixture.run(["load", "wide.jpg", "-o", "marked.png"] + options)
            #expect(run.code == 2)
            #expect(run.errors.contains("cannot be drawn"))
        }
    }

    @Test func `a setting that is given again holds for what follows it`() async throws {
        let run = try await self.fixture.run(
            ["load", "wide.jpg", "-o", "made.png", "--background", "#f00", "--pad", "1"]
                + ["--background", "#00f", "--gravity", "north", "--pad", "1", "--gravity", "west", "--crop", "3x3"]
        )
        #expect(run.code == 0, "\(run.errors)")
        let made = try Data(contentsOf: self.fixture.folder.url(of: "made.png"))
        let pixels = try ImageDecoder(made, registry: CoderRegistry()).decode().pixels
        #expect((0..<3).map { pixels.sample(0, 1, $0) } == [0, 0, 255])
        #expect((0..<3).map { pixels.sample(1, 1, $0) } == [255, 0, 0])
    }

    @Test(arguments: [
        ("missing.json", "No such file"), (".", "directory"), ("/dev/zero", "more than 1048576 bytes"),
        ("number.json", "trim tolerance: A tolerance is 0 to 255"), ("cut.json", "JSON"),
    ])
    func `it is said what is wrong with the file of a pipeline`(name: String, reason: String) async throws {
        try self.fixture.folder.write(Array(#"[{"trim": {"tolerance": 300}}]"#.utf8), to: "number.json")
        try self.fixture.folder.write(Array(#"[{"trim": {}"#.utf8), to: "cut.json")
        let run = try await self.fixture.run("load", "wide.jpg", "-o", "made.png", "--pipeline", name)
        #expect(run.code == 2)
        #expect(run.errors.contains(reason), "\(run.errors)")
        #expect(!run.errors.contains("CocoaError"), "\(run.errors)")
    }

    @Test(arguments: [
        ["--resize", "x"], ["--resize", "0x4"], ["--resize", "4x4x4"], ["--resize", "-3x"], ["--resize", "nan%"],
        ["--resize", "128x<"],
        ["--resize", "4x4^", "--mode", "fill"], ["--crop", "4"], ["--crop", "0:1"], ["--crop", "4x4+1"],
        ["--rotate", "left"], ["--rotate", "inf"], ["--flip", "up"], ["--pad", "1,2"], ["--pad", "-1"],
        ["--extend", "4"],
        ["--blur", "-1"], ["--gamma", "0"], ["--trim", "256"], ["--tint", "blue"], ["--gravity", "up"], ["--enlarge"],
        ["--background", "1"], ["--filter", "lanczos3"], ["--blur", "0x10"], ["--rotate", "0x5a"],
        ["--crop", "4x4", "--gravity", "north", "--crop", "2x2", "--gravity", "south"],
    ])
    func `what makes no sense is wrong usage`(options: [String]) async throws {
        let run = try await self.fixture.run(["load", "wide.jpg", "-o", "made.png"] + options)
        #expect(run.code == 2)
        #expect(run.errors.hasPrefix("tintype: "))
    }

    @Test(arguments: ["gif", "webp", "png"])
    func `an animation stays one where the format has animations`(name: String) async throws {
        try self.fixture.folder.write(Self.animation(), to: "moving.png")
        let run = try await self.fixture.run("load", "moving.png", "-o", "small.\(name)", "--resize", "8x8!")
        #expect(run.code == 0, "\(run.errors)")
        let info = try await self.fixture.info("small.\(name)")
        #expect(info["frames"]?.number == 3)
        #expect((info["width"]?.number, info["height"]?.number) == (8, 8))
        #expect(try await self.fixture.run("load", "moving.png", "-o", "still.\(name)", "--still").code == 0)
        #expect(try await self.fixture.info("still.\(name)")["frames"]?.number == 1)
    }

    @Test func `it is said where an animation is lost`() async throws {
        try self.fixture.folder.write(Self.animation(), to: "moving.png")
        let run = try await self.fixture.run("load", "moving.png", "-o", "still.jpg")
        #expect(run.code == 0)
        #expect(run.errors.contains("only the first of 3 frames"))
        let asked = try await self.fixture.run("load", "moving.png", "-o", "still.jpg", "--still")
        #expect(asked.code == 0)
        #expect(!asked.errors.contains("frames"))
    }
}
