// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The command in a process with too few resources.
///
/// Whatever the limit, the command ends by itself: with 0, or with 1 and one line that gives the reason.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ProcessLimitTests {
    let fixture: CommandFixture
    let image: Data

    init() throws {
        self.fixture = try CommandFixture()
        self.image = try Images.jpeg(width: 1_200, height: 900)
        try self.fixture.folder.write(self.image, to: "file.jpg")
    }

    /// Loads an image from an origin under a limit.
    private func load(_ prelude: String, _ options: String...) async throws -> CommandRun {
        let origin = try FaultyOrigin(["/a.jpg": .body(Array(self.image))])
        let arguments = ["load", origin.url("/a.jpg").absoluteString, "-o", "out.png"] + options
        return try await self.fixture.run(arguments, prelude: prelude)
    }

    /// Returns shell commands that leave only the standard streams open, and limit the number of descriptors.
    private static func descriptors(_ limit: Int) -> String {
        "for n in $(ls /proc/$$/fd); do ((n > 2)) && eval \"exec $n>&-\"; done; ulimit -n \(limit)"
    }

    private func expectOrderlyEnd(of run: CommandRun) {
        #expect(run.code == 0 || run.code == 1, "\(run.testDescription)")
        #expect(run.errorLines.count <= 1, "\(run.testDescription)")
        if run.code == 1 { #expect(run.errors.hasPrefix("tintype: "), "\(run.testDescription)") }
    }

    // The standard streams take three descriptors, and the dynamic linker needs one more to open a library.
    @Test(arguments: [4, 5, 8, 11, 12, 13, 14, 15, 17, 19, 22, 25, 30, 64])
    func `few descriptors`(limit: Int) async throws {
        let run = try await self.load(Self.descriptors(limit))
        self.expectOrderlyEnd(of: run)
        if run.code == 1 { #expect(run.errors.contains("ulimit -n"), "\(run.testDescription)") }
        if limit >= 30 { #expect(run.code == 0, "\(run.testDescription)") }
    }

    @Test func `few descriptors have a code of their own`() async throws {
        let run = try await self.load(Self.descriptors(13), "--json")
        #expect(run.code == 1)
        #expect(try run.object()["code"] == "tooManyOpenFiles")
    }

    // The linker needs 60 MB of address space in a debug build.
    @Test(
        .enabled(if: !ThisProcess.isSanitized),
        arguments: [80, 100, 110, 120, 130, 140, 160, 180, 200, 250, 300, 400, 600, 1_000]
    )
    func `little memory`(megabytes: Int) async throws {
        let run = try await self.load("ulimit -v \(megabytes * 1_000)")
        self.expectOrderlyEnd(of: run)
        if run.code == 1 { #expect(run.errors.contains("memory"), "\(run.testDescription)") }
        if megabytes >= 400 { #expect(run.code == 0, "\(run.testDescription)") }
    }

    @Test(.enabled(if: !ThisProcess.isSanitized))
    func `no memory has a code of its own`() async throws {
        // The pixels take 300 MB.
        try self.fixture.folder.write(try Images.png(declaring: 10_000, 10_000), to: "large.png")
        let run = try await self.fixture.run("load", "--json", "large.png", prelude: "ulimit -v 300000")
        self.expectOrderlyEnd(of: run)
        #expect(try run.object()["code"] == "outOfMemory", "\(run.testDescription)")
    }

    /// Whether threads can be limited, which needs another user than root for the command.
    private static let canLimitThreads = geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0

    @Test(.enabled(if: canLimitThreads), arguments: [1, 2, 3, 5, 8, 12, 16, 20, 24, 32, 64, 500])
    func `few threads`(limit: Int) async throws {
        // The user must be new, because all processes of a user count.
        let user = 600_000_000 + Int(getpid()) * 1_000 + limit
        let prelude =
            "chmod -R a+rwX . && set -- setpriv --reuid=\(user) --regid=\(user) --clear-groups "
            + "prlimit --nproc=\(limit) \"$@\""
        let run = try await self.load(prelude)
        self.expectOrderlyEnd(of: run)
        if run.code == 1 { #expect(run.errors.contains("ulimit -u"), "\(run.testDescription)") }
        if limit >= 64 { #expect(run.code == 0, "\(run.testDescription)") }
    }
}
