// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The display of `tintype load` on a terminal, and the effect of `Ctrl-C`.
@Suite(.waiting, .timeLimit(.minutes(5))) struct TerminalTests {
    let fixture: CommandFixture
    let body: [UInt8]

    init() throws {
        self.fixture = try CommandFixture()
        self.body = Array(try Fixtures.data("flower.webp"))
    }

    private func start(_ arguments: [String], on terminal: PseudoTerminal) throws -> CommandProcess {
        let process = try CommandProcess(
            arguments,
            in: self.fixture.folder,
            files: Array(repeating: terminal.path, count: 3),
            isTerminal: true
        )
        terminal.startReading()
        return process
    }

    /// Returns a body whose second half waits for the latch.
    private func halved(by door: Latch) -> FaultyResponse {
        let half = self.body.count / 2
        return FaultyResponse([
            FaultyResponse.head(200, [("Content-Length", "\(self.body.count)")]),
            .send(Array(self.body[..<half])), .wait(door), .send(Array(self.body[half...])),
        ])
    }

    @Test(arguments: [100, 60, 40])
    func `a slow origin shows a bar that is wiped in the end`(_ columns: UInt16) async throws {
        let door = Latch()
        let origin = try FaultyOrigin(["/slow.webp": self.halved(by: door), "/other.webp": self.halved(by: door)])
        let terminal = try PseudoTerminal(columns: columns)
        let urls = ["/slow.webp", "/other.webp"].map { origin.url($0).absoluteString }
        let process = try self.start(["load"] + urls, on: terminal)
        let isShown = await terminal.wait { text in
            // Wait for both rows of one drawing.
            let drawing = text.suffix(from: text.lastIndex(of: "\u{1B}") ?? text.startIndex)
            return drawing.matches(of: #/54\.\d kB of 109 kB, [\d.]+ [kM]?B/s, \d+ s left/#).count == 2
        }
        #expect(isShown, "\(terminal.text)")
        if columns >= 70 { #expect(terminal.text.contains(#/\[#+\.+\]/#)) }
        // A row that wraps into two lines could not be erased.
        var rows: [String] = []
        await until {
            rows = terminal.screen.filter { $0.contains(" left") }
            return rows.count == 2
        }
        #expect(rows.count == 2)
        #expect(rows.allSatisfy { $0.count < Int(columns) })
        #expect(Set(rows.map { $0.firstIndex(of: "[")?.utf16Offset(in: $0) }).count == 1)
        door.open()
        #expect(await process.wait() == 0)
        await terminal.waitUntilClosed()
        let screen = terminal.screen
        #expect(screen.count == 3 && screen[2].isEmpty, "\(screen)")
        for (line, url) in zip(screen, urls) { #expect(line.hasPrefix("\(url): webp 1134x756, 109 kB, from network")) }
    }

    @Test func `a body of unknown length shows that it moves`() async throws {
        let door = Latch()
        let origin = try FaultyOrigin([
            "/slow": FaultyResponse([
                FaultyResponse.head(200, [("Connection", "close")]), .send(self.body), .wait(door), .close,
            ])
        ])
        let terminal = try PseudoTerminal()
        let process = try self.start(["load", origin.url("/slow").absoluteString], on: terminal)
        #expect(await terminal.wait { $0.contains(#/\[~+\] 109 kB, /#) })
        door.open()
        #expect(await process.wait() == 0)
        await terminal.waitUntilClosed()
        #expect(!terminal.screen.contains { $0.contains("~") })
    }

    @Test func `a prefetch shows one bar for the whole list`() async throws {
        let door = Latch()
        let body = self.body
        let origin = try FaultyOrigin([
            "/1": .body(body), "/2": .reset, "/3": .held(by: door, body: body), "/4": .body(body),
        ])
        let list = (1...4).map { origin.url("/\($0)").absoluteString }.joined(separator: "\n")
        try self.fixture.folder.write(list.utf8, to: "urls.txt")
        let terminal = try PseudoTerminal()
        let process = try self.start(["prefetch", "urls.txt", "--concurrency", "1"], on: terminal)
        // One load succeeded, one failed, and the third waits.
        let isShown = await terminal.wait {
            $0.contains(#/prefetch \[#+\.+\] 2 of 4, 109 kB, [\d.]+ [kM]?B/s, 1 failed, \d+ s left/#)
        }
        #expect(isShown, "\(terminal.text)")
        door.open()
        #expect(await process.wait() == 1)
        await terminal.waitUntilClosed()
        let screen = terminal.screen
        #expect(!screen.contains { $0.contains("#") }, "\(screen)")
        #expect(screen.contains { $0.hasPrefix("3 of 4 are in the cache after ") })
    }

    @Test func `no progress means no control codes`() async throws {
        let origin = try FaultyOrigin(["/a": .drip(self.body, size: 40_000, pauseMilliseconds: 50)])
        let terminal = try PseudoTerminal()
        let process = try self.start(["load", "--no-progress", origin.url("/a").absoluteString], on: terminal)
        #expect(await process.wait() == 0)
        await terminal.waitUntilClosed()
        #expect(!terminal.text.contains("\u{1B}"))
        #expect(terminal.screen.count == 2)
    }

    @Test func `interrupting ends the load at once and cleanly`() async throws {
        // The body takes half an hour, which is longer than the time limit.
        let body = [UInt8](repeating: 0, count: 24_000_000)
        let origin = try FaultyOrigin(["/a.webp": .drip(body, size: 800, pauseMilliseconds: 60)])
        let terminal = try PseudoTerminal()
        let settings = terminal.settings
        let process = try self.start(["load", origin.url("/a.webp").absoluteString, "-o", "out/"], on: terminal)
        #expect(await terminal.wait { $0.contains(" of 24.0 MB") }, "\(terminal.text)")
        terminal.type("\u{3}")
        #expect(await process.wait() == 130)
        await origin.waitForDisconnect(from: "/a.webp")
        await terminal.waitUntilClosed()
        #expect(terminal.screen == [""])
        #expect(terminal.settings == settings)
        #expect(!FileManager.default.fileExists(atPath: self.fixture.folder.path(of: "out")))
        #expect(try await self.fixture.run("cache", "stats", "--json").object()["entries"] == 0)
    }

    @Test(arguments: [(SIGINT, CInt(130)), (SIGTERM, CInt(143))])
    func `signals end a command off a terminal`(_ signal: CInt, _ expected: CInt) async throws {
        let origin = try FaultyOrigin(["/1": .silence, "/2": .silence])
        let process = try CommandProcess(
            ["load", origin.url("/1").absoluteString, origin.url("/2").absoluteString],
            in: self.fixture.folder,
            files: ["/dev/null", self.fixture.folder.path(of: "output"), self.fixture.folder.path(of: "errors")]
        )
        await origin.waitForRequests(for: "/1")
        await origin.waitForRequests(for: "/2")
        process.signal(signal)
        #expect(await process.wait() == expected)
        await origin.waitForDisconnect(from: "/1")
        await origin.waitForDisconnect(from: "/2")
        #expect(try self.fixture.data("output").isEmpty)
    }

    @Test func `a list that is typed can be interrupted`() async throws {
        let origin = try FaultyOrigin(["/1": .silence])
        let terminal = try PseudoTerminal()
        let process = try self.start(["prefetch", "-"], on: terminal)
        // The load begins before the end of the list.
        terminal.type("\(origin.url("/1").absoluteString)\n")
        await origin.waitForRequests(for: "/1")
        terminal.type("\u{3}")
        #expect(await process.wait() == 130)
        await origin.waitForDisconnect(from: "/1")
    }
}
