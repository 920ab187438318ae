// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The output of the command for help and for wrong usage.
@Suite(.waiting, .timeLimit(.minutes(5))) struct UsageTests {
    let fixture: CommandFixture

    init() throws {
        self.fixture = try CommandFixture()
    }

    @Test(arguments: ["load", "show", "info", "decode", "cache", "prefetch", "serve"])
    func `every subcommand prints help`(_ name: String) async throws {
        let run = try await self.fixture.run(name, "--help")
        #expect(run.code == 0 && run.errors.isEmpty)
        #expect(run.output.contains("Usage: tintype \(name) "))
        #expect(try await self.fixture.run("help", name).output == run.output)
        #expect(try await self.fixture.run(name, "something", "-h").output == run.output)
        // Help must fit the usual terminal of 100 columns.
        #expect(run.lines.allSatisfy { $0.count <= 100 })
    }

    @Test func `the version is one line`() async throws {
        let run = try await self.fixture.run("--version")
        #expect(run.code == 0 && run.errors.isEmpty)
        #expect(run.output.wholeMatch(of: /tintype \d+\.\d+\.\d+\n/) != nil)
    }

    @Test func `help lists the subcommands and the exit codes`() async throws {
        let run = try await self.fixture.run("--help")
        #expect(run.code == 0 && run.errors.isEmpty)
        for word in ["load", "show", "info", "decode", "cache", "prefetch", "serve", "130"] {
            #expect(run.output.contains(word))
        }
    }

    @Test(arguments: [
        ([], "subcommand is missing"),
        (["paint"], "no subcommand paint"),
        (["load"], "a URL or a path is missing"),
        (["load", ""], "empty"),
        (["load", "-"], "standard input"),
        (["load", "localhost:8078/x"], "write http://localhost:8078/x, or ./localhost:8078/x for a file"),
        (["info", "127.0.0.1:80"], "127.0.0.1:80 has no scheme"),
        (["show", "[::1]:8080/a.jpg?b"], "has no scheme"),
        (["load", "a", "--colour"], "no option --colour"),
        (["load", "a", "--json=1"], "--json takes no value"),
        (["load", "a", "-o"], "-o needs a value"),
        (["load", "a", "-o", ""], "-o needs a value"),
        (["load", "a", "-o", "-"], "standard output"),
        (["load", "a", "b", "-o", "c.jpg"], "-o must name a folder"),
        (["load", "a", "--resize", "0x100"], "800x600"),
        (["load", "a", "--resize", "100x-1"], "800x600"),
        (["load", "a", "--mode", "fit"], "--mode needs --resize"),
        (["load", "a", "--resize", "1x1", "--mode", "crop"], "fit, fill, fillDown, cover, stretch"),
        (["load", "a", "--quality", "0"], "1 to 100"),
        (["load", "a", "--quality=101"], "1 to 100"),
        (["load", "a", "--quality", "good"], "1 to 100"),
        (["load", "a", "--format", "bmp"], "jpeg, png, webp, gif"),
        (["load", "a", "--format", "png"], "--format needs -o"),
        (["load", "a", "--quality", "50"], "--quality needs -o"),
        (["load", "a", "--keep-metadata"], "--keep-metadata needs -o"),
        (["load", "a", "-o", "b.tiff"], "jpeg, png, webp, gif"),
        (["load", "a", "--reload", "--cache-only"], "contradict"),
        (["load", "a", "--revalidate", "--cache-only"], "contradict"),
        (["show"], "a URL or a path is missing"),
        (["show", "a", "--protocol", "iterm"], "auto, kitty, sixel, blocks"),
        (["show", "a", "--width", "0"], "1 to 1000"),
        (["show", "a", "--still", "--loops", "2"], "contradict"),
        (["info"], "a URL or a path is missing"),
        (["info", "a", "--frame", "1"], "no option --frame"),
        (["decode", "a"], "--raw FILE is missing"),
        (["decode", "--raw", "b"], "exactly one path"),
        (["decode", "a", "c", "--raw", "b"], "exactly one path"),
        (["decode", "a", "--raw", "b", "--frame", "-1"], "--frame takes a number"),
        (["decode", "http://127.0.0.1/a", "--raw", "b"], "decode reads files"),
        (["cache"], "exactly one of"),
        (["cache", "burn"], "stats, clear, prune and verify"),
        (["prefetch"], "exactly one file"),
        (["prefetch", ""], "name of the list is empty"),
        (["prefetch", "a", "--concurrency", "0"], "1 to 64"),
        (["serve", "a"], "serve takes options only"),
        (["serve", "--colour"], "no option --colour"),
        (["serve", "--ui=yes"], "--ui takes no value"),
        (["serve", "--no-quality"], "no option --no-quality"),
        (["serve", "--quality"], "--quality needs a value"),
        (["serve", "--quality", "0"], "--quality takes a whole number from 1 to 100, and not 0."),
        (["serve", "--key", "00"], "(--key: 1) is not the number of salts (--salt: 0)"),
        (["serve", "--check", "--authorities", "missing.pem"], "missing.pem of authorities cannot be read"),
        (["serve", "--check", "--allow-options", "resise,q"], "\"resise\" does not exist"),
        (["cluster", "status"], "--shared or the variable TINTYPE_SHARED is missing"),
        (["cluster", "status", "--shared", "http://a"], "--shared cannot be used"),
        (["serve", "--listen", ":8080"], "--insecure"),
        (["serve", "--config", "-"], "--config needs the name of a file"),
        (["serve", "--config", "missing.conf"], "missing.conf of --config cannot be read"),
    ])
    func `wrong usage is one line that says what is wrong`(_ arguments: [String], _ words: String) async throws {
        let run = try await self.fixture.run(arguments)
        #expect(run.code == 2)
        #expect(run.output.isEmpty)
        #expect(run.errorLines.count == 1)
        #expect(run.errors.hasPrefix("tintype: "))
        #expect(run.errors.contains(words), "\(run.errors)")
    }

    @Test(arguments: [["load"], ["load", "a", "--resize"], ["load", "a", "--pipeline"], ["prefetch"], ["cache"], []])
    func `a message quotes a part of a long argument`(_ arguments: [String]) async throws {
        let run = try await self.fixture.run(arguments + [String(repeating: "a", count: 100_000)])
        #expect(run.code != 0 && run.errorLines.count == 1)
        #expect(run.errors.utf8.count < 1_300, "\(run.errors.utf8.count)")
    }

    @Test func `what follows two dashes is no option`() async throws {
        try self.fixture.folder.write(Images.png(), to: "--help")
        let run = try await self.fixture.run("info", "--json", "--", "--help")
        #expect(run.code == 0)
        #expect(try run.object()["format"] == "png")
    }
}
