// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeRedis

/// Starts a cluster once for a suite.
private struct RunningCluster: SuiteTrait, TestScoping {
    @TaskLocal static var current: RedisCluster?

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let cluster = try await RedisCluster()
        try await Self.$current.withValue(cluster) { try await function() }
    }
}

/// A client of a real cluster of three masters and three replicas.
@Suite(.waiting, RunningCluster(), .timeLimit(.minutes(5))) struct ClusterTests {
    private let cluster: RedisCluster

    init() throws {
        self.cluster = try #require(RunningCluster.current)
    }

    /// A client that knows one node, which is not the one that serves most keys of the tests.
    private func client(_ timeBudget: Duration = .seconds(60)) -> RedisClient {
        let seed = RedisAddress("127.0.0.1", port: self.cluster.servers[5].port)
        var configuration = RedisConfiguration(.cluster([seed]))
        configuration.commandTimeBudget = timeBudget
        configuration.connectTimeout = .seconds(5)
        return RedisClient(configuration)
    }

    private static func get(_ key: String) -> RedisCommand {
        RedisCommand("GET", .text(key), key: key, isReadOnly: true)
    }

    private static func set(_ key: String, _ value: String) -> RedisCommand {
        RedisCommand("SET", .text(key), .text(value), key: key)
    }

    /// The number of the master that serves a key at the start.
    private static func owner(of key: String) -> Int { KeySlot.of(key) * 3 / KeySlot.count }

    /// A key that the master with this number serves at the start.
    private static func key(_ prefix: String, on number: Int) -> String {
        (0...).lazy.map { "\(prefix)-\($0)" }.first { self.owner(of: $0) == number } ?? prefix
    }

    @Test func `each key goes to the node that serves its slot`() async throws {
        let client = self.client()
        let keys = (0..<300).map { "spread-\($0)" }
        try await withThrowingTaskGroup { group in
            for key in keys { group.addTask { _ = try await client.run(Self.set(key, key)) } }
            try await group.waitForAll()
        }
        for key in keys { #expect(try await client.run(Self.get(key)).text == key) }
        for (number, server) in self.cluster.masters.enumerated() {
            let expected = keys.count { Self.owner(of: $0) == number }
            #expect(expected > 50)
            #expect(try server.run("DBSIZE") == "\(expected)")
        }
        #expect(await client.nodes().count { $0.role == .master && $0.state == .connected } == 3)
        for server in self.cluster.masters { try server.run("FLUSHALL") }
        await client.shutdown()
    }

    @Test func `the masters and the replicas are known`() async throws {
        // A cluster lists a replica once it has copied something.
        try await until {
            let client = self.client()
            _ = try await client.run(Self.set("a", "1"))
            let nodes = await client.nodes()
            await client.shutdown()
            return nodes.count { $0.role == .master } == 3 && nodes.count { $0.role == .replica } == 3
        }
    }

    @Test func `a node that was known by another name only is forgotten`() async throws {
        // Its connection is closed in the turn that opens the connections of the masters, which may get its descriptor.
        let seed = RedisAddress("localhost", port: self.cluster.servers[5].port)
        var configuration = RedisConfiguration(.cluster([seed]))
        configuration.commandTimeBudget = .seconds(60)
        let client = RedisClient(configuration)
        for number in 0..<3 { _ = try await client.run(Self.get(Self.key("name", on: number))) }
        let nodes = await client.nodes()
        #expect(nodes.allSatisfy { $0.address.host == "127.0.0.1" })
        #expect(nodes.count { $0.role == .master && $0.state == .connected } == 3)
        await client.shutdown()
    }

    @Test func `the client does not keep asking a seed that the cluster lists by another name`() async throws {
        func questions() throws -> Int {
            try self.cluster.servers.reduce(0) { count, server in
                let lines = try server.run("INFO", "commandstats").split(whereSeparator: \.isNewline)
                // cmdstat_cluster|slots:calls=3,usec=...
                let line = lines.first { $0.contains("cluster|slots") }
                return count + (line?.split(separator: "=")[1].split(separator: ",").first.flatMap { Int($0) } ?? 0)
            }
        }
        // The cluster calls it 127.0.0.1.
        let seed = RedisAddress("::ffff:127.0.0.1", port: self.cluster.servers[5].port)
        let client = RedisClient(RedisConfiguration(.cluster([seed])))
        let before = try questions()
        // Without a pause, the questions would follow each other every 100 ms.
        let end = ContinuousClock.now + .milliseconds(600)
        while .now < end { _ = try await client.run(Self.get("a"), timeBudget: .seconds(60)) }
        #expect(try questions() - before <= 2)
        await client.shutdown()
    }

    @Test func `commands with one hash tag, and commands without a key, run`() async throws {
        let client = self.client()
        _ = try await client.run(Self.set("{tag}a", "1"))
        let values = try await client.run(RedisCommand("MGET", "{tag}a", "{tag}b", key: "{tag}a", isReadOnly: true))
        #expect(values == .array([.bytes(Data("1".utf8)), .null]))
        #expect(try await client.run(RedisCommand("PING")) == .status("PONG"))
        await client.shutdown()
    }

    @Test func `a moved slot is followed`() async throws {
        let client = self.client()
        let key = Self.key("moved", on: 0)
        #expect(try await client.run(Self.get(key)) == .null)
        try self.cluster.assign(slot: KeySlot.of(key), to: 2)
        #expect(try await client.run(Self.set(key, "here")) == .status("OK"))
        #expect(try self.cluster.masters[2].run("GET", key) == "here")
        #expect(try await client.run(Self.get(key)).text == "here")
        #expect(try await client.run(RedisCommand("DEL", .text(key), key: key)) == .integer(1))
        try self.cluster.assign(slot: KeySlot.of(key), to: 0)
        #expect(try await client.run(Self.get(key)) == .null)
        await client.shutdown()
    }

    @Test func `a key that has moved ahead of its slot is found`() async throws {
        let client = self.client()
        let tag = Self.key("asked", on: 1)
        let (first, second) = ("{\(tag)}1", "{\(tag)}2")
        for key in [first, second] { _ = try await client.run(Self.set(key, key)) }
        try self.cluster.beginMoving(slot: KeySlot.of(tag), from: 1, to: 0)
        try self.cluster.move(key: first, from: 1, to: 0)
        for _ in 0..<3 {
            #expect(try await client.run(Self.get(first)).text == first)
            #expect(try await client.run(Self.get(second)).text == second)
        }
        // A command with both keys is tried again until its time is over.
        let both = RedisCommand("MGET", .text(first), .text(second), key: first, isReadOnly: true)
        await until {
            // On a busy machine, the time may be over while a reply is outstanding.
            let error = await #expect(throws: RedisError.self) {
                try await client.run(both, timeBudget: .milliseconds(50))
            }
            return error?.code == .clusterDown
        }
        let waiting = Task { try await client.run(both) }
        try self.cluster.move(key: second, from: 1, to: 0)
        #expect(try await waiting.value.elements?.map(\.text) == [first, second])
        try self.cluster.assign(slot: KeySlot.of(tag), to: 0)
        #expect(try await client.run(Self.get(second)).text == second)
        await client.shutdown()
    }

    @Test func `messages cross the cluster`() async throws {
        let (reader, writer) = (self.client(), self.client())
        var messages = try reader.messages(on: "removals").makeAsyncIterator()
        #expect(await messages.next() == .some(nil))
        for server in self.cluster.servers { try server.run("PUBLISH", "removals", "\(server.port)") }
        var ports: Set<String> = []
        for _ in self.cluster.servers {
            if let message = await messages.next() ?? nil { ports.insert(String(decoding: message, as: UTF8.self)) }
        }
        #expect(ports == Set(self.cluster.servers.map { "\($0.port)" }))
        await reader.shutdown()
        await writer.shutdown()
    }

    @Test func `a cluster whose nodes are all away fails at once`() async throws {
        var configuration = RedisConfiguration(
            .cluster([RedisAddress("127.0.0.1", port: try LoopbackSocket.freePort())])
        )
        configuration.firstReconnectDelay = .seconds(90)
        configuration.longestReconnectDelay = .seconds(90)
        configuration.commandTimeBudget = .seconds(30)
        let client = RedisClient(configuration)
        for _ in 0..<3 {
            let error = await #expect(throws: RedisError.self) { try await client.run(Self.get("a")) }
            #expect(error?.code == .disconnected)
        }
        await client.shutdown()
    }

    @Test func `a server that is not in a cluster is reported`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(RedisConfiguration(.cluster([RedisAddress("127.0.0.1", port: server.port)])))
        await until {
            let error = await #expect(throws: RedisError.self) { try await client.run(Self.get("a")) }
            return error?.message.contains("cluster support disabled") == true
        }
        await client.shutdown()
    }

    /// The last test, because the cluster has other masters afterwards.
    @Test func `when a master dies, its replica takes over`() async throws {
        let client = self.client()
        let key = Self.key("failover", on: 1)
        _ = try await client.run(Self.set(key, "before"))
        _ = try await client.run(RedisCommand("WAIT", 1, 1_000, key: key))
        for server in self.cluster.servers { try server.run("CONFIG", "SET", "cluster-node-timeout", "500") }
        self.cluster.masters[1].stop()
        #expect(try await client.run(Self.get(key)).text == "before")
        #expect(try await client.run(Self.set(key, "after")) == .status("OK"))
        #expect(try self.cluster.servers[4].run("GET", key) == "after")
        await client.shutdown()
    }
}
