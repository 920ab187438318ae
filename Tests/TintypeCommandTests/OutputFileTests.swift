// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The files that the command writes, their names, and existing files.
@Suite(.waiting, .timeLimit(.minutes(5))) struct OutputFileTests {
    let fixture: CommandFixture
    let image: Data

    init() throws {
        self.fixture = try CommandFixture()
        self.image = try Images.jpeg()
        try self.fixture.folder.write(self.image, to: "in.jpg")
    }

    private func status(_ name: String) throws -> stat {
        var status = stat()
        try #require(lstat(self.fixture.folder.path(of: name), &status) == 0)
        return status
    }

    private func mode(_ name: String) throws -> mode_t { try self.status(name).st_mode & 0o7777 }

    @Test(arguments: [0o600, 0o640, 0o644, 0o400, 0o777, 0o2755] as [mode_t])
    func `a file that is there keeps its permissions`(mode: mode_t) async throws {
        try self.fixture.folder.write([1], to: "out.jpg")
        chmod(self.fixture.folder.path(of: "out.jpg"), mode)
        let old = try self.status("out.jpg")
        #expect(try await self.fixture.run("load", "in.jpg", "-o", "out.jpg").code == 0)
        #expect(try self.fixture.data("out.jpg") == self.image)
        #expect(try self.mode("out.jpg") == mode)
        // The command writes a new file and renames it to replace the old one.
        #expect(try self.status("out.jpg").st_ino != old.st_ino)
        #expect(try self.fixture.names(in: ".") == ["in.jpg", "out.jpg", "streams"])
    }

    @Test(.enabled(if: geteuid() == 0)) func `a file that is there keeps its owner and group`() async throws {
        try self.fixture.folder.write([1], to: "out.jpg")
        chown(self.fixture.folder.path(of: "out.jpg"), 12_345, 23_456)
        #expect(try await self.fixture.run("load", "in.jpg", "-o", "out.jpg").code == 0)
        let status = try self.status("out.jpg")
        #expect(status.st_uid == 12_345 && status.st_gid == 23_456)
    }

    @Test(arguments: ["022", "077", "000"])
    func `a new file has the permissions that the user's mask leaves`(mask: String) async throws {
        let run = try await self.fixture.run("load", "in.jpg", "-o", "new.jpg", prelude: "umask \(mask)")
        #expect(run.code == 0)
        #expect(try self.mode("new.jpg") == 0o666 & ~(mode_t(mask, radix: 8) ?? 0))
    }

    @Test(arguments: ["there.jpg", "missing.jpg", "folder/there.jpg"])
    func `a link keeps leading to the file`(target: String) async throws {
        try self.fixture.folder.write([1], to: "there.jpg")
        try self.fixture.folder.write([1], to: "folder/there.jpg")
        symlink(target, self.fixture.folder.path(of: "link.jpg"))
        #expect(try await self.fixture.run("load", "in.jpg", "-o", "link.jpg").code == 0)
        #expect(try self.status("link.jpg").st_mode & S_IFMT == S_IFLNK)
        #expect(try self.fixture.data(target) == self.image)
    }

    /// Opens a file or a pipe without a name, and a descriptor that reads it.
    private func nameless(_ kind: String) throws -> (writer: CInt, reader: CInt) {
        let path = self.fixture.folder.path(of: "gone.jpg")
        defer { unlink(path) }
        switch kind {
        case "pipe":
            var ends: [CInt] = [0, 0]
            try #require(pipe(&ends) == 0)
            return (ends[1], ends[0])
        default:
            let writer = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            try #require(write(writer, [UInt8](repeating: 1, count: 60_000), 60_000) == 60_000)
            return (writer, open(path, O_RDONLY | O_CLOEXEC))
        }
    }

    @Test(arguments: ["pipe", "file"]) func `what is open is written even if it has no name`(kind: String) async throws
    {
        let (writer, reader) = try self.nameless(kind)
        defer { close(reader) }
        let run = try await self.fixture.run("load", "in.jpg", "-o", "/proc/\(getpid())/fd/\(writer)")
        close(writer)
        #expect(run.code == 0 && run.errors.isEmpty)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = read(reader, &buffer, buffer.count)
        #expect(Data(buffer[..<max(0, count)]) == self.image)
        #expect(try self.fixture.names(in: ".") == ["in.jpg", "streams"])
    }

    @Test func `a chain of links without an end is refused`() async throws {
        symlink("b.jpg", self.fixture.folder.path(of: "a.jpg"))
        symlink("a.jpg", self.fixture.folder.path(of: "b.jpg"))
        let run = try await self.fixture.run("load", "in.jpg", "-o", "a.jpg")
        #expect(run.code == 1)
        #expect(run.errors == "tintype: in.jpg: a.jpg cannot be written (Too many levels of symbolic links).\n")
    }

    @Test(.disabled(if: ThisProcess.isThreadSanitized, "the thread sanitizer writes a file before main, and needs it"))
    func `a failed write leaves the old file and nothing beside it`() async throws {
        try self.fixture.folder.write([1], to: "out.jpg")
        let run = try await self.fixture.run("load", "in.jpg", "-o", "out.jpg", prelude: "ulimit -f 0 && trap '' XFSZ")
        #expect(run.code == 1)
        #expect(try self.fixture.data("out.jpg") == Data([1]))
        #expect(try self.fixture.names(in: ".") == ["in.jpg", "out.jpg", "streams"])
    }

    @Test(arguments: [
        ("%1B%5B31mred", "[31mred"), ("a%0Ab%0D%09c", "abc"), ("gpj%E2%80%AEexe", "gpjexe"),
        ("%E2%81%A6a%E2%81%A9%E2%80%8E%E2%80%8F%D8%9Cb", "ab"), ("%7F%C2%9B%E2%80%A8x", "x"), ("%E2%80%AE", "image"),
        ("%D9%85%D8%B1", "\u{645}\u{631}"),
    ])
    func `a name made from a URL has no control characters and marks of direction`(
        path: String,
        name: String
    ) async throws {
        let origin = try FaultyOrigin(["/\(path).jpg": .body(Array(self.image))])
        let run = try await self.fixture.run("load", origin.url("/\(path).jpg").absoluteString, "-o", "out/")
        #expect(run.code == 0, "\(run.testDescription)")
        #expect(try self.fixture.names(in: "out") == ["\(name).jpg"])
    }

    /// Characters that control a terminal or change the direction of text.
    private static let marks =
        "\u{202A}\u{202B}\u{202C}\u{202D}\u{202E}\u{2066}\u{2067}\u{2068}\u{2069}\u{200E}\u{200F}\u{61C}"
        + "\u{1}\u{1B}\u{7F}\u{80}\u{85}\u{9B}\u{9F}\u{2028}\u{2029}"

    @Test func `no report shows control characters and marks of direction, and JSON escapes them`() async throws {
        let name = "a\(Self.marks)b"
        try self.fixture.folder.write(Images.jpeg(profile: Images.profile(named: name)), to: "\(name).jpg")
        let origin = try FaultyOrigin(["/a.jpg": .body(Array(self.image))])
        let url = origin.url("/a.jpg").absoluteString
        let cached = try await self.fixture.run("load", url, "--cache-dir", name)
        #expect(cached.code == 0)
        let commands = [
            ["load", "\(name).jpg"], ["load", "\(name).jpg", "-o", "\(name).png"], ["info", "\(name).jpg"],
            ["info", "\(name).png"], ["load", "\(name).none"], ["info", "\(name).none"],
            ["cache", "stats", "--cache-dir", name], ["cache", "prune", "--cache-dir", name],
            ["cache", "verify", "--cache-dir", name], ["cache", "clear", "--cache-dir", name],
            ["cache", "stats", "--cache-dir", "none/\(name)"], ["prefetch", "list", "--cache-dir", name],
        ]
        try self.fixture.folder.write("x\(name.filter { !$0.isNewline })\n\(url)\n".utf8, to: "list")
        for command in commands {
            for arguments in [command, command + ["--json"]] {
                let run = try await self.fixture.run(arguments)
                let shown = (run.output + run.errors).unicodeScalars
                #expect(!shown.contains { Self.marks.unicodeScalars.contains($0) }, "\(run.testDescription)")
                guard arguments.last == "--json" else { continue }
                let names = try run.objects().flatMap { object in
                    ["url", "path", "directory"].compactMap { object[$0]?.string }
                }
                #expect(names.contains { $0.contains(name.filter { !$0.isNewline }) || $0.contains(name) })
            }
        }
    }

    @Test func `no message shows control characters and marks of direction`() async throws {
        let marks = Self.marks
        let name = "a\(marks)b"
        let runs = [
            try await self.fixture.run("load", "\(name).jpg"), try await self.fixture.run("info", "\(name).jpg"),
            try await self.fixture.run("load", "in.jpg", "--\(name)"),
            try await self.fixture.run("load", "in.jpg", "-o", "in.jpg/\(name)"),
            try await self.fixture.run("load", "in.jpg", "--cache-dir", "\(name)/", "--cache-only"),
            try await self.fixture.run("prefetch", name),
        ]
        #expect(runs.allSatisfy { $0.code != 0 })
        for run in runs {
            let shown =
                run.errors.unicodeScalars.filter { $0 != "\n" } + run.output.unicodeScalars.filter { $0 != "\n" }
            #expect(!shown.contains { marks.unicodeScalars.contains($0) }, "\(run.testDescription)")
        }
    }

    @Test func `a name that is not UTF-8 is read and written`() async throws {
        let name = #""$(printf 'caf\351.jpg')""#
        let made = "cp in.jpg \(name)"
        for arguments in [["load", "--json"], ["info", "--json"]] {
            let run = try await self.fixture.run(arguments, prelude: "\(made) && set -- \"$@\" \(name)")
            #expect(run.code == 0, "\(run.testDescription)")
            #expect(try run.object()["width"] == 16)
        }
        let written = try await self.fixture.run("load", "in.jpg", prelude: "rm \(name) && set -- \"$@\" -o \(name)")
        #expect(written.code == 0, "\(written.testDescription)")
        let copied = try await self.fixture.run("load", prelude: "set -- \"$@\" \(name) -o out/")
        #expect(copied.code == 0, "\(copied.testDescription)")
        #expect(try self.fixture.data("out/caf\u{FFFD}.jpg") == self.image)
        let raw = try await self.fixture.run("decode", prelude: "set -- \"$@\" \(name) --raw \(name).raw")
        #expect(raw.code == 0, "\(raw.testDescription)")
        let list = try await self.fixture.run(
            "prefetch",
            "-",
            prelude: "printf '# list\\n./caf\\351.jpg\\r\\n' > list && exec < list"
        )
        #expect(list.code == 1, "\(list.testDescription)")
        #expect(list.errors.hasPrefix("tintype: ./caf\u{FFFD}.jpg: The line is not a URL; "))
    }
}
