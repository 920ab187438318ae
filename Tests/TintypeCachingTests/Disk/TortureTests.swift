// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestTraits

extension Tag {
    /// Marks tests that take more than a second.
    @Tag static var slow: Self
}

@Suite(.computing, .tags(.slow), .timeLimit(.minutes(5))) struct TortureTests {
    /// Runs a small part of `make torture`.
    @Test func `killed processes flipped bits and bad disks never give a wrong entry`() throws {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(filePath: tests).deletingLastPathComponent().appending(path: "CacheTorture").path
        let folder = try ScratchFolder()
        let log = folder.path + "/log"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        let texts: [String] = [program, "8", "42"]
        let arguments: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        try #require(posix_spawn(&process, program, &actions, nil, arguments, environ) == 0)
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let output = try String(decoding: Data(contentsOf: URL(filePath: log)), as: UTF8.self)
        #expect(status == 0, "\(output)")
        #expect(output.hasSuffix("passed\n"))
    }
}
