// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeRedis
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCluster

/// Three loaders with one Redis and one origin.
@Suite(.waiting, .timeLimit(.minutes(5))) struct FleetTests {
    private let hour = [("Cache-Control", "max-age=3600")]

    @Test func `many requests for one image on all nodes cost one request and one encode`() async throws {
        let redis = try await RedisServer()
        let latch = Latch()
        let png = try makePNG()
        let held = FaultyResponse([
            .wait(latch), FaultyResponse.head(200, self.hour + [("Content-Length", "\(png.count)")]), .send(png),
        ])
        try await Fleet.run(redis, ["/a": held]) { settings, _ in
            settings.waitLimit = .seconds(600)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            async let bodies = fleet.onAllNodes(300) { node, _ in try await node.thumbnail(url).data }
            // Two of three nodes wait for the one that asks the origin.
            await until { fleet.statistics.reduce(0) { $0 + $1.waits } >= 2 }
            latch.open()
            let results = try await bodies
            #expect(results.count == 900)
            #expect(Set(results).count == 1)
            #expect(fleet.origin.requestCount(for: "/a") == 1)
            #expect(await fleet.encodeCount == 1)
            await until { fleet.statistics.allSatisfy { $0.leases == 0 } }
        }
    }

    @Test func `many sizes of one source on all nodes cost one request`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: self.hour)]) { settings, _ in
            settings.waitLimit = .seconds(600)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            let sizes = try await fleet.onAllNodes(20) { node, index in
                try await node.thumbnail(url, side: 10 + index).data
            }
            #expect(Set(sizes).count == 20)
            #expect(fleet.origin.requestCount(for: "/a") == 1)
        }
    }

    @Test func `a load that fails lets the other nodes go on at once`() async throws {
        let redis = try await RedisServer()
        let latch = Latch()
        let broken: [UInt8] = Array("not an image".utf8)
        try await Fleet.run(redis, ["/a": .held(by: latch, body: broken)]) { settings, _ in
            settings.waitLimit = .seconds(600)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            async let failures = fleet.onAllNodes(3) { node, _ in
                do {
                    _ = try await node.thumbnail(url)
                    return "no failure"
                } catch let error as LoadError {
                    return error.code.description
                }
            }
            await fleet.origin.waitForRequests(for: "/a")
            latch.open()
            let codes = try await failures
            #expect(Set(codes).count == 1 && codes.first != "no failure", "\(codes)")
        }
    }

    @Test func `a node takes the place of one whose callers have left`() async throws {
        let redis = try await RedisServer()
        let latch = Latch()
        let png = try makePNG()
        try await Fleet.run(redis, ["/a": .body(png, headers: self.hour)]) { settings, _ in
            settings.waitLimit = .seconds(600)
        } _: { fleet in
            fleet.origin.script("/a", sequence: [.held(by: latch, body: png)])
            let url = fleet.origin.url("/a")
            let first = Task { try await fleet.nodes[0].thumbnail(url) }
            await fleet.origin.waitForRequests(for: "/a")
            async let second = fleet.nodes[1].thumbnail(url)
            await until { fleet.nodes[1].cluster.statistics.waits > 0 }
            first.cancel()
            let body = try await second.data
            #expect(!body.isEmpty)
            latch.open()
            await #expect(throws: CancellationError.self) { _ = try await first.value }
        }
    }

    // MARK: Failures of the origin

    @Test func `a missing source costs one request in the lifetime of the failure`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, ["/a": .body([1], status: 404)]) { settings, _ in
            settings.failureLifetimes.missing = .seconds(600)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            let statuses = try await fleet.onAllNodes(100) { node, _ in
                do {
                    _ = try await node.thumbnail(url)
                    return 200
                } catch let error as LoadError {
                    return error.status ?? 0
                }
            }
            #expect(Set(statuses) == [404])
            #expect(fleet.origin.requestCount(for: "/a") == 1)
            // The end of the lifetime.
            let client = RedisClient(try RedisConfiguration(url: "redis://127.0.0.1:\(redis.port)"))
            let names = try await client.run(RedisCommand("KEYS", "*:failure:*"), timeBudget: .seconds(5))
            let name = try #require(names.elements?.first?.text)
            #expect(names.elements?.count == 1)
            let lifetime = try await client.run(RedisCommand("PTTL", .text(name)), timeBudget: .seconds(5)).number ?? 0
            #expect((500_000...600_000).contains(lifetime))
            _ = try await client.run(RedisCommand("DEL", .text(name)), timeBudget: .seconds(5))
            _ = try await fleet.onAllNodes(10) { node, _ in try? await node.thumbnail(url).data }
            #expect(fleet.origin.requestCount(for: "/a") == 2)
            await client.shutdown()
        }
    }

    @Test func `one node asks an origin that is down, and all serve the stale image`() async throws {
        let redis = try await RedisServer()
        let headers = [("Cache-Control", "max-age=60, stale-if-error=86400"), ("ETag", "\"1\"")]
        try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: headers)]) { settings, _ in
            settings.failureLifetimes.originFailure = .seconds(600)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            let fresh = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
            fleet.origin.script("/a", .body([1], status: 503))
            fleet.clock.advance(by: 600)
            let stale = try await fleet.onAllNodes(20) { node, _ in try await node.thumbnail(url).data }
            #expect(Set(fresh + stale).count == 1)
            #expect(fleet.origin.requestCount(for: "/a") == 2)
        }
    }

    @Test(arguments: [[("ETag", "\"1\"")], []])
    func `one node revalidates a stale image for all`(validators: [(String, String)]) async throws {
        let redis = try await RedisServer()
        let headers = [("Cache-Control", "max-age=60")] + validators
        let png = try makePNG()
        try await Fleet.run(redis, ["/a": .body(png, headers: headers)]) { settings, _ in
            settings.waitLimit = .seconds(600)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            _ = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
            let latch = Latch()
            let answer: [FaultyResponse.Step] =
                validators.isEmpty
                ? [FaultyResponse.head(200, headers + [("Content-Length", "\(png.count)")]), .send(png)]
                : [FaultyResponse.head(304, headers)]
            fleet.origin.script("/a", FaultyResponse([.wait(latch)] + answer))
            fleet.clock.advance(by: 600)
            async let bodies = fleet.onAllNodes(20) { node, _ in try await node.thumbnail(url).data }
            await fleet.origin.waitForRequests(2, for: "/a")
            latch.open()
            #expect(Set(try await bodies).count == 1)
            #expect(fleet.origin.requestCount(for: "/a") == 2)
        }
    }

    @Test func `a node does not remove results that another node has made of a newer source`() async throws {
        let redis = try await RedisServer()
        let headers = [("Cache-Control", "max-age=60")]
        try await Fleet.run(redis, ["/a": .body(try makePNG(10), headers: headers)]) { settings, _ in
            // Each node finds the change by itself.
            settings.changePeriod = .seconds(600)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            func load() async throws -> [Data] {
                var bodies: [Data] = []
                for node in fleet.nodes {
                    for side in [10, 20] { bodies.append(try await node.thumbnail(url, side: side).data) }
                    await node.loader.waitForPendingStores()
                }
                return bodies
            }
            let old = try await load()
            fleet.origin.script("/a", .body(try makePNG(200), headers: headers))
            fleet.clock.advance(by: 600)
            let new = try await load()
            #expect(Set(new).count == 2 && Set(new).isDisjoint(with: old))
            for node in fleet.nodes { node.loader.cache.memory.removeAll() }
            let encodes = await fleet.encodeCount
            #expect(try await load() == new)
            #expect(await fleet.encodeCount == encodes)
        }
    }

    // MARK: Failures of Redis

    @Test func `loads go on without Redis, and use it again when it is back`() async throws {
        let redis = try await RedisServer()
        let paths = (0..<10).map { "/\($0)" }
        let responses = try Dictionary(
            uniqueKeysWithValues: paths.map { ($0, FaultyResponse.body(try makePNG(), headers: self.hour)) }
        )
        try await Fleet.run(redis, responses) { settings, _ in
            settings.redis.commandTimeBudget = .milliseconds(200)
        } _: { fleet in
            func load(_ path: String) async throws {
                let url = fleet.origin.url(path)
                _ = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
            }
            try await load("/0")
            redis.stop()
            for path in paths[1..<6] { try await load(path) }
            await until { fleet.statistics.allSatisfy(\.isCircuitOpen) }
            let again = try await RedisServer(port: redis.port)
            try await until {
                try await load("/9")
                return fleet.statistics.allSatisfy { !$0.isCircuitOpen }
            }
            let hits = fleet.statistics.reduce(0) { $0 + $1.hits }
            for node in fleet.nodes { node.loader.cache.memory.removeAll() }
            // Entries of families that changed while Redis was away leave it first.
            try await load("/6")
            for node in fleet.nodes { node.loader.cache.memory.removeAll() }
            try await load("/6")
            #expect(fleet.statistics.reduce(0) { $0 + $1.hits } > hits)
            for node in fleet.nodes {
                #expect(node.events.events.contains(.circuitClosed))
                #expect(node.cluster.statistics.circuitOpenings > 0)
            }
            again.stop()
        }
    }

    @Test func `the circuit opens when Redis is paused, and closes by itself`() async throws {
        let redis = try await RedisServer()
        func connectionCount() throws -> Int {
            try redis.run("CLIENT", "LIST").split(separator: "\n").count { $0.contains("name=tintype") }
        }
        try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: self.hour)]) { settings, _ in
            settings.redis.commandTimeBudget = .milliseconds(20)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            redis.pause()
            try await until {
                for node in fleet.nodes { node.loader.cache.memory.removeAll() }
                _ = try await fleet.onAllNodes(5) { node, index in try await node.thumbnail(url, side: 10 + index).data
                }
                return fleet.statistics.allSatisfy(\.isCircuitOpen)
            }
            let calls = fleet.statistics.map(\.calls)
            redis.resume()
            // The heartbeat or the look for changes closes it without a load.
            await until { fleet.statistics.allSatisfy { !$0.isCircuitOpen } }
            #expect(zip(fleet.statistics.map(\.calls), calls).allSatisfy { $0 > $1 })
            // A node has a connection for commands and one for messages.
            try await until { try connectionCount() <= 2 * fleet.nodes.count }
        }
    }

    @Test(arguments: ["replica", "full"])
    func `loads go on, and the log says why, when Redis refuses writes`(state: String) async throws {
        let redis = try await RedisServer("--maxmemory 8mb", "--maxmemory-policy noeviction")
        let png = try makePNG()
        let paths = (0..<20).map { "/\($0)" }
        let responses = Dictionary(
            uniqueKeysWithValues: paths.map { ($0, FaultyResponse.body(png, headers: self.hour)) }
        )
        try await Fleet.run(redis, responses) { fleet in
            func load(_ paths: ArraySlice<String>) async throws {
                for path in paths {
                    let url = fleet.origin.url(path)
                    let bodies = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
                    #expect(Set(bodies).count == 1)
                }
            }
            try await load(paths[..<1])
            for node in fleet.nodes { await node.loader.waitForPendingStores() }
            if state == "replica" {
                try redis.run("REPLICAOF", "127.0.0.1", "1")
            } else {
                try redis.run("CONFIG", "SET", "maxmemory", "1")
            }
            try await load(paths[1..<10])
            await until { fleet.statistics.allSatisfy(\.isCircuitOpen) }
            for node in fleet.nodes {
                await until { node.events.events.contains { if case .circuitOpened = $0 { true } else { false } } }
                node.loader.cache.memory.removeAll()
            }
            let hits = fleet.statistics.map(\.hits)
            try await load(paths[..<1])
            // A server that refuses writes still answers reads.
            #expect(zip(fleet.statistics.map(\.hits), hits).allSatisfy { $0 > $1 })
            if state == "replica" {
                try redis.run("REPLICAOF", "NO", "ONE")
            } else {
                try redis.run("CONFIG", "SET", "maxmemory", "8mb")
            }
            // The heartbeat closes it without a load.
            await until { fleet.statistics.allSatisfy { !$0.isCircuitOpen } }
            await until { fleet.nodes.allSatisfy { $0.events.events.contains(.circuitClosed) } }
        }
    }

    @Test func `loads go on, and the log says why, with a wrong password`() async throws {
        let redis = try await RedisServer("--requirepass secret")
        try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: self.hour)]) { settings, _ in
            settings.redis.password = "other"
            settings.redis.commandTimeBudget = .milliseconds(200)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            let bodies = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
            #expect(Set(bodies).count == 1)
            // The circuit may open because of a command that waited too long, before the password is refused.
            for node in fleet.nodes {
                await until {
                    node.events.events.contains { event in
                        guard case .circuitOpened(let reason) = event else { return false }
                        return reason.contains("Check the user name and the password.")
                    }
                }
            }
        }
    }

    @Test func `the log says that a Redis that is back refuses the password`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: self.hour)]) { settings, _ in
            settings.redis.commandTimeBudget = .milliseconds(200)
        } _: { fleet in
            redis.stop()
            await until { fleet.statistics.allSatisfy(\.isCircuitOpen) }
            let again = try await RedisServer(port: redis.port, options: ["--requirepass secret"])
            for node in fleet.nodes {
                await until {
                    node.events.events.contains { event in
                        guard case .circuitOpened(let reason) = event else { return false }
                        return reason.contains("Configure a password.")
                    }
                }
            }
            again.stop()
        }
    }

    // MARK: Keys

    @Test func `a revision of the encoders is a clean miss for results, and none for originals`() async throws {
        let redis = try await RedisServer()
        var counts: [[Int]] = []
        for revision in ["1", "1", "2"] {
            try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: self.hour)]) { settings, configuration in
                settings.revision = revision
                // Each origin has a port of its own.
                configuration.keyFilter = { $0.url.path() }
            } _: { fleet in
                _ = try await fleet.nodes[0].thumbnail(fleet.origin.url("/a"))
                await fleet.nodes[0].loader.cache.waitForPendingStores()
                counts.append([fleet.origin.requestCount(for: "/a"), await fleet.encodeCount])
            }
        }
        #expect(counts == [[1, 1], [0, 0], [0, 1]])
    }

    @Test func `an image in the memory of a node costs no call of Redis`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: self.hour)]) { settings, _ in
            settings.changePeriod = .seconds(600)
        } _: { fleet in
            let url = fleet.origin.url("/a")
            let node = fleet.nodes[0]
            _ = try await node.thumbnail(url)
            let before = node.cluster.statistics
            for _ in 0..<1_000 { _ = try await node.thumbnail(url) }
            let after = node.cluster.statistics
            #expect(after.hits == before.hits && after.misses == before.misses)
        }
    }

    @Test func `a damaged or foreign value is a miss`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: self.hour)]) { fleet in
            let url = fleet.origin.url("/a")
            let good = try await fleet.nodes[0].thumbnail(url).data
            await fleet.nodes[0].loader.waitForPendingStores()
            let client = RedisClient(try RedisConfiguration(url: "redis://127.0.0.1:\(redis.port)"))
            let keys = try await client.run(RedisCommand("KEYS", "tintype:1:{*"), timeBudget: .seconds(5))
            // Locks are names of their own.
            for key in keys.elements ?? [] where key.text?.hasSuffix("}") == true {
                let name = RedisArgument.text(key.text ?? "")
                let fields = try await client.run(RedisCommand("HKEYS", name), timeBudget: .seconds(5))
                for field in fields.elements ?? [] {
                    let word = RedisArgument.text(field.text ?? "")
                    _ = try await client.run(RedisCommand("HSET", name, word, "damage"), timeBudget: .seconds(5))
                }
            }
            #expect(try await fleet.nodes[1].thumbnail(url).data == good)
            #expect(fleet.nodes[1].cluster.statistics.damagedEntries > 0)
            await client.shutdown()
        }
    }

    @Test func `a look at the metadata of an original does not read its bytes`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, [:]) { fleet in
            let key = CacheKey("a")
            let metadata = EntryMetadata(mediaType: "image/png", byteCount: 3)
            try await fleet.nodes[0].cluster.tier.store(Data([1, 2, 3]), metadata: metadata, for: key)
            let before = fleet.nodes[1].cluster.statistics.hits
            #expect(try await fleet.nodes[1].cluster.tier.metadata(for: key) == metadata)
            #expect(fleet.nodes[1].cluster.statistics.hits == before)
            #expect(try await fleet.nodes[1].cluster.tier.entry(for: key)?.data == Data([1, 2, 3]))
            #expect(try await fleet.nodes[1].cluster.tier.remove(key))
            #expect(try await fleet.nodes[0].cluster.tier.metadata(for: key) == nil)
            #expect(try await !fleet.nodes[0].cluster.tier.remove(key))
        }
    }

    // MARK: Changes

    @Test func `a removal on one node clears the memory of the others`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, ["/a": .body(try makePNG(10), headers: self.hour)]) { fleet in
            let url = fleet.origin.url("/a")
            let old = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
            fleet.origin.script("/a", .body(try makePNG(200), headers: self.hour))
            for node in fleet.nodes { await node.loader.waitForPendingStores() }
            _ = try await fleet.nodes[0].loader.remove(ImageRequest(url: url))
            try await until {
                let new = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
                return Set(new).count == 1 && Set(new).isDisjoint(with: old)
            }
        }
    }

    @Test func `a node that fetches an entry too large to share takes it away from no other node`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, ["/a": .body(try makePNG(), headers: self.hour)]) { settings, _ in
            settings.maximumEntrySize = 10
        } _: { fleet in
            let url = fleet.origin.url("/a")
            for node in fleet.nodes {
                _ = try await node.thumbnail(url)
                await node.loader.waitForPendingStores()
            }
            #expect(try redis.run("EXISTS", "tintype:1:changes") == "0")
            _ = try await fleet.nodes[0].loader.remove(ImageRequest(url: url))
            #expect(try redis.run("EXISTS", "tintype:1:changes") == "1")
        }
    }

    @Test func `a source that may not be stored reports a change only if there was an older entry`() async throws {
        let redis = try await RedisServer()
        let unstored = FaultyResponse.body(try makePNG(200), headers: [("Cache-Control", "no-store")])
        try await Fleet.run(redis, ["/a": .body(try makePNG(10), headers: self.hour), "/b": unstored]) { fleet in
            for node in fleet.nodes {
                _ = try await node.thumbnail(fleet.origin.url("/b"))
                await node.loader.waitForPendingStores()
            }
            #expect(fleet.origin.requestCount(for: "/b") == 3)
            let url = fleet.origin.url("/a")
            let old = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
            for node in fleet.nodes { await node.loader.waitForPendingStores() }
            #expect(try redis.run("EXISTS", "tintype:1:changes") == "0")
            fleet.origin.script("/a", unstored)
            // A reload would remove the whole family, and report that in any case.
            var request = ImageRequest(url: url)
            request.caching.policy = .revalidate
            _ = try await fleet.nodes[0].loader.image(for: request)
            #expect(try redis.run("EXISTS", "tintype:1:changes") == "1")
            try await until {
                let new = try await fleet.onAllNodes(1) { node, _ in try await node.thumbnail(url).data }
                return Set(new).count == 1 && Set(new).isDisjoint(with: old)
            }
        }
    }

    @Test func `a purge of a tag removes the sources that have it`() async throws {
        let redis = try await RedisServer()
        let responses = [
            "/a": FaultyResponse.body(try makePNG(), headers: self.hour + [("Cache-Tag", "animals, cats")]),
            "/b": FaultyResponse.body(try makePNG(), headers: self.hour + [("Surrogate-Key", "animals dogs")]),
            "/c": FaultyResponse.body(try makePNG(), headers: self.hour),
        ]
        try await Fleet.run(redis, responses) { fleet in
            for path in responses.keys { _ = try await fleet.nodes[0].thumbnail(fleet.origin.url(path)) }
            // A thumbnail that is stored after the purge would be there again.
            await fleet.nodes[0].loader.waitForPendingStores()
            #expect(try await fleet.nodes[1].cluster.purge(tag: "cats") == 1)
            #expect(try await fleet.nodes[1].cluster.purge(tag: "animals") == 2)
            #expect(try await fleet.nodes[1].cluster.purge(tag: "animals") == 0)
            for node in fleet.nodes { node.loader.cache.memory.removeAll() }
            for path in responses.keys { _ = try await fleet.nodes[2].thumbnail(fleet.origin.url(path)) }
            #expect(fleet.origin.requestCount(for: "/a") == 2)
            #expect(fleet.origin.requestCount(for: "/b") == 2)
            #expect(fleet.origin.requestCount(for: "/c") == 1)
        }
    }

    @Test func `a source that is stored again before a purge forgets its tag keeps the tag`() async throws {
        let redis = try await RedisServer()
        let store = SharedStore(try Cluster.Configuration(redis))
        let tier = SharedTier(store, Leases(store), ChangeLog(store, "changes"))
        let (here, gone) = (CacheKey("https://example.org/here"), CacheKey("https://example.org/gone"))
        for key in [here, gone] { try redis.run("ZADD", "tintype:1:tags:cats", "1", key.text) }
        try await tier.store(Data([1]), metadata: EntryMetadata(mediaType: "image/jpeg"), for: here)
        try await tier.forget([here, gone], tagged: "cats")
        #expect(try redis.run("ZCARD", "tintype:1:tags:cats") == "1")
        #expect(try redis.run("ZRANK", "tintype:1:tags:cats", here.text) == "0")
        await store.redis.shutdown()
    }

    @Test func `a source whose entries have expired leaves the lists of its tags`() async throws {
        let redis = try await RedisServer()
        try redis.run("ZADD", "tintype:1:tags:cats", "1", "https://example.org/expired")
        let response = FaultyResponse.body(try makePNG(), headers: self.hour + [("Cache-Tag", "cats")])
        try await Fleet.run(redis, ["/a": response]) { fleet in
            _ = try await fleet.nodes[0].thumbnail(fleet.origin.url("/a"))
            await fleet.nodes[0].loader.waitForPendingStores()
            #expect(try redis.run("ZCARD", "tintype:1:tags:cats") == "1")
            #expect(try redis.run("ZRANK", "tintype:1:tags:cats", fleet.origin.url("/a").absoluteString) == "0")
            #expect(Int(try redis.run("PTTL", "tintype:1:tags:cats")) ?? 0 > 0)
        }
    }

    @Test func `a purge removes all sources of a tag, however many there are`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, [:]) { settings, _ in
            settings.waitLimit = .seconds(600)
        } _: { fleet in
            for number in 0..<601 {
                try redis.run("ZADD", "tintype:1:tags:cats", "\(number)", "https://example.org/\(number)")
            }
            #expect(try await fleet.nodes[0].cluster.purge(tag: "cats") == 601)
            #expect(try redis.run("EXISTS", "tintype:1:tags:cats") == "0")
        }
    }

    // MARK: Status

    @Test func `a process that was killed leaves the status when another one starts`() async throws {
        let redis = try await RedisServer()
        let process = ClusterStatus.Process(name: "gone", reportedAt: .distantPast, statistics: ClusterStatistics())
        let value = String(decoding: try JSONEncoder().encode(process), as: UTF8.self)
        try redis.run("HSET", "tintype:1:processes", "gone", value)
        try await Fleet.run(redis, [:]) { _ in
            try await until { try redis.run("HEXISTS", "tintype:1:processes", "gone") == "0" }
        }
    }

    @Test func `the status names all nodes`() async throws {
        let redis = try await RedisServer()
        try await Fleet.run(redis, [:]) { fleet in
            try await until {
                try await fleet.nodes[0].cluster.status().processes.map(\.name) == ["node-0", "node-1", "node-2"]
            }
            let nodes = try await fleet.nodes[0].cluster.status().redis
            #expect(nodes.map(\.address.port) == [redis.port])
            await fleet.nodes[2].cluster.shutdown()
            #expect(try await fleet.nodes[0].cluster.status().processes.map(\.name) == ["node-0", "node-1"])
            // A server for tests has no limit of memory.
            await until { fleet.nodes[0].events.events.count == 2 }
        }
    }
}
