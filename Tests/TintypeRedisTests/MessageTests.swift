// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeRedis

/// Channels of one real server.
@Suite(.waiting, .timeLimit(.minutes(5))) struct MessageTests {
    private static func client(_ port: Int) -> RedisClient {
        var configuration = RedisConfiguration(.standalone(RedisAddress("127.0.0.1", port: port)))
        configuration.commandTimeBudget = .seconds(60)
        configuration.connectTimeout = .seconds(60)
        return RedisClient(configuration)
    }

    private static func publish(_ text: String, on channel: String, _ client: RedisClient) async throws {
        _ = try await client.run(RedisCommand("PUBLISH", .text(channel), .text(text)))
    }

    @Test func `each reader of a channel gets its messages`() async throws {
        let server = try await RedisServer()
        let client = Self.client(server.port)
        var first = try client.messages(on: "a").makeAsyncIterator()
        var second = try client.messages(on: "a").makeAsyncIterator()
        var other = try client.messages(on: "b").makeAsyncIterator()
        #expect(await first.next() == .some(nil))
        #expect(await second.next() == .some(nil))
        #expect(await other.next() == .some(nil))
        try await Self.publish("one", on: "a", client)
        try await Self.publish("two", on: "b", client)
        try await Self.publish("", on: "a", client)
        #expect(await first.next() == Data("one".utf8))
        #expect(await first.next() == Data())
        #expect(await second.next() == Data("one".utf8))
        #expect(await other.next() == Data("two".utf8))
        await client.shutdown()
        #expect(await first.next() == .none)
    }

    @Test func `a lost connection is a gap, and the channel is subscribed again`() async throws {
        let server = try await RedisServer()
        let client = Self.client(server.port)
        var messages = try client.messages(on: "a").makeAsyncIterator()
        #expect(await messages.next() == .some(nil))
        _ = try await client.run(RedisCommand("CLIENT", "KILL", "TYPE", "pubsub"))
        #expect(await messages.next() == .some(nil))
        try await Self.publish("after", on: "a", client)
        #expect(await messages.next() == Data("after".utf8))
        server.stop()
        let second = try await RedisServer(port: server.port)
        #expect(await messages.next() == .some(nil))
        try await Self.publish("again", on: "a", client)
        #expect(await messages.next() == Data("again".utf8))
        await client.shutdown()
        second.stop()
    }

    @Test func `a channel without readers is unsubscribed, and the last one closes the connection`() async throws {
        let server = try await RedisServer()
        let client = Self.client(server.port)
        do {
            var kept = try client.messages(on: "kept").makeAsyncIterator()
            #expect(await kept.next() == .some(nil))
            do {
                var dropped = try client.messages(on: "dropped").makeAsyncIterator()
                #expect(await dropped.next() == .some(nil))
            }
            try await until { try await client.run(RedisCommand("PUBSUB", "CHANNELS")).elements?.count == 1 }
            try await Self.publish("here", on: "kept", client)
            #expect(await kept.next() == Data("here".utf8))
        }
        try await until {
            try await client.run(RedisCommand("INFO", "clients")).text?.contains("connected_clients:1\r\n") == true
        }
        // A channel can be subscribed again.
        var again = try client.messages(on: "kept").makeAsyncIterator()
        #expect(await again.next() == .some(nil))
        await client.shutdown()
    }

    @Test func `a cancelled reader ends`() async throws {
        let server = try await RedisServer()
        let client = Self.client(server.port)
        let messages = try client.messages(on: "a")
        let started = Gate()
        let task = Task {
            var count = 0
            for await _ in messages {
                count += 1
                await started.open()
            }
            return count
        }
        await started.wait()
        task.cancel()
        #expect(await task.value == 1)
        await client.shutdown()
    }

    @Test func `a reader waits for a server that starts later`() async throws {
        let port = try LoopbackSocket.freePort()
        let client = Self.client(port)
        var messages = try client.messages(on: "a").makeAsyncIterator()
        let server = try await RedisServer(port: port)
        #expect(await messages.next() == .some(nil))
        await client.shutdown()
        server.stop()
    }

    @Test func `a client that was shut down has no messages`() async throws {
        let client = Self.client(1)
        await client.shutdown()
        #expect(throws: RedisError.self) { try client.messages(on: "a") }
    }
}
