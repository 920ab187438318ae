// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import RedisTier
import Testing
import Tintype
import TintypeTestSupport

@Suite(.timeLimit(.minutes(5))) struct RedisTierTests {
    private let folder: TemporaryDirectory
    private let origin: FaultyOrigin

    init() throws {
        self.folder = try TemporaryDirectory()
        self.origin = try FaultyOrigin()
        let image = Array(try Fixtures.data("kodak-3.png"))
        for number in 0..<400 { self.origin.script("/\(number)", .body(image)) }
    }

    @Test func `two processes with disks of their own ask the origin once for each source`() async throws {
        let server = try await RedisServer()
        for name in ["first", "second"] {
            try ChildProcess.run(
                [
                    try self.programPath(), "\(server.port)", self.folder.path(of: name),
                    self.origin.url("/").absoluteString, "200",
                ],
                log: self.folder.path(of: "\(name).log")
            )
        }
        #expect(try self.text("first.log") == "network 200, tiers 0\n")
        #expect(try self.text("second.log") == "network 0, tiers 200\n")
        #expect(self.origin.requestedPaths.count == 200)
    }

    @Test func `no load fails while the server is stopped and started`() async throws {
        var server = try await RedisServer()
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        configuration.tiers = [RedisTier(port: Int32(server.port))]
        let loader = LoaderActor(configuration: configuration)
        let requests = (0..<400).map { ImageRequest(url: self.origin.url("/\($0)"), options: .waitForStore) }
        for range in [0..<100, 100..<200, 200..<300] {
            let lengths = try await withThrowingTaskGroup(of: Int.self) { group in
                for request in requests[range] { group.addTask { try await loader.data(for: request).count } }
                // In the middle of the loads.
                _ = try await group.next()
                if range.lowerBound == 0 { server.stop() }
                if range.lowerBound == 200 { server = try await RedisServer(port: server.port) }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(lengths.allSatisfy { $0 == 502_888 })
        }
        let failures = await loader.statistics().cache.tiers[0]
        #expect(failures.readFailures > 0)
        #expect(failures.writeFailures > 0)
        // The server answers again: a source that the origin sent is in the tier.
        _ = try await loader.data(for: requests[399])
        let response = try await loader.dataResponse(for: requests[399])
        #expect(response.metrics.tier == "redis")
        await loader.shutdown()
    }

    /// The path of the program, which is beside the tests.
    private func programPath() throws -> String {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(filePath: tests).deletingLastPathComponent().appending(path: "RedisTierProgram").path
    }

    private func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: self.folder.url(of: name)), as: UTF8.self)
    }
}
