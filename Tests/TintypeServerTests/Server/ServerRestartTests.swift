// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// The command `tintype serve`, killed and ended under load.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ServerRestartTests {
    /// A running `tintype serve` on a free port.
    private final class Command: Sendable {
        let address: String
        let id: pid_t
        private let process: ChildProcess

        init(in folder: TemporaryDirectory, name: String) async throws {
            let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            let program = URL(filePath: tests).deletingLastPathComponent().appending(path: "tintype").path
            let log = folder.path(of: "\(name).log")
            self.process = try ChildProcess(
                [
                    "/bin/sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", folder.path(of: "\(name).pid"), program, "serve",
                    "--listen", "127.0.0.1:0", "--cache-dir", folder.path(of: "cache"), "--allow-network", "loopback",
                    "--log-format", "none", "--answer-time", "60s", "--download-time", "60s",
                ],
                environment: ["HOME": folder.path],
                log: log
            )
            func text(_ path: String) -> String {
                String(decoding: (try? Data(contentsOf: URL(filePath: path))) ?? Data(), as: UTF8.self)
            }
            await until { text(log).contains("\n") }
            let match = try #require(text(log).firstMatch(of: /listening on http:\/\/([0-9.:]+)/), "\(text(log))")
            self.address = String(match.1)
            self.id = try #require(pid_t(text(folder.path(of: "\(name).pid")).filter { $0.isNumber }))
        }

        func signal(_ number: CInt) { kill(self.id, number) }

        /// Whether the process is there.
        var isRunning: Bool {
            let status = (try? String(contentsOfFile: "/proc/\(self.id)/stat", encoding: .utf8)) ?? ""
            return !status.isEmpty && !status.contains(") Z ")
        }
    }

    @Test func `after kill -9 under load, another server serves the stored images, all of them intact`()
        async throws
    {
        let folder = try TemporaryDirectory()
        let origin = try FaultyOrigin(["/a": .image(try ServerImages.encoded(.png))])
        let source = origin.url("/a").absoluteString
        let first = try await Command(in: folder, name: "first")
        let client = try await ServerClient(to: first.address)
        var stored: [Int: [UInt8]] = [:]
        for width in 1...20 { stored[width] = try await client.response(to: "/unsafe/w:\(width)/plain/\(source)").body }
        let load = (0..<4).map { number in
            Task {
                let client = try await ServerClient(to: first.address)
                for width in 21...100 {
                    _ = try await client.response(to: "/unsafe/w:\(width)/h:\(number)/plain/\(source)")
                }
            }
        }
        _ = try await client.response(to: "/unsafe/w:30/plain/\(source)")
        first.signal(SIGKILL)
        for task in load { _ = try? await task.value }
        await until { !first.isRunning }

        let second = try await Command(in: folder, name: "second")
        let other = try await ServerClient(to: second.address)
        var hits = 0
        for width in 1...20 {
            let response = try await other.response(to: "/unsafe/w:\(width)/plain/\(source)")
            #expect(response.status == 200 && response.body == stored[width], "\(width)")
            if response["X-Cache"] == "disk" || response["X-Cache"] == "memory" { hits += 1 }
        }
        // The last results may not have been written.
        #expect(hits >= 10, "\(hits) hits")
        for width in 21...100 {
            let response = try await other.response(to: "/unsafe/w:\(width)/h:1/plain/\(source)")
            #expect(response.status == 200)
            #expect(throws: Never.self) { try response.decoded() }
        }
        second.signal(SIGTERM)
        await until { !second.isRunning }
    }

    @Test func `after SIGTERM under load, each request that had begun is answered`() async throws {
        let folder = try TemporaryDirectory()
        let latch = Latch()
        let png = try ServerImages.encoded(.png)
        let origin = try FaultyOrigin(["/a": .held(by: latch, body: png)])
        let source = origin.url("/a").absoluteString
        let command = try await Command(in: folder, name: "server")
        var clients: [ServerClient] = []
        for number in 1...8 {
            let client = try await ServerClient(to: command.address)
            await client.request("/unsafe/w:\(number)/plain/\(source)")
            clients.append(client)
        }
        await origin.waitForRequests(for: "/a")
        let probe = try await ServerClient(to: command.address)
        // The others have been read when this one is answered.
        await until { (try? await probe.response(to: "/ready").text.contains(": 8 of")) == true }
        command.signal(SIGTERM)
        await until { (try? await ServerClient(to: command.address)) == nil }
        latch.open()
        for client in clients {
            let response = try await client.receive()
            #expect(response.status == 200)
            #expect(response["Connection"] == "close")
        }
        await until { !command.isRunning }
    }
}
