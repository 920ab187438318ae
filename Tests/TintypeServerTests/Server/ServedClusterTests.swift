// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeCluster
import TintypeImgproxy
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// Services that share a Redis, as the servers of a fleet do.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ServedClusterTests {
    private func configuration(_ redis: RedisServer) throws -> ImageServer.Configuration {
        var configuration = ServerFixture.configuration()
        configuration.purgeSecret = "wash"
        var cluster = Cluster.Configuration(redis: try RedisConfiguration(url: "redis://127.0.0.1:\(redis.port)"))
        cluster.redis.commandTimeBudget = .seconds(5)
        cluster.changePeriod = .milliseconds(20)
        configuration.cluster = cluster
        return configuration
    }

    /// Shortens the waits of a test that stops Redis.
    private func waitingBriefly(_ configuration: inout ImageServer.Configuration) {
        configuration.cluster?.redis.commandTimeBudget = .seconds(2)
    }

    /// Runs `body` with `count` services, and ends them.
    private func run<Result>(
        _ redis: RedisServer,
        count: Int = 2,
        change: (inout ImageServer.Configuration) throws -> Void = { _ in },
        _ body: ([ImageService]) async throws -> Result
    ) async throws -> Result {
        var services: [ImageService] = []
        for _ in 0..<count {
            // Each has a name of its own.
            var configuration = try self.configuration(redis)
            try change(&configuration)
            services.append(try await ImageService(configuration))
        }
        let result: Swift.Result<Result, any Error>
        do { result = .success(try await body(services)) } catch { result = .failure(error) }
        for service in services { await service.shutdown() }
        return try result.get()
    }

    private func origin(
        _ headers: [(String, String)] = []
    ) throws -> (origin: FaultyOrigin, change: (UInt8) throws -> Void) {
        func response(_ value: UInt8) throws -> FaultyResponse {
            let pixels = try PixelBuffer.make(.rgb8, width: 64, height: 64) { _, _, _ in value }
            let png = try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions())
            return .body(Array(png), headers: [("Cache-Control", "max-age=3600")] + headers)
        }
        let origin = try FaultyOrigin(["/a": try response(0), "/new": try response(100)])
        return (origin, { origin.script("/a", try response($0)) })
    }

    private func body(_ service: ImageService, _ source: URL, _ options: String = "w:20") async throws -> Data {
        let response = await service.response(to: "/unsafe/\(options)/plain/\(source.absoluteString)", headers: [:])
        #expect(response.status == 200)
        await service.loader.waitForPendingStores()
        return response.body
    }

    private func purge(_ line: String, on service: ImageService) async -> Int {
        let secret = ["Authorization": "Bearer wash"] as HeaderFields
        return await service.response(to: "/purge", method: "POST", headers: secret, body: Data(line.utf8)).status
    }

    @Test(arguments: ["source", "prefix", "tag"])
    func `a purge on one server shows the new image on all, whichever server gets the next purge`(
        kind: String
    ) async throws {
        let redis = try await RedisServer()
        let (origin, change) = try self.origin([("Cache-Tag", "cats")])
        let source = origin.url("/a")
        let line = kind == "tag" ? "tag cats" : "\(kind) \(source.absoluteString)"
        try await self.run(redis) { services in
            var last = try await self.body(services[0], source)
            #expect(try await self.body(services[1], source) == last)
            for (number, service) in [services[0], services[1], services[0]].enumerated() {
                try change(UInt8(100 + number))
                #expect(await self.purge(line, on: service) == 200)
                try await until {
                    let bodies = [try await self.body(services[0], source), try await self.body(services[1], source)]
                    return bodies[0] == bodies[1] && bodies[0] != last
                }
                last = try await self.body(services[0], source)
            }
        }
    }

    @Test func `a result of an older source that a server stores after the purge of a tag does not stay`() async throws
    {
        let redis = try await RedisServer()
        let (origin, change) = try self.origin([("Cache-Tag", "cats")])
        let folder = try TemporaryDirectory()
        let source = origin.url("/a")
        func settings(_ configuration: inout ImageServer.Configuration) {
            configuration.cluster?.changePeriod = .seconds(1)
            configuration.loader.disk = DiskCache.Configuration(directory: folder.url(of: UUID().uuidString))
        }
        try await self.run(redis, change: settings) { services in
            let new = try await self.body(services[0], origin.url("/new"))
            #expect(try await self.body(services[1], source) != new)
            try change(100)
            #expect(await self.purge("tag cats", on: services[0]) == 200)
            // This server has hardly read of the purge yet, and makes the size of its older source.
            _ = try await self.body(services[1], source, "w:20/q:70")
            for service in services {
                try await until { try await self.body(service, source, "w:20/q:70") == new }
            }
        }
    }

    @Test func `a server that starts later serves nothing that was purged`() async throws {
        let redis = try await RedisServer()
        let (origin, change) = try self.origin()
        let source = origin.url("/a")
        let old = try await self.run(redis) { services in
            let old = try await self.body(services[0], source)
            try change(100)
            #expect(await self.purge("prefix \(source.absoluteString)", on: services[0]) == 200)
            return old
        }
        let new = try await self.run(redis, count: 1) { services in try await self.body(services[0], source) }
        #expect(new != old)
        #expect(origin.requestCount(for: "/a") == 2)
    }

    @Test func `a purge that Redis does not take is refused`() async throws {
        let redis = try await RedisServer()
        let (origin, _) = try self.origin()
        try await self.run(redis, count: 1, change: self.waitingBriefly) { services in
            redis.stop()
            #expect(await self.purge("source \(origin.url("/a").absoluteString)", on: services[0]) == 503)
        }
    }

    @Test func `a purge of a tag says how many sources had it, and one that fails says why`() async throws {
        let redis = try await RedisServer()
        let (origin, _) = try self.origin([("Cache-Tag", "cats")])
        let secret = ["Authorization": "Bearer wash"] as HeaderFields
        try await self.run(redis, count: 1, change: self.waitingBriefly) { services in
            _ = try await self.body(services[0], origin.url("/a"))
            func purge(_ line: String) async -> String {
                let body = Data(line.utf8)
                let response = await services[0].response(to: "/purge", method: "POST", headers: secret, body: body)
                return String(decoding: response.body, as: UTF8.self)
            }
            #expect(await purge("tag cats").contains("tag cats (sources: 1)"))
            #expect(await purge("tag cats").contains("tag cats (sources: 0)"))
            #expect(await purge("tag cats dogs").contains("one tag in a line"))
            #expect(await purge("tag \(String(repeating: "a", count: 257))").contains("at most 256 bytes"))
            redis.stop()
            // The circuit may be open already, which is another reason.
            #expect(await purge("tag cats").contains("The purge is not complete. The shared tier "))
        }
    }

    @Test func `metrics show the calls to Redis, and the circuit once it is open`() async throws {
        let redis = try await RedisServer()
        let (origin, _) = try self.origin()
        try await self.run(redis, count: 1, change: self.waitingBriefly) { services in
            func metrics() async -> String {
                String(decoding: await services[0].response(to: "/metrics", headers: [:]).body, as: UTF8.self)
            }
            _ = try await self.body(services[0], origin.url("/a"))
            let calm = await metrics()
            #expect(calm.contains("tintype_cluster_circuit_open 0\n"))
            #expect(!calm.contains("tintype_cluster_calls_total 0\n"))
            redis.stop()
            for number in 0..<3 { _ = await self.purge("tag \(number)", on: services[0]) }
            let broken = await metrics()
            #expect(broken.contains("tintype_cluster_circuit_open 1\n"))
            #expect(broken.contains("tintype_cluster_circuit_openings_total 1\n"))
        }
    }

    @Test func `a purge is refused while the clock of Redis is days ahead`() async throws {
        let redis = try await RedisServer()
        let (origin, _) = try self.origin()
        let ahead = Int64((Date().timeIntervalSince1970 + 2 * 86_400) * 1_000)
        try redis.run("XADD", "tintype:1:purges", "\(ahead)-0", "node", "prefix https://example.org/")
        try await self.run(redis, count: 1) { services in
            #expect(await self.purge("source \(origin.url("/a").absoluteString)", on: services[0]) == 503)
        }
    }

    @Test func `new signing keys keep what the servers share`() async throws {
        let redis = try await RedisServer()
        let (origin, _) = try self.origin()
        var bodies: Set<Data> = []
        for text in ["01", "02"] {
            let key = try SignatureKey(key: text, salt: text)
            try await self.run(redis, count: 1) { configuration in
                configuration.addresses.keys = [key]
            } _: { services in
                let signer = try URLSigner(keys: [SignatureKeys(key: key.key, salt: key.salt)])
                let target = signer.sign("/w:20/plain/\(origin.url("/a").absoluteString)")
                let response = await services[0].response(to: target, headers: [:])
                #expect(response.status == 200)
                bodies.insert(response.body)
                await services[0].loader.waitForPendingStores()
                let encodes = await services[0].loader.statistics().encode.count
                #expect(encodes == (text == "01" ? 1 : 0))
            }
        }
        #expect(bodies.count == 1 && origin.requestCount(for: "/a") == 1)
    }
}
