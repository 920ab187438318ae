// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeRedis

/// A client of a service that a real Sentinel watches.
@Suite(.waiting, .timeLimit(.minutes(5))) struct SentinelTests {
    private struct Service {
        let master: RedisServer
        let replica: RedisServer
        let sentinel: RedisServer

        init() async throws {
            self.master = try await RedisServer(
                "--requirepass secret",
                "--masterauth secret",
                "--repl-diskless-sync-delay 0"
            )
            self.replica = try await RedisServer(
                "--requirepass secret",
                "--masterauth secret",
                "--replicaof 127.0.0.1 \(self.master.port)"
            )
            let lines = [
                "sentinel monitor main 127.0.0.1 \(self.master.port) 1", "sentinel auth-pass main secret",
                "sentinel down-after-milliseconds main 2000", "sentinel failover-timeout main 2000",
            ]
            let sentinel = try await RedisServer(port: nil, configuration: lines, options: ["--sentinel"])
            self.sentinel = sentinel
            await until {
                let text = (try? sentinel.run("INFO", "sentinel")) ?? ""
                return text.contains("slaves=1") && text.contains("status=ok")
            }
        }

        func client(seeds: [RedisAddress] = []) -> RedisClient {
            let sentinels = seeds + [RedisAddress("127.0.0.1", port: self.sentinel.port)]
            var configuration = RedisConfiguration(.sentinel(sentinels, service: "main"))
            configuration.password = "secret"
            configuration.commandTimeBudget = .seconds(60)
            configuration.connectTimeout = .seconds(5)
            return RedisClient(configuration)
        }
    }

    private static let get = RedisCommand("GET", "a", key: "a", isReadOnly: true)

    @Test func `commands and messages go to the master, also after a failover`() async throws {
        let service = try await Service()
        // The first sentinel is away.
        let client = service.client(seeds: [RedisAddress("127.0.0.1", port: try LoopbackSocket.freePort())])
        var messages = try client.messages(on: "c").makeAsyncIterator()
        #expect(try await client.run(RedisCommand("SET", "a", "1")) == .status("OK"))
        #expect(await messages.next() == .some(nil))
        #expect(await client.nodes().first { $0.role == .master }?.address.port == service.master.port)
        _ = try await client.run(RedisCommand("WAIT", 1, 1_000))

        // The sentinel orders the change, and the master becomes a replica.
        await until { (try? service.sentinel.run("SENTINEL", "FAILOVER", "main")) != nil }
        await until {
            _ = try? await client.run(RedisCommand("SET", "a", "2"))
            return await client.nodes().first { $0.role == .master }?.address.port == service.replica.port
        }
        #expect(try await client.run(RedisCommand("SET", "a", "3")) == .status("OK"))
        #expect(try await client.run(RedisCommand("ROLE")).elements?.first?.text == "master")
        #expect(await messages.next() == .some(nil))
        _ = try await client.run(RedisCommand("PUBLISH", "c", "here"))
        #expect(await messages.next() == Data("here".utf8))
        await client.shutdown()
    }

    @Test func `when the master dies, the client waits for the next one`() async throws {
        let service = try await Service()
        let client = service.client()
        #expect(try await client.run(RedisCommand("SET", "a", "1")) == .status("OK"))
        _ = try await client.run(RedisCommand("WAIT", 1, 1_000))
        service.master.stop()
        #expect(try await client.run(Self.get).text == "1")
        #expect(try await client.run(RedisCommand("SET", "a", "2")) == .status("OK"))
        #expect(await client.nodes().first { $0.role == .master }?.address.port == service.replica.port)
        await client.shutdown()
    }

    @Test func `a service that Sentinel does not know is reported`() async throws {
        let lines = ["sentinel resolve-hostnames no"]
        let sentinel = try await RedisServer(port: nil, configuration: lines, options: ["--sentinel"])
        let address = RedisAddress("127.0.0.1", port: sentinel.port)
        let client = RedisClient(RedisConfiguration(.sentinel([address], service: "other")))
        await until {
            let error = await #expect(throws: RedisError.self) { try await client.run(Self.get) }
            return error?.message.contains("knows no master of other") == true
        }
        await client.shutdown()
    }
}
