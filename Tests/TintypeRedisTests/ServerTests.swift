// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeRedis

/// A client of one real server.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ServerTests {
    /// Long enough for a busy machine.
    private static let patience = Duration.seconds(60)

    private static func configuration(_ port: Int) -> RedisConfiguration {
        var configuration = RedisConfiguration(.standalone(RedisAddress("127.0.0.1", port: port)))
        configuration.commandTimeBudget = Self.patience
        configuration.connectTimeout = Self.patience
        return configuration
    }

    private static func get(_ key: String) -> RedisCommand {
        RedisCommand("GET", .text(key), key: key, isReadOnly: true)
    }

    private static func code(_ body: () async throws -> RedisValue) async -> RedisError.Code? {
        do {
            _ = try await body()
            return nil
        } catch {
            return (error as? RedisError)?.code
        }
    }

    @Test func `each type of reply has its value`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        #expect(try await client.run(RedisCommand("PING")) == .status("PONG"))
        #expect(try await client.run(RedisCommand("SET", "a", "text", "EX", 60)) == .status("OK"))
        #expect(try await client.run(Self.get("a")) == .bytes(Data("text".utf8)))
        #expect(try await client.run(Self.get("b")) == .null)
        #expect(try await client.run(RedisCommand("INCRBY", "n", 41)) == .integer(41))
        let values = try await client.run(RedisCommand("MGET", "a", "b", isReadOnly: true))
        #expect(values == .array([.bytes(Data("text".utf8)), .null]))
        await #expect(throws: RedisError.self) { try await client.run(RedisCommand("NOSUCHCOMMAND")) }
        #expect(await Self.code { try await client.run(RedisCommand("INCR", "a")) } == .serverError)
        await client.shutdown()
    }

    @Test(arguments: [0, 1, 1_024, 1_025, 50_000, 4 << 20]) func `bytes come back as they were stored`(
        count: Int
    ) async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        var body = Data(0...250)
        while body.count < count { body += body }
        body = body.prefix(count)
        _ = try await client.run(RedisCommand("SET", "body", .data(body), key: "body"))
        #expect(try await client.run(Self.get("body")) == .bytes(body))
        await client.shutdown()
    }

    @Test func `many tasks share one connection`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        try await withThrowingTaskGroup { group in
            for number in 0..<500 {
                group.addTask {
                    let key = "key-\(number)"
                    _ = try await client.run(RedisCommand("SET", .text(key), .text("\(number)")))
                    #expect(try await client.run(Self.get(key)).text == "\(number)")
                }
            }
            try await group.waitForAll()
        }
        let info = try await client.run(RedisCommand("INFO", "clients")).text
        #expect(info?.contains("connected_clients:1\r\n") == true)
        let nodes = await client.nodes()
        #expect(nodes.map(\.state) == [.connected])
        #expect(nodes.map(\.role) == [.master])
        #expect(nodes.map(\.waitingCommands) == [0])
        await client.shutdown()
    }

    @Test func `a busy node gets as many connections as are permitted`() async throws {
        let server = try await RedisServer()
        var configuration = Self.configuration(server.port)
        configuration.connectionsPerNode = 3
        let client = RedisClient(configuration)
        try await until {
            try await withThrowingTaskGroup { group in
                for _ in 0..<100 { group.addTask { try await client.run(Self.get("a")) } }
                try await group.waitForAll()
            }
            let info = try await client.run(RedisCommand("INFO", "clients")).text
            return info?.contains("connected_clients:3\r\n") == true
        }
        await client.shutdown()
    }

    @Test func `a password and a user are sent before the first command`() async throws {
        let server = try await RedisServer("--user app on >secret ~* &* +@all", "--requirepass other")
        var configuration = Self.configuration(server.port)
        configuration.username = "app"
        configuration.password = "secret"
        configuration.database = 3
        let client = RedisClient(configuration)
        #expect(try await client.run(RedisCommand("ACL", "WHOAMI")).text == "app")
        #expect(try await client.run(RedisCommand("CLIENT", "INFO")).text?.contains(" db=3 ") == true)
        await client.shutdown()

        configuration.username = nil
        configuration.password = "other"
        let other = RedisClient(configuration)
        #expect(try await other.run(RedisCommand("ACL", "WHOAMI")).text == "default")
        await other.shutdown()
    }

    @Test(arguments: [nil, "wrong"]) func `a server that refuses the password is reported`(
        password: String?
    ) async throws {
        let server = try await RedisServer("--requirepass secret")
        var configuration = Self.configuration(server.port)
        configuration.password = password
        configuration.commandTimeBudget = .milliseconds(20)
        let client = RedisClient(configuration)
        // An attempt may take longer than the time budget.
        await until { await Self.code { try await client.run(Self.get("a")) } == .refused }
        #expect(await client.nodes().first?.lastError?.code == .refused)
        await client.shutdown()
    }

    @Test func `a command that a user may not run is refused, and the next one runs`() async throws {
        let server = try await RedisServer("--user app on >secret ~app:* +get +client")
        var configuration = Self.configuration(server.port)
        configuration.username = "app"
        configuration.password = "secret"
        let client = RedisClient(configuration)
        #expect(await Self.code { try await client.run(Self.get("other")) } == .refused)
        #expect(await Self.code { try await client.run(RedisCommand("DEL", "app:1")) } == .refused)
        #expect(try await client.run(Self.get("app:1")) == .null)
        await client.shutdown()
    }

    @Test func `a full server reports that it is out of memory`() async throws {
        let server = try await RedisServer("--maxmemory 1mb", "--maxmemory-policy noeviction")
        let client = RedisClient(Self.configuration(server.port))
        let body = Data(count: 1 << 20)
        var number = 0
        await until {
            number += 1
            let command = RedisCommand("SET", .text("key-\(number)"), .data(body))
            return await Self.code { try await client.run(command) } == .outOfMemory
        }
        #expect(number < 10)
        await client.shutdown()
    }

    @Test(arguments: ["SUBSCRIBE", "monitor", "MULTI", "AUTH", "", "GET\r\nx", "psubscribe"])
    func `commands that would change the shared connection are refused`(name: String) async throws {
        let client = RedisClient(Self.configuration(1))
        #expect(await Self.code { try await client.run(RedisCommand(name, "x")) } == .invalidCommand)
        await client.shutdown()
    }

    // MARK: Time

    @Test func `a paused server costs each command its time budget, and late replies are dropped`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        _ = try await client.run(RedisCommand("SET", "a", "first"))
        server.pause()
        for _ in 0..<5 {
            #expect(await Self.code { try await client.run(Self.get("a"), timeBudget: .milliseconds(1)) } == .timedOut)
        }
        server.resume()
        _ = try await client.run(RedisCommand("SET", "b", "second"))
        #expect(try await client.run(Self.get("b")).text == "second")
        #expect(try await client.run(Self.get("a")).text == "first")
        await client.shutdown()
    }

    @Test func `a paused server fills neither the memory nor the list of clients`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        _ = try await client.run(RedisCommand("PING"))
        server.pause()
        let body = Data(count: 100_000)
        await withTaskGroup { group in
            for _ in 0..<2_000 {
                group.addTask {
                    let command = RedisCommand("SET", "a", .data(body), key: "a")
                    #expect(
                        await Self.code { try await client.run(command, timeBudget: .milliseconds(5)) } == .timedOut
                    )
                }
            }
        }
        let status = try #require(await client.nodes().first)
        // The kernel and the client hold a few bodies. The other commands were dropped unsent.
        #expect(status.sentCommands < 200)
        server.resume()
        #expect(try await client.run(RedisCommand("INFO", "clients")).text?.contains("connected_clients:1\r\n") == true)
        await until { await client.nodes().first?.waitingCommands == 0 }
        await client.shutdown()
    }

    @Test func `commands beyond the limit fail at once`() async throws {
        let server = try await RedisServer()
        var configuration = Self.configuration(server.port)
        configuration.waitingLimit = 3
        let client = RedisClient(configuration)
        _ = try await client.run(RedisCommand("PING"))
        server.pause()
        let tasks = (0..<3).map { _ in Task { try await client.run(Self.get("a")) } }
        await until { await client.nodes().first?.waitingCommands == 3 }
        #expect(await Self.code { try await client.run(Self.get("a")) } == .tooManyWaiting)
        server.resume()
        for task in tasks { #expect(try await task.value == .null) }
        #expect(try await client.run(Self.get("a")) == .null)
        await client.shutdown()
    }

    @Test func `a cancelled command ends at once`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        _ = try await client.run(RedisCommand("PING"))
        server.pause()
        let task = Task { try await client.run(Self.get("a")) }
        await until { await client.nodes().first?.waitingCommands == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await client.run(Self.get("a"))
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        server.resume()
        #expect(try await client.run(Self.get("a")) == .null)
        await client.shutdown()
    }

    @Test func `a server that stays silent gets a new connection`() async throws {
        let server = try await RedisServer()
        var configuration = Self.configuration(server.port)
        configuration.connectTimeout = .milliseconds(50)
        let client = RedisClient(configuration)
        // On a busy machine, the server may stay silent for so long by itself.
        await until { await Self.code { try await client.run(RedisCommand("PING")) } == nil }
        server.pause()
        let command = RedisCommand("SET", "a", "1")
        #expect(await Self.code { try await client.run(command) } == .disconnected)
        server.resume()
        await until { await Self.code { try await client.run(command) } == nil }
        await client.shutdown()
    }

    // MARK: Connections

    @Test func `a server that starts again is found again`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        _ = try await client.run(RedisCommand("PING"))
        server.stop()
        await until { await client.nodes().first?.state == .disconnected }
        // A busy machine may need longer than the time of the command.
        await until {
            await Self.code { try await client.run(Self.get("a"), timeBudget: .milliseconds(1)) } == .disconnected
        }
        let second = try await RedisServer(port: server.port)
        // The command waits for the next attempt.
        #expect(try await client.run(RedisCommand("SET", "a", "1")) == .status("OK"))
        #expect(await client.nodes().first?.lastError == nil)
        await client.shutdown()
        second.stop()
    }

    @Test func `a lost connection fails a write, and repeats a read`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        let other = RedisClient(Self.configuration(server.port))
        _ = try await client.run(RedisCommand("PING"))
        let write = Task { try await client.run(RedisCommand("BLPOP", "list", 0)) }
        try await until {
            try await other.run(RedisCommand("INFO", "clients")).text?.contains("blocked_clients:1") == true
        }
        // Only a read that is sent after the blocking command waits for it.
        let read = Task { try await client.run(Self.get("a")) }
        await until { await client.nodes().first?.waitingCommands == 2 }
        _ = try await other.run(RedisCommand("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal"))
        #expect(await Self.code { try await write.value } == .disconnected)
        #expect(try await read.value == .null)
        await client.shutdown()
        await other.shutdown()
    }

    @Test func `an address without a server fails at once`() async throws {
        let client = RedisClient(Self.configuration(try LoopbackSocket.freePort()))
        await until {
            await Self.code { try await client.run(Self.get("a"), timeBudget: .milliseconds(20)) } == .disconnected
        }
        let status = try #require(await client.nodes().first)
        #expect(status.state == .disconnected)
        #expect(status.lastError?.message.contains("Connection refused") == true)
        await client.shutdown()
    }

    @Test func `a host name is looked up`() async throws {
        let server = try await RedisServer()
        var configuration = Self.configuration(server.port)
        configuration.deployment = .standalone(RedisAddress("localhost", port: server.port))
        let client = RedisClient(configuration)
        #expect(try await client.run(RedisCommand("PING")) == .status("PONG"))
        await client.shutdown()
    }

    @Test func `a host name that does not exist is reported`() async throws {
        var configuration = Self.configuration(6_379)
        configuration.deployment = .standalone(RedisAddress("no-such-host.invalid"))
        let client = RedisClient(configuration)
        await until {
            await Self.code { try await client.run(Self.get("a"), timeBudget: .milliseconds(20)) } == .disconnected
        }
        #expect(await client.nodes().first?.lastError?.message.contains("name of the host") == true)
        await client.shutdown()
    }

    // MARK: Shutdown

    @Test func `a shutdown fails the commands that wait, and later ones`() async throws {
        let server = try await RedisServer()
        let client = RedisClient(Self.configuration(server.port))
        _ = try await client.run(RedisCommand("PING"))
        server.pause()
        let task = Task { try await client.run(Self.get("a")) }
        await until { await client.nodes().first?.waitingCommands == 1 }
        await client.shutdown()
        #expect(await Self.code { try await task.value } == .shutDown)
        #expect(await Self.code { try await client.run(Self.get("a")) } == .shutDown)
        #expect(await client.nodes().isEmpty)
        await client.shutdown()
    }

    @Test func `a client that goes away closes its connection`() async throws {
        let server = try await RedisServer()
        let watcher = RedisClient(Self.configuration(server.port))
        do {
            let client = RedisClient(Self.configuration(server.port))
            _ = try await client.run(RedisCommand("PING"))
        }
        try await until {
            try await watcher.run(RedisCommand("INFO", "clients")).text?.contains("connected_clients:1\r\n") == true
        }
        await watcher.shutdown()
    }

    @Test func `an invalid configuration fails each command`() async throws {
        let client = RedisClient(RedisConfiguration(.cluster([])))
        #expect(await Self.code { try await client.run(RedisCommand("PING")) } == .invalidConfiguration)
        await client.shutdown()
    }
}
