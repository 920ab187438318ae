// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The settings of `tintype serve`, its first line, and its end.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ServeTests {
    let fixture: CommandFixture

    init() throws {
        self.fixture = try CommandFixture()
    }

    /// Returns the text of a file in the fixture's folder; empty until it exists.
    private func text(of name: String) -> String {
        String(decoding: (try? self.fixture.data(name)) ?? Data(), as: UTF8.self)
    }

    /// Starts a server on a free port, and waits until it is ready.
    private func start(_ arguments: String...) async throws -> CommandProcess {
        let folder = self.fixture.folder
        let process = try CommandProcess(
            ["serve", "--listen", "127.0.0.1:0"] + arguments,
            in: folder,
            files: ["/dev/null", folder.path(of: "output"), folder.path(of: "errors")]
        )
        await until { self.text(of: "output").hasSuffix("\n") }
        return process
    }

    // MARK: - Settings

    @Test func `valid settings are reported and nothing is started`() async throws {
        try self.fixture.folder.write("quality = 70\npreset = a=w:5\n".utf8, to: "good.conf")
        let run = try await self.fixture.run("serve", "--check", "--config", "good.conf", "--no-ui")
        #expect(run.code == 0 && run.errors.isEmpty, "\(run.testDescription)")
        #expect(run.output == "the settings are valid\n")
    }

    @Test func `a mistake in the file is reported with its line`() async throws {
        try self.fixture.folder.write("# A comment\nquality = 700\n".utf8, to: "bad.conf")
        let run = try await self.fixture.run("serve", "--check", "--config", "bad.conf")
        #expect(run.code == 2 && run.output.isEmpty, "\(run.testDescription)")
        #expect(
            run.errors == "tintype: quality in line 2 of bad.conf takes a whole number from 1 to 100, and not 700.\n"
        )
    }

    @Test func `options come before variables, and these before the file`() async throws {
        try self.fixture.folder.write("quality = 70\n".utf8, to: "good.conf")
        let prelude = "export TINTYPE_QUALITY=bad"
        let wrong = try await self.fixture.run("serve", "--check", "--config", "good.conf", prelude: prelude)
        #expect(wrong.code == 2 && wrong.errors.contains("TINTYPE_QUALITY takes"), "\(wrong.testDescription)")
        let right = try await self.fixture.run("serve", "--check", "--quality", "5", prelude: prelude)
        #expect(right.code == 0, "\(right.testDescription)")
    }

    @Test func `variables without an effect are reported and no mistake`() async throws {
        let run = try await self.fixture.run(
            "serve",
            "--check",
            prelude: "export IMGPROXY_COLOUR=red TINTYPE_COLOUR=red IMGPROXY_AVIF_SPEED=5 IMGPROXY_QUALITY=70"
        )
        #expect(run.code == 0 && run.output == "the settings are valid\n", "\(run.testDescription)")
        let names = run.errorLines.compactMap { line in
            line.wholeMatch(of: /tintype: warning: (\w+) .+\./).map { String($0.1) }
        }
        #expect(names == ["IMGPROXY_AVIF_SPEED", "IMGPROXY_COLOUR", "TINTYPE_COLOUR"], "\(run.errors)")
    }

    @Test func `the variables are listed`() async throws {
        let run = try await self.fixture.run("serve", "--help-environment")
        #expect(run.code == 0 && run.errors.isEmpty, "\(run.testDescription)")
        #expect(run.lines.allSatisfy { $0.count <= 100 })
        for name in ["TINTYPE_KEY, IMGPROXY_KEY", "TINTYPE_CACHE_DIR", "AWS_REGION", "IMGPROXY_USE_GCS"] {
            #expect(run.output.contains(name), "\(name)")
        }
    }

    @Test func `the help lists the options of the contract`() async throws {
        let run = try await self.fixture.run("serve", "--help")
        for option in [
            "--listen", "--key", "--salt", "--insecure", "--config", "--cache-dir", "--local-root", "--allow",
            "--metrics-listen", "--ui", "--check",
        ] {
            #expect(run.lines.contains { ($0 + " ").hasPrefix("  \(option) ") }, "\(option)")
        }
    }

    // MARK: - Running

    @Test(arguments: [SIGTERM, SIGINT])
    func `a server prints its address and ends in order`(_ signal: CInt) async throws {
        let process = try await self.start()
        #expect(self.text(of: "output").wholeMatch(of: /listening on http:\/\/127\.0\.0\.1:[1-9]\d*\n/) != nil)
        process.signal(signal)
        #expect(await process.wait() == 0)
        #expect(self.text(of: "output").split(separator: "\n").count == 1)
    }

    @Test func `SIGHUP reads the settings again, and a mistake keeps the old ones`() async throws {
        let folder = self.fixture.folder
        try folder.write("key = 00\nsalt = 00\n".utf8, to: "serve.conf")
        let process = try await self.start("--config", "serve.conf")
        for (content, words) in [
            ("key = 01\nsalt = 01\n", "read again"), ("key = 0\nsalt = 01\n", "The old settings stay: Key 1"),
            ("", "The old settings stay: there are no keys"),
            ("pipe", "The old settings stay: serve.conf of --config is a pipe"),
            ("key = 02\nsalt = 02\n", "read again"),
        ] {
            let path = folder.url(of: "serve.conf").path(percentEncoded: false)
            unlink(path)
            if content == "pipe" {
                #expect(mkfifo(path, 0o600) == 0)
            } else {
                try folder.write(content.utf8, to: "serve.conf")
            }
            let before = self.text(of: "errors").count
            process.signal(SIGHUP)
            await until { self.text(of: "errors").dropFirst(before).contains("\n") }
            #expect(self.text(of: "errors").dropFirst(before).contains(words), "\(self.text(of: "errors"))")
        }
        process.signal(SIGTERM)
        #expect(await process.wait() == 0)
    }

    @Test func `an address in use is an error`() async throws {
        let process = try await self.start()
        let output = self.text(of: "output")
        let address = try #require(output.split(separator: "/").last).dropLast()
        let run = try await self.fixture.run("serve", "--listen", String(address))
        #expect(run.code == 1 && run.output.isEmpty && run.errorLines.count == 1, "\(run.testDescription)")
        #expect(run.errors.contains("cannot listen on \(address)"))
        process.signal(SIGTERM)
        #expect(await process.wait() == 0)
    }

    @Test func `SIGHUP ends other subcommands`() async throws {
        let door = Latch()
        let origin = try FaultyOrigin([
            "/a": FaultyResponse([FaultyResponse.head(200, [("Content-Length", "5")]), .wait(door)])
        ])
        let folder = self.fixture.folder
        let process = try CommandProcess(
            ["load", origin.url("/a").absoluteString],
            in: folder,
            files: ["/dev/null", folder.path(of: "output"), folder.path(of: "errors")]
        )
        await until { process.takesSignals }
        process.signal(SIGHUP)
        #expect(await process.wait() == -SIGHUP)
        door.open()
    }
}
