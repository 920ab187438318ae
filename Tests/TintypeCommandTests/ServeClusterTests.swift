// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCluster

/// Three processes of `tintype serve` with one Redis.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ServeClusterTests {
    private struct Server {
        let process: CommandProcess
        let address: String
    }

    private let fixture: CommandFixture
    private let downloads: DownloadActor

    init() throws {
        self.fixture = try CommandFixture()
        var configuration = DownloadActor.Configuration()
        configuration.timeout = .seconds(60)
        configuration.firstByteTimeout = .seconds(60)
        configuration.retryPolicy = .never
        self.downloads = DownloadActor(configuration: configuration)
    }

    private func start(_ redis: RedisServer) async throws -> [Server] {
        var servers: [Server] = []
        for index in 0..<3 {
            let folder = self.fixture.folder
            let output = folder.path(of: "output-\(index)")
            let process = try CommandProcess(
                [
                    "serve", "--listen", "127.0.0.1:0", "--shared", "redis://127.0.0.1:\(redis.port)", "--cache-size",
                    "0",
                    // On a busy machine, Redis needs more than the default.
                    "--shared-time", "10s", "--allow-network", "loopback", "--answer-time", "60s", "--download-time",
                    "60s",
                ],
                in: folder,
                files: ["/dev/null", output, folder.path(of: "errors-\(index)")]
            )
            func text() -> String {
                let data = (try? Data(contentsOf: URL(filePath: output))) ?? Data()
                return String(decoding: data, as: UTF8.self)
            }
            await until { text().hasSuffix("\n") }
            let address = try #require(text().split(separator: "/").last).dropLast()
            servers.append(Server(process: process, address: String(address)))
        }
        return servers
    }

    private func body(_ server: Server, _ source: URL, _ number: Int) async throws -> Data {
        let target = "http://\(server.address)/unsafe/w:20/plain/\(source.absoluteString)@jpg"
        let url = try #require(URL(string: target))
        // Equal requests would share one transfer.
        let request = DownloadRequest(url: url, headers: ["X-Number": "\(number)"], timeout: .seconds(60))
        return try await self.downloads.response(for: request).body
    }

    private func png() throws -> [UInt8] {
        let pixels = try PixelBuffer.make(.rgb8, width: 64, height: 64) { column, row, _ in UInt8(column * 2 + row) }
        return Array(try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions()))
    }

    @Test func `many requests to three servers cost one request to the origin`() async throws {
        let redis = try await RedisServer()
        let servers = try await self.start(redis)
        let latch = Latch()
        let png = try self.png()
        let origin = try FaultyOrigin(["/a.png": .held(by: latch, body: png)])
        let source = origin.url("/a.png")
        let bodies = try await withThrowingTaskGroup(of: Data.self) { group in
            for (index, server) in servers.enumerated() {
                for number in 0..<20 { group.addTask { try await self.body(server, source, index * 100 + number) } }
            }
            await origin.waitForRequests(for: "/a.png")
            latch.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bodies.count == 60 && Set(bodies).count == 1)
        #expect(origin.requestCount(for: "/a.png") == 1)
        let url = "redis://127.0.0.1:\(redis.port)"
        let variable = "export TINTYPE_SHARED="
        for status in [
            try await self.fixture.run("cluster", "status", prelude: variable + url),
            try await self.fixture.run("cluster", "status", "--shared", url, prelude: variable + "redis://other"),
        ] {
            #expect(status.code == 0 && status.output.hasPrefix("servers: 3\n"), "\(status.testDescription)")
        }
        let wrong = try await self.fixture.run("cluster", "status", prelude: variable + "http://a")
        #expect(wrong.code == 2 && wrong.errors.contains("TINTYPE_SHARED cannot be used"), "\(wrong.testDescription)")
        for server in servers {
            server.process.signal(SIGTERM)
            #expect(await server.process.wait() == 0)
        }
    }

    @Test func `the status shows counts of any size`() async throws {
        let redis = try await RedisServer()
        var statistics = ClusterStatistics()
        (statistics.hits, statistics.misses, statistics.waits, statistics.leases) = (.max, .max, .min, .max)
        for (name, date) in [("now", Date()), ("later", Date.distantFuture)] {
            let process = ClusterStatus.Process(name: name, reportedAt: date, statistics: statistics)
            let value = String(decoding: try JSONEncoder().encode(process), as: UTF8.self)
            try redis.run("HSET", "tintype:1:processes", name, value)
        }
        for options in [[], ["--json"]] {
            let url = "redis://127.0.0.1:\(redis.port)"
            let status = try await self.fixture.run(["cluster", "status", "--shared", url] + options)
            #expect(status.code == 0 && status.output.contains("later"), "\(status.testDescription)")
        }
    }

    @Test func `the others go on when the server that makes an image is killed`() async throws {
        let redis = try await RedisServer()
        let servers = try await self.start(redis)
        let latch = Latch()
        let png = try self.png()
        let origin = try FaultyOrigin(["/a.png": .body(png)])
        origin.script("/a.png", sequence: [.held(by: latch, body: png)])
        let source = origin.url("/a.png")
        let lost = Task { try await self.body(servers[0], source, 0) }
        await origin.waitForRequests(for: "/a.png")
        async let second = self.body(servers[1], source, 1)
        async let third = self.body(servers[2], source, 2)
        servers[0].process.signal(SIGKILL)
        let bodies = try await [second, third]
        #expect(Set(bodies).count == 1)
        // Its lock ends by itself, and one of the others takes its place.
        #expect(origin.requestCount(for: "/a.png") == 2)
        latch.open()
        await #expect(throws: (any Error).self) { _ = try await lost.value }
        for server in servers.dropFirst() {
            server.process.signal(SIGTERM)
            #expect(await server.process.wait() == 0)
        }
    }
}
