// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCommand

/// The commands `tintype cache` and `tintype prefetch`.
@Suite(.waiting, .timeLimit(.minutes(5))) struct CacheAndPrefetchTests {
    let fixture: CommandFixture
    let origin: FaultyOrigin
    let image: Data

    init() throws {
        self.fixture = try CommandFixture()
        self.image = try Images.png()
        let body = FaultyResponse.body(Array(self.image))
        self.origin = try FaultyOrigin(["/1.png": body, "/2.png": body, "/3.png": body])
    }

    private func url(_ number: Int) -> String { self.origin.url("/\(number).png").absoluteString }

    @Test func `a cache folder that everyone may change is used with a warning`() async throws {
        let first = try await self.fixture.run("load", self.url(2))
        #expect(first.code == 0 && !first.errors.contains("may change"), "\(first.testDescription)")
        let path = self.fixture.folder.path(of: "cache/tintype")
        #expect(chmod(path, 0o777) == 0)
        for arguments in [["load", self.url(1)], ["cache", "stats"]] {
            let run = try await self.fixture.run(arguments)
            #expect(run.code == 0, "\(run.testDescription)")
            let warnings = run.errors.split(separator: "\n").filter { $0.contains("Every user may change") }
            #expect(warnings.count == 1, "\(run.testDescription)")
        }
        #expect(chmod(path, 0o700) == 0)
        #expect(try await !self.fixture.run("cache", "stats").errors.contains("may change"))
    }

    @Test func `a list is prefetched from a file`() async throws {
        let list = "# images\n\n  \(self.url(1))  \r\n\(self.url(2))\n"
        try self.fixture.folder.write(list.utf8, to: "urls.txt")
        let run = try await self.fixture.run("prefetch", "urls.txt")
        #expect(run.code == 0, "\(run.testDescription)")
        #expect(run.output.hasPrefix("2 of 2 are in the cache after "))
        let load = try await self.fixture.run("load", "--json", "--cache-only", self.url(1), self.url(2))
        #expect(load.code == 0)
        #expect(try load.objects().map { $0["source"] } == ["disk", "disk"])
    }

    @Test func `a list is prefetched from standard input`() async throws {
        let list = [self.url(1), self.url(2), self.url(3), self.origin.url("/missing").absoluteString]
        let run = try await self.fixture.run(
            "prefetch",
            "-",
            "--json",
            "--concurrency",
            "2",
            input: list.joined(separator: "\n")
        )
        #expect(run.code == 1)
        // The command reports the loads in the order in which they end.
        let objects = Dictionary(uniqueKeysWithValues: try run.objects().map { ($0["url"]?.string ?? "", $0) })
        #expect(Set(objects.keys) == Set(list))
        for url in list.dropLast() {
            #expect(objects[url]?["source"] == "network")
            #expect(objects[url]?["bytes"]?.number == Double(self.image.count))
        }
        #expect(objects[list[3]]?["code"] == "badStatus")
        #expect(run.errorLines.count == 1)
    }

    @Test func `images are loaded while the lock of the cache is kept`() async throws {
        _ = try await self.fixture.run("load", self.url(3))
        let lock = try KeptLock(of: self.fixture.folder.path(of: "cache/tintype"))
        let load = try await self.fixture.run("load", "--json", self.url(1), self.url(2))
        #expect(load.code == 0, "\(load.testDescription)")
        #expect(try load.objects().map { $0["source"] } == ["network", "network"])
        let clear = try await self.fixture.run("cache", "clear")
        #expect(clear.code == 1)
        #expect(clear.errors.contains("keeps the lock of the cache folder"))
        withExtendedLifetime(lock) {}
    }

    @Test func `signal ends a command that waits for the lock of the cache`() async throws {
        _ = try await self.fixture.run("load", self.url(3))
        let lock = try KeptLock(of: self.fixture.folder.path(of: "cache/tintype"))
        let process = try CommandProcess(
            ["cache", "clear"],
            in: self.fixture.folder,
            files: ["/dev/null", self.fixture.folder.path(of: "output"), self.fixture.folder.path(of: "errors")]
        )
        await until { process.takesSignals }
        process.signal(SIGTERM)
        #expect(await process.wait() == 143)
        withExtendedLifetime(lock) {}
    }

    @Test func `a line that is no URL of the network is an error, and the others are prefetched`() async throws {
        try self.fixture.folder.write(self.image, to: "here.png")
        let path = self.fixture.folder.path(of: "here.png")
        let list = ["not a url", "here.png", "file://\(path)", "data:,x", self.url(1)]
        let run = try await self.fixture.run("prefetch", "-", "--json", input: list.joined(separator: "\n"))
        #expect(run.code == 1)
        let codes = try run.objects().map { $0["code"]?.string }
        #expect(codes == ["invalidURL", "invalidURL", "unsupportedScheme", "unsupportedScheme", nil])
        #expect(run.errorLines.count == 4)
        #expect(run.errorLines.first?.hasPrefix("tintype: not a url: The line is not a URL; ") == true)
        let again = try await self.fixture.run("prefetch", "-", input: list.joined(separator: "\n"))
        #expect(again.output.hasPrefix("1 of 5 are in the cache after "))
        #expect(try await self.fixture.run("cache", "stats", "--json").object()["entries"] == 1)
    }

    @Test func `concurrency limits the downloads`() async throws {
        let door = Latch()
        for number in 1...3 {
            self.origin.script("/\(number).png", .held(by: door, body: Array(self.image)))
        }
        let list = (1...3).map { self.url($0) }.joined(separator: "\n")
        async let run = self.fixture.run("prefetch", "-", "--concurrency", "1", input: list)
        await until { (1...3).contains { self.origin.requestCount(for: "/\($0).png") > 0 } }
        #expect(self.origin.connectionCount == 1)
        door.open()
        #expect(try await run.code == 0)
        #expect(self.origin.connectionCount == 1)
    }

    @Test func `a byte order mark is no part of the first address`() async throws {
        let run = try await self.fixture.run("prefetch", "-", "--json", input: "\u{FEFF}\(self.url(1))\n")
        #expect(run.code == 0)
        #expect(try run.object()["url"]?.string == self.url(1))
    }

    @Test func `a list without line ends is refused before it is read whole`() async throws {
        let run = try await self.fixture.run("prefetch", "-", prelude: "exec < <(yes | tr -d '\\n')")
        #expect(run.code == 1)
        #expect(run.errorLines.count == 1)
        #expect(run.errors.contains("The list on standard input has a line of over a megabyte"))
        #expect(try await self.fixture.run("prefetch", "/dev/zero").errorLines.count == 1)
    }

    @Test(arguments: ["photo.png", "flower.webp", "utf16.txt"])
    func `a file that is not text is refused in one line`(name: String) async throws {
        try self.fixture.folder.write(self.image, to: "photo.png")
        try self.fixture.folder.write(Fixtures.data("flower.webp"), to: "flower.webp")
        try self.fixture.folder.write(self.url(1).utf8.flatMap { [$0, 0] }, to: "utf16.txt")
        let run = try await self.fixture.run("prefetch", name)
        #expect(run.code == 1)
        #expect(run.errors == "tintype: The list \(name) is not text in UTF-8; give it one URL a line.\n")
        #expect(run.output.isEmpty)
    }

    @Test func `text that is no list is given up after some lines`() async throws {
        let lines = (1...3_000).map { "line \($0)" }
        let run = try await self.fixture.run("prefetch", "-", input: lines.joined(separator: "\n"))
        #expect(run.code == 1)
        #expect(run.errorLines.count == 21)
        let last = try #require(run.errorLines.last)
        #expect(last.hasPrefix("tintype: The first 20 lines of the list on standard input are not URLs"))
        // A list that has a URL may have more than 20 lines that are not URLs.
        let list = [self.url(1)] + lines.prefix(40)
        let mixed = try await self.fixture.run("prefetch", "-", input: list.joined(separator: "\n"))
        #expect(mixed.errorLines.count == 40)
        #expect(mixed.output.hasPrefix("1 of 41 are in the cache after "))
    }

    @Test(.disabled(if: ThisProcess.isSanitized, "sanitizers take memory of their own"))
    func `an endless list is loaded as it comes, within a limit of memory`() async throws {
        let output = self.fixture.folder.path(of: "output")
        let process = try CommandProcess(
            ["prefetch", "-", "--json"],
            in: self.fixture.folder,
            files: ["/dev/null", output, self.fixture.folder.path(of: "errors")],
            prelude: "exec < <(exec yes \(self.url(1)))"
        )
        await until { (try? Data(contentsOf: URL(filePath: output)).count) ?? 0 > 50_000 }
        let status = String(decoding: try Data(contentsOf: URL(filePath: "/proc/\(process.id)/status")), as: UTF8.self)
        let peak = try #require(status.firstMatch(of: #/VmHWM:\s+(\d+) kB/#).flatMap { Int($0.1) })
        #expect(peak < 200_000)
        process.signal(SIGTERM)
        #expect(await process.wait() == 143)
    }

    @Test(arguments: ["missing.txt", "."])
    func `a list that can not be read is an error`(_ path: String) async throws {
        let run = try await self.fixture.run("prefetch", path)
        #expect(run.code == 1)
        #expect(run.output.isEmpty && run.errorLines.count == 1)
        #expect(run.errors.contains("The list \(path) cannot be read"))
    }

    @Test func `prefetching into no cache is a failure`() async throws {
        try self.fixture.folder.write([1], to: "file")
        let run = try await self.fixture.run("prefetch", "-", "--cache-dir", "file/cache", input: self.url(1))
        #expect(run.code == 1)
        #expect(run.output.hasPrefix("0 of 1 "))
    }

    @Test func `the cache is counted tidied and emptied`() async throws {
        _ = try await self.fixture.run("load", self.url(1), self.url(2))
        let stats = try await self.fixture.run("cache", "stats", "--json").object()
        #expect(Set(stats.keys) == ["directory", "entries", "bytes", "overheadBytes", "sizeLimit"])
        #expect(stats["entries"] == 2)
        #expect(stats["bytes"]?.number ?? 0 >= Double(2 * self.image.count))
        let directory = try #require(stats["directory"]?.string)
        #expect(directory == self.fixture.folder.path(of: "cache/tintype"))
        let table = try await self.fixture.run("cache", "stats").output.split(separator: "\n")
        #expect(table.count == 5)
        #expect(table.first == "directory  \(directory)")
        #expect(table.contains("entries    2"))

        let pruned = try await self.fixture.run("cache", "prune", "--json").object()
        #expect(pruned["removed"] == 0 && pruned["entries"] == 2)
        try self.damageOneEntry(in: directory)
        #expect(try await self.fixture.run("cache", "prune").output.hasPrefix("removed 1 entry and 0 leftovers, "))

        let cleared = try await self.fixture.run("cache", "clear", "--json").object()
        #expect(cleared["entries"] == 1)
        #expect(try await self.fixture.run("cache", "stats", "--json").object()["entries"] == 0)
        #expect(try await self.fixture.run("cache", "clear").output == "removed 0 entries, 0 B\n")
    }

    @Test(arguments: [true, false]) func `verify finds the damaged entry and tells by success`(
        isKeeping: Bool
    ) async throws {
        _ = try await self.fixture.run("load", self.url(1), self.url(2))
        let good = try await self.fixture.run("cache", "verify")
        #expect(good.code == 0, "\(good.testDescription)")
        #expect(good.output.hasPrefix("read 2 entries, "))
        #expect(good.output.hasSuffix("; none is damaged\n"))

        let directory = self.fixture.folder.path(of: "cache/tintype")
        try self.damageOneEntry(in: directory)
        let run = try await self.fixture.run(["cache", "verify", "--json"] + (isKeeping ? ["--keep"] : []))
        #expect(run.code == 1)
        let report = try run.object()
        #expect(report["entries"] == 2 && report["damaged"] == 1)
        guard case .array(let findings)? = report["findings"], case .object(let finding)? = findings.first else {
            Issue.record("no finding")
            return
        }
        #expect(finding["removed"] == .bool(!isKeeping))
        #expect(finding["path"]?.string?.hasPrefix(directory) == true)
        let again = try await self.fixture.run("cache", "verify")
        #expect(again.code == (isKeeping ? 1 : 0))
        #expect(again.output.contains("PROBLEM") == isKeeping)
    }

    @Test func `clearing leaves foreign files alone`() async throws {
        try self.fixture.folder.write([1, 2, 3], to: "mine/precious.txt")
        // The first layout of the cache had such folders, whose names are two hexadecimal digits.
        try self.fixture.folder.write([4, 5, 6], to: "mine/de/brief.txt")
        for action in ["prune", "clear"] {
            #expect(try await self.fixture.run("cache", action, "--cache-dir", "mine").code == 0)
        }
        #expect(try self.fixture.data("mine/precious.txt") == Data([1, 2, 3]))
        #expect(try self.fixture.data("mine/de/brief.txt") == Data([4, 5, 6]))
    }

    @Test func `the command never shrinks a cache that a server keeps larger`() async throws {
        let directory = self.fixture.folder.url(of: "server")
        let cache = DiskCache(.init(directory: directory, sizeLimit: 8 << 20))
        for number in 0..<4 {
            try await cache.store(Data(count: 1 << 20), metadata: .init(), for: CacheKey("\(number)"))
        }
        await cache.shutdown()
        let small = await DiskCache.Configuration(directory: directory, sizeLimit: 1 << 20).sparing()
        #expect(small.sizeLimit > 4 << 20)
        let opened = DiskCache(small)
        #expect(await opened.prune().evictedEntries == 0)
        #expect(await opened.statistics().entryCount == 4)
        await opened.shutdown()
        #expect(await DiskCache.Configuration(directory: directory, sizeLimit: 8 << 20).sparing().sizeLimit == 8 << 20)
    }

    @Test func `a file is no cache`() async throws {
        try self.fixture.folder.write([1], to: "file")
        let run = try await self.fixture.run("cache", "clear", "--cache-dir", "file")
        #expect(run.code == 1)
        #expect(run.errorLines.count == 1)
    }

    private func damageOneEntry(in directory: String) throws {
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory).filter { $0.hasPrefix("entries/") }
        for name in names {
            let url = URL(filePath: "\(directory)/\(name)")
            guard var bytes = try? Data(contentsOf: url), bytes.count >= self.image.count else { continue }
            bytes[0] ^= 1
            return try bytes.write(to: url)
        }
        Issue.record("there is no entry")
    }
}
