// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// The command `tintype decode`.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DecodeTests {
    let fixture: CommandFixture

    init() throws {
        self.fixture = try CommandFixture()
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8])
    func `raw is rows of straight RGBA`(_ format: PixelFormat) async throws {
        let pixels = try PixelBuffer.noise(format, width: 7, height: 5)
        try self.fixture.folder.write(Images.png(format, width: 7, height: 5), to: "a.png")
        let run = try await self.fixture.run("decode", "a.png", "--raw", "a.rgba")
        #expect(run.code == 0)
        #expect(run.output == "7x5\n" && run.errors.isEmpty)
        var expected: [UInt8] = []
        for row in 0..<5 {
            for column in 0..<7 {
                for channel in 0..<3 {
                    expected.append(UInt8(pixels.sample(column, row, format == .gray8 ? 0 : channel)))
                }
                expected.append(format == .rgba8 ? UInt8(pixels.sample(column, row, 3)) : 255)
            }
        }
        #expect(try Array(self.fixture.data("a.rgba")) == expected)
    }

    /// The command needs memory for the image and some rows, but not for a copy.
    @Test func `raw takes no copy of the image`() async throws {
        var peaks: [Int] = []
        // Decode the small image last, because the system includes the peak of the test process, which only rises.
        for (width, height) in [(1_500, 1_000), (8, 8)] {
            try self.fixture.folder.write(Images.png(.gray8, width: width, height: height), to: "a.png")
            let run = try await self.fixture.run("decode", "a.png", "--raw", "a.rgba")
            #expect(run.output == "\(width)x\(height)\n")
            peaks.append(run.peakBytes)
        }
        // The gray pixels and the file take 1.5 MB each, and a copy as RGBA would take 6 MB.
        #expect(peaks[0] - peaks[1] < 8 << 20)
    }

    @Test func `orientation is applied unless ignored`() async throws {
        try self.fixture.folder.write(Images.jpeg(orientation: 8), to: "a.jpg")
        #expect(try await self.fixture.run("decode", "a.jpg", "--raw", "up").output == "8x16\n")
        let stored = try await self.fixture.run("decode", "a.jpg", "--raw", "stored", "--ignore-orientation")
        #expect(stored.output == "16x8\n")
        let (up, raw) = (try Array(self.fixture.data("up")), try Array(self.fixture.data("stored")))
        #expect(up.count == 16 * 8 * 4)
        // Orientation 8 turns the image a quarter to the left, so the last column becomes the first row.
        let ends = (1...8).map { $0 * 16 * 4 }
        let column = ends.flatMap { end in raw[(end - 4)..<end] }
        #expect(Array(up[..<32]) == column)
    }

    @Test func `frames of an animation are chosen`() async throws {
        try self.fixture.folder.write(Images.animation(durations: [50, 50], loopCount: 0), to: "a.webp")
        let run = try await self.fixture.run("decode", "a.webp", "--raw", "a.rgba", "--frame", "1")
        #expect(run.output == "8x6\n")
        #expect(try self.fixture.data("a.rgba").count == 8 * 6 * 4)
        let beyond = try await self.fixture.run("decode", "a.webp", "--raw", "b.rgba", "--frame", "2")
        #expect(beyond.code == 1)
        #expect(beyond.errorLines.count == 1)
        #expect(!FileManager.default.fileExists(atPath: self.fixture.folder.path(of: "b.rgba")))
    }

    @Test func `a file without its end needs leave`() async throws {
        let image = try Images.jpeg(width: 64, height: 64)
        try self.fixture.folder.write(image.prefix(image.count * 3 / 4), to: "a.jpg")
        let strict = try await self.fixture.run("decode", "a.jpg", "--raw", "a.rgba")
        #expect(strict.code == 1)
        #expect(strict.output.isEmpty && strict.errorLines.count == 1)
        #expect(!FileManager.default.fileExists(atPath: self.fixture.folder.path(of: "a.rgba")))
        let lenient = try await self.fixture.run("decode", "a.jpg", "--raw", "a.rgba", "--allow-truncated")
        #expect(lenient.code == 0)
        #expect(lenient.output == "64x64\n")
        #expect(lenient.errors.hasPrefix("tintype: warning: a.jpg ends too early"))
        #expect(lenient.errorLines.count == 1)
        #expect(try self.fixture.data("a.rgba").count == 64 * 64 * 4)
        try self.fixture.folder.write(image, to: "whole.jpg")
        let whole = try await self.fixture.run("decode", "whole.jpg", "--raw", "b.rgba", "--allow-truncated")
        #expect(whole.code == 0 && whole.errors.isEmpty)
    }

    @Test func `failures are one line`() async throws {
        try self.fixture.folder.write(Images.png(), to: "a.png")
        for arguments in [["missing.png", "--raw", "x"], [".", "--raw", "x"], ["a.png", "--raw", "a.png/x"]] {
            let run = try await self.fixture.run(["decode"] + arguments)
            #expect(run.code == 1)
            #expect(run.output.isEmpty && run.errorLines.count == 1)
            #expect(run.errors.hasPrefix("tintype: \(arguments[0]): "))
        }
    }

    @Test func `standard output carries the pixels alone, and standard error their size`() async throws {
        try self.fixture.folder.write(Images.png(.rgba8), to: "a.png")
        _ = try await self.fixture.run("decode", "a.png", "--raw", "a.rgba")
        let path = self.fixture.folder.path(of: "piped.rgba")
        let run = try await self.fixture.run(["decode", "a.png", "--raw", "-"], outputPath: path)
        #expect(run.code == 0)
        #expect(run.errors == "8x6\n")
        #expect(try self.fixture.data("piped.rgba") == self.fixture.data("a.rgba"))
        #expect(!FileManager.default.fileExists(atPath: self.fixture.folder.path(of: "-")))
    }

    @Test func `pixels that standard output does not take are an error`() async throws {
        try self.fixture.folder.write(Images.png(.rgba8), to: "a.png")
        let run = try await self.fixture.run(["decode", "a.png", "--raw", "-"], outputPath: "/dev/full")
        #expect(run.code == 1)
        #expect(run.errors == "tintype: a.png: Standard output cannot be written (No space left on device).\n")
    }

    @Test func `pixels are not written to a terminal`() async throws {
        try self.fixture.folder.write(Images.png(.rgba8), to: "a.png")
        let terminal = try PseudoTerminal()
        let process = try CommandProcess(
            ["decode", "a.png", "--raw", "-"],
            in: self.fixture.folder,
            files: Array(repeating: terminal.path, count: 3),
            isTerminal: true
        )
        terminal.startReading()
        #expect(await process.wait() == 2)
        await terminal.waitUntilClosed()
        #expect(terminal.text.contains("standard output is a terminal"))
    }
}
