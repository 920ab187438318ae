// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeRedis

/// Replies that break the protocol, for some of which hiredis would end the process.
@Suite(.waiting, .timeLimit(.minutes(5))) struct HostileServerTests {
    private static func client(_ port: Int) -> RedisClient {
        var configuration = RedisConfiguration(.standalone(RedisAddress("127.0.0.1", port: port)))
        configuration.commandTimeBudget = .seconds(60)
        configuration.connectTimeout = .seconds(60)
        configuration.firstReconnectDelay = .milliseconds(1)
        return RedisClient(configuration)
    }

    /// Answers commands as Redis does, except that the first command named `name` gets `reply`.
    private static func impostor(_ name: String, _ reply: String) throws -> RedisImpostor {
        let isFirst = Locked(true)
        return try RedisImpostor { command in
            if command.contains(name),
                isFirst.withLock({ isFirst in
                    defer { isFirst = false }
                    return isFirst
                })
            {
                return reply
            }
            if command.contains("SUBSCRIBE") { return "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" }
            return command.contains("GET") ? "$4\r\ngood\r\n" : "+OK\r\n"
        }
    }

    private static let get = RedisCommand("GET", "a", isReadOnly: true)

    @Test(arguments: [
        "?\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "*9999999999999\r\n", "*2147483647\r\n", "*1048577\r\n", ":\r\n", "\0",
        "\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
    ])
    func `a malformed reply fails the connection, and a read is repeated`(reply: String) async throws {
        let server = try Self.impostor("GET", reply)
        let client = Self.client(server.port)
        #expect(try await client.run(Self.get).text == "good")
        await client.shutdown()
    }

    @Test(arguments: ["ERR max number of clients reached", "DENIED Redis is running in protected mode"])
    func `a server that refuses a client before its greeting ends gives the reason`(text: String) async throws {
        let server = try RedisImpostor(closesAfterAnswer: true) { _ in "-\(text)\r\n" }
        var configuration = RedisConfiguration(.standalone(RedisAddress("127.0.0.1", port: server.port)))
        configuration.password = "secret"
        configuration.commandTimeBudget = .seconds(60)
        configuration.firstReconnectDelay = .seconds(600)
        configuration.longestReconnectDelay = .seconds(600)
        let client = RedisClient(configuration)
        let error = await #expect(throws: RedisError.self) { try await client.run(Self.get) }
        #expect(error?.code == .refused && error?.message.contains(text) == true)
        await client.shutdown()
    }

    @Test(arguments: [
        // Two arrays in one whose elements are too many together, and lines without an end.
        "*2\r\n*600000\r\n" + String(repeating: ":1\r\n", count: 600_000) + "*600000\r\n",
        "+" + String(repeating: "x", count: 1 << 20), "*2\r\n:1\r\n-" + String(repeating: "x", count: 1 << 20),
        "$" + String(repeating: "0", count: 1 << 20),
    ])
    func `a reply that is too large fails the connection while it comes`(reply: String) async throws {
        let server = try Self.impostor("GET", reply)
        let client = Self.client(server.port)
        #expect(try await client.run(Self.get).text == "good")
        await client.shutdown()
    }

    @Test(arguments: [
        "+OK\r\n", ":5\r\n", "$1\r\nx\r\n", "$-1\r\n", "*0\r\n", "*3\r\n+a\r\n+b\r\n+c\r\n", "-ERR x\r\n",
    ])
    func `a reply that belongs to no command fails the connection`(reply: String) async throws {
        let server = try Self.impostor("GET", "$5\r\nfirst\r\n" + reply)
        let client = Self.client(server.port)
        #expect(try await client.run(Self.get).text == "first")
        await until { await client.nodes().first?.state == .disconnected }
        #expect(try await client.run(Self.get).text == "good")
        await client.shutdown()
    }

    @Test(arguments: [
        "+OK\r\n", "*0\r\n", "*1\r\n$1\r\nx\r\n", "*3\r\n:1\r\n:2\r\n:3\r\n", "*3\r\n$-1\r\n$-1\r\n$-1\r\n",
        "*3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n$1\r\nx\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n$-1\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n*1\r\n:1\r\n",
        "*3\r\n*1\r\n:1\r\n$1\r\na\r\n:1\r\n", "-NOPERM no\r\n",
    ])
    func `a malformed message fails the connection, and the channel is subscribed again`(reply: String) async throws {
        let server = try Self.impostor("SUBSCRIBE", reply)
        let client = Self.client(server.port)
        var messages = try client.messages(on: "a").makeAsyncIterator()
        #expect(await messages.next() == .some(nil))
        await client.shutdown()
    }

    @Test func `messages of other channels are dropped`() async throws {
        let good = "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
        let strange = "*3\r\n$7\r\nmessage\r\n$1\r\nz\r\n$1\r\nx\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n:5\r\n"
        let last = "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$4\r\nlast\r\n"
        let server = try Self.impostor("SUBSCRIBE", strange + good + strange + last)
        let client = Self.client(server.port)
        var messages = try client.messages(on: "a").makeAsyncIterator()
        #expect(await messages.next() == .some(nil))
        #expect(await messages.next() == Data("last".utf8))
        await client.shutdown()
    }
}
