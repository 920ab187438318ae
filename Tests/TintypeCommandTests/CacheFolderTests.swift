// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The location of the command's cache, and the messages about a cache that cannot be used.
@Suite(.waiting, .timeLimit(.minutes(5))) struct CacheFolderTests {
    let fixture: CommandFixture
    let image: Data

    init() throws {
        self.fixture = try CommandFixture()
        self.image = try Images.jpeg()
    }

    private func directory(_ prelude: String) async throws -> String? {
        try await self.fixture.run("cache", "stats", "--json", prelude: prelude).object()["directory"]?.string
    }

    @Test func `the folder follows XDG_CACHE_HOME and HOME, where they are absolute`() async throws {
        #expect(try await self.directory("export XDG_CACHE_HOME=/x/y HOME=/h") == "/x/y/tintype")
        #expect(try await self.directory("unset XDG_CACHE_HOME; export HOME=/h") == "/h/.cache/tintype")
        #expect(try await self.directory("export XDG_CACHE_HOME=relative HOME=/h") == "/h/.cache/tintype")
        #expect(try await self.directory("export XDG_CACHE_HOME= HOME=/h") == "/h/.cache/tintype")
        let account = try #require(getpwuid(geteuid())).pointee.pw_dir
        let home = try #require(account.map { String(cString: $0) })
        for value in ["unset HOME", "export HOME=", "export HOME=relative"] {
            #expect(try await self.directory("unset XDG_CACHE_HOME; \(value)") == "\(home)/.cache/tintype")
        }
    }

    /// Commands that create a folder which this user cannot use.
    ///
    /// Root can use any folder that is not on a read-only file system.
    private static let unusable: [(make: String, path: String)] =
        geteuid() == 0
        ? [("touch plain", "plain"), ("touch plain", "plain/below"), ("true", "/proc/sys")]
        : [("touch plain", "plain"), ("touch plain", "plain/below"), ("mkdir -m 0 closed", "closed")]

    @Test(arguments: unusable)
    func `a folder that cannot be used is told of once, and the load goes on`(make: String, path: String) async throws {
        let origin = try FaultyOrigin(["/a.jpg": .body(Array(self.image))])
        let url = origin.url("/a.jpg").absoluteString
        let run = try await self.fixture.run("load", url, "--cache-dir", path, prelude: make)
        #expect(run.code == 0, "\(run.testDescription)")
        #expect(run.errorLines.count == 1, "\(run.testDescription)")
        #expect(run.errors.hasPrefix("tintype: warning: "), "\(run.testDescription)")
        let cached = try await self.fixture.run("load", url, "--cache-only", "--cache-dir", path, prelude: make)
        #expect(cached.code == 1)
        #expect(cached.errorLines.contains { $0.hasPrefix("tintype: warning: ") }, "\(cached.testDescription)")
        for action in ["stats", "verify", "prune", "clear"] {
            let run = try await self.fixture.run("cache", action, "--cache-dir", path, prelude: make)
            #expect(run.code == 1, "\(run.testDescription)")
            #expect(run.errorLines.count == 1, "\(run.testDescription)")
        }
    }

    @Test func `nothing is said of a folder that is not needed`() async throws {
        try self.fixture.folder.write(self.image, to: "in.jpg")
        try self.fixture.folder.write([], to: "plain")
        #expect(try await self.fixture.run("load", "in.jpg", "--cache-dir", "plain").errors == "")
        #expect(try await self.fixture.run("cache", "stats", "--cache-dir", "yet/to/be/made").code == 0)
    }

    @Test(arguments: ["stats", "verify", "prune", "clear"])
    func `a folder that has no cache is told of, and one that has is not`(action: String) async throws {
        try self.fixture.folder.write([1], to: "mine/letter.txt")
        let foreign = try await self.fixture.run("cache", action, "--cache-dir", "mine")
        #expect(foreign.code == 0 && foreign.errorLines.count == 1)
        #expect(foreign.errors.hasSuffix("/mine has no cache in it.\n"), "\(foreign.errors)")
        let missing = try await self.fixture.run("cache", action, "--cache-dir", "mistyped", "--json")
        #expect(missing.code == 0 && missing.errorLines.count == 1)
        #expect(missing.errors.contains("There is no folder ") && missing.errors.contains("/mistyped yet"))
        let origin = try FaultyOrigin(["/a.jpg": .body(Array(self.image))])
        _ = try await self.fixture.run("load", origin.url("/a.jpg").absoluteString, "--cache-dir", "cache")
        #expect(try await self.fixture.run("cache", action, "--cache-dir", "cache").errors == "")
    }

    @Test(arguments: [
        "load URL --cache-only", "load URL", "load in.jpg", "show URL", "show in.jpg", "prefetch URL", "cache stats",
        "cache clear", "cache prune", "cache verify",
    ])
    func `a command that stores nothing leaves nothing in a folder`(command: String) async throws {
        let origin = try FaultyOrigin(["/a.jpg": .body([], status: 404)])
        try self.fixture.folder.write(self.image, to: "in.jpg")
        try self.fixture.folder.write([1], to: "mine/letter.txt")
        let words = command.split(separator: " ").map { $0 == "URL" ? origin.url("/a.jpg").absoluteString : String($0) }
        let run = try await self.fixture.run(words + ["--cache-dir", "mine"])
        #expect(run.code == (words.contains { $0.hasPrefix("http") } ? 1 : 0), "\(run.testDescription)")
        #expect(try self.fixture.names(in: "mine") == ["letter.txt"])
    }

    @Test func `a load that stores makes a cache beside what is in the folder`() async throws {
        let origin = try FaultyOrigin(["/a.jpg": .body(Array(self.image))])
        try self.fixture.folder.write([1], to: "mine/letter.txt")
        let words = ["load", origin.url("/a.jpg").absoluteString, "--cache-dir", "mine"]
        #expect(try await self.fixture.run(words).code == 0)
        #expect(try self.fixture.names(in: "mine").contains("entries"))
        #expect(try await self.fixture.run(words + ["--cache-only"]).code == 0)
        #expect(try self.fixture.names(in: "mine").contains("letter.txt"))
    }

    @Test(arguments: [["stats"], ["clear"], ["prune"], ["verify"]])
    func `a report of a folder without a cache has every field`(action: [String]) async throws {
        let empty = try await self.fixture.run(["cache"] + action + ["--json", "--cache-dir", "none"]).object()
        let origin = try FaultyOrigin(["/a.jpg": .body(Array(self.image))])
        _ = try await self.fixture.run("load", origin.url("/a.jpg").absoluteString, "--cache-dir", "cache")
        let report = try await self.fixture.run(["cache"] + action + ["--json", "--cache-dir", "cache"]).object()
        #expect(Set(empty.keys) == Set(report.keys))
        #expect(empty["directory"]?.string == self.fixture.folder.path(of: "none"))
        #expect(empty["entries"] == 0)
    }
}
