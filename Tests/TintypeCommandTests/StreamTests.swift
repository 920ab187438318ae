// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The output streams of the command without a reader or a terminal.
@Suite(.waiting, .timeLimit(.minutes(5))) struct StreamTests {
    let fixture: CommandFixture

    init() throws {
        self.fixture = try CommandFixture()
        try self.fixture.folder.write(Images.png(), to: "a.png")
    }

    @Test func `off a terminal there are no control codes`() async throws {
        let body = Array(try Fixtures.data("flower.webp"))
        let origin = try FaultyOrigin(["/slow": .drip(body, size: 30_000, pauseMilliseconds: 30)])
        let run = try await self.fixture.run("load", origin.url("/slow").absoluteString, "missing.png", "a.png")
        #expect(run.code == 1)
        for text in [run.output, run.errors] {
            #expect(!text.isEmpty)
            #expect(text.utf8.allSatisfy { $0 == 0x0A || $0 >= 0x20 })
        }
        #expect(run.lines.count == 2 && run.errorLines.count == 1)
    }

    @Test(arguments: [["--help"], ["load", "--json", "a.png"], ["info", "a.png"], ["cache", "stats"]])
    func `a full standard output is an error`(_ arguments: [String]) async throws {
        let run = try await self.fixture.run(arguments, outputPath: "/dev/full")
        #expect(run.code == 1)
        #expect(run.errors == "tintype: Standard output cannot be written (No space left on device).\n")
    }

    @Test func `a reader that has enough is no error`() async throws {
        // Close the reader of the pipe, as `| head -1` does.
        let path = self.fixture.folder.path(of: "pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let process = try CommandProcess(
            ["prefetch", "-"],
            in: self.fixture.folder,
            files: ["/dev/null", path, self.fixture.folder.path(of: "errors")]
        )
        close(reader)
        let code = await process.wait()
        #expect(code == 1 || code == 0)
        #expect(try self.fixture.data("errors").isEmpty)
    }

    @Test func `pipes and devices are written and not replaced`() async throws {
        let path = self.fixture.folder.path(of: "pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        #expect(try await self.fixture.run("load", "a.png", "-o", "pipe").code == 0)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = read(reader, &buffer, buffer.count)
        #expect(Data(buffer[..<max(0, count)]) == (try self.fixture.data("a.png")))
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
    }

    @Test func `a reader that has enough of the pixels is no error`() async throws {
        try self.fixture.folder.write(Images.png(width: 300, height: 300), to: "large.png")
        let path = self.fixture.folder.path(of: "pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let process = try CommandProcess(
            ["decode", "large.png", "--raw", "-"],
            in: self.fixture.folder,
            files: ["/dev/null", path, self.fixture.folder.path(of: "errors")]
        )
        close(reader)
        #expect(await process.wait() == 1)
        #expect(try self.fixture.data("errors").isEmpty)
    }

    /// The test never opens the other end of `pipe`.
    @Test(arguments: [
        ["load", "a.png", "--pipeline", "pipe"], ["load", "a.png", "--overlay", "pipe"], ["prefetch", "pipe"],
        ["load", "a.png", "--pipeline", "overlay.json"], ["load", "a.png", "-o", "pipe"],
    ])
    func `a signal ends a command that waits for the other end of a pipe`(_ arguments: [String]) async throws {
        try #require(mkfifo(self.fixture.folder.path(of: "pipe"), 0o600) == 0)
        try self.fixture.folder.write(#"[{"overlay": {"source": "pipe"}}]"#.utf8, to: "overlay.json")
        let process = try CommandProcess(
            arguments,
            in: self.fixture.folder,
            files: ["/dev/null", self.fixture.folder.path(of: "output"), self.fixture.folder.path(of: "errors")]
        )
        await until { process.takesSignals }
        process.signal(SIGTERM)
        #expect(await process.wait() == 143)
        #expect(try self.fixture.data("errors").isEmpty)
    }

    @Test func `a signal ends a command whose output nobody reads`() async throws {
        try self.fixture.folder.write(Images.png(width: 300, height: 300), to: "large.png")
        let path = self.fixture.folder.path(of: "pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        let process = try CommandProcess(
            ["decode", "large.png", "--raw", "-"],
            in: self.fixture.folder,
            files: ["/dev/null", path, self.fixture.folder.path(of: "errors")]
        )
        // Wait for more output than a pipe can hold.
        await until {
            var count: CInt = 0
            return ioctl(reader, UInt(FIONREAD), &count) == 0 && count >= 1 << 16
        }
        process.signal(SIGTERM)
        #expect(await process.wait() == 143)
    }

    @Test(arguments: ["--pipeline", "--overlay"])
    func `what another command writes is read, and so is standard input`(_ option: String) async throws {
        try self.fixture.folder.write(#"[{"resize": {"width": 4}}]"#.utf8, to: "content")
        if option == "--overlay" { try self.fixture.folder.write(Images.png(width: 2, height: 2), to: "content") }
        for prelude in ["mkfifo pipe; (cat content > pipe) & set -- \"$@\" pipe", "exec < content; set -- \"$@\" -"] {
            let run = try await self.fixture.run(["load", "a.png", "-o", "b.png", option], prelude: prelude)
            #expect(run.code == 0, "\(run.testDescription)")
        }
        let nothing = try await self.fixture.run(["load", "a.png", option], prelude: "(: > pipe) & set -- \"$@\" pipe")
        #expect(nothing.code == 2)
        #expect(nothing.errorLines.count == 1)
    }
}
